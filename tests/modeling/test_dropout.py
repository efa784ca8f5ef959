"""Dropout: its rate, its scale, and masks that are functions of a seed."""

import functools
import math

import numpy as np
import pytest
import tensorflow as tf
from kernel_variants import dropout_by_hash

from official_bert.modeling.dropout import dropout
from official_bert.modeling.kernels.hashed_dropout import hashed_dropout, mask_key


@pytest.fixture(params=[dropout, dropout_by_hash], ids=["generator", "hash"])
def drop(request):
    """The dropout function: (x, rate, seed, dropout index) -> tensor."""
    return request.param


@pytest.fixture
def mask(drop):
    """A function that returns ones after dropout."""

    def make(seed=(1, 0), index=0, rate=0.1, shape=(400, 500)):
        return drop(tf.ones(shape), rate, tf.constant(seed, tf.int64), index).numpy()

    return make


def test_dropout_rate_and_scale(drop, mask):
    dropped = mask()
    zeros = (dropped == 0).mean()
    # The limit is four standard errors of 200,000 draws.
    assert abs(zeros - 0.1) < 4 * math.sqrt(0.1 * 0.9 / dropped.size)
    kept = np.unique(dropped[dropped != 0])
    values = 2**32 if drop is dropout_by_hash else 2**16
    scale = values / (values - round(0.1 * values))
    np.testing.assert_allclose(kept, [scale], rtol=1e-7)


def test_dropout_keeps_the_mean(mask):
    assert abs(mask(rate=0.5).mean() - 1) < 4 / math.sqrt(200_000)


def test_dropout_is_independent_along_both_axes(mask):
    dropped = (mask() == 0) - 0.1
    for shifted in (dropped[1:] * dropped[:-1], dropped[:, 1:] * dropped[:, :-1]):
        assert abs(shifted.mean()) < 4 * 0.09 / math.sqrt(shifted.size)


def test_dropout_mask_is_a_pure_function_of_its_seed_and_index(drop, mask):
    np.testing.assert_array_equal(mask(), mask())
    graph = tf.function(lambda: drop(tf.ones((400, 500)), 0.1, [1, 0], 0))
    np.testing.assert_array_equal(mask(), graph())


@pytest.mark.parametrize("seed", [(1, 0), (1, 2**32), (2**32 + 1, 2**33)])
def test_dropout_mask_is_the_same_compiled_by_xla(seed, drop, mask):
    """Runs with and without --xla can therefore be compared.

    The training step is in the upper half of the second number. XLA's default
    generator does not use that half.
    """

    @functools.partial(tf.function, jit_compile=True)
    def compiled(seed):
        return drop(tf.ones((400, 500)), 0.1, seed, 0)

    found = compiled(tf.constant(seed, tf.int64))
    np.testing.assert_array_equal(mask(seed=seed), found)


@pytest.mark.parametrize("other", [{"seed": (2, 0)}, {"seed": (1, 1)}, {"index": 1}])
def test_dropout_masks_differ_and_are_unrelated(other, mask):
    both = ((mask() == 0) & (mask(**other) == 0)).mean()
    assert abs(both - 0.01) < 4 * math.sqrt(0.01 * 0.99 / 200_000)


def test_dropout_of_an_odd_number_of_elements(mask):
    assert mask(shape=(3, 5)).shape == (3, 5)


def test_no_dropout_without_seed_or_rate():
    x = tf.ones([3])
    assert dropout(x, 0.1, None, 0) is x
    assert dropout(x, 0.0, tf.constant([1, 0], tf.int64), 0) is x


def test_dropout_gradient_has_the_same_mask(drop):
    seed = tf.constant([5, 7], tf.int64)
    x = tf.ones([30, 30])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = drop(x, 0.3, seed, 2)
    np.testing.assert_array_equal(tape.gradient(y, x), y)


def test_no_hashed_dropout_without_rate():
    x = tf.ones([3])
    assert hashed_dropout(x, tf.constant([1, 2], tf.uint32), rate=0.0) is x


@pytest.mark.parametrize("shift", [1, 2, 16, 256, 384, 65536])
def test_hashed_places_are_independent_at_each_distance(shift):
    """Tests 2^22 consecutive positions, within a row and from row to row."""
    key = mask_key(tf.constant([1, 0], tf.int64), 0)
    zeros = hashed_dropout(tf.ones([2**22]), key, rate=0.1).numpy() == 0
    both = (zeros[shift:] & zeros[:-shift]).mean()
    assert abs(both - 0.01) < 4 * math.sqrt(0.01 * 0.99 / len(zeros))


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_keys_of_one_bit_s_difference_give_unrelated_masks(rate):
    size = 2**18
    ones = tf.ones([size])

    def zeros(key):
        key = tf.constant(key, tf.uint32)
        return hashed_dropout(ones, key, rate=rate).numpy() == 0

    first = zeros([0, 0])
    bits = [1 << bit for bit in range(32)]
    for key in [(bit, 0) for bit in bits] + [(0, bit) for bit in bits]:
        both = (first & zeros(key)).mean()
        deviation = rate * math.sqrt((1 - rate**2) / size)
        assert abs(both - rate**2) < 4.5 * deviation, key
