"""LayerNorm in one pass of oneDNN instead of seven, for graphs without a gradient.

TensorFlow replaces a `FusedBatchNormV3` between two reshapes, the form that Keras 2
used, by oneDNN's kernel. Without oneDNN these operations take four times as long as
the plain ones, so exported models have the plain ones.
"""

import tensorflow as tf

from official_bert.modeling import layers


def has_onednn() -> bool | None:
    """Return whether TensorFlow computes with oneDNN; None if that is unknown."""
    try:
        from tensorflow.python.util import _pywrap_util_port

        return bool(_pywrap_util_port.IsMklEnabled())
    except (ImportError, AttributeError):
        return None


def layer_norm(
    x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float
) -> tf.Tensor:
    """Compute `layers.layer_norm` with the operations that oneDNN fuses.

    If T is static, TensorFlow simplifies the graph and oneDNN does not recognize it.
    Then, and in half precision, this is the plain function.
    """
    if x.dtype != tf.float32 or x.shape[0] is not None:
        return layers.layer_norm(x, gamma, beta, epsilon)
    shape = tf.shape(x)
    empty = tf.constant([], tf.float32)
    # Each of the T rows is a channel, normalized over its H elements.
    normal = tf.raw_ops.FusedBatchNormV3(
        x=tf.reshape(x, tf.stack([1, shape[0], shape[1], 1])),  # [1, T, H, 1]
        scale=tf.ones([shape[0]]),
        offset=tf.zeros([shape[0]]),
        mean=empty,
        variance=empty,
        epsilon=epsilon,
        data_format="NCHW",
        is_training=True,
    ).y
    return tf.reshape(normal, shape) * gamma + beta
