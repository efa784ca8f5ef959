"""The learning rate at the steps where implementations differ."""

import dataclasses

import keras
import numpy as np
import original_head
import pytest

from official_bert.training.recipes.optimization import (
    OptimizationSettings,
    make_schedule,
)
from official_bert.training.schedule import WarmupConstantDecay, WarmupLinearDecay

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


@pytest.mark.parametrize(
    "step, expected",
    [
        (0, 0.0),
        (50, 5e-5),
        # After warm-up, the learning rate is the peak.
        (100, 1e-4),
        (800, 1e-4),
        # A quarter of the decay steps are done: 1 - √0.25.
        (850, 5e-5),
        (999, 1e-4 * (1 - (199 / 200) ** 0.5)),
        (1000, 0.0),
        (2000, 0.0),
    ],
)
def test_constant_rate_with_decay(step, expected):
    schedule = WarmupConstantDecay(PEAK, TOTAL, WARMUP, 200)
    assert float(schedule(step)) == pytest.approx(expected, rel=1e-4, abs=1e-12)


def test_steps_before_the_decay_do_not_depend_on_the_length():
    short, long = (
        WarmupConstantDecay(PEAK, total, WARMUP, 200) for total in (TOTAL, 10 * TOTAL)
    )
    for step in (0, 7, 100, 799, 800):
        assert float(short(step)) == float(long(step))
    assert float(short(801)) < float(long(801))


def test_the_settings_select_the_schedule():
    settings = OptimizationSettings(PEAK, TOTAL, WARMUP)
    assert settings.to_dict() == {
        "learning_rate": PEAK,
        "num_train_steps": TOTAL,
        "num_warmup_steps": WARMUP,
        "optimizer": "adam",
        "bias_correction": False,
    }
    assert type(make_schedule(settings)) is WarmupLinearDecay
    changes = {"learning_rate_schedule": "constant_decay", "num_decay_steps": 200}
    settings = dataclasses.replace(settings, **changes)
    assert changes.items() <= settings.to_dict().items()
    expected = WarmupConstantDecay(PEAK, TOTAL, WARMUP, 200).get_config()
    schedule = make_schedule(settings)
    assert schedule.get_config() == expected
    again = keras.optimizers.schedules.deserialize(
        keras.optimizers.schedules.serialize(schedule)
    )
    assert again.get_config() == expected
