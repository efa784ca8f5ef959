"""Activations and LayerNorm compared with their definitions."""

import functools
import math

import numpy as np
import pytest
import tensorflow as tf
from optimized_graph import operations
from record_files import MINI_CONFIG

from official_bert.config import HIDDEN_ACTIVATIONS, BertConfig
from official_bert.errors import UserError
from official_bert.modeling import heads, layers, transformer
from official_bert.modeling.kernels import gradients
from official_bert.modeling.kernels.interface import PLAIN
from official_bert.training.precision import computing_in

X = np.linspace(-5, 5, 101).astype(np.float32)


def gradient(function, *inputs):
    inputs = [tf.constant(value) for value in inputs]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        # Squared, so that the upstream gradient is not constant.
        loss = tf.reduce_sum(function(*inputs) ** 2)
    return [value.numpy() for value in tape.gradient(loss, inputs)]


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def gelu_erf(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


@pytest.mark.parametrize(
    "name, expected",
    [
        ("gelu", gelu_tanh),
        ("gelu_erf", gelu_erf),
        ("relu", lambda x: np.maximum(x, 0)),
        ("tanh", np.tanh),
        ("linear", lambda x: x),
    ],
)
def test_hidden_act(name, expected):
    ours = PLAIN.activation(name)(tf.constant(X)).numpy()
    np.testing.assert_allclose(ours, expected(X.astype(np.float64)), atol=1e-6)


def test_every_hidden_act_of_the_config_is_known():
    for name in HIDDEN_ACTIVATIONS:
        assert callable(PLAIN.activation(name))


def test_gelu_forms_differ_by_a_thousandth():
    difference = np.abs(layers.gelu(X) - layers.gelu_erf(X)).max()
    assert 1e-4 < difference < 1e-3


# The plain functions, and the ones with hand-written gradients.
FORMS = [layers, gradients]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("name", "is_tanh"), [("gelu", True), ("gelu_erf", False)])
def test_gelu_gradient(name, is_tanh, form):
    ours = gradient(getattr(form, name), X)[0]
    plain = gradient(lambda x: tf.nn.gelu(x, approximate=is_tanh), X)[0]
    np.testing.assert_allclose(ours, plain, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["gelu", "gelu_erf"])
def test_gelu_is_a_part_of_the_product_before_it(name, form):
    """With oneDNN and without a gradient, it takes one pass instead of nine."""
    x, kernel = tf.ones([64, 32]), tf.Variable(tf.ones([32, 16]))

    def dense(activation, x):
        product = tf.nn.bias_add(tf.matmul(x, kernel), tf.ones([16]))
        return activation(product)

    if "_MklNativeFusedMatMul" not in operations(lambda x: dense(tf.nn.relu, x), x):
        pytest.skip("this TensorFlow computes without oneDNN")
    found = operations(lambda x: dense(getattr(form, name), x), x)
    assert "_MklNativeFusedMatMul" in found
    assert not found & {"Tanh", "Erf", "Mul"}


def layer_norm_by_definition(x, gamma, beta):
    mean = tf.reduce_mean(x, -1, keepdims=True)
    variance = tf.reduce_mean((x - mean) ** 2, -1, keepdims=True)
    return (x - mean) / tf.sqrt(variance + 1e-12) * gamma + beta


def layer_norm_inputs():
    rng = np.random.default_rng(0)
    shapes = [(7, 12), (12,), (12,)]
    return [rng.normal(1, 2, shape).astype(np.float32) for shape in shapes]


def built_layer_norm(gamma, beta, **kwargs):
    layer = layers.LayerNorm(**kwargs)
    layer.build((None, len(gamma)))
    layer.gamma.assign(gamma)
    layer.beta.assign(beta)
    return layer


def test_layer_norm():
    x, gamma, beta = layer_norm_inputs()
    expected = layer_norm_by_definition(x, gamma, beta)
    ours = built_layer_norm(gamma, beta)(x)
    np.testing.assert_allclose(ours, expected, atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_layer_norm_gradients(form):
    inputs = layer_norm_inputs()
    ours = gradient(functools.partial(form.layer_norm, epsilon=1e-12), *inputs)
    plain = gradient(layer_norm_by_definition, *inputs)
    for a, b in zip(ours, plain, strict=True):
        np.testing.assert_allclose(a, b, atol=2e-5, rtol=1e-5)


def test_layer_norm_epsilon_is_tiny():
    """A row with standard deviation 1e-4 is scaled to 1; with ε = 1e-5 to 0.03."""
    x = 1e-4 * np.tile([1.0, -1.0], 6).astype(np.float32)[np.newaxis]
    ours = built_layer_norm(np.ones(12), np.zeros(12))(x)
    np.testing.assert_allclose(ours, x * 1e4, rtol=1e-3)


def test_layer_norm_epsilon_of_a_config():
    """With variance 1e-8 and ε = 3e-8 the root is 2e-4, so half the scaling remains."""
    x = 1e-4 * np.tile([1.0, -1.0], 6).astype(np.float32)[np.newaxis]
    ours = built_layer_norm(np.ones(12), np.zeros(12), epsilon=3e-8)(x)
    np.testing.assert_allclose(ours, x * 0.5e4, rtol=1e-5)


def test_layer_norm_of_a_constant_row_is_finite():
    ones = np.ones(12, np.float32)
    ours = built_layer_norm(ones, 2 * ones)(3 * ones[np.newaxis])
    np.testing.assert_array_equal(ours, 2 * ones[np.newaxis])


def test_layer_norm_computes_in_float32_under_mixed_precision():
    """In float16 the squares of these numbers, and ε, would be zero."""
    x = tf.constant(1e-4 * np.tile([1.0, -1.0], 6)[np.newaxis], tf.float16)
    layer = built_layer_norm(np.ones(12), np.zeros(12), dtype="mixed_float16")
    ours = layer(x)
    assert ours.dtype == tf.float16
    assert layer.gamma.dtype == "float32"
    np.testing.assert_allclose(ours, np.sign(x), rtol=1e-3)


def test_initializer_redraws_beyond_two_deviations():
    values = layers.initializer(BertConfig(10))((500, 500)).numpy()
    assert np.abs(values).max() <= 0.04
    assert abs(values.std() - 0.02 * 0.8796) < 1e-4
    assert abs(values.mean()) < 2e-4


def test_a_head_s_bias_is_not_rounded_in_half_precision():
    with computing_in("bfloat16"):
        scores = heads.Scores(MINI_CONFIG, 2)
    bias = np.float32([1.0 + 2.0**-12, -1.0])
    scores.output_bias.assign(bias)
    found = scores(tf.zeros([1, MINI_CONFIG.hidden_size], tf.bfloat16))
    np.testing.assert_array_equal(found.numpy(), [bias])


def test_a_block_beyond_the_dropout_indices_is_refused():
    transformer.TransformerBlock(MINI_CONFIG, 84)
    with pytest.raises(
        UserError, match="layer 85 has no separate dropout masks. Use at most 85"
    ):
        transformer.TransformerBlock(MINI_CONFIG, 85)
