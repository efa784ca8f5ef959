"""Records to batches, where batch k is a pure function of (files, seed, k).

Each epoch sees the chunks of all files in an order of its own; a window of
them is read, shuffled as one pool, and dealt into batches. Orders come from
`index_shuffle`, a permutation that is computed and never stored, so a run
that starts again at step k reads from there, without the k - 1 before it.
"""

import dataclasses
import math
import re

import numpy as np
import tensorflow as tf

from official_bert.data.record_index import CHUNK
from official_bert.errors import UserError

# Chunks that are shuffled together: 64 * 256 records, some 20 MB at length
# 128. Smaller data is shuffled as a whole.
WINDOW = 64

# Of the cipher behind `index_shuffle`. TensorFlow's own 4 leave a third of a
# small pool in its place and neighbours together in one of 300 chunks; from
# 8 on, orders are like those drawn by lot.
ROUNDS = 16

# What each feature's numbers must be below, in words.
LIMITED_BY = {
    "input_ids": "the model's vocab_size",
    "masked_lm_ids": "the model's vocab_size",
    "segment_ids": "the model's type_vocab_size",
    "masked_lm_positions": "max_seq_length",
    "next_sentence_labels": "the number of labels",
}


@dataclasses.dataclass(frozen=True)
class RecordFormat:
    """How the records of one data set are read.

    Attributes:
      spec: name in the record -> `tf.io.FixedLenFeature`.
      names: name in the record -> the original's name, where they differ.
      limits: the original's name -> number that is too large for it.
    """

    spec: dict
    names: dict[str, str]
    limits: dict[str, int]


def training_batches(index, record_format, batch_size, seed, first_batch=0):
    """Return the endless stream of training batches from batch `first_batch`.

    Args:
      index: `RecordIndex` of the files.
      record_format: `RecordFormat`.
      batch_size: B, records per batch; batches run on across epochs.
      seed: int, decides the order.
      first_batch: k of the first batch to deliver.

    Returns:
      `tf.data.Dataset` of dicts: int32 [B, S] and so on, float32 weights.

    Raises:
      UserError: the batch is larger than the data.
    """
    check_batch_size(index, batch_size)
    windows = math.ceil(len(index.count) / WINDOW)
    epoch, rest = divmod(first_batch * batch_size, index.num_records)
    window, skipped = _find_window(index, seed, epoch, rest)
    start = epoch * windows + window
    records = tf.data.Dataset.range(start, np.iinfo(np.int64).max).flat_map(
        lambda number: _window_records(
            index, seed, epoch=number // windows, window=number % windows
        )
    )
    batches = records.skip(skipped).batch(batch_size, drop_remainder=True)
    return _parsed(batches, index.files, record_format)


def check_batch_size(index, batch_size):
    """Raise `UserError` if a batch is larger than the data."""
    if batch_size > index.num_records:
        raise UserError(
            f"The batch size {batch_size} is larger than the data, which has "
            f"{index.num_records} records; lower --train_batch_size or create "
            "more records."
        )


def evaluation_batches(index, record_format, batch_size, max_batches):
    """Return the records in file order, once, the last batch maybe smaller.

    Args:
      index: `RecordIndex` of the files.
      record_format: `RecordFormat`.
      batch_size: B.
      max_batches: stop after this many.

    Returns:
      `tf.data.Dataset` of dicts as in `training_batches`.
    """
    chunks = tf.data.Dataset.range(len(index.count))
    records = chunks.flat_map(lambda chunk: _chunk_records(index, chunk))
    batches = records.batch(batch_size).take(max_batches)
    return _parsed(batches, index.files, record_format)


def _chunk_order(index, seed, epoch, places):
    """Return which chunks stand at `places` of an epoch's order."""
    return _permuted(places, len(index.count), seed, epoch, 0)


def _permuted(places, size, seed, epoch, window):
    """Return the images of `places` under a permutation of 0 … size - 1."""
    seeds = tf.stack([tf.cast(part, tf.int64) for part in (seed, epoch, window)])
    # The operation behind `tf.random.experimental.index_shuffle`, which takes
    # two numbers of its own choice of the three.
    return tf.raw_ops.RandomIndexShuffle(
        index=places,
        seed=seeds,
        max_index=tf.cast(size, tf.int64) - 1,
        rounds=ROUNDS,
    )


def _find_window(index, seed, epoch, record):
    """Return (window of an epoch that has its `record`-th, place within it)."""
    places = tf.range(len(index.count), dtype=tf.int64)
    counts = index.count[_chunk_order(index, seed, epoch, places).numpy()]
    ends = np.cumsum(counts)[WINDOW - 1 :: WINDOW]
    window = int(np.searchsorted(ends, record, side="right"))
    return window, record - (int(ends[window - 1]) if window else 0)


def _window_records(index, seed, epoch, window):
    """Return the shuffled records of one window as a dataset."""
    stop = tf.minimum((window + 1) * WINDOW, len(index.count))
    places = tf.range(window * WINDOW, stop, dtype=tf.int64)
    chunks = _chunk_order(index, seed, epoch, places)
    pool = (
        tf.data.Dataset.from_tensor_slices(chunks)
        .flat_map(lambda chunk: _chunk_records(index, chunk))
        .batch(WINDOW * CHUNK)
    )

    def shuffle(*columns):
        size = tf.shape(columns[0], tf.int64)[0]
        order = _permuted(tf.range(size), size, seed, epoch, window + 1)
        return tuple(tf.gather(column, order) for column in columns)

    return pool.map(shuffle).unbatch()


def _chunk_records(index, chunk):
    """Return (serialized record, file number, record number) of one chunk."""
    count = tf.constant(index.count)[chunk]
    file = tf.constant(index.file_of)[chunk]
    serialized = _TFRecordsFrom(
        tf.constant(index.files)[file], tf.constant(index.offset)[chunk]
    )
    numbers = tf.data.Dataset.range(count).map(
        lambda place: (file, tf.constant(index.first)[chunk] + place)
    )
    return tf.data.Dataset.zip(serialized, numbers).map(
        lambda record, where: (record, *where)
    )


class _TFRecordsFrom(tf.data.Dataset):
    """The records of one file from a byte offset on."""

    def __init__(self, path, offset):
        variant = tf.raw_ops.TFRecordDatasetV2(
            filenames=tf.reshape(path, [1]),
            compression_type="",
            buffer_size=256 * 1024,
            byte_offsets=tf.reshape(offset, [1]),
        )
        super().__init__(variant)

    def _inputs(self):
        return []

    @property
    def element_spec(self):
        return tf.TensorSpec([], tf.string)


def _parsed(batches, paths, record_format):
    """Parse batches of serialized records, and check their numbers."""

    def parse(serialized, file, number):
        parsed = tf.io.parse_example(serialized, record_format.spec)
        features = {
            record_format.names.get(name, name): tf.cast(
                value, tf.float32 if value.dtype.is_floating else tf.int32
            )
            for name, value in parsed.items()
        }
        checks = [
            _check_below(limit, features[name], name, paths, file, number)
            for name, limit in record_format.limits.items()
        ]
        with tf.control_dependencies(checks):
            return tf.nest.map_structure(tf.identity, features)

    return batches.map(parse, num_parallel_calls=2, deterministic=True).prefetch(2)


def _check_below(limit, values, name, paths, file, number):
    """Assert 0 <= values < limit, [B, …]; the message finds the record."""
    wrong = (values < 0) | (values >= limit)
    row = tf.argmax(tf.cast(tf.reduce_any(wrong, axis=1), tf.int32))
    place = tf.argmax(tf.cast(wrong[row], tf.int32))
    path = tf.gather(tf.constant(paths), file[row])
    message = tf.strings.format(
        "{} record {}: " + name + " holds {}, but " + LIMITED_BY[name] + f" is {limit};"
        " create the records anew, for this model.",
        (path, number[row], values[row, place]),
    )
    return tf.debugging.Assert(~tf.reduce_any(wrong), [message], summarize=-1)


def user_error(error, index, record_format):
    """Turn what the pipeline raised into the sentence a user needs.

    Args:
      error: a `tf.errors.OpError`.
      index: `RecordIndex` of the files that were read.
      record_format: `RecordFormat` they were read with.

    Returns:
      `UserError`, or None where the data is not to blame.
    """
    checked = re.search(r"assertion failed: \[(.* record .*)\]", error.message)
    if checked:
        return UserError(checked.group(1).replace("\\", "").replace('"', ""))
    if isinstance(error, tf.errors.DataLossError) or "ParseExample" in error.message:
        return _find_bad_record(index, record_format)
    return None


def _find_bad_record(index, record_format):
    """Read the files record by record until one cannot be read or parsed."""
    for path in index.files:
        good = 0
        try:
            for record in tf.data.TFRecordDataset(path):
                tf.io.parse_single_example(record, record_format.spec)
                good += 1
        except tf.errors.DataLossError:
            return UserError(f"{path}: record {good} is damaged; make the file again.")
        except tf.errors.InvalidArgumentError:
            lengths = {
                record_format.names.get(name, name): feature.shape[0]
                for name, feature in record_format.spec.items()
            }
            return UserError(
                f"{path}: record {good} does not hold the features of a "
                f"pre-training record of these lengths: {lengths}."
            )
    return None
