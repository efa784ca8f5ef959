"""Micro-batches: the rows of each, and sums over them."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf


def rows_of(value: tf.Tensor, start: tf.Tensor, count: int) -> tf.Tensor:
    """Return `count` rows of a tensor [B, …], with a static shape if possible."""
    rest = value.shape[1:]
    part = tf.slice(value, [start] + [0] * len(rest), [count] + [-1] * len(rest))
    part.set_shape([count, *rest])
    return part


def sum_over(count: int, function: Callable[[tf.Tensor], Any]) -> Any:
    """Return function(0) + … + function(count - 1), computed one after the other.

    `function` maps an int32 scalar tensor to a nest of tensors.
    """
    traced = tf.function(function, autograph=False)
    number = tf.TensorSpec([], tf.int32)
    outputs = traced.get_concrete_function(number).structured_outputs
    zeros = tf.nest.map_structure(
        lambda spec: tf.zeros(spec.shape, spec.dtype), outputs
    )
    _, total = tf.while_loop(
        lambda number, _: number < count,
        lambda number, total: (
            number + 1,
            tf.nest.map_structure(tf.add, total, traced(number)),
        ),
        (tf.constant(0), zeros),
        maximum_iterations=count,
    )
    return total


def joined_over(
    count: int, function: Callable[[tf.Tensor], dict[str, tf.Tensor]]
) -> dict[str, tf.Tensor]:
    """Return the concatenated rows of function(0), …, function(count - 1).

    `function` maps an int32 scalar tensor to a dict of tensors [rows, …].
    """
    traced = tf.function(function, autograph=False)
    number = tf.TensorSpec([], tf.int32)
    specs = traced.get_concrete_function(number).structured_outputs
    arrays = {
        name: tf.TensorArray(spec.dtype, size=count, element_shape=spec.shape)
        for name, spec in specs.items()
    }

    def body(number, arrays):
        outputs = traced(number)
        written = {name: arrays[name].write(number, outputs[name]) for name in arrays}
        return number + 1, written

    _, arrays = tf.while_loop(
        lambda number, _: number < count,
        body,
        (tf.constant(0), arrays),
        parallel_iterations=1,
        maximum_iterations=count,
    )
    return {name: array.concat() for name, array in arrays.items()}
