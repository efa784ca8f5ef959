"""LayerNorm in one pass of oneDNN instead of seven, where no gradient is wanted.

TensorFlow puts oneDNN's kernel in place of a `FusedBatchNormV3` between two
reshapes, which is how Keras 2 wrote it. Where oneDNN is off, the same
operations take four times as long as those of `layers.LayerNorm`, so exported
models have the latter.
"""

import contextlib
import contextvars

import tensorflow as tf

_IS_ON = contextvars.ContextVar("fused_layer_norm", default=False)


def has_onednn():
    """Return whether TensorFlow computes with oneDNN; None if it does not tell."""
    try:
        from tensorflow.python.util import _pywrap_util_port

        return bool(_pywrap_util_port.IsMklEnabled())
    except (ImportError, AttributeError):
        return None


@contextlib.contextmanager
def fused_where_possible():
    """Let each `LayerNorm` that is traced meanwhile be one pass, if oneDNN is there.

    For graphs that are computed in this process, on its CPU, without a gradient.
    """
    is_possible = bool(has_onednn()) and not tf.config.list_logical_devices("GPU")
    token = _IS_ON.set(is_possible)
    try:
        yield
    finally:
        _IS_ON.reset(token)


def is_wanted(x):
    """Return whether `layer_norm` is to be used for float32 [T, H].

    With a known T, TensorFlow simplifies what it would recognize.
    """
    return _IS_ON.get() and x.dtype == tf.float32 and x.shape[0] is None


def layer_norm(x, gamma, beta, epsilon):
    """Return LayerNorm of float32 [T, H], T unknown, as the operations to be fused.

    Each of the T rows is a channel, which is normalised over its H places.
    """
    shape = tf.shape(x)
    empty = tf.constant([], tf.float32)
    normal = tf.raw_ops.FusedBatchNormV3(
        x=tf.reshape(x, tf.stack([1, shape[0], shape[1], 1])),
        scale=tf.ones([shape[0]]),
        offset=tf.zeros([shape[0]]),
        mean=empty,
        variance=empty,
        epsilon=epsilon,
        data_format="NCHW",
        is_training=True,
    ).y
    return tf.reshape(normal, shape) * gamma + beta
