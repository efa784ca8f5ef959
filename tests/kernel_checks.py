"""Outputs and gradients of two forms of a function, compared."""

import numpy as np
import tensorflow as tf


def normal(*shape, seed=0):
    """Return float32 numbers of standard deviation 1."""
    return tf.random.stateless_normal(shape, [seed, 1])


def outputs_and_gradients(function, *inputs):
    """Return a function's outputs, and the gradients of a sum of the first of them."""
    floats = [one for one in inputs if one.dtype.is_floating]
    with tf.GradientTape() as tape:
        tape.watch(floats)
        outputs = tf.nest.flatten(function(*inputs))
        loss = tf.reduce_sum(outputs[0] * normal(*outputs[0].shape, seed=9))
    return [*outputs, *tape.gradient(loss, floats)]


def check_same(expected, found, tolerance=2e-6):
    """Compare lists of tensors, relative to the largest number of each above 1."""
    for wanted, one in zip(expected, found, strict=True):
        scale = max(1.0, float(tf.reduce_max(tf.abs(wanted))))
        np.testing.assert_allclose(one / scale, wanted / scale, atol=tolerance)
