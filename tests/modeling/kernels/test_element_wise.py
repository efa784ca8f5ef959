"""Compiled element-wise work compared with the plain forms, with the same masks."""

import functools

import pytest
import tensorflow as tf
from kernel_checks import (
    SEED,
    check_same,
    element_wise_cases,
    normal,
    outputs_and_gradients,
)
from kernel_variants import dropout_by_hash, with_dropout
from marks import slow
from small_encoder import make_encoder, make_features

from official_bert.modeling import dropout
from official_bert.modeling.kernels import element_wise, hashed_dropout
from official_bert.modeling.kernels.choose import training_kernels
from official_bert.modeling.kernels.interface import PLAIN

COMPILED = training_kernels(is_compiled=True)
# The plain forms with the same dropout function.
HASHED = with_dropout(dropout_by_hash)


CASES = element_wise_cases(COMPILED, HASHED) | {
    "dropout": (
        functools.partial(hashed_dropout.hashed_dropout, rate=0.3),
        element_wise.compiled(hashed_dropout.hashed_dropout, rate=0.3),
        normal(6, 5, 4),
        tf.constant([123, 456], tf.uint32),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_the_plain_form(name):
    plain, compiled, *inputs = CASES[name]
    found = outputs_and_gradients(tf.function(compiled), *inputs)
    check_same(outputs_and_gradients(plain, *inputs), found)


@pytest.mark.parametrize("rate", [0.0, 0.3])
@pytest.mark.parametrize("queries", [1, 7], ids=["bidirectional", "causal"])
def test_attention_with_the_same_masks(rate, queries):
    """Compare its hand-written gradient with that of the plain formula."""
    bias = tf.where(normal(2, 1, queries, 7, seed=5) > 1, -1e4, 0.0)
    inputs = [normal(2 * 7, 3 * 5, seed=seed) for seed in range(3)]

    def attend(kernels):
        return lambda *inputs: kernels.attention(*inputs, bias, 3, rate, SEED, 4)

    found = outputs_and_gradients(tf.function(attend(COMPILED)), *inputs)
    check_same(outputs_and_gradients(attend(HASHED), *inputs), found)


@pytest.mark.parametrize(
    ("causal", "recompute"),
    [(False, False), slow(False, True), slow(True, False), (True, True)],
)
def test_a_whole_encoder_with_the_same_masks(causal, recompute):
    features = make_features()

    def train(kernels):
        encoder = make_encoder(
            recompute,
            causal_attention=causal,
            hidden_dropout_prob=0.1,
            attention_probs_dropout_prob=0.2,
            layer_norm_eps=0.25,
        )

        @tf.function
        def run():
            with tf.GradientTape() as tape:
                outputs = encoder(
                    features, training=True, dropout_seed=SEED, kernels=kernels
                )
                loss = tf.reduce_sum(outputs["sequence_output"] * normal(4, 32, 24))
                loss += tf.reduce_sum(outputs["pooled_output"])
            gradients = tape.gradient(loss, encoder.trainable_variables)
            return [loss, *map(tf.convert_to_tensor, gradients)]

        return run()

    # In both, the embeddings' dropout uses the generator.
    hashed = with_dropout(dropout_by_hash, embeddings=dropout.dropout)
    check_same(train(hashed), train(COMPILED), tolerance=1e-4)


@pytest.mark.parametrize("skip_padding", [False, True])
def test_each_dropout_has_a_key_of_its_own(skip_padding, monkeypatch):
    """This includes each of the four groups of texts if padding is skipped."""
    indices, index_seed = [], dropout.index_seed

    def noted(seed, dropout_index):
        indices.append(dropout_index)
        return index_seed(seed, dropout_index)

    for module in (dropout, hashed_dropout):
        monkeypatch.setattr(module, "index_seed", noted)
    kernels = training_kernels(True, skip_padding)
    make_encoder()(make_features(), training=True, dropout_seed=SEED, kernels=kernels)
    attention = 4 if skip_padding else 1
    assert len(indices) == 1 + (attention + 2) * 2
    assert len(set(indices)) == len(indices)
    assert max(indices) < dropout.NUM_INDICES


def test_without_dropout_seed_nothing_is_dropped():
    encoder, features = make_encoder(), make_features()
    expected, found = (
        encoder(features, kernels=kernels)["sequence_output"]
        for kernels in (PLAIN, COMPILED)
    )
    check_same([expected], [found], tolerance=1e-5)


def test_layers_share_what_is_compiled():
    """XLA compiles a function once per shape, not once per call."""
    gelu = COMPILED.gelu

    @tf.function
    def twice(x):
        return gelu(gelu(x))

    graph = twice.get_concrete_function(normal(3, 4)).graph
    nodes = [node for node in graph.get_operations() if "Call" in node.type]
    called = [node.get_attr("f").name for node in nodes]
    assert len(called) == 2 and len(set(called)) == 1
    assert training_kernels(is_compiled=True).gelu is gelu
