"""Kernels of a training step that XLA compiles as one program, as on every TPU.

XLA fuses element-wise work by itself. Most memory and transfer time go to the tensors
that the backward pass reads. These kernels keep few of them, in the precision of the
model, and compute the rest again in the backward pass. Statistics, softmax and losses
are float32 in every precision.

XLA chooses good layouts for attention's products if batch, sequence and heads are
separate axes. The projections therefore return [B, S, A, D] instead of [T, H].
"""

import functools
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf
from tensorflow.compiler.tf2xla.python import xla

from official_bert.modeling import layers
from official_bert.modeling.kernels.hashed_dropout import hashed_dropout, mask_key
from official_bert.modeling.kernels.interface import Kernels


def _again(*tensors):
    """Return tensors of the forward pass through a barrier, for recomputation.

    Without this barrier XLA detects that both passes compute the same values, and
    keeps the results of the forward pass.
    """
    return xla.optimization_barrier(*tensors)


def recomputed(function: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    """Return a function that keeps only its arguments for the backward pass.

    Args:
      function: float tensors -> tensor.
    """

    @tf.custom_gradient
    def compute(*tensors):
        def gradient(upstream):
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                again = _again(*tensors)
                tape.watch(again)
                output = function(*again)
            return tape.gradient(output, again, output_gradients=upstream)

        return function(*tensors), gradient

    return compute


def dropout(
    x: tf.Tensor, rate: float, seed: tf.Tensor | None, dropout_index: int
) -> tf.Tensor:
    """Compute `dropout.dropout` with `hashed_dropout`; the mask is not kept."""
    drop = _make_drop(rate, seed, dropout_index)
    return tf.custom_gradient(lambda x: (drop(x), drop))(x)


def _make_drop(rate, seed, dropout_index):
    """Return one dropout, a function tensor -> tensor that is its own gradient."""
    if seed is None or not rate:
        return tf.identity
    key = mask_key(seed, dropout_index)
    return functools.partial(hashed_dropout, key=key, rate=rate)


def layer_norm(
    x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float
) -> tf.Tensor:
    """Compute `layers.layer_norm`; keep `x` instead of the normalized rows."""
    compute = recomputed(functools.partial(layers.layer_norm, epsilon=epsilon))
    return compute(x, gamma, beta)


gelu = recomputed(layers.gelu)
gelu_erf = recomputed(layers.gelu_erf)


def to_heads(
    dense: keras.layers.Dense, x: tf.Tensor, bias: tf.Tensor, num_heads: int
) -> tf.Tensor:
    """Compute `transformer.project` as one product to [B, S, A, D]."""
    width, units = dense.kernel.shape
    heads = [num_heads, units // num_heads]
    kernel = tf.reshape(tf.cast(dense.kernel, x.dtype), [width, *heads])
    x = tf.reshape(x, [*_batch_and_length(bias), width])
    y = tf.einsum("bsh,had->bsad", x, kernel)
    y += tf.reshape(tf.cast(dense.bias, x.dtype), heads)
    return tf.reshape(y, [-1, units])


def from_heads(
    dense: keras.layers.Dense, x: tf.Tensor, bias: tf.Tensor, num_heads: int
) -> tf.Tensor:
    """Compute `transformer.project` as one product of [B, S, A, D]."""
    width, units = dense.kernel.shape
    heads = [num_heads, width // num_heads]
    kernel = tf.reshape(tf.cast(dense.kernel, x.dtype), [*heads, units])
    x = tf.reshape(x, [*_batch_and_length(bias), *heads])
    y = tf.einsum("bsad,adh->bsh", x, kernel) + tf.cast(dense.bias, x.dtype)
    return tf.reshape(y, [-1, units])


def _batch_and_length(bias):
    """Return B and S of an attention bias, as integers if they are static."""
    dynamic = tf.shape(bias)
    return [bias.shape[0] or dynamic[0], bias.shape[-1] or dynamic[-1]]


def attention(
    query: tf.Tensor,
    key: tf.Tensor,
    value: tf.Tensor,
    bias: tf.Tensor,
    num_heads: int,
    rate: float,
    dropout_seed: tf.Tensor | None,
    dropout_index: int,
) -> tuple[tf.Tensor, None]:
    """Compute `transformer.attention`, without returning probabilities.

    It keeps only the logarithm of each softmax row's sum (Dao et al., 2022), and
    computes the gradient of the scores like `element_wise.attention`.
    """
    drop = _make_drop(rate, dropout_seed, dropout_index)
    width, dtype = query.shape[-1], query.dtype
    factor = (width // num_heads) ** -0.5
    bias = tf.cast(bias, tf.float32)

    def scores_of(query, key):
        scores = tf.cast(tf.einsum("bsad,btad->bast", query, key), tf.float32)
        return scores * factor + bias

    @tf.custom_gradient
    def compute(query, key, value):
        scores = scores_of(query, key)
        best = tf.reduce_max(scores, axis=-1, keepdims=True)
        exponentials = tf.exp(scores - best)
        total = tf.reduce_sum(exponentials, axis=-1, keepdims=True)
        log_total = best + tf.math.log(total)
        probs = tf.cast(exponentials / total, dtype)
        context = tf.einsum("bast,btad->bsad", drop(probs), value)

        def gradient(upstream):
            up, query_, key_, value_, context_, log_total_ = _again(
                upstream, query, key, value, context, log_total
            )
            probs = tf.cast(tf.exp(scores_of(query_, key_) - log_total_), dtype)
            products = tf.cast(up, tf.float32) * tf.cast(context_, tf.float32)
            along = tf.transpose(tf.reduce_sum(products, axis=-1), [0, 2, 1])
            d_dropped = tf.cast(tf.einsum("bsad,btad->bast", up, value_), tf.float32)
            d_scores = drop(d_dropped) - along[..., tf.newaxis]
            d_scores = tf.cast(tf.cast(probs, tf.float32) * d_scores * factor, dtype)
            return (
                tf.einsum("bast,btad->bsad", d_scores, key_),
                tf.einsum("bast,bsad->btad", d_scores, query_),
                tf.einsum("bast,bsad->btad", drop(probs), up),
            )

        return context, gradient

    shape = [*_batch_and_length(bias), num_heads, width // num_heads]
    context = compute(*(tf.reshape(x, shape) for x in (query, key, value)))
    return tf.reshape(context, [-1, width]), None


def lookup(
    table: tf.Tensor, ids: tf.Tensor, dtype: tf.DType
) -> tuple[tf.Tensor, tf.Tensor]:
    """Compute `layers.lookup`; add both gradients of the table in one matrix.

    The output layer's gradient stays in `dtype` until the lookup's gradient is added
    to it in float32.
    """

    @tf.custom_gradient
    def compute(table):
        def gradient(d_rows, d_table):
            d_table = tf.cast(_again(d_table)[0], tf.float32)
            d_rows = tf.reshape(tf.cast(d_rows, tf.float32), [-1, table.shape[-1]])
            positions = tf.reshape(ids, [-1, 1])
            return tf.tensor_scatter_nd_add(d_table, positions, d_rows)

        rows = tf.cast(tf.gather(table, ids), dtype)
        return (rows, tf.cast(table, dtype)), gradient

    return compute(table)


def make_cross_entropy(dtype: tf.DType) -> Callable[..., Any]:
    """Return `losses.cross_entropy` that keeps the exponentials in `dtype`."""

    @tf.custom_gradient
    def cross_entropy(logits, labels):
        hit = tf.range(logits.shape[-1])[tf.newaxis, :] == labels[:, tf.newaxis]
        best = tf.reduce_max(logits, axis=-1, keepdims=True)
        exponentials = tf.exp(logits - best)
        total = tf.reduce_sum(exponentials, axis=-1, keepdims=True)
        own = tf.reduce_sum(tf.where(hit, logits, 0.0), axis=-1)
        losses = tf.math.log(total[:, 0]) + best[:, 0] - own
        kept = tf.cast(exponentials, dtype)

        def gradient(upstream, *_):
            again, total_ = _again(kept, total)
            probs = tf.cast(again, tf.float32) / total_
            return (probs - tf.cast(hit, tf.float32)) * upstream[:, tf.newaxis], None

        return (losses, best[:, 0], own), gradient

    return cross_entropy


def kernels_for(dtype: tf.DType) -> Kernels:
    """Return the `Kernels` of a model that computes in `dtype`."""
    return Kernels(
        lookup=lookup,
        to_heads=to_heads,
        from_heads=from_heads,
        attention=attention,
        dropout=dropout,
        layer_norm=layer_norm,
        residual_layer_norm=functools.partial(
            layers.residual_layer_norm, layer_norm=layer_norm, dropout=dropout
        ),
        gelu=gelu,
        gelu_erf=gelu_erf,
        cross_entropy=make_cross_entropy(dtype),
    )
