"""LayerNorm in one pass of oneDNN: equal values, used only if it was chosen."""

import numpy as np
import pytest
import tensorflow as tf
from optimized_graph import operations

from official_bert.config import BertConfig
from official_bert.fine_tuning import outputs
from official_bert.modeling import layers
from official_bert.modeling.encoder import BertEncoder
from official_bert.modeling.kernels import fused_layer_norm
from official_bert.modeling.kernels.choose import for_inference
from official_bert.modeling.kernels.interface import PLAIN

NEEDS_ONEDNN = pytest.mark.skipif(
    not fused_layer_norm.has_onednn(), reason="this TensorFlow has no oneDNN"
)
ROWS = tf.TensorSpec([None, 48], tf.float32)


def built(epsilon=1e-12):
    rng = np.random.default_rng(1)
    layer = layers.LayerNorm(epsilon)
    layer.build((None, 48))
    layer.gamma.assign(rng.normal(1, 0.3, 48))
    layer.beta.assign(rng.normal(0, 0.3, 48))
    return layer


def fused(layer):
    return lambda x: layer(x, layer_norm=fused_layer_norm.layer_norm)


@pytest.mark.parametrize("epsilon", [1e-12, 0.5])
@pytest.mark.parametrize("spread", [0.01, 1.0, 100.0])
def test_same_numbers(epsilon, spread):
    layer = built(epsilon)
    rng = np.random.default_rng(2)
    x = rng.normal(3 * spread, spread, (9, 48)).astype(np.float32)
    compute = tf.function(fused(layer), input_signature=[ROWS], autograph=False)
    np.testing.assert_allclose(compute(x), layer(x), rtol=1e-5, atol=2e-5)
    assert compute(x[:0]).shape == (0, 48)


@NEEDS_ONEDNN
def test_it_is_one_operation():
    compute_fused = fused(built())

    def compute(x):
        # The number of rows is unknown.
        return compute_fused(tf.boolean_mask(x, x[:, 0] < 9))

    assert "_MklLayerNorm" in operations(compute, tf.ones([8, 48]))


def test_only_where_it_is_wanted():
    """With a static number of rows, and by default, it is the plain function."""
    layer = built()
    unknown = tf.function(layer, input_signature=[ROWS], autograph=False)
    kinds = {op.type for op in unknown.get_concrete_function().graph.get_operations()}
    assert "FusedBatchNormV3" not in kinds
    known = tf.function(fused(layer), autograph=False)
    graph = known.get_concrete_function(tf.TensorSpec([8, 48])).graph
    assert "FusedBatchNormV3" not in {op.type for op in graph.get_operations()}


@NEEDS_ONEDNN
def test_a_scorer_gives_what_the_model_gives():
    config = BertConfig.named("tiny")
    encoder = BertEncoder(config)
    rng = np.random.default_rng(3)
    for weight in encoder.weights:
        weight.assign(weight + rng.normal(0, 0.05, weight.shape))
    ids = rng.integers(1000, config.vocab_size, (3, 11)).astype(np.int32)
    mask = (np.arange(11) < [[11], [5], [2]]).astype(np.int32)
    batch = {"input_ids": ids, "input_mask": mask, "segment_ids": 1 - mask}
    names = ("sequence_output", "pooled_output")

    def compute(features, kernels):
        assert kernels.layer_norm is fused_layer_norm.layer_norm
        encoded = encoder(features, kernels=kernels)
        return {name: encoded[name] for name in names}

    found, plain = outputs.compile_model(compute)(batch), encoder(batch)
    for name in names:
        np.testing.assert_allclose(found[name], plain[name], atol=1e-5)


def test_without_onednn(monkeypatch):
    monkeypatch.setattr(fused_layer_norm, "has_onednn", lambda: False)
    assert for_inference() is PLAIN


@NEEDS_ONEDNN
def test_on_a_gpu(monkeypatch):
    assert for_inference() is not PLAIN
    gpu = tf.config.LogicalDevice("/device:GPU:0", "GPU")
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: [gpu])
    assert for_inference() is PLAIN


@NEEDS_ONEDNN
def test_the_sum_with_the_residual_too():
    x, residual = (tf.random.stateless_normal([9, 48], [seed, 1]) for seed in (1, 2))
    arguments = (*built(0.5).parameters(), 0.1, None, 0)

    def compute(kernels):
        return tf.function(
            lambda x, residual: kernels.residual_layer_norm(x, residual, *arguments),
            input_signature=[ROWS, ROWS],
        )(x, residual)

    np.testing.assert_allclose(compute(for_inference()), compute(PLAIN), atol=2e-5)
