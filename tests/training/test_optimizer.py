"""`BertAdam` compared with its formula in numpy."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.modeling.pretraining import PretrainingModel
from official_bert.training.optimizer import BertAdam, decays

CONFIG = BertConfig(
    vocab_size=20,
    hidden_size=8,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=12,
    max_position_embeddings=10,
    type_vocab_size=2,
)

NOT_DECAYED_IN_A_LAYER = {
    "attention/self/query/bias",
    "attention/self/key/bias",
    "attention/self/value/bias",
    "attention/output/dense/bias",
    "attention/output/LayerNorm/gamma",
    "attention/output/LayerNorm/beta",
    "intermediate/dense/bias",
    "output/dense/bias",
    "output/LayerNorm/gamma",
    "output/LayerNorm/beta",
}
NOT_DECAYED = {
    "bert/embeddings/LayerNorm/gamma",
    "bert/embeddings/LayerNorm/beta",
    "bert/pooler/dense/bias",
    "cls/predictions/transform/dense/bias",
    "cls/predictions/transform/LayerNorm/gamma",
    "cls/predictions/transform/LayerNorm/beta",
    "cls/predictions/output_bias",
    "cls/seq_relationship/output_bias",
} | {
    f"bert/encoder/layer_{i}/{name}" for i in (0, 1) for name in NOT_DECAYED_IN_A_LAYER
}


def real_variables():
    """Return all variables of a small pre-training model, standard deviation 0.3."""
    rng = np.random.default_rng(0)
    variables = PretrainingModel(CONFIG).trainable_variables
    for variable in variables:
        variable.assign(0.3 * rng.normal(size=variable.shape))
    return variables


def numpy_adam(weights, gradients, rate, decay, correct=False):
    """Return the weights, m and v after one training step per row of gradients."""
    m, v = np.zeros_like(weights), np.zeros_like(weights)
    for t, g in enumerate(gradients, start=1):
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        m_hat = m / (1 - 0.9**t) if correct else m
        v_hat = v / (1 - 0.999**t) if correct else v
        update = m_hat / (np.sqrt(v_hat) + 1e-6) + decay * weights
        weights = weights - rate * update
    return weights, m, v


def random_gradients(variables, steps=20):
    """Return lists of gradients; some are so small that ε matters."""
    rng = np.random.default_rng(1)
    return [
        [rng.normal(size=v.shape) * 10.0 ** rng.uniform(-7, 0) for v in variables]
        for _ in range(steps)
    ]


@pytest.mark.parametrize("correct", [False, True])
def test_twenty_steps_on_the_real_variables(correct):
    variables = real_variables()
    before = [v.numpy().astype(np.float64) for v in variables]
    steps = random_gradients(variables)
    optimizer = BertAdam(1e-3, bias_correction=correct)
    optimizer.build(variables)
    update = tf.function(lambda gradients: optimizer.apply(gradients, variables))
    for gradients in steps:
        update([tf.constant(g, tf.float32) for g in gradients])
    assert int(optimizer.iterations) == 20
    for i, variable in enumerate(variables):
        decay = 0.0 if variable.path in NOT_DECAYED else 0.01
        gradients = [step[i] for step in steps]
        weights, m, v = numpy_adam(before[i], gradients, 1e-3, decay, correct)
        np.testing.assert_allclose(variable, weights, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(optimizer.adam_m[i], m, rtol=1e-4, atol=1e-9)
        np.testing.assert_allclose(optimizer.adam_v[i], v, rtol=1e-4, atol=1e-15)


def test_exactly_layer_norms_and_biases_are_not_decayed():
    variables = real_variables()
    excluded = {v.path for v in variables if not decays(v)}
    assert excluded == NOT_DECAYED
    assert len(variables) == 5 + 2 * 16 + 2 + 5 + 2
    assert len(excluded) == 28


def test_decay_alone_shrinks_only_what_is_decayed():
    variables = real_variables()
    before = [v.numpy() for v in variables]
    optimizer = BertAdam(0.5, weight_decay_rate=0.1)
    optimizer.build(variables)
    optimizer.apply([tf.zeros_like(v) for v in variables], variables)
    for old, variable in zip(before, variables, strict=True):
        kept = 1.0 if variable.path in NOT_DECAYED else 1 - 0.5 * 0.1
        np.testing.assert_allclose(variable, kept * old, rtol=1e-6)


def test_decay_is_of_the_weights_before_the_update():
    variable = keras.Variable([2.0], name="kernel")
    optimizer = BertAdam(1.0, weight_decay_rate=0.5)
    optimizer.build([variable])
    optimizer.apply([tf.constant([1.0])], [variable])
    np.testing.assert_allclose(variable, [2 - 0.5 * 2 - np.sqrt(10)], rtol=1e-4)


def test_first_update_is_three_times_adams():
    """Without bias correction it is 0.1 g / √(0.001 g²), for every g."""
    variable = keras.Variable(tf.zeros([3]), name="kernel")
    optimizer = BertAdam(1e-3)
    optimizer.build([variable])
    optimizer.apply([tf.constant([1.0, -2.0, 50.0])], [variable])
    np.testing.assert_allclose(
        variable, -1e-3 * np.sqrt(10) * np.array([1, -1, 1]), rtol=1e-4
    )


def test_epsilon_is_outside_the_root():
    gradient = 1e-6
    variable = keras.Variable(tf.zeros([1]), name="kernel")
    optimizer = BertAdam(1.0)
    optimizer.build([variable])
    optimizer.apply([tf.constant([gradient])], [variable])
    expected = -0.1 * gradient / (np.sqrt(0.001) * gradient + 1e-6)
    np.testing.assert_allclose(variable, [expected], rtol=1e-4)


def test_slots_are_named_for_their_variables():
    variables = real_variables()
    optimizer = BertAdam()
    optimizer.build(variables)
    for i, variable in enumerate(variables):
        assert optimizer.adam_m[i].shape == variable.shape
        assert not optimizer.adam_v[i].numpy().any()
    assert "adam_m" in optimizer.adam_m[0].path
    assert "adam_v" in optimizer.adam_v[0].path
    assert "word_embeddings" in optimizer.adam_m[0].path


def test_works_under_fit():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile(BertAdam(0.02), "mse")
    x = np.random.default_rng(0).normal(size=(64, 4)).astype(np.float32)
    y = x @ np.array([[1.0], [2.0], [-1.0], [0.5]], np.float32)
    losses = model.fit(x, y, batch_size=8, epochs=10, verbose=0).history["loss"]
    assert losses[-1] < 0.3 * losses[0]


def test_serialisable():
    optimizer = BertAdam(3e-5, weight_decay_rate=0.02, bias_correction=True)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert isinstance(again, BertAdam)
    assert again.get_config() == optimizer.get_config()
    assert (again.beta_1, again.beta_2, again.epsilon) == (0.9, 0.999, 1e-6)
