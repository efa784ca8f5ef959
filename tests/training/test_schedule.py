"""The learning rate at the steps where implementations differ."""

import keras
import numpy as np
import original_head
import pytest

from official_bert.training.schedule import WarmupLinearDecay

PEAK, TOTAL, WARMUP = 1e-4, 1000, 100


def by_definition(step):
    """Return the original's rate, in numpy: decay also counts warm-up steps."""
    if step < WARMUP:
        return PEAK * step / WARMUP
    return PEAK * (1 - min(step, TOTAL) / TOTAL)


@pytest.mark.parametrize(
    "step, expected",
    [
        (0, 0.0),
        (1, 1e-6),
        (99, 9.9e-5),
        # The rate after warm-up is below the peak by 100/1000.
        (100, 9e-5),
        (500, 5e-5),
        (999, 1e-7),
        (1000, 0.0),
        (2000, 0.0),
    ],
)
def test_learning_rate(step, expected):
    rate = float(WarmupLinearDecay(PEAK, TOTAL, WARMUP)(step))
    assert rate == pytest.approx(expected, rel=1e-4, abs=1e-12)
    assert by_definition(step) == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_every_step():
    schedule = WarmupLinearDecay(PEAK, TOTAL, WARMUP)
    ours = [float(schedule(step)) for step in range(0, TOTAL + 10, 7)]
    expected = [by_definition(step) for step in range(0, TOTAL + 10, 7)]
    np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-11)


@pytest.mark.comparison
def test_rates_of_the_original():
    settings = original_head.SETTINGS
    schedule = WarmupLinearDecay(
        settings["learning_rate"],
        settings["num_train_steps"],
        settings["num_warmup_steps"],
    )
    recorded = original_head.recording()["learning_rates"]
    ours = [float(schedule(step)) for step in range(len(recorded))]
    np.testing.assert_allclose(ours, recorded, rtol=1e-6, atol=0)


def test_without_warmup_the_first_rate_is_the_highest():
    schedule = WarmupLinearDecay(PEAK, TOTAL)
    assert float(schedule(0)) == pytest.approx(PEAK)
    assert float(schedule(500)) == pytest.approx(PEAK / 2)


def test_warmup_over_all_steps():
    schedule = WarmupLinearDecay(PEAK, 10, 10)
    assert float(schedule(9)) == pytest.approx(0.9 * PEAK)
    assert float(schedule(10)) == 0


def test_serialisable():
    schedule = WarmupLinearDecay(PEAK, TOTAL, WARMUP)
    again = keras.optimizers.schedules.deserialize(
        keras.optimizers.schedules.serialize(schedule)
    )
    assert again.get_config() == schedule.get_config()
