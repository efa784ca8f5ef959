"""A model in a graph that processes a few rows at a time."""

from collections.abc import Callable, Iterable, Mapping

import keras
import tensorflow as tf

from official_bert.constants import INPUTS

# A request may have any number of rows; this limit bounds the memory.
ROWS_AT_ONCE = 64

TOKENS = {name: tf.TensorSpec([None, None], tf.int32, name) for name in INPUTS}


class RowModel(tf.Module):
    """A function of rows, and the weights that it reads."""

    def __init__(
        self,
        compute: Callable[[dict[str, tf.Tensor]], dict[str, tf.Tensor]],
        weights: Iterable[keras.Variable],
        specs: Mapping[str, tf.TensorSpec] | None = None,
        rows_at_once: int = ROWS_AT_ONCE,
    ):
        """Hold a function and the Keras variables that it reads.

        The function takes a dict of tensors [B, …] with these specs (default:
        `TOKENS`), B at most `rows_at_once`, and returns a dict of tensors [B,
        …].
        """
        super().__init__()
        self._variables = [weight.value for weight in weights]
        self._specs = specs or TOKENS
        self._rows_at_once = rows_at_once

        # One function, even if a graph calls it several times.
        @tf.function(input_signature=list(self._specs.values()), autograph=False)
        def of_rows(*values):
            return compute(dict(zip(self._specs, values, strict=True)))

        self._of_rows = of_rows

    def __call__(self, inputs: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Return the outputs [N, …] for a dict of inputs [N, …], N >= 0."""
        compute = self._of_rows.get_concrete_function()
        specs = dict(sorted(compute.structured_outputs.items()))
        values = [inputs[name] for name in self._specs]
        # Zero rows still make one part, which defines the shapes.
        count = tf.maximum(-(-tf.shape(values[0])[0] // self._rows_at_once), 1)
        # The size is fixed here: servers before 2.13 cannot load a growing
        # array.
        parts = [
            tf.TensorArray(
                spec.dtype, size=count, infer_shape=False, element_shape=spec.shape
            )
            for spec in specs.values()
        ]

        def add(part, *parts):
            first = part * self._rows_at_once
            some = [value[first : first + self._rows_at_once] for value in values]
            outputs = compute(*some)
            written = [
                array.write(part, outputs[name])
                for name, array in zip(specs, parts, strict=True)
            ]
            return part + 1, *written

        _, *parts = tf.while_loop(
            lambda part, *_: part < count,
            add,
            (tf.constant(0), *parts),
            parallel_iterations=1,
        )
        return {name: array.concat() for name, array in zip(specs, parts, strict=True)}
