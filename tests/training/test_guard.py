"""Steps without a finite gradient are skipped; float16's loss scale."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import updates

from official_bert.training import guard as guard_module
from official_bert.training.guard import Guard
from official_bert.training.optimizer import BertAdam
from official_bert.training.step import Objective, StepSettings, make_train_step

TERMS = ("masked_lm_loss", "masked_lm_accuracy")
TERMS += ("next_sentence_loss", "next_sentence_accuracy")


@pytest.fixture(scope="module")
def training():
    """A state and its compiled step, shared by tests that each restart it."""
    state = updates.make_state()
    return state, updates.make_step(state)


def values(report):
    return {name: float(value) for name, value in report.items()}


def restart(state, weights=None):
    """Reset a state to step 2 without skipped steps."""
    for name, value in (weights or {}).items():
        state.weights_and_slots()[name].assign(value)
    state.optimizer.iterations.assign(2)
    for variable in (state.guard.skipped, state.guard.skipped_in_row):
        variable.assign(0)


def test_a_bad_gradient_leaves_weights_and_moments_as_they_are(training):
    state, step = training
    step(updates.batch())
    restart(state)
    before = updates.numbers(state)
    for count in (1, 2):
        report = values(step(updates.poisoned(updates.batch())))
        after = updates.numbers(state)
        assert set(after) == set(before)
        for name, value in before.items():
            assert after[name].tobytes() == value.tobytes(), name
        assert state.step == 2 + count
        assert report["skipped_updates"] == report["skipped_in_row"] == count
    # If all moments were still 0, the test would prove little.
    assert any(value.any() for name, value in before.items() if "adam_v" in name)


def test_report_of_a_skipped_update(training):
    state, step = training
    restart(state)
    report = values(step(updates.poisoned(updates.batch())))
    for name in TERMS:
        assert report[name] == 0
        assert report[f"{name}/weight"] == 0
    assert not np.isfinite(report["gradient_norm"])
    assert report["learning_rate"] == pytest.approx(1e-3)


def test_a_good_batch_trains_on_as_if_the_bad_one_had_not_been(training):
    state, step = training
    restart(state)
    before = updates.numbers(state)
    step(updates.poisoned(updates.batch()))
    assert state.step == 3
    report = values(step(updates.batch(first=8)))
    after = updates.numbers(state)
    assert (report["skipped_updates"], report["skipped_in_row"]) == (1, 0)
    assert report["next_sentence_loss/weight"] == 8
    for name, value in before.items():
        assert not np.array_equal(after[name], value), name

    restart(state, before)
    state.optimizer.iterations.assign(3)
    report = values(step(updates.batch(first=8)))
    assert (report["skipped_updates"], report["skipped_in_row"]) == (0, 0)
    for name, value in updates.numbers(state).items():
        np.testing.assert_array_equal(value, after[name], err_msg=name)


class Line(keras.Model):
    """slope * weight for each of two weights, in a dtype, to choose gradients."""

    def __init__(self, dtype):
        super().__init__()
        self.kind = dtype
        self.lengths = self.add_weight(shape=(2,), initializer="zeros", name="lengths")
        self.built = True

    def call(self, features, training=False, dropout_seed=None, kernels=None):
        lengths = tf.cast(tf.convert_to_tensor(self.lengths), self.kind)
        return tf.cast(features["slopes"], self.kind) * lengths


def line_step(dtype, scaled=False, divisor=1.0):
    """Return a training step in which the loss is the line's sum over `divisor`.

    Returns:
      (guard, `BertAdam`, function: two slopes -> report).
    """
    model, optimizer, guard = Line(dtype), BertAdam(1e-3), Guard(scaled)
    optimizer.build(model.trainable_variables)
    objective = Objective(
        losses={"loss": 0.0},
        weights=lambda features: {"loss": tf.constant(divisor)},
        terms=lambda outputs, features: {
            "loss": (tf.reduce_sum(tf.cast(outputs, tf.float32)), tf.constant(divisor))
        },
    )
    strategy = tf.distribute.get_strategy()
    step = make_train_step(
        strategy, model, optimizer, guard, objective, StepSettings(1)
    )
    return (
        guard,
        optimizer,
        lambda *slopes: values(step({"slopes": tf.constant(slopes)})),
    )


def test_one_infinite_number_is_enough():
    _, optimizer, step = line_step("float32")
    report = step(1.0, np.inf)
    assert report["skipped_updates"] == 1
    assert not optimizer.adam_m[0].numpy().any()


def test_a_gradient_whose_norm_overflows_is_skipped():
    """Clipping would divide by the norm and make all gradients 0."""
    _, optimizer, step = line_step("float32")
    report = step(1e30, 1e30)
    assert report["skipped_updates"] == 1
    assert not optimizer.adam_m[0].numpy().any()


def test_the_scale_halves_until_float16_holds_the_gradient():
    guard, optimizer, step = line_step("float16", scaled=True)
    reports = [step(100.0, 0.0) for _ in range(7)]
    # 65,504 is the largest float16. 100 times 512 is smaller.
    scales = [report["loss_scale"] for report in reports]
    assert scales == [2.0**power for power in range(15, 8, -1)]
    assert [report["skipped_updates"] for report in reports] == [1, 2, 3, 4, 5, 6, 6]
    assert reports[-1]["skipped_in_row"] == 0
    assert int(guard.good_updates) == 1
    # The gradient is 100 with any scale. Clipping makes it 1.
    assert reports[-1]["gradient_norm"] == pytest.approx(100, rel=1e-3)
    np.testing.assert_allclose(optimizer.adam_m[0], [0.1, 0.0], rtol=1e-3)


@pytest.mark.parametrize(("scaled", "norm"), [(True, 1e-9), (False, 0.0)])
def test_scaling_saves_what_vanishes_in_float16(scaled, norm):
    _, _, step = line_step("float16", scaled, divisor=1e9)
    assert step(1.0, 0.0)["gradient_norm"] == pytest.approx(norm, rel=5e-3)


def test_the_scale_grows_while_training(monkeypatch):
    monkeypatch.setattr(guard_module, "GROWTH_STEPS", 3)
    _, _, step = line_step("float16", scaled=True)
    reports = [step(1.0, 0.0) for _ in range(7)]
    first = 2.0**15
    # 2^16 is too large for float16, so the step with this scale is skipped.
    scales = [report["loss_scale"] for report in reports]
    assert scales == [first] * 3 + [2 * first] + [first] * 3
    assert reports[-1]["skipped_updates"] == 1


def scale_after(guard, *finite):
    """Count steps; return the loss scale after each."""
    scales = []
    for each in finite:
        guard.count(tf.constant(each))
        scales.append(float(guard.loss_scale))
    return scales


def test_two_thousand_good_updates_double_the_scale():
    guard = Guard(scaled=True)
    guard.good_updates.assign(1998)
    assert scale_after(guard, True, True, True) == [2.0**15, 2.0**16, 2.0**16]
    # Counting restarts after each change.
    assert int(guard.good_updates) == 1


def test_an_overflow_begins_the_count_anew():
    guard = Guard(scaled=True)
    guard.good_updates.assign(1999)
    assert scale_after(guard, False, True) == [2.0**14, 2.0**14]
    assert int(guard.good_updates) == 1


def test_the_scale_is_never_below_one():
    guard = Guard(scaled=True)
    guard.loss_scale.assign(2.0)
    assert scale_after(guard, False, False, False) == [1.0, 1.0, 1.0]


def test_without_scaling_the_scale_is_one():
    guard = Guard()
    guard.good_updates.assign(1999)
    assert float(guard.loss_scale) == 1.0
    assert scale_after(guard, True, False) == [1.0, 1.0]


def test_what_is_counted():
    guard = Guard()
    found = []
    for finite in (True, False, False, True, False):
        guard.count(tf.constant(finite))
        found.append((int(guard.skipped), int(guard.skipped_in_row)))
    assert found == [(0, 0), (1, 1), (2, 2), (2, 0), (3, 1)]
    # A run saves all of it; the scale only with loss scaling.
    saved = {name: float(v) for name, v in guard.variables().items()}
    assert saved == {"skipped": 3, "skipped_in_row": 1}
    assert Guard(scaled=True).variables().keys() - saved.keys() == {
        "loss_scale",
        "good_updates",
    }
