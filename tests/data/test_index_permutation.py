import numpy as np
import pytest

from official_bert.data.index_permutation import permuted, places_of


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 9, 255, 1000, 4097])
def test_every_number_stands_at_one_place(size):
    order = permuted(np.arange(size), size, 7)
    assert sorted(order.tolist()) == list(range(size))


def test_a_part_of_an_order_is_that_of_the_whole():
    whole = permuted(np.arange(1000), 1000, 3)
    assert (permuted(np.arange(400, 420), 1000, 3) == whole[400:420]).all()


def test_orders_are_the_same_on_any_machine():
    assert permuted(np.arange(8), 8, 12345).tolist() == [6, 0, 2, 7, 5, 1, 4, 3]
    assert permuted(np.array([0, 1]), 10**12, -1).tolist() == [251164185, 510394628886]


def test_seeds_differ_and_neighbours_part():
    orders = [permuted(np.arange(1000), 1000, seed) for seed in range(20)]
    assert len({tuple(order) for order in orders}) == 20
    # Of 20 x 999 pairs, 40 stay together by chance.
    together = sum((abs(np.diff(order)) == 1).sum() for order in orders)
    assert 15 < together < 75
    in_place = sum((order == np.arange(1000)).sum() for order in orders)
    assert 4 < in_place < 45


def test_places_are_where_the_numbers_stand():
    for size in (1, 2, 5, 16, 1000):
        for seed in (0, 12345, -3):
            order = permuted(np.arange(size), size, seed)
            assert places_of(order, size, seed).tolist() == list(range(size))
    numbers = np.random.default_rng(0).integers(0, 10**15, 100)
    places = places_of(numbers, 10**15, 7)
    assert (permuted(places, 10**15, 7) == numbers).all()
