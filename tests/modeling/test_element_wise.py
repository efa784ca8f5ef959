"""Compiled element-wise work against the same work, operation by operation."""

import numpy as np
import pytest
import tensorflow as tf
from test_encoder import make_encoder, make_features

from official_bert.config import BertConfig
from official_bert.modeling import dropout, element_wise, layers, losses, transformer

SEED = tf.constant([3, 2**32], tf.int64)


def normal(*shape, seed=0):
    """Return float32 numbers of deviation 1."""
    return tf.random.stateless_normal(shape, [seed, 1])


def outputs_and_gradients(function, *inputs):
    """Return what a function gives, and the gradient of a sum of its first output."""
    floats = [one for one in inputs if one.dtype.is_floating]
    with tf.GradientTape() as tape:
        tape.watch(floats)
        outputs = tf.nest.flatten(function(*inputs))
        loss = tf.reduce_sum(outputs[0] * normal(*outputs[0].shape, seed=9))
    return [*outputs, *tape.gradient(loss, floats)]


def in_both_ways(function, *inputs):
    """Return `outputs_and_gradients` as TensorFlow, and as XLA computes it."""
    expected = outputs_and_gradients(function, *inputs)
    with element_wise.compiled():
        return expected, outputs_and_gradients(tf.function(function), *inputs)


def check_same(expected, found):
    for wanted, one in zip(expected, found, strict=True):
        scale = max(1.0, float(tf.reduce_max(tf.abs(wanted))))
        np.testing.assert_allclose(one / scale, wanted / scale, atol=2e-6)


KEY = tf.constant([123, 456], tf.uint32)
CASES = {
    "gelu": (layers.gelu, normal(50, 8) * 3),
    "gelu_erf": (layers.gelu_erf, normal(50, 8) * 3),
    "LayerNorm of a dropped sum": (
        lambda *tensors: layers.normalize_dropped_sum(*tensors, rate=0.4, epsilon=1e-3),
        normal(50, 8),
        normal(50, 8, seed=1),
        normal(8, seed=2),
        normal(8, seed=3),
        KEY,
    ),
    "dropout": (
        lambda x, key: dropout.hashed_dropout(x, key, rate=0.3),
        normal(6, 5, 4),
        KEY,
    ),
    "cross-entropy": (
        losses.cross_entropy,
        normal(20, 30) * 4,
        tf.range(20, dtype=tf.int32) % 7,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_compiled_it_is_the_same(name):
    check_same(*in_both_ways(*CASES[name]))


@pytest.mark.parametrize("rate", [0.0, 0.3])
@pytest.mark.parametrize("queries", [1, 7], ids=["bidirectional", "causal"])
def test_attention_with_the_same_masks(rate, queries, monkeypatch):
    """Its gradient is written by hand: against that of the plain formula."""
    hashed = make_hashed(monkeypatch)
    bias = tf.where(normal(2, 1, queries, 7, seed=5) > 1, -1e4, 0.0)

    def attend(*inputs):
        return transformer.attend(*inputs, bias, rate, SEED, 4)

    expected, found = in_both_ways(
        attend, *(normal(2, 3, 7, 5, seed=seed) for seed in range(3))
    )
    assert hashed == ([4] if rate else [])
    check_same(expected, found)


def make_hashed(monkeypatch):
    """Let the same sites use the hash where nothing is compiled; return them."""
    sites = []

    def hashed(x, rate, seed, site):
        if not rate:
            return x
        sites.append(site)
        return dropout.hashed_dropout(x, dropout.mask_key(seed, site), rate=rate)

    for module in (layers, transformer):
        monkeypatch.setattr(module, "dropout", hashed)
    return sites


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_a_whole_encoder_with_the_same_masks(causal, recompute, monkeypatch):
    make_hashed(monkeypatch)
    features = make_features()

    def train(is_compiled):
        encoder = make_encoder(
            causal_attention=causal,
            hidden_dropout_prob=0.1,
            attention_probs_dropout_prob=0.2,
            layer_norm_eps=0.25,
        )
        encoder.encoder.recompute = recompute
        with element_wise.compiled(is_compiled):

            @tf.function
            def run():
                with tf.GradientTape() as tape:
                    outputs = encoder(features, training=True, dropout_seed=SEED)
                    loss = tf.reduce_sum(outputs["sequence_output"] * normal(4, 32, 24))
                    loss += tf.reduce_sum(outputs["pooled_output"])
                gradients = tape.gradient(loss, encoder.trainable_variables)
                return [loss, *map(tf.convert_to_tensor, gradients)]

            return run()

    expected, found = train(False), train(True)
    for wanted, one in zip(expected, found, strict=True):
        scale = max(1.0, float(tf.reduce_max(tf.abs(wanted))))
        np.testing.assert_allclose(one / scale, wanted / scale, atol=1e-4)


@pytest.mark.parametrize("skip_padding", [False, True])
def test_each_site_has_a_key_of_its_own(skip_padding, monkeypatch):
    """Each group of texts too, of which there are four without padding."""
    sites, site_seed = [], dropout.site_seed

    def noted(seed, site):
        sites.append(site)
        return site_seed(seed, site)

    monkeypatch.setattr(dropout, "site_seed", noted)
    with element_wise.compiled():
        encoder = make_encoder()
        encoder.skip_padding = skip_padding
        encoder(make_features(), training=True, dropout_seed=SEED)
    attention = 4 if skip_padding else 1
    assert len(sites) == 1 + (attention + 2) * 2
    assert len(set(sites)) == len(sites) and max(sites) < dropout.SITES


def test_without_dropout_seed_nothing_is_dropped():
    encoder, features = make_encoder(), make_features()
    expected = encoder(features)["sequence_output"]
    with element_wise.compiled():
        found = encoder(features)["sequence_output"]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_layers_share_what_is_compiled():
    """XLA compiles a function once for each shape, not for each call of it."""
    with element_wise.compiled():

        @tf.function
        def twice(x):
            return layers.gelu(layers.gelu(x))

        graph = twice.get_concrete_function(normal(3, 4)).graph
    nodes = [node for node in graph.get_operations() if "Call" in node.type]
    called = [node.get_attr("f").name for node in nodes]
    assert len(called) == 2 and len(set(called)) == 1


CONFIG = BertConfig(100, hidden_size=100, num_hidden_layers=10, num_attention_heads=2)


def test_when_compiling_pays_off():
    assert element_wise.pays_off(CONFIG, "float32", 1_000_000)
    assert not element_wise.pays_off(CONFIG, "float32", 999_999)
    assert not element_wise.pays_off(CONFIG, "bfloat16", 1_000_000)


@pytest.mark.parametrize("kind", ["GPU", "TPU"])
def test_it_is_for_cpus_alone(kind, monkeypatch):
    devices = [tf.config.LogicalDevice("/device:CPU:0", "CPU")]
    devices.append(tf.config.LogicalDevice(f"/device:{kind}:0", kind))
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda: devices)
    assert not element_wise.pays_off(CONFIG, "float32", 1_000_000)
