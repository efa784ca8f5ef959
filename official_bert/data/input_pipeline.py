"""Convert records to batches; batch k is a pure function of (files, seed, k).

Each epoch reads the chunks of all files in its own order. The chunks of a
window are shuffled together and dealt into batches. Orders come from
`index_shuffle`, a permutation that is computed and never stored. A run that
restarts at step k therefore reads from there, without the k - 1 batches before
it.
"""

import math

import numpy as np
import tensorflow as tf

from official_bert import files
from official_bert.data import (
    dynamic_masking,
    left_to_right,
    packed_rows,
    record_parsing,
)
from official_bert.data.lanes import Lane, split_into_lanes
from official_bert.data.packed_rows import RowPacking
from official_bert.data.record_parsing import RecordFormat
from official_bert.data.records.chunks import chunk_records
from official_bert.data.records.index import CHUNK, REMOTE_READS, RecordIndex
from official_bert.errors import UserError

# Number of chunks that are shuffled together, in all lanes: 64 * 256 records,
# about 20 MB at length 128. Smaller data is shuffled completely (each lane
# separately).
WINDOW = 64

# Rounds of the cipher in `index_shuffle`. With TensorFlow's default of 4, a
# third of a small pool keeps its position, and neighbors among 300 chunks stay
# together. From 8 rounds on, orders look random.
ROUNDS = 16


def training_batches(
    index: RecordIndex,
    record_format: RecordFormat,
    batch_size: int,
    seed: int,
    first_batch: int = 0,
    rows: tuple[int, int] | None = None,
    packing: RowPacking | None = None,
    masking_rate: dynamic_masking.MaskingRate | None = None,
) -> tf.data.Dataset:
    """Return the endless stream of training batches from batch `first_batch`.

    Args:
      index: `RecordIndex` of the files.
      record_format: `RecordFormat`.
      batch_size: B, rows per batch; batches run on across epochs.
      seed: int, decides the order and dynamic masks.
      first_batch: k of the first batch to deliver.
      rows: (start, stop), the rows of each batch to return; None for all. Other
        rows are not parsed, and files with only such rows are not opened.
      packing: `RowPacking` used for `index`; None for rows of one record.
      masking_rate: `MaskingRate`; by default that of the masking rules.

    Returns:
      `tf.data.Dataset` of dicts: int32 [stop - start, S] and so on, float32
      weights; all shapes are static. With `packing` they have the
      features of `packed_rows.join`.

    Raises:
      UserError: the batch is larger than the data.
      ValueError: a batch does not have these rows.
    """
    batches = _serialized_batches(index, batch_size, seed, first_batch, rows, packing)
    first_row = first_batch * batch_size + (rows[0] if rows else 0)
    random = seed, dynamic_masking.TRAINING

    def prob(batch):
        return masking_rate.at(first_batch + batch) if masking_rate else None

    return _parsed(
        batches,
        index.files,
        record_format,
        batch_size,
        first_row,
        random,
        packing,
        prob,
    )


def batch_records(
    index: RecordIndex,
    batch_size: int,
    seed: int,
    batch: int,
    packing: RowPacking | None = None,
) -> list[tuple[str, int, bytes]]:
    """Return the records of one batch: (path, record number in the file, bytes).

    Args:
      index: `RecordIndex` of the files.
      batch_size: B.
      seed: int, as in `training_batches`.
      batch: k, the number of the batch.
      packing: as in `training_batches`.

    Raises:
      UserError: the batch is larger than the data.
      tf.errors.OpError: a file cannot be read.
    """
    batches = _serialized_batches(index, batch_size, seed, batch, None, packing)
    (columns,) = batches.take(1).as_numpy_iterator()
    return [
        (index.files[file], int(number), record)
        for record, file, number in zip(*map(np.ravel, columns), strict=True)
        if record != packed_rows.NO_RECORD
    ]


def check_batch_size(index: RecordIndex, batch_size: int) -> None:
    """Raise `UserError` if a batch is larger than the data."""
    if batch_size > index.num_rows:
        is_packed = index.rows is not None
        packed = f" ({index.num_rows} rows with --pack)" if is_packed else ""
        raise UserError(
            f"The batch size {batch_size} is larger than the data, which has "
            f"{index.num_records} records{packed}. Lower --train_batch_size, or "
            "create more records."
        )


def evaluation_batches(
    index: RecordIndex, record_format: RecordFormat, batch_size: int, max_batches: int
) -> tf.data.Dataset:
    """Return the records once, in file order, in the form of `training_batches`.

    The last batch may be smaller. Dynamic masks are always the same here: a
    function of a record's position in the data.

    Args:
      index: `RecordIndex` of the files.
      record_format: `RecordFormat`.
      batch_size: B.
      max_batches: maximum number of batches.
    """
    chunks = tf.data.Dataset.range(len(index.count))
    records = chunks.flat_map(lambda chunk: chunk_records(index, chunk))
    batches = records.rebatch(batch_size).take(max_batches)
    random = 0, dynamic_masking.EVALUATION
    return _parsed(batches, index.files, record_format, batch_size, 0, random)


def without_autotuning(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Return a dataset that TensorFlow does not tune while it is read.

    All parallelism here is fixed. If a process was paused for minutes and then stopped,
    the tuning thread delayed its end by up to a minute.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)


def _serialized_batches(index, batch_size, seed, first_batch, rows, packing):
    """Return the rows of all batches as (record, file number, record number).

    A batch has first the rows of lane 0, then those of lane 1 and so on. Each
    column is [rows], or [rows, N] with `packing`.
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
            lambda number: _window_rows(
                index,
                packing,
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
    """Return the chunks at some positions of an epoch's order."""
    return lane.first + _permuted(places, lane.chunks, lane.seed, epoch, 0)


def _permuted(places, size, seed, epoch, window):
    """Return the images of `places` under a permutation of 0 … size - 1."""
    parts = [tf.cast(part, tf.int64) for part in (seed, epoch, window)]
    # For up to 65,536 positions, the cipher uses only the lowest 8 bits of each
    # of its three keys. The keys are therefore drawn, so that seeds 1 and 257
    # differ.
    keys = tf.random.stateless_uniform(
        [3],
        [parts[0], parts[1] * 2**32 + parts[2]],
        minval=None,
        maxval=None,
        dtype=tf.int64,
        alg="philox",
    )
    # The operation of `tf.random.experimental.index_shuffle`, which would make
    # the three keys from two numbers.
    return tf.raw_ops.RandomIndexShuffle(
        index=places,
        seed=keys,
        max_index=tf.cast(size, tf.int64) - 1,
        rounds=ROUNDS,
    )


def _find_window(index, lane, window_size, row):
    """Return (number of the window with a row, the row's position in it).

    Windows and rows are counted from the first epoch.
    """
    rows = index.row_counts[lane.first : lane.first + lane.chunks]
    epoch, rest = divmod(row, int(rows.sum()))
    places = tf.range(lane.chunks, dtype=tf.int64)
    counts = index.row_counts[_chunk_order(lane, epoch, places).numpy()]
    ends = np.cumsum(counts)[window_size - 1 :: window_size]
    window = int(np.searchsorted(ends, rest, side="right"))
    skipped = rest - (int(ends[window - 1]) if window else 0)
    return epoch * math.ceil(lane.chunks / window_size) + window, skipped


def _window_rows(index, packing, lane, window_size, epoch, window, skipped):
    """Return one window, shuffled, without its first `skipped` rows, as one batch."""
    stop = tf.minimum((window + 1) * window_size, lane.chunks)
    places = tf.range(window * window_size, stop, dtype=tf.int64)
    chunks = _chunk_order(lane, epoch, places)

    def chunk_rows(chunk):
        records = chunk_records(index, chunk)
        return records.map(packing.group) if packing else records

    ordered = tf.data.Dataset.from_tensor_slices(chunks)
    if any(map(files.is_remote, index.files)):
        # Remote requests are slow: run many in parallel and keep the order of
        # results.
        read = ordered.map(
            lambda chunk: chunk_rows(chunk).get_single_element(),
            num_parallel_calls=REMOTE_READS,
            deterministic=True,
        )
    else:
        read = ordered.flat_map(chunk_rows)
    pool = read.rebatch(window_size * CHUNK)

    def shuffle(*columns):
        size = tf.shape(columns[0], tf.int64)[0]
        order = _permuted(tf.range(size), size, lane.seed, epoch, window + 1)
        return tuple(tf.gather(column, order[skipped:]) for column in columns)

    return pool.map(shuffle)


def _parsed(
    batches,
    paths,
    record_format,
    batch_size,
    first_row,
    random,
    packing=None,
    prob=lambda batch: None,
):
    """Parse batches of serialized records, check their numbers, and mask them.

    `first_row` is the number of the first row of the first batch. `random` is
    the seed and purpose of the masks, and `prob` maps a batch, from 0, to their
    rate; see `dynamic_masking.mask`.
    """
    seed, purpose = random

    def parse(batch, columns):
        first, held = first_row + batch * batch_size, None
        if packing:
            held = tf.not_equal(columns[0], packed_rows.NO_RECORD)  # [B, N]
            columns = tuple(tf.boolean_mask(column, held) for column in columns)
            first *= packing.max_sequences
        features = record_parsing.parse(columns, paths, record_format)
        if record_format.left_to_right:
            features = left_to_right.predict_next(features)
        elif record_format.masking is not None:
            rules = record_format.masking
            features = dynamic_masking.mask(
                features, rules, seed, purpose, first, held, prob(batch)
            )
        return packing.join(features, held) if packing else features

    numbered = batches.enumerate()
    parsed = numbered.map(parse, num_parallel_calls=2, deterministic=True)
    return without_autotuning(parsed.prefetch(2))
