"""Batches of features: random and endless to train on, in order to predict.

A batch is as long as its longest text, rounded up to a multiple of
`LENGTH_STEP`: little is computed for padding, and there are few different
shapes. What a model says of a text is the same, however long its padding; only
where padding is part of the loss (SQuAD's softmax) its length counts. Batch k
is a pure function of (features, batch size, seed, k), so that a run which is
continued sees what it would have seen.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np
import tensorflow as tf

LENGTH_STEP = 16

# The domain of the random numbers for the order of examples.
ORDER = 1


def length_of(one: Any) -> int:
    """Return the tokens of an example with `input_ids` [T]."""
    return len(one.input_ids)


@dataclasses.dataclass(frozen=True)
class FeatureSet:
    """Examples in memory, and how they become batches.

    Attributes:
      features: list of N examples' features.
      max_seq_length: no batch is longer.
      pad: function: (list of B features, S) -> dict of arrays [B, …] of them,
        padded to S tokens.
      length_of: function: features of an example -> its tokens.
      length_step: batches are rounded up to a multiple of it.
    """

    features: Sequence[Any]
    max_seq_length: int
    pad: Callable[[Sequence[Any], int], dict[str, np.ndarray]]
    length_of: Callable[[Any], int] = length_of
    length_step: int = LENGTH_STEP

    def of_one_length(self) -> Self:
        """Return the same set with every batch padded to `max_seq_length`."""
        return dataclasses.replace(self, length_step=self.max_seq_length)

    @functools.cached_property
    def tokens_per_row(self) -> float:
        """How many tokens a row has on average."""
        return float(np.mean(list(map(self.length_of, self.features))))

    def training_batches(
        self,
        batch_size: int,
        seed: int,
        first_batch: int,
        rows: tuple[int, int] | None = None,
    ) -> tf.data.Dataset:
        """Return all batches from one on, without end.

        Each pass over the examples is in a new order, and follows the one
        before without a gap: a batch may have the end of one pass and the
        beginning of the next, as in the original.

        Args:
          batch_size: B.
          seed: of the order.
          first_batch: number of the first batch, from 0.
          rows: (start, stop) of the rows of each batch to deliver; None for
            all. Their length is still that of the whole batch.

        Returns:
          `tf.data.Dataset` of dicts as of `pad`, [rows, …].
        """
        start, stop = rows or (0, batch_size)

        def batches():
            for batch in itertools.count(first_batch):
                chosen = _numbers(len(self.features), batch_size, seed, batch)
                padded = self._padded(chosen)
                yield {name: value[start:stop] for name, value in padded.items()}

        return tf.data.Dataset.from_generator(
            batches, output_signature=self._signature(stop - start)
        )

    def batch_records(
        self, batch_size: int, seed: int, batch: int
    ) -> list[tuple[str, int, bytes]]:
        """Return (what they are, number, bytes) of the examples of one batch.

        The bytes are those of a `tf.train.Example` with the features of `pad`.
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
        """Yield all examples once, those of like length together, longest first.

        Args:
          batch_size: B; the last batch may be smaller.

        Yields:
          (numbers of the examples, an int array; dict of arrays as of `pad`).
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
        """Return the types of a batch of any length."""
        first = self.features[:1]
        length = self.length_of(first[0])
        shorter, longer = self.pad(first, length), self.pad(first, length + 1)
        signature = {}
        for name, value in shorter.items():
            sizes = zip(value.shape[1:], longer[name].shape[1:], strict=True)
            shape = [size if size == other else None for size, other in sizes]
            signature[name] = tf.TensorSpec([batch_size, *shape], value.dtype)
        return signature


def _numbers(size, batch_size, seed, batch):
    """Return which examples make up a batch, an int array [batch_size]."""
    positions = np.arange(batch * batch_size, (batch + 1) * batch_size)
    passes, positions = np.divmod(positions, size)
    orders = {}
    for number in np.unique(passes):
        seeds = np.random.SeedSequence([seed, ORDER, number])
        orders[number] = np.random.Generator(np.random.Philox(seeds)).permutation(size)
    return np.array([orders[n][at] for n, at in zip(passes, positions, strict=True)])
