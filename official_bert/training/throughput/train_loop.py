"""Several training steps in one call, without Python between them."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from official_bert.training.step import first


def make_train_loop(
    strategy: tf.distribute.Strategy,
    replica_step: Callable[[dict[str, tf.Tensor]], dict[str, tf.Tensor]],
) -> Callable[[dict[str, Any], tf.Tensor], dict[str, tf.Tensor]]:
    """Return a compiled function that runs several training steps.

    The result equals that of single calls of `step.make_train_step`.

    Args:
      strategy: a `tf.distribute` strategy.
      replica_step: from `step.make_replica_step`.

    Returns:
      function: (per-replica features of K batches [K, rows, …]; the number N of them
      to use, an int32 scalar) -> report, a dict of arrays [N]. All calls with the same
      K run the same program.
    """

    def step_on_batch(batches, number):
        return replica_step({name: value[number] for name, value in batches.items()})

    @tf.function(autograph=False, reduce_retracing=True)
    def train_loop(batches, count):
        @tf.function(autograph=False)
        def step(number):
            report = strategy.run(step_on_batch, args=(batches, number))
            return first(strategy, report)

        def body(number, columns):
            report = step(number)
            written = {
                name: columns[name].write(number, report[name]) for name in report
            }
            return number + 1, written

        specs = step.get_concrete_function(tf.TensorSpec([], tf.int32))
        columns = {
            name: tf.TensorArray(spec.dtype, size=count, element_shape=spec.shape)
            for name, spec in specs.structured_outputs.items()
        }
        # Each step depends on the previous one, so they must not run in parallel.
        _, columns = tf.while_loop(
            lambda number, _: number < count,
            body,
            (tf.constant(0), columns),
            parallel_iterations=1,
        )
        return {name: column.stack() for name, column in columns.items()}

    return train_loop
