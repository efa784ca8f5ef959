"""The training loop costs little compared with a step of the smallest model."""

import pytest

from benchmarks import loop_cost


# It compiles and runs tiny at its real size.
@pytest.mark.slow
def test_the_loop_costs_less_than_two_percent_of_a_step():
    found = loop_cost.measure(
        batch_size=32,
        length=128,
        predictions=20,
        iterations_per_loop=100,
        steps=3,
        rounds=2,
    )
    assert 0 < found["loop_seconds"] < found["step_seconds"]
    assert found["ratio"] == pytest.approx(sum(found["ratios"]) / 2)
    assert found["ratio"] < 0.02
