"""The pieces every BERT layer is made of: activations, LayerNorm, dropout.

Shape letters used in this package: B batch, S sequence, P predictions, A
heads, D head size, H hidden, V vocabulary; T = B * S tokens.
"""

import math

import keras
import tensorflow as tf

from official_bert.config import ORIGINAL_EPSILON
from official_bert.modeling import fused_layer_norm

# A dropout seed is int64 [2]: the run's seed, and a number whose lowest bits
# tell the sites of one model apart (see `site_seed`).
SITES = 1024

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


def _normalize(x, gamma, beta, epsilon):
    """LayerNorm of float32 [T, H] with a gradient of few passes."""

    @tf.custom_gradient
    def normalize(x, gamma, beta):
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

    return normalize(x, gamma, beta)


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
        normalize = fused_layer_norm.layer_norm if is_fused else _normalize
        normal = normalize(
            tf.cast(x, tf.float32),
            tf.convert_to_tensor(self.gamma),
            tf.convert_to_tensor(self.beta),
            self.epsilon,
        )
        return tf.cast(normal, x.dtype)

    def compute_output_shape(self, input_shape):
        """Same shape as the input."""
        return input_shape

    def get_config(self):
        """Return what `from_config` needs."""
        return {**super().get_config(), "epsilon": self.epsilon}


def site_seed(seed, site):
    """Return the int64 [2] seed of one dropout site (0 <= site < SITES)."""
    return seed + tf.constant([0, site], tf.int64)


def dropout(x, rate, seed, site):
    """Zero each element with probability `rate`, scale the rest by 1/(1-rate).

    The mask is a pure function of (seed, site, shape): a restarted run, and a
    layer that is computed a second time for its gradient, see the same mask.
    Each element is decided by 16 random bits, so the realised rate is `rate`
    rounded to a multiple of 2**-16 (0.1 becomes 0.10001), and the scale is
    exact for it.

    Args:
      x: float tensor of any shape.
      rate: probability of zero.
      seed: int64 [2], or None for no dropout (evaluation).
      site: number of this dropout within the model.

    Returns:
      tensor like `x`.
    """
    threshold = round(rate * 65536)
    if seed is None or not threshold:
        return x
    shape = tf.shape(x)
    size = tf.reduce_prod(shape)
    bits = tf.random.stateless_uniform(
        [(size + 1) // 2],
        site_seed(seed, site),
        minval=None,
        maxval=None,
        dtype=tf.uint32,
        # The generator that is fast where this runs: Philox, or Threefry in
        # what XLA compiles for CPUs and GPUs.
        alg="auto_select",
    )
    bits = tf.reshape(tf.bitcast(bits, tf.uint16), [-1])[:size]
    keep = tf.reshape(bits >= tf.constant(threshold, tf.uint16), shape)
    scale = 65536.0 / (65536.0 - threshold)
    return x * (tf.cast(keep, x.dtype) * tf.cast(scale, x.dtype))
