"""Packed rows have the losses and gradients of the same sequences in separate rows."""

import dataclasses

import numpy as np
import packed_batches
import pytest
import record_files
import tensorflow as tf
import updates
from marks import slow
from record_files import MINI_CONFIG, stacked

from official_bert.modeling import transformer
from official_bert.modeling.kernels import choose
from official_bert.modeling.kernels.interface import PLAIN
from official_bert.training.pretraining import PRETRAINING

CONFIG = packed_batches.without_dropout(
    dataclasses.replace(MINI_CONFIG, initializer_range=0.1, num_hidden_layers=2)
)
RECORDS = record_files.short(24)
SEED = tf.constant([1, 2], tf.int64)
KERNELS = {
    "plain": PLAIN,
    "default": choose.WITH_GRADIENTS,
    "compiled": choose.training_kernels(is_compiled=True),
    "skipping padding": choose.training_kernels(skip_padding=True),
    "compiled, skipping padding": choose.training_kernels(True, True),
}


def features_of(records):
    return {name: tf.constant(values) for name, values in stacked(records).items()}


@pytest.fixture(scope="module")
def packed():
    features, order = packed_batches.pack(RECORDS)
    assert len(features["input_ids"]) < 0.8 * len(RECORDS)
    assert float(features["next_sentence_weights"][0, -1]) == 0.0
    return features, [RECORDS[number] for number in order]


def compare(model, packed, **arguments):
    """Compare losses, accuracies, their weights, and gradients."""
    features, records = packed
    unpacked = features_of(records)
    ours, theirs = (
        PRETRAINING.terms(model(each, **arguments), each)
        for each in (features, unpacked)
    )
    assert set(ours) == set(theirs)
    for name, (total, weight) in theirs.items():
        np.testing.assert_allclose(ours[name][0], total, rtol=1e-6, err_msg=name)
        assert float(ours[name][1]) == float(weight)
    weights = PRETRAINING.weights(features)
    assert float(weights["next_sentence_loss"]) == len(records)
    losses, gradients = zip(
        *(
            updates.loss_and_gradients(model, each, **arguments)
            for each in (features, unpacked)
        ),
        strict=True,
    )
    assert float(losses[0]) == pytest.approx(float(losses[1]), rel=1e-5)
    largest = max(float(tf.reduce_max(tf.abs(one))) for one in gradients[1])
    assert updates.largest_difference(*gradients) < 1e-5 * largest


@pytest.mark.parametrize("name", ["plain", "default", *map(slow, list(KERNELS)[2:])])
def test_losses_and_gradients_are_those_of_single_rows(packed, name):
    model = updates.make_state(CONFIG).model
    compare(model, packed, training=True, dropout_seed=SEED, kernels=KERNELS[name])


@pytest.mark.slow
def test_so_they_are_when_layers_are_recomputed(packed):
    model = updates.PretrainingModel(CONFIG, recompute=True)
    compare(model, packed, training=True, dropout_seed=SEED)


@pytest.mark.slow
def test_left_to_right():
    model = updates.make_state(dataclasses.replace(CONFIG, causal_attention=True)).model
    features, order = packed_batches.pack(RECORDS, left_to_right=True)
    compare(model, (features, [RECORDS[number] for number in order]), training=False)


def test_outputs_do_not_depend_on_the_other_sequences(packed):
    """They are bit-identical, also with dropout."""
    features, _ = packed
    first = features["sequence_numbers"] == 1
    changed = tf.where(first, 124 - features["input_ids"], features["input_ids"])
    model = updates.make_state(MINI_CONFIG).model
    ours, theirs = (
        model.bert({**features, "input_ids": ids}, training=True, dropout_seed=SEED)
        for ids in (changed, features["input_ids"])
    )
    differs = tf.reduce_any(
        ours["sequence_output"] != theirs["sequence_output"], axis=-1
    )
    np.testing.assert_array_equal(differs, first)
    pooled = tf.reduce_any(ours["pooled_output"] != theirs["pooled_output"], axis=-1)
    pooled = tf.reshape(pooled, features["pooled_positions"].shape)
    held = features["next_sentence_weights"] > 0
    np.testing.assert_array_equal(
        tf.boolean_mask(pooled, held), tf.where(held)[:, 1] == 0
    )


def test_the_bias_is_block_diagonal():
    bias = transformer.attention_bias(tf.constant([[1, 1, 2, 0]]), -5.0, packed=True)
    x = -5.0
    expected = [[0, 0, x, x], [0, 0, x, x], [x, x, 0, x], [x, x, x, 0]]
    np.testing.assert_array_equal(bias[0, 0], expected)


def test_the_bias_of_packed_rows_from_left_to_right():
    numbers = tf.constant([[1, 1, 2, 2]])
    bias = transformer.attention_bias(numbers, -5.0, causal=True, packed=True)
    x = -5.0
    expected = [[0, x, x, x], [0, 0, x, x], [x, x, 0, x], [x, x, 0, 0]]
    np.testing.assert_array_equal(bias[0, 0], expected)
