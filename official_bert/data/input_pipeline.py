"""Records to batches, where batch k is a pure function of (files, seed, k).

Each epoch sees the chunks of all files in an order of its own; a window of
them is read, shuffled as one pool, and dealt into batches. Orders come from
`index_shuffle`, a permutation that is computed and never stored, so a run
that starts again at step k reads from there, without the k - 1 before it.
"""

import dataclasses
import functools
import math
import re

import numpy as np
import tensorflow as tf

from official_bert.data import dynamic_masking, left_to_right
from official_bert.data.lanes import Lane, split_into_lanes
from official_bert.data.records import index as record_index
from official_bert.data.records.examples import compression_of
from official_bert.data.records.index import CHUNK, RecordIndex
from official_bert.errors import UserError

# Chunks that are shuffled together, in all lanes: 64 * 256 records, some 20 MB
# at length 128. Smaller data is shuffled as a whole (each lane for itself).
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
      masking: `dynamic_masking.MaskingRules` of unmasked records, else None.
      left_to_right: whether unmasked records stay so, and every next token is to be
        guessed; there is no `masking` then.
    """

    spec: dict[str, tf.io.FixedLenFeature]
    names: dict[str, str]
    limits: dict[str, int]
    masking: dynamic_masking.MaskingRules | None = None
    left_to_right: bool = False


def training_batches(
    index: RecordIndex,
    record_format: RecordFormat,
    batch_size: int,
    seed: int,
    first_batch: int = 0,
    rows: tuple[int, int] | None = None,
) -> tf.data.Dataset:
    """Return the endless stream of training batches from batch `first_batch`.

    Args:
      index: `RecordIndex` of the files.
      record_format: `RecordFormat`.
      batch_size: B, records per batch; batches run on across epochs.
      seed: int, decides the order, and masks that are dynamic.
      first_batch: k of the first batch to deliver.
      rows: (start, stop), the rows of each batch that are wanted; None for
        all. What other rows hold is not parsed, nor are the files opened
        that only they need.

    Returns:
      `tf.data.Dataset` of dicts: int32 [stop - start, S] and so on, float32
      weights; all shapes are static.

    Raises:
      UserError: the batch is larger than the data.
      ValueError: there are no such rows in a batch.
    """
    batches = _serialized_batches(index, batch_size, seed, first_batch, rows)
    first_row = first_batch * batch_size + (rows[0] if rows else 0)
    random = seed, dynamic_masking.TRAINING
    return _parsed(batches, index.files, record_format, batch_size, first_row, random)


def batch_records(
    index: RecordIndex, batch_size: int, seed: int, batch: int
) -> list[tuple[str, int, bytes]]:
    """Return one batch as B tuples (path, number of the record in it, its bytes).

    Args:
      index: `RecordIndex` of the files.
      batch_size: B.
      seed: int, as in `training_batches`.
      batch: k, the number of the batch.

    Raises:
      UserError: the batch is larger than the data.
      tf.errors.OpError: a file cannot be read.
    """
    batches = _serialized_batches(index, batch_size, seed, batch, rows=None)
    (columns,) = batches.take(1).as_numpy_iterator()
    return [
        (index.files[file], int(number), record)
        for record, file, number in zip(*columns, strict=True)
    ]


def check_batch_size(index: RecordIndex, batch_size: int) -> None:
    """Raise `UserError` if a batch is larger than the data."""
    if batch_size > index.num_records:
        raise UserError(
            f"The batch size {batch_size} is larger than the data, which has "
            f"{index.num_records} records; lower --train_batch_size or create "
            "more records."
        )


def evaluation_batches(
    index: RecordIndex, record_format: RecordFormat, batch_size: int, max_batches: int
) -> tf.data.Dataset:
    """Return the records in file order, once, as `training_batches` does.

    The last batch may be smaller. Masks that are dynamic are always the same here: a
    function of a record's place among the records.

    Args:
      index: `RecordIndex` of the files.
      record_format: `RecordFormat`.
      batch_size: B.
      max_batches: stop after this many.
    """
    chunks = tf.data.Dataset.range(len(index.count))
    records = chunks.flat_map(lambda chunk: _chunk_records(index, chunk))
    batches = records.rebatch(batch_size).take(max_batches)
    random = 0, dynamic_masking.EVALUATION
    return _parsed(batches, index.files, record_format, batch_size, 0, random)


def _serialized_batches(index, batch_size, seed, first_batch, rows):
    """Return the rows of all batches as (record, file number, record number).

    A batch is the rows of lane 0, then those of lane 1 and so on.
    """
    check_batch_size(index, batch_size)
    start, stop = (0, batch_size) if rows is None else rows
    if not 0 <= start < stop <= batch_size:
        raise ValueError(f"No rows {start} to {stop} in a batch of {batch_size}.")
    index, lanes = split_into_lanes(index, batch_size, seed)
    share, window_size = batch_size // len(lanes), max(1, WINDOW // len(lanes))
    wanted = []
    for number, lane in enumerate(lanes):
        own_start = max(start - number * share, 0)
        own_stop = min(stop - number * share, share)
        if own_start < own_stop:
            place = _find_window(index, lane, window_size, first_batch * share)
            wanted.append((*lane, *place, own_start, own_stop))

    def lane_rows(first, chunks, seed, first_window, skipped, own_start, own_stop):
        lane = Lane(first, chunks, seed)
        windows = -(-chunks // window_size)
        pools = tf.data.Dataset.range(first_window, np.iinfo(np.int64).max).flat_map(
            lambda number: _window_records(
                index,
                lane,
                window_size,
                epoch=number // windows,
                window=number % windows,
                skipped=tf.where(number == first_window, skipped, 0),
            )
        )
        return pools.rebatch(share).map(
            lambda *columns: tuple(column[own_start:own_stop] for column in columns)
        )

    return (
        tf.data.Dataset.from_tensor_slices(tuple(np.array(wanted, np.int64).T))
        .interleave(lane_rows, cycle_length=len(wanted), block_length=1)
        .rebatch(stop - start, drop_remainder=True)
    )


def _chunk_order(lane, epoch, places):
    """Return which chunks stand at `places` of an epoch's order."""
    return lane.first + _permuted(places, lane.chunks, lane.seed, epoch, 0)


def _permuted(places, size, seed, epoch, window):
    """Return the images of `places` under a permutation of 0 … size - 1."""
    parts = [tf.cast(part, tf.int64) for part in (seed, epoch, window)]
    # Of each of its three keys the cipher takes the lowest 8 bits where it orders
    # up to 65,536 places: keys are drawn, so that seeds 1 and 257 differ.
    keys = tf.random.stateless_uniform(
        [3],
        [parts[0], parts[1] * 2**32 + parts[2]],
        minval=None,
        maxval=None,
        dtype=tf.int64,
        alg="philox",
    )
    # The operation behind `tf.random.experimental.index_shuffle`, which makes
    # the three keys of two numbers by itself.
    return tf.raw_ops.RandomIndexShuffle(
        index=places,
        seed=keys,
        max_index=tf.cast(size, tf.int64) - 1,
        rounds=ROUNDS,
    )


def _find_window(index, lane, window_size, record):
    """Return (number of the window with a record, the record's place in it).

    Windows and records are counted from the first epoch on.
    """
    records = index.count[lane.first : lane.first + lane.chunks]
    epoch, rest = divmod(record, int(records.sum()))
    places = tf.range(lane.chunks, dtype=tf.int64)
    counts = index.count[_chunk_order(lane, epoch, places).numpy()]
    ends = np.cumsum(counts)[window_size - 1 :: window_size]
    window = int(np.searchsorted(ends, rest, side="right"))
    skipped = rest - (int(ends[window - 1]) if window else 0)
    return epoch * math.ceil(lane.chunks / window_size) + window, skipped


def _window_records(index, lane, window_size, epoch, window, skipped):
    """Return one window shuffled, without its first `skipped`, as one batch."""
    stop = tf.minimum((window + 1) * window_size, lane.chunks)
    places = tf.range(window * window_size, stop, dtype=tf.int64)
    chunks = _chunk_order(lane, epoch, places)
    pool = (
        tf.data.Dataset.from_tensor_slices(chunks)
        .flat_map(lambda chunk: _chunk_records(index, chunk))
        .rebatch(window_size * CHUNK)
    )

    def shuffle(*columns):
        size = tf.shape(columns[0], tf.int64)[0]
        order = _permuted(tf.range(size), size, lane.seed, epoch, window + 1)
        return tuple(tf.gather(column, order[skipped:]) for column in columns)

    return pool.map(shuffle)


def _chunk_records(index, chunk):
    """Return one chunk as one batch: records, file numbers, record numbers.

    Going record by record through tf.data would take longer than parsing.
    """
    file = tf.constant(index.file_of)[chunk]
    if index.skip is not None:
        # TensorFlow cannot enter a compressed file.
        read = functools.partial(record_index.read_chunk, index)
        records = tf.numpy_function(read, [chunk], tf.string, stateful=False)
        batch = tf.data.Dataset.from_tensors(tf.ensure_shape(records, [None]))
    else:
        path, offset = tf.constant(index.files)[file], tf.constant(index.offset)[chunk]
        records = _TFRecordsFrom(path, offset)
        batch = records.take(tf.constant(index.count)[chunk]).batch(CHUNK)

    def with_place(records):
        numbers = tf.constant(index.first)[chunk] + tf.range(tf.size(records, tf.int64))
        return records, tf.fill(tf.shape(records), file), numbers

    return batch.map(with_place)


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


def _parsed(batches, paths, record_format, batch_size, first_row, random):
    """Parse batches of serialized records, check their numbers, and mask them.

    `first_row` is the number of the first row of the first batch, and `random` the
    seed and purpose of the masks, see `dynamic_masking.mask`.
    """
    seed, purpose = random

    def parse(batch, columns):
        serialized, file, number = columns
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
            features = tf.nest.map_structure(tf.identity, features)
        if record_format.left_to_right:
            return left_to_right.predict_next(features)
        if record_format.masking is None:
            return features
        first = first_row + batch * batch_size
        return dynamic_masking.mask(
            features, record_format.masking, seed, purpose, first
        )

    numbered = batches.enumerate()
    return numbered.map(parse, num_parallel_calls=2, deterministic=True).prefetch(2)


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


def user_error(
    error: tf.errors.OpError, index: RecordIndex, record_format: RecordFormat
) -> UserError | None:
    """Return what the pipeline raised as a `UserError`; None if the data is all right.

    Args:
      error: a `tf.errors.OpError`.
      index: `RecordIndex` of the files that were read.
      record_format: `RecordFormat` they were read with.
    """
    checked = re.search(r"assertion failed: \[(.* record .*)\]", error.message)
    if checked:
        return UserError(checked.group(1).replace("\\", "").replace('"', ""))
    unpacking = re.search(r"UserError: (.*)", error.message)
    if unpacking:
        return UserError(unpacking.group(1))
    if isinstance(error, tf.errors.DataLossError) or "ParseExample" in error.message:
        return _find_bad_record(index, record_format)
    return None


def _find_bad_record(index, record_format):
    """Read the files record by record until one cannot be read or parsed."""
    for path in index.files:
        good = 0
        try:
            for record in tf.data.TFRecordDataset(path, compression_of(path)):
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
