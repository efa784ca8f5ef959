"""Learning rates per layer, and the average of the last weights."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import updates

from official_bert.training.optimizer import BertAdam
from official_bert.training.recipes.optimization import (
    OptimizationSettings,
    make_optimizer,
)
from official_bert.training.recipes.stable_adam import (
    StableAdam,
    averaged_weights,
    layer_rates,
)

RATE = 0.01


def train(optimizer, steps=4, variables=None):
    """Return the variables, and their values before and after each training step."""
    rng = np.random.default_rng(0)
    variables = variables or updates.make_state().model.trainable_variables
    optimizer.build(variables)
    values = [[variable.numpy() for variable in variables]]
    for _ in range(steps):
        gradients = [
            tf.constant(rng.normal(size=v.shape), tf.float32) for v in variables
        ]
        optimizer.apply(gradients, variables)
        values.append([variable.numpy() for variable in variables])
    return variables, values


def test_rates_fall_from_the_head_to_the_embeddings():
    paths = [
        "bert/embeddings/LayerNorm/beta",
        "bert/encoder/layer_0/output/dense/kernel",
        "bert/encoder/layer_11/output/dense/kernel",
        "bert/encoder/layer_2/attention/self/query/bias",
        "bert/pooler/dense/kernel",
        "classifier/output_weights",
    ]
    expected = [0.5**13, 0.5**12, 0.5, 0.5**10, 1.0, 1.0]
    assert layer_rates(paths, 0.5) == expected
    assert layer_rates(paths, 1.0) == [1.0] * 6


def test_a_variable_moves_by_its_own_rate():
    plain = train(BertAdam(RATE, weight_decay_rate=0.0), 1)
    variables, values = train(StableAdam(RATE, 0.5, weight_decay_rate=0.0), 1)
    rates = layer_rates([variable.path for variable in variables], 0.5)
    assert set(rates) == {1.0, 0.5, 0.25}
    for i, rate in enumerate(rates):
        expected = rate * (plain[1][1][i] - plain[1][0][i])
        np.testing.assert_allclose(values[1][i] - values[0][i], expected, atol=1e-6)


def averages(variables, optimizer):
    """Return the average of each variable, an array."""
    pairs = zip(variables, optimizer.offsets, strict=True)
    return [variable.numpy() + offset.numpy() for variable, offset in pairs]


def test_the_average_is_the_mean_of_the_last_weights():
    optimizer = StableAdam(RATE, first_averaged=2)
    variables, values = train(optimizer, 5)
    for i, average in enumerate(averages(variables, optimizer)):
        expected = np.mean([each[i] for each in values[3:]], axis=0)
        np.testing.assert_allclose(average, expected, rtol=1e-6, atol=1e-7)


def test_the_average_of_a_long_run_is_exact():
    # Each change of the average is a few units in the last place of the weight, so a
    # running mean in float32 would be wrong by about ten times the tolerance.
    optimizer = StableAdam(1e-6, weight_decay_rate=0.0, first_averaged=0)
    variable = keras.Variable([1.0])
    optimizer.build([variable])
    total, count = 0.0, 2000
    update = tf.function(lambda: optimizer.apply([tf.constant([1.0])], [variable]))
    for _ in range(count):
        update()
        total += variable.numpy().astype("float64")
    (average,) = averages([variable], optimizer)
    np.testing.assert_allclose(average, total / count, rtol=1e-7)


def test_a_skipped_first_step_does_not_shrink_the_average():
    optimizer = StableAdam(RATE, first_averaged=0)
    state = updates.make_state(updates.WITHOUT_DROPOUT, optimizer=optimizer)
    step = updates.make_step(state)
    variables = state.model.trainable_variables
    step(updates.poisoned(updates.batch()))
    values = [[variable.numpy() for variable in variables]]
    step(updates.batch())
    values.append([variable.numpy() for variable in variables])
    for i, average in enumerate(averages(variables, optimizer)):
        expected = np.mean([each[i] for each in values], axis=0)
        np.testing.assert_allclose(average, expected, rtol=1e-6, atol=1e-7)


def test_before_its_first_step_the_average_equals_the_weights():
    optimizer = StableAdam(RATE, first_averaged=3)
    variables, values = train(optimizer, 3)
    for average, value in zip(averages(variables, optimizer), values[-1], strict=True):
        np.testing.assert_array_equal(average, value)


def test_the_model_has_the_average_inside_the_context():
    state = updates.make_state(optimizer=StableAdam(RATE, first_averaged=0))
    model, optimizer = state.model, state.optimizer
    train(optimizer, 3, model.trainable_variables)
    trained = [variable.numpy() for variable in model.trainable_variables]
    expected = averages(model.trainable_variables, optimizer)
    with averaged_weights(model, optimizer):
        for variable, average in zip(model.trainable_variables, expected, strict=True):
            np.testing.assert_array_equal(variable, average)
    for variable, value in zip(model.trainable_variables, trained, strict=True):
        np.testing.assert_array_equal(variable, value)
    assert {"adam_m", "adam_v", "average_offset"} == {
        name.rpartition("/")[2] for name in state.slots()
    }


def test_all_switches_off_is_berts_adam():
    plain, stable = train(BertAdam(RATE)), train(StableAdam(RATE))
    for one, other in zip(plain[1][-1], stable[1][-1], strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("changes", "kind", "first"),
    [
        ({}, BertAdam, None),
        ({"layer_decay": 0.9}, StableAdam, None),
        ({"average_last": 0.25}, StableAdam, 75),
        ({"average_last": 0.001}, StableAdam, 99),
        ({"average_last": 1.0}, StableAdam, 0),
    ],
)
def test_the_settings_select_the_optimizer(changes, kind, first):
    settings = OptimizationSettings(1e-3, 100, bias_correction=True, **changes)
    optimizer = make_optimizer(settings)
    assert type(optimizer) is kind and optimizer.bias_correction
    assert getattr(optimizer, "first_averaged", None) == first
    assert settings.to_dict().keys() & {"layer_decay", "average_last"} == set(changes)


def test_serializable():
    optimizer = StableAdam(3e-4, 0.9, 7, weight_decay_rate=0.02)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert isinstance(again, StableAdam)
    assert again.get_config() == optimizer.get_config()
