"""Hand-written gradients of the plain forms, with fewer tensors and memory passes.

For the gradient, TensorFlow keeps each intermediate result and makes one memory pass
per operation. These functions keep few results and use simplified formulas.
"""

import math
from collections.abc import Callable

import tensorflow as tf

from official_bert.modeling.layers import SQRT_2_OVER_PI
from official_bert.modeling.losses import label_positions


@tf.custom_gradient
def gelu(x: tf.Tensor) -> tuple[tf.Tensor, Callable[..., tf.Tensor]]:
    """Compute `layers.gelu`; keep x, its square and the tanh, not seven tensors."""
    square = x * x
    tanh = tf.tanh(SQRT_2_OVER_PI * (x + 0.044715 * (square * x)))

    def gradient(upstream):
        slope = SQRT_2_OVER_PI * (1.0 + 3.0 * 0.044715 * square)
        return upstream * 0.5 * (1.0 + tanh + x * (1.0 - tanh * tanh) * slope)

    return 0.5 * x * (1.0 + tanh), gradient


@tf.custom_gradient
def gelu_erf(x: tf.Tensor) -> tuple[tf.Tensor, Callable[..., tf.Tensor]]:
    """Compute `layers.gelu_erf`; keep x and the erf."""
    erf = tf.math.erf(x * math.sqrt(0.5))

    def gradient(upstream):
        density = tf.exp(-0.5 * (x * x)) * (1.0 / math.sqrt(2.0 * math.pi))
        return upstream * (0.5 * (1.0 + erf) + x * density)

    return 0.5 * x * (1.0 + erf), gradient


def layer_norm(
    x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float
) -> tf.Tensor:
    """Compute `layers.layer_norm`; keep the normalized rows and their scales."""

    @tf.custom_gradient
    def compute(x, gamma, beta):
        mean = tf.reduce_mean(x, axis=-1, keepdims=True)
        centered = x - mean
        variance = tf.reduce_mean(centered * centered, axis=-1, keepdims=True)
        scale = tf.math.rsqrt(variance + epsilon)
        normal = centered * scale

        def gradient(upstream):
            d_gamma = tf.reduce_sum(upstream * normal, axis=0)
            d_beta = tf.reduce_sum(upstream, axis=0)
            d_normal = upstream * gamma
            along = tf.reduce_mean(d_normal * normal, axis=-1, keepdims=True)
            d_x = d_normal - tf.reduce_mean(d_normal, axis=-1, keepdims=True)
            return scale * (d_x - normal * along), d_gamma, d_beta

        return normal * gamma + beta, gradient

    return tf.cast(compute(tf.cast(x, tf.float32), gamma, beta), x.dtype)


@tf.custom_gradient
def cross_entropy(
    logits: tf.Tensor, labels: tf.Tensor
) -> tuple[
    tuple[tf.Tensor, tf.Tensor, tf.Tensor], Callable[..., tuple[tf.Tensor, None]]
]:
    """Compute `losses.cross_entropy`; only its first output has a gradient.

    The gradient is softmax(logits), minus 1 at the label.
    """
    best = tf.reduce_max(logits, axis=-1, keepdims=True)
    exponentials = tf.exp(logits - best)
    total = tf.reduce_sum(exponentials, axis=-1, keepdims=True)
    positions = label_positions(labels)
    own = tf.gather_nd(logits, positions)
    losses = tf.math.log(total[:, 0]) + best[:, 0] - own

    def gradient(upstream, *_):
        scaled = exponentials * (upstream[:, tf.newaxis] / total)
        return tf.tensor_scatter_nd_sub(scaled, positions, upstream), None

    return (losses, best[:, 0], own), gradient
