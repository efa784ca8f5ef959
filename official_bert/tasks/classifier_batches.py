"""Batches of features: random and endless to train on, in order to predict.

A batch is as long as its longest text, rounded up to a multiple of
`LENGTH_STEP`: little is computed for padding, results are the same, and there
are few different shapes. Batch k is a pure function of (features, batch size,
seed, k), so that a run which is continued sees what it would have seen.
"""

import dataclasses

import numpy as np
import tensorflow as tf

from official_bert.tasks.classifier_features import Features, pad_features

LENGTH_STEP = 16

# The domain of the random numbers for the order of examples.
ORDER = 1


@dataclasses.dataclass(frozen=True)
class FeatureSet:
    """Examples to train on, in memory.

    Attributes:
      features: list of `Features` with labels.
      max_seq_length: no batch is longer.
    """

    features: list[Features]
    max_seq_length: int

    def training_batches(self, batch_size, seed, first_batch, rows=None):
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
          `tf.data.Dataset` of dicts: `input_ids`, `input_mask`, `segment_ids`
          int32 [rows, S] and `label_ids` [rows], [rows, C] or float.
        """
        start, stop = rows or (0, batch_size)

        def batches():
            batch = first_batch
            while True:
                chosen = self._chosen(batch_size, seed, batch)
                yield {
                    name: value[start:stop]
                    for name, value in _padded(chosen, self.max_seq_length).items()
                }
                batch += 1

        signature = _signature(self.features, stop - start)
        return tf.data.Dataset.from_generator(batches, output_signature=signature)

    def batch_records(self, batch_size, seed, batch):
        """Return (what they are, number, bytes) of the examples of one batch.

        The bytes are those of a `tf.train.Example` with `input_ids`,
        `segment_ids` and `label_ids`, as the original's `.tf_record` has them.
        """
        numbers = _numbers(len(self.features), batch_size, seed, batch)
        return [
            ("the training examples", int(number), _record(self.features[number]))
            for number in numbers
        ]

    def _chosen(self, batch_size, seed, batch):
        numbers = _numbers(len(self.features), batch_size, seed, batch)
        return [self.features[number] for number in numbers]


def _numbers(size, batch_size, seed, batch):
    """Return which examples make up a batch, an int array [batch_size]."""
    places = np.arange(batch * batch_size, (batch + 1) * batch_size)
    passes, places = np.divmod(places, size)
    orders = {number: _order(size, seed, number) for number in np.unique(passes)}
    return np.array([orders[n][at] for n, at in zip(passes, places, strict=True)])


def _order(size, seed, number):
    """Return the order of the examples in pass `number`, a permutation."""
    return np.random.Generator(
        np.random.Philox(np.random.SeedSequence([seed, ORDER, number]))
    ).permutation(size)


def ordered_batches(features, batch_size, max_seq_length):
    """Yield all examples once, those of like length together, the longest first.

    Args:
      features: list of `Features`.
      batch_size: B; the last batch may be smaller.
      max_seq_length: no batch is longer.

    Yields:
      (numbers of the examples, an int array; dict of arrays as of
      `pad_features`).
    """
    lengths = [len(one.input_ids) for one in features]
    order = np.argsort(lengths, kind="stable")[::-1]
    for start in range(0, len(order), batch_size):
        numbers = order[start : start + batch_size]
        yield numbers, _padded([features[n] for n in numbers], max_seq_length)


def _padded(features, max_seq_length):
    longest = max(len(one.input_ids) for one in features)
    length = -(-longest // LENGTH_STEP) * LENGTH_STEP
    return pad_features(features, max(longest, min(length, max_seq_length)))


def _signature(features, rows):
    """Return the types of a batch: of any length, of `rows` rows."""
    example = pad_features(features[:1], len(features[0].input_ids))
    return {
        name: tf.TensorSpec(
            [rows, *(value.shape[1:] if name == "label_ids" else [None])], value.dtype
        )
        for name, value in example.items()
    }


def _record(one):
    """Return an example's features as a serialized `tf.train.Example`."""
    ints = {"input_ids": one.input_ids, "segment_ids": one.segment_ids}
    values = {
        name: tf.train.Feature(int64_list=tf.train.Int64List(value=numbers))
        for name, numbers in ints.items()
    }
    label = np.ravel(one.label_id)
    values["label_ids"] = tf.train.Feature(
        float_list=tf.train.FloatList(value=label.astype(np.float32))
    )
    return tf.train.Example(
        features=tf.train.Features(feature=values)
    ).SerializeToString()
