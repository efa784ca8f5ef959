"""Parts that every BERT layer uses: activations, LayerNorm, dense, lookup.

Shape letters in this package: B batch, S sequence, P predictions, A heads, D head
size, H hidden, V vocabulary, T tokens. T is B * S, or the number of tokens that
`kernels.packing` keeps.
"""

import math
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from official_bert.config import ORIGINAL_EPSILON, BertConfig
from official_bert.modeling.dropout import dropout

SQRT_2_OVER_PI = math.sqrt(2.0 / math.pi)


def initializer(config: BertConfig) -> keras.initializers.Initializer:
    """Return the truncated normal initializer for embedding tables and kernels.

    Its standard deviation is `initializer_range`. Values beyond two standard
    deviations are drawn again, so the actual standard deviation is 0.88 of that. The
    original does the same.
    """
    return keras.initializers.TruncatedNormal(stddev=config.initializer_range)


def dense(units: int, config: BertConfig, name: str) -> keras.layers.Dense:
    """Return a `keras.layers.Dense` for 2-D inputs [T, in] -> [T, units].

    Callers flatten to [T, in] first. On 3-D inputs TensorFlow does not fuse bias and
    activation into the matrix product.
    """
    return keras.layers.Dense(units, kernel_initializer=initializer(config), name=name)


def lookup(
    table: tf.Tensor, ids: tf.Tensor, dtype: tf.DType
) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the rows of an embedding table for ids, and the table.

    Args:
      table: float32 [V, H].
      ids: int [B, S].
      dtype: of the results.

    Returns:
      (rows [B, S, H], the table [V, H] for an output layer that shares it).
    """
    table = tf.cast(table, dtype)
    return tf.gather(table, ids), table


def gelu(x: tf.Tensor) -> tf.Tensor:
    """Return GELU in the tanh form, as in the original's last version.

    0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). oneDNN recognizes these operations
    in this order and fuses them into the preceding matrix product.

    Args:
      x: float tensor of any shape.

    Returns:
      tensor like `x`.
    """
    return 0.5 * x * (1.0 + tf.tanh(SQRT_2_OVER_PI * (x + 0.044715 * (x * x * x))))


def gelu_erf(x: tf.Tensor) -> tf.Tensor:
    """Return x Φ(x), GELU with the normal distribution: the original's first version.

    Args:
      x: float tensor of any shape.

    Returns:
      tensor like `x`.
    """
    return 0.5 * x * (1.0 + tf.math.erf(x * math.sqrt(0.5)))


def layer_norm(
    x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float
) -> tf.Tensor:
    """Normalize each row to mean 0 and variance 1, then scale and shift it.

    Args:
      x: float [T, H]. Mean and variance are computed in float32; in float16 the
        squares of small numbers and `epsilon` would become 0.
      gamma: float32 [H], the scale.
      beta: float32 [H], the shift.
      epsilon: float, added to the variance.

    Returns:
      tensor like `x`.
    """
    x32 = tf.cast(x, tf.float32)
    centered = x32 - tf.reduce_mean(x32, axis=-1, keepdims=True)
    variance = tf.reduce_mean(centered * centered, axis=-1, keepdims=True)
    normal = centered * tf.math.rsqrt(variance + epsilon)
    return tf.cast(normal * gamma + beta, x.dtype)


def residual_layer_norm(
    x: tf.Tensor,
    residual: tf.Tensor,
    gamma: tf.Tensor,
    beta: tf.Tensor,
    epsilon: float,
    rate: float,
    dropout_seed: tf.Tensor | None,
    dropout_index: int,
    *,
    layer_norm: Callable[..., tf.Tensor] = layer_norm,
    dropout: Callable[..., tf.Tensor] = dropout,
) -> tf.Tensor:
    """Return LayerNorm(residual + dropout(x)).

    Args:
      x: float [T, H].
      residual: float [T, H].
      gamma: see `layer_norm`.
      beta: see `layer_norm`.
      epsilon: see `layer_norm`.
      rate: probability of zero.
      dropout_seed: int64 [2], or None in evaluation.
      dropout_index: dropout index within the model.
      layer_norm: function with the signature of `layer_norm`.
      dropout: function with the signature of `dropout`.

    Returns:
      tensor like `x`.
    """
    dropped = dropout(x, rate, dropout_seed, dropout_index)
    return layer_norm(dropped + residual, gamma, beta, epsilon)


@keras.saving.register_keras_serializable("official_bert")
class LayerNorm(keras.layers.Layer):
    """Layer normalization over the last axis of [T, H], in float32.

    Keras' `LayerNormalization` builds about twice as many operations, which the CPU
    runtime does not fuse.

    Args:
      epsilon: ε, added to the variance. The original's 1e-12 would be 0 in
        float16. This is one reason to compute in float32 always.
    """

    def __init__(self, epsilon: float = ORIGINAL_EPSILON, **kwargs: Any):
        super().__init__(**kwargs)
        self.epsilon = epsilon

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Create gamma [H] of ones and beta [H] of zeros."""
        width = (input_shape[-1],)
        # Kept in float32 under every precision policy: no autocast.
        self.gamma = self.add_weight(
            shape=width, initializer="ones", name="gamma", autocast=False
        )
        self.beta = self.add_weight(
            shape=width, initializer="zeros", name="beta", autocast=False
        )

    def call(
        self, x: tf.Tensor, layer_norm: Callable[..., tf.Tensor] = layer_norm
    ) -> tf.Tensor:
        """Normalize `x` [T, H] with `layer_norm`, by default the plain form."""
        return layer_norm(x, *self.parameters())

    def parameters(self) -> tuple[tf.Tensor, tf.Tensor, float]:
        """Return (gamma [H], beta [H], epsilon), the arguments of `layer_norm`."""
        gamma, beta = tf.convert_to_tensor(self.gamma), tf.convert_to_tensor(self.beta)
        return gamma, beta, self.epsilon

    def compute_output_shape(
        self, input_shape: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        """Return the shape of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Return the arguments for `from_config`."""
        return {**super().get_config(), "epsilon": self.epsilon}
