"""The pieces every BERT layer is made of: activations and LayerNorm.

Shape letters used in this package: B batch, S sequence, P predictions, A
heads, D head size, H hidden, V vocabulary; T = B * S tokens.
"""

import math

import keras
import tensorflow as tf

from official_bert.config import ORIGINAL_EPSILON
from official_bert.modeling import element_wise, fused_layer_norm
from official_bert.modeling.dropout import dropout, hashed_dropout, mask_key

_SQRT_2_OVER_PI = math.sqrt(2.0 / math.pi)


def initializer(config):
    """Truncated normal of `initializer_range`, as for every table and kernel.

    Values beyond two deviations are drawn again, so the realised deviation is
    0.88 of the nominal one; that is the original's behaviour too.
    """
    return keras.initializers.TruncatedNormal(stddev=config.initializer_range)


def dense(units, config, name):
    """A `keras.layers.Dense` for 2-D inputs [T, in] -> [T, units].

    On 3-D inputs TensorFlow fuses neither the bias nor the activation into
    the matrix product; callers therefore flatten to [T, in] first.
    """
    return keras.layers.Dense(units, kernel_initializer=initializer(config), name=name)


@element_wise.in_one_pass
@tf.custom_gradient
def gelu(x):
    """GELU in the tanh form of the original's last version.

    0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). The order of operations is the
    one that oneDNN computes as a part of the matrix product before it, where there
    is no gradient. `tf.nn.gelu` keeps seven tensors for the gradient; this keeps
    x, its square and the tanh.

    Args:
      x: float tensor of any shape.

    Returns:
      tensor like `x`.
    """
    square = x * x
    tanh = tf.tanh(_SQRT_2_OVER_PI * (x + 0.044715 * (square * x)))

    def gradient(upstream):
        slope = _SQRT_2_OVER_PI * (1.0 + 3.0 * 0.044715 * square)
        return upstream * 0.5 * (1.0 + tanh + x * (1.0 - tanh * tanh) * slope)

    return 0.5 * x * (1.0 + tanh), gradient


@element_wise.in_one_pass
@tf.custom_gradient
def gelu_erf(x):
    """GELU as the normal distribution's: x Φ(x), the original's first version.

    Args:
      x: float tensor of any shape.

    Returns:
      tensor like `x`.
    """
    erf = tf.math.erf(x * math.sqrt(0.5))

    def gradient(upstream):
        density = tf.exp(-0.5 * (x * x)) * (1.0 / math.sqrt(2.0 * math.pi))
        return upstream * (0.5 * (1.0 + erf) + x * density)

    return 0.5 * x * (1.0 + erf), gradient


def activation(name):
    """Return the function for a `hidden_act` of `BertConfig`."""
    return {
        "gelu": gelu,
        "gelu_erf": gelu_erf,
        "relu": tf.nn.relu,
        "tanh": tf.tanh,
        "linear": tf.identity,
    }[name]


def normalize(x, gamma, beta, epsilon):
    """LayerNorm with a gradient of few passes.

    Args:
      x: float32 [T, H].
      gamma: float32 [H], the factor.
      beta: float32 [H], what is added.
      epsilon: float, added to the variance.

    Returns:
      float32 [T, H].
    """

    @tf.custom_gradient
    def compute(x, gamma, beta):
        mean = tf.reduce_mean(x, axis=-1, keepdims=True)
        centred = x - mean
        variance = tf.reduce_mean(centred * centred, axis=-1, keepdims=True)
        scale = tf.math.rsqrt(variance + epsilon)
        normal = centred * scale

        def gradient(upstream):
            d_gamma = tf.reduce_sum(upstream * normal, axis=0)
            d_beta = tf.reduce_sum(upstream, axis=0)
            d_normal = upstream * gamma
            along = tf.reduce_mean(d_normal * normal, axis=-1, keepdims=True)
            d_x = d_normal - tf.reduce_mean(d_normal, axis=-1, keepdims=True)
            return scale * (d_x - normal * along), d_gamma, d_beta

        return normal * gamma + beta, gradient

    return compute(x, gamma, beta)


@element_wise.in_one_pass
def normalize_dropped_sum(x, residual, gamma, beta, key, rate, epsilon):
    """LayerNorm(residual + dropout(x)).

    Args:
      x: float32 [T, H].
      residual: likewise.
      gamma: see `normalize`.
      beta: likewise.
      key: uint32 [2], see `hashed_dropout`.
      rate: probability of zero.
      epsilon: see `normalize`.

    Returns:
      float32 [T, H].
    """
    total = hashed_dropout(x, key, rate=rate) + residual
    return normalize(total, gamma, beta, epsilon)


@keras.saving.register_keras_serializable("official_bert")
class LayerNorm(keras.layers.Layer):
    """Layer normalisation over the last axis of [T, H], in float32.

    Keras' own layer builds about twice as many operations, which the CPU
    runtime does not fuse.

    Args:
      epsilon: ε, added to the variance. The original's 1e-12 vanishes in
        float16, one reason why this always computes in float32.
    """

    def __init__(self, epsilon=ORIGINAL_EPSILON, **kwargs):
        super().__init__(**kwargs)
        self.epsilon = epsilon

    def build(self, input_shape):
        """Create gamma [H] of ones and beta [H] of zeros."""
        width = (input_shape[-1],)
        # Held in float32 under every precision policy: no autocast.
        self.gamma = self.add_weight(
            shape=width, initializer="ones", name="gamma", autocast=False
        )
        self.beta = self.add_weight(
            shape=width, initializer="zeros", name="beta", autocast=False
        )

    def call(self, x):
        """Normalise `x` [T, H]; the result has the dtype of `x`."""
        is_fused = fused_layer_norm.is_wanted(x)
        compute = fused_layer_norm.layer_norm if is_fused else normalize
        normal = compute(tf.cast(x, tf.float32), *self._gamma_and_beta(), self.epsilon)
        return tf.cast(normal, x.dtype)

    def of_sum(self, x, residual, rate, dropout_seed, site):
        """Normalise `residual` + dropout(`x`), [T, H]; see `dropout.dropout`."""
        if dropout_seed is None or not element_wise.is_compiled():
            return self(dropout(x, rate, dropout_seed, site) + residual)
        key = mask_key(dropout_seed, site)
        return normalize_dropped_sum(
            x, residual, *self._gamma_and_beta(), key, rate=rate, epsilon=self.epsilon
        )

    def _gamma_and_beta(self):
        return tf.convert_to_tensor(self.gamma), tf.convert_to_tensor(self.beta)

    def compute_output_shape(self, input_shape):
        """Same shape as the input."""
        return input_shape

    def get_config(self):
        """Return what `from_config` needs."""
        return {**super().get_config(), "epsilon": self.epsilon}
