"""Compare outputs and gradients of two forms of a function."""

import numpy as np
import tensorflow as tf

from official_bert.modeling import layers, losses

SEED = tf.constant([3, 2**32], tf.int64)


def normal(*shape, seed=0):
    """Return float32 numbers with standard deviation 1."""
    return tf.random.stateless_normal(shape, [seed, 1])


def outputs_and_gradients(function, *inputs):
    """Return a function's outputs, and the gradients of the first output's sum."""
    floats = [one for one in inputs if one.dtype.is_floating]
    with tf.GradientTape() as tape:
        tape.watch(floats)
        outputs = tf.nest.flatten(function(*inputs))
        loss = tf.reduce_sum(outputs[0] * normal(*outputs[0].shape, seed=9))
    return [*outputs, *tape.gradient(loss, floats)]


def check_same(expected, found, tolerance=2e-6):
    """Compare lists of tensors, relative to the largest number above 1 of each."""
    for wanted, one in zip(expected, found, strict=True):
        scale = max(1.0, float(tf.reduce_max(tf.abs(wanted))))
        np.testing.assert_allclose(one / scale, wanted / scale, atol=tolerance)


def element_wise_cases(kernels, plain):
    """Return name -> (plain function, optimized function, inputs) of element-wise work.

    Args:
      kernels: optimized `Kernels`.
      plain: `Kernels` of the plain forms, with the same dropout masks.
    """

    def residual_layer_norm(used):
        return lambda *tensors: used.residual_layer_norm(*tensors, 1e-3, 0.4, SEED, 2)

    return {
        "gelu": (layers.gelu, kernels.gelu, normal(50, 8) * 3),
        "gelu_erf": (layers.gelu_erf, kernels.gelu_erf, normal(50, 8) * 3),
        "LayerNorm of a dropped sum": (
            residual_layer_norm(plain),
            residual_layer_norm(kernels),
            normal(50, 8),
            normal(50, 8, seed=1),
            normal(8, seed=2),
            normal(8, seed=3),
        ),
        "cross-entropy": (
            losses.cross_entropy,
            kernels.cross_entropy,
            normal(20, 30) * 4,
            tf.range(20, dtype=tf.int32) % 7,
        ),
    }
