"""Training on packed tokens: the same model, the same gradients."""

import numpy as np
import pytest
import tensorflow as tf
from small_encoder import make_encoder, make_features

from official_bert.modeling.kernels import packing
from official_bert.modeling.kernels.choose import training_kernels
from official_bert.modeling.kernels.interface import PLAIN, Kernels

SEED = tf.constant([1, 2**32], tf.int64)
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
MASK = tf.constant([[1, 1, 0, 0], [0, 0, 0, 0], [1, 0, 1, 1]])


def test_tokens_are_packed_and_return_to_their_positions():
    packed = packing.pack_tokens(MASK)
    x = tf.random.stateless_normal([12, 5], [1, 1])
    tokens = packed.pack(x)
    np.testing.assert_array_equal(tokens, x.numpy()[[0, 1, 8, 10, 11]])
    real = tf.reshape(tf.cast(MASK, tf.float32), [-1, 1])
    np.testing.assert_array_equal(packed.unpack(tokens), x * real)


@pytest.mark.parametrize("move, height", [("pack", 12), ("unpack", 5)])
def test_gradient_goes_back_to_where_the_values_came_from(move, height):
    packed = packing.pack_tokens(MASK)
    x = tf.random.stateless_normal([height, 5], [1, 1])
    matrix = np.zeros([5, 12], np.float32)
    matrix[range(5), [0, 1, 8, 10, 11]] = 1.0
    matrix = matrix if move == "pack" else matrix.T
    upstream = tf.random.stateless_normal([len(matrix), 5], [2, 2])
    with tf.GradientTape() as tape:
        tape.watch(x)
        moved = getattr(packed, move)(x)
    np.testing.assert_array_equal(moved, matrix @ x)
    gradient = tape.gradient(moved, x, output_gradients=upstream)
    np.testing.assert_array_equal(gradient, matrix.T @ upstream)


def in_groups(packed, x, function=lambda group: group):
    """Return (the values of tokens [T, H] in each group's attention, its outputs).

    Args:
      packed: `Packing`.
      x: tokens.
      function: the attention's function of its values, [B_g * S_g, H].
    """
    groups = []

    def attention(query, key, value, bias, index):
        assert index == 5 + 256 * len(groups)
        groups.append(tf.reshape(value, [*bias.shape, value.shape[-1]]))
        return function(value), None

    wrapped = packed.wrap(Kernels(attention=attention)).attention
    context, probs = wrapped(x, x, x, packed.masks, 5)
    assert probs is None
    return groups, context


def lengths_mask(lengths, longest):
    """Return a mask [B, S] of texts with these lengths."""
    return (np.arange(longest) < np.array(lengths)[:, np.newaxis]).astype(np.int32)


def test_texts_of_like_length_make_a_group():
    mask = lengths_mask([60, 3, 30, 8, 61, 9, 2, 35], 64)
    # 208 tokens, a multiple of 8, so that no padding is packed.
    packed = packing.pack_in_groups(mask)
    assert [tuple(one.shape) for one in packed.masks] == [
        (2, 8),
        (2, 16),
        (2, 40),
        (2, 64),
    ]
    assert [one.numpy().sum(1).tolist() for one in packed.masks] == [
        [2, 3],
        [8, 9],
        [30, 35],
        [60, 61],
    ]
    # Each token's vector is its text's number and its position.
    told = np.stack(np.broadcast_arrays(np.arange(8)[:, np.newaxis], np.arange(64)), -1)
    x = tf.constant(told.reshape([-1, 2])[mask.reshape(-1) != 0] + 1.0, tf.float32)
    groups, context = in_groups(packed, x, lambda group: 2.0 * group)
    texts = [[6, 1], [3, 5], [2, 7], [0, 4]]
    for group, numbers, group_mask in zip(groups, texts, packed.masks, strict=True):
        length = group.shape[1]
        expected = (told[numbers, :length] + 1.0) * group_mask.numpy()[..., np.newaxis]
        np.testing.assert_array_equal(group, expected)
    np.testing.assert_array_equal(context, 2.0 * x)


@pytest.mark.parametrize("batch", [1, 3, 5])
def test_any_number_of_texts_can_be_grouped(batch):
    mask = lengths_mask(range(7, 7 + batch), 20)
    packed = packing.pack_in_groups(mask)
    assert sum(len(one) for one in packed.masks) == batch
    chosen = packed.in_batch.position_of.numpy()
    x = tf.random.stateless_normal([len(chosen), 2], [1, 1])
    real = mask.reshape(-1)[chosen, np.newaxis]
    _, context = in_groups(packed, x)
    np.testing.assert_array_equal(context * real, x * real)


@pytest.mark.parametrize(
    "tokens, packed",
    [(1, 1), (16, 16), (31, 31), (33, 34), (65, 68), (127, 128), (997, 1000)],
)
def test_where_shapes_are_compiled_few_numbers_of_tokens_occur(tokens, packed):
    mask = np.zeros([1000], np.int32)
    mask[np.random.default_rng(tokens).permutation(1000)[:tokens]] = 1
    x = tf.random.stateless_normal([1000, 3], [1, 1])
    found = packing.pack_in_groups(tf.reshape(mask, [4, 250]))
    positions = found.in_batch.position_of.numpy()
    assert len(positions) == packed
    assert set(np.flatnonzero(mask)) <= set(positions)
    np.testing.assert_array_equal(found.pack(x), x.numpy()[positions])
    kept = np.zeros([1000, 1], np.float32)
    kept[positions] = 1
    np.testing.assert_array_equal(found.unpack(found.pack(x)), x * kept)


PACKED = training_kernels(skip_padding=True)


def train(kernels, recompute=False, mask=None):
    """Return (outputs of a training call, gradients of a loss of its tokens)."""
    encoder = make_encoder(recompute, **NO_DROPOUT)
    features = make_features()
    if mask is not None:
        features["input_mask"] = mask
    real = tf.cast(features["input_mask"], tf.float32)[..., tf.newaxis]
    weights = tf.random.stateless_normal([4, 32, 24], [3, 3]) * real
    with tf.GradientTape() as tape:
        outputs = encoder(features, training=True, dropout_seed=SEED, kernels=kernels)
        loss = tf.reduce_sum(outputs["sequence_output"] * weights)
        loss += tf.reduce_sum(outputs["pooled_output"] * weights[:, 0])
    return outputs, tape.gradient(loss, encoder.trainable_variables), real


def holes(features):
    """Return a mask that also has padding between tokens."""
    mask = features["input_mask"].copy()
    mask[:, 3:7:2] = 0
    return mask


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("make_mask", [None, holes], ids=["end", "holes"])
def test_outputs_and_gradients_are_those_with_padding(make_mask, recompute, compiled):
    mask = make_mask and make_mask(make_features())
    expected, gradients, real = train(PLAIN, mask=mask)
    kernels = training_kernels(compiled, skip_padding=True)
    outputs, same_gradients, _ = train(kernels, recompute, mask)

    def check(found, wanted):
        np.testing.assert_allclose(found * real, wanted * real, rtol=2e-5, atol=2e-6)

    for name in ("sequence_output", "embedding_output"):
        check(outputs[name], expected[name])
    for layer, wanted in zip(
        outputs["all_encoder_layers"], expected["all_encoder_layers"], strict=True
    ):
        check(layer, wanted)
    np.testing.assert_allclose(
        outputs["pooled_output"], expected["pooled_output"], rtol=2e-5, atol=2e-6
    )
    for gradient, wanted in zip(same_gradients, gradients, strict=True):
        gradient, wanted = tf.convert_to_tensor(gradient), tf.convert_to_tensor(wanted)
        # The gradient of a key's bias is 0, except for rounding.
        scale = max(1.0, float(tf.reduce_max(tf.abs(wanted))))
        np.testing.assert_allclose(gradient / scale, wanted / scale, atol=2e-5)


def test_a_text_of_padding_alone_is_harmless():
    mask = make_features()["input_mask"].copy()
    mask[2] = 0
    outputs, gradients, _ = train(PACKED, mask=mask)
    assert not np.any(outputs["sequence_output"][2])
    for gradient in gradients:
        assert np.all(np.isfinite(tf.convert_to_tensor(gradient)))


def test_evaluation_keeps_the_original_s_padding():
    encoder, features = make_encoder(), make_features()
    expected = encoder(features)["sequence_output"]
    found = encoder(features, kernels=PACKED)["sequence_output"]
    np.testing.assert_array_equal(found, expected)


def test_dropout_is_a_function_of_the_seed():
    encoder, features = make_encoder(), make_features()

    def output(seed):
        arguments = {"training": True, "dropout_seed": seed, "kernels": PACKED}
        return encoder(features, **arguments)["sequence_output"]

    np.testing.assert_array_equal(output(SEED), output(SEED))
    assert np.any(output(SEED) != output(SEED + 2**32))
