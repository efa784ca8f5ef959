"""Element-wise work of training in few passes over memory.

TensorFlow's CPU runtime makes one pass per operation of GELU, dropout or LayerNorm.
XLA makes one or two for all of them. Matrix products stay outside, because oneDNN's
are faster than XLA's. XLA compiles for one shape, so each new shape costs time once.
"""

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from official_bert.modeling import transformer
from official_bert.modeling.kernels import gradients
from official_bert.modeling.kernels.hashed_dropout import hashed_dropout, mask_key


@functools.cache
def compiled(function: Callable[..., Any], **settings: Any) -> Callable[..., Any]:
    """Return an element-wise function, compiled by XLA.

    The backward pass computes it again from its arguments. That takes less time than
    writing and reading the intermediate results. All layers share the code.

    Args:
      function: (float32 or integer tensors, keyword settings) -> tensors.
      **settings: keyword arguments of the function.

    Returns:
      function: tensors -> tensors, with a gradient for the float32 tensors.
    """
    compile_ = functools.partial(tf.function, jit_compile=True, autograph=False)

    def once(*tensors):
        return function(*tensors, **settings)

    forward = compile_(once)

    @compile_
    def backward(tensors, upstream):
        floats = [one for one in tensors if one.dtype.is_floating]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(floats)
            outputs = tf.nest.flatten(once(*tensors))
        return tape.gradient(outputs, floats, output_gradients=upstream)

    @tf.custom_gradient
    def compute(*tensors):
        def gradient(*upstream):
            floats = iter(backward(tensors, upstream))
            return [next(floats) if one.dtype.is_floating else None for one in tensors]

        return forward(*tensors), gradient

    return compute


def residual_layer_norm(
    x: tf.Tensor,
    residual: tf.Tensor,
    gamma: tf.Tensor,
    beta: tf.Tensor,
    epsilon: float,
    rate: float,
    dropout_seed: tf.Tensor | None,
    dropout_index: int,
) -> tf.Tensor:
    """Compute `layers.residual_layer_norm` for float32, with `hashed_dropout`."""
    if dropout_seed is None:
        return gradients.layer_norm(x + residual, gamma, beta, epsilon)
    key = mask_key(dropout_seed, dropout_index)
    compute = compiled(normalize_dropped_sum, rate=rate, epsilon=epsilon)
    return compute(x, residual, gamma, beta, key)


def normalize_dropped_sum(
    x: tf.Tensor,
    residual: tf.Tensor,
    gamma: tf.Tensor,
    beta: tf.Tensor,
    key: tf.Tensor,
    rate: float,
    epsilon: float,
) -> tf.Tensor:
    """Return LayerNorm(residual + dropout(x)), float32 [T, H]; for `compiled`."""
    total = hashed_dropout(x, key, rate=rate) + residual
    return gradients.layer_norm(total, gamma, beta, epsilon)


def attention(
    query: tf.Tensor,
    key: tf.Tensor,
    value: tf.Tensor,
    bias: tf.Tensor,
    num_heads: int,
    rate: float,
    dropout_seed: tf.Tensor | None,
    dropout_index: int,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Compute `transformer.attention` for float32; probabilities have no gradient.

    Softmax gradient: dS = P ∘ (dP − rowsum(P ∘ dP)). The row sum equals Σ_D dO ∘ O
    (Dao et al., 2022): D products per query instead of S.
    """
    if dropout_seed is None:
        return transformer.attention(
            query, key, value, bias, num_heads, rate, None, dropout_index
        )
    mask = mask_key(dropout_seed, dropout_index)
    drop = compiled(hashed_dropout, rate=rate)

    @tf.custom_gradient
    def compute(query, key, value):  # Each [B, A, S, D].
        probs = transformer.attention_probs(query, key, bias)
        dropped = drop(probs, mask)
        context = tf.matmul(dropped, value)

        def gradient(upstream, _):
            along = tf.reduce_sum(upstream * context, axis=-1, keepdims=True)
            d_dropped = tf.matmul(upstream, value, transpose_b=True)
            factor = transformer.score_factor(query)
            d_scores = compiled(score_gradient, rate=rate, factor=factor)(
                probs, d_dropped, along, mask
            )
            return (
                tf.matmul(d_scores, key),
                tf.matmul(d_scores, query, transpose_a=True),
                tf.matmul(dropped, upstream, transpose_a=True),
            )

        return (context, probs), gradient

    heads = (transformer.split_heads(x, bias, num_heads) for x in (query, key, value))
    context, probs = compute(*heads)
    return transformer.merge_heads(context), probs


def score_gradient(
    probs: tf.Tensor,
    d_dropped: tf.Tensor,
    along: tf.Tensor,
    mask: tf.Tensor,
    rate: float,
    factor: float,
) -> tf.Tensor:
    """Return the gradient of the unscaled scores Q · Kᵀ, [B, A, S, S]."""
    d_probs = hashed_dropout(d_dropped, mask, rate=rate)
    return probs * (d_probs - along) * factor
