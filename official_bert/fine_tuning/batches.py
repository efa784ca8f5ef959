"""Batches of features: shuffled without end for training, in order for predictions.

A batch is as long as its longest text, rounded up to a multiple of `LENGTH_STEP`.
This saves work for padding and keeps the number of different shapes small. Padding
does not change the outputs for a text, but it counts if the loss includes it (SQuAD's
softmax over positions). Batch k is a pure function of (features, batch size, seed, k),
so a resumed run sees the same batches as an uninterrupted one.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np
import tensorflow as tf

from official_bert.data.input_pipeline import without_autotuning

LENGTH_STEP = 16

# Examples whose tokens are counted.
SAMPLE = 1000

# Separates the random numbers for the order of examples from other ones.
ORDER = 1


def length_of(one: Any) -> int:
    """Return the number of tokens of an example with `input_ids` [T]."""
    return len(one.input_ids)


def one_row(one: Any) -> int:
    """Return 1, the number of rows of an example without windows."""
    return 1


@dataclasses.dataclass(frozen=True)
class FeatureSet:
    """Examples in memory, with the functions that make batches of them.

    Attributes:
      features: list of the features of N examples.
      max_seq_length: maximum length of a batch.
      pad: function: (list of B features, S) -> dict of arrays [B, …], padded to S
        tokens.
      length_of: function: features of an example -> number of tokens.
      length_step: lengths of batches are rounded up to a multiple of it.
      num_rows_of: function: features of an example -> number of rows, if `pad` pads
        examples to the largest number of rows in the batch.
    """

    features: Sequence[Any]
    max_seq_length: int
    pad: Callable[[Sequence[Any], int], dict[str, np.ndarray]]
    length_of: Callable[[Any], int] = length_of
    length_step: int = LENGTH_STEP
    num_rows_of: Callable[[Any], int] = one_row

    def of_one_length(self) -> Self:
        """Return the same set with every batch padded to `max_seq_length`."""
        return dataclasses.replace(self, length_step=self.max_seq_length)

    @functools.cached_property
    def tokens_per_row(self) -> float:
        """The mean number of tokens per example, over all of its rows (texts, choices).

        It is an estimate from at most 2 * `SAMPLE` examples.
        """
        some = self.features[:: max(1, len(self.features) // SAMPLE)]
        padded = (self.pad([one], self.length_of(one)) for one in some)
        return float(np.mean([one["input_mask"].sum() for one in padded]))

    def training_batches(
        self,
        batch_size: int,
        seed: int,
        first_batch: int,
        rows: tuple[int, int] | None = None,
    ) -> tf.data.Dataset:
        """Return all batches from `first_batch` on, without end.

        Each pass over the examples has a new order and follows the previous pass
        without a gap. A batch may contain the end of one pass and the beginning of
        the next, as in the original.

        Args:
          batch_size: B.
          seed: seed of the order.
          first_batch: number of the first batch, from 0.
          rows: (start, stop) of the rows of each batch to return; None for all. The
            rows are padded to the length of the complete batch.

        Returns:
          `tf.data.Dataset` of dicts as returned by `pad`, [rows, …].
        """
        start, stop = rows or (0, batch_size)

        def batches():
            for batch in itertools.count(first_batch):
                chosen = _numbers(len(self.features), batch_size, seed, batch)
                padded = self._padded(chosen)
                yield {name: value[start:stop] for name, value in padded.items()}

        return without_autotuning(
            tf.data.Dataset.from_generator(
                batches, output_signature=self._signature(stop - start)
            )
        )

    def batch_records(
        self, batch_size: int, seed: int, batch: int
    ) -> list[tuple[str, int, bytes]]:
        """Return (description, number, bytes) of the examples of one batch.

        The bytes are a `tf.train.Example` with the features of `pad`.
        """
        records = []
        for number in _numbers(len(self.features), batch_size, seed, batch):
            one, example = self.features[number], tf.train.Example()
            for name, value in self.pad([one], self.length_of(one)).items():
                feature = example.features.feature[name]
                is_integer = np.issubdtype(value.dtype, np.integer)
                values = feature.int64_list if is_integer else feature.float_list
                values.value.extend(np.ravel(value))
            content = example.SerializeToString()
            records.append(("the training examples", int(number), content))
        return records

    def ordered_batches(
        self, batch_size: int
    ) -> Iterator[tuple[np.ndarray, dict[str, np.ndarray]]]:
        """Yield all examples once, grouped by similar length, longest first.

        Args:
          batch_size: B; the last batch may be smaller.

        Yields:
          (numbers of the examples, an int array; dict of arrays as returned by `pad`).
        """
        lengths = list(map(self.length_of, self.features))
        order = np.argsort(lengths, kind="stable")[::-1]
        for start in range(0, len(order), batch_size):
            numbers = order[start : start + batch_size]
            yield numbers, self._padded(numbers)

    def _padded(self, numbers):
        chosen = [self.features[number] for number in numbers]
        longest = max(map(self.length_of, chosen))
        length = -(-longest // self.length_step) * self.length_step
        return self.pad(chosen, max(longest, min(length, self.max_seq_length)))

    def _signature(self, batch_size):
        """Return the `tf.TensorSpec`s of a batch of any length."""
        extremes = [each(self.features, key=self.num_rows_of) for each in (min, max)]
        length = max(map(self.length_of, extremes))
        shorter, longer = (
            self.pad([one], length + number) for number, one in enumerate(extremes)
        )
        signature = {}
        for name, value in shorter.items():
            sizes = zip(value.shape[1:], longer[name].shape[1:], strict=True)
            shape = [size if size == other else None for size, other in sizes]
            signature[name] = tf.TensorSpec([batch_size, *shape], value.dtype)
        return signature


def _numbers(size, batch_size, seed, batch):
    """Return the numbers of the examples in a batch, an int array [batch_size]."""
    positions = np.arange(batch * batch_size, (batch + 1) * batch_size)
    passes, positions = np.divmod(positions, size)
    orders = {}
    for number in np.unique(passes):
        seeds = np.random.SeedSequence([seed, ORDER, number])
        orders[number] = np.random.Generator(np.random.Philox(seeds)).permutation(size)
    return np.array([orders[n][at] for n, at in zip(passes, positions, strict=True)])
