"""The lanes of files, and batches made of the lanes' rows."""

import itertools
import os

import numpy as np
import pytest
import record_files
import tensorflow as tf
from marks import slow

from official_bert.data import input_pipeline, lanes, record_parsing
from official_bert.data.input_pipeline import batch_records, training_batches
from official_bert.data.records import examples
from official_bert.data.records import index as record_index
from official_bert.data.records.index import RecordIndex

LIMITS = {
    "input_ids": 1000,
    "masked_lm_ids": 1000,
    "segment_ids": 2,
    "masked_lm_positions": 4,
    "next_sentence_labels": 2,
}
RECORD_FORMAT = record_parsing.RecordFormat(examples.feature_spec(4, 2), {}, LIMITS)

# Number of records in each of four files. In a lane of one file, the last chunk
# of 4 and the last window of 2 chunks are smaller.
SIZE = 29
TOTAL = 4 * SIZE

# Batch size -> lanes of the four files. A lane gives 5, 3, 11, 2 and 7 records
# to a batch, which rarely ends with a chunk, window or epoch.
LANES_OF = {5: 1, 6: 2, 22: 2, 8: 4, 28: 4}


def index_of(*counts):
    """Return an index of files that do not exist, each with one chunk or none."""
    filled = np.flatnonzero(counts)
    zeros = np.zeros_like(filled)
    paths = tuple(f"file{number}" for number in range(len(counts)))
    return RecordIndex(paths, filled, zeros, zeros, np.array(counts)[filled])


def files_of_lanes(counts, batch_size):
    """Return the file numbers of each lane."""
    index, found = lanes.split_into_lanes(index_of(*counts), batch_size, 1)
    return [
        index.file_of[lane.first : lane.first + lane.chunks].tolist() for lane in found
    ]


@pytest.mark.parametrize(
    ("counts", "batch_size", "expected"),
    [
        ([100] * 16, 32, 16),
        ([100] * 16, 16, 16),
        ([100] * 16, 24, 8),
        ([100] * 16, 12, 4),
        ([100] * 16, 6, 2),
        ([100] * 16, 7, 1),
        ([100] * 64, 4096, 16),
        ([100] * 17, 32, 1),
        ([100] * 4, 16, 4),
        ([100] * 6, 16, 2),
        ([500], 16, 1),
        ([1000, 10, 10, 10], 16, 1),
        ([100, 0, 100, 0], 16, 2),
        ([0, 0, 100, 0], 16, 1),
    ],
)
def test_number_of_lanes(counts, batch_size, expected):
    assert len(files_of_lanes(counts, batch_size)) == expected


@pytest.mark.parametrize(
    ("counts", "expected"),
    [([99, 100], 2), ([98, 99], 1), ([10_000, 9_900], 2), ([10_000, 9_899], 1)],
)
def test_lanes_differ_by_one_percent_of_the_largest(counts, expected):
    assert len(files_of_lanes(counts, 2)) == expected
    assert len(files_of_lanes(counts[::-1], 2)) == expected


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([10, 10, 10, 10], [[0, 2], [1, 3]]),
        ([10, 20, 30, 0], [[2], [0, 1]]),
        # 4 | 3, then 4 | 3 3, 4 2 | 3 3, 4 2 2 | 3 3, 4 2 2 | 3 3 2.
        ([2, 3, 2, 4, 3, 2], [[0, 2, 3], [1, 4, 5]]),
        ([2, 1], [[0, 1]]),
    ],
)
def test_large_files_first_to_the_emptiest_lane(counts, expected):
    assert files_of_lanes(counts, 2) == expected


def test_a_single_lane_is_the_data():
    index = index_of(3, 0, 5, 4)
    same, found = lanes.split_into_lanes(index, 16, 12345)
    assert found == [lanes.Lane(first=0, chunks=3, seed=12345 * 16)]
    assert same.files == index.files
    for name in ("file_of", "offset", "first", "count"):
        np.testing.assert_array_equal(getattr(same, name), getattr(index, name))


def test_chunks_stay_whole_and_in_order_in_their_lanes():
    """Files 0 and 2 form a lane of 2 + 1 chunks, and file 1 a lane of 3."""
    index = RecordIndex(
        ("a", "b", "c"),
        np.array([0, 0, 1, 1, 1, 2]),
        np.array([10, 11, 20, 21, 22, 30]),
        np.array([0, 4, 0, 4, 8, 0]),
        np.array([4, 3, 4, 4, 2, 3]),
    )
    dealt, found = lanes.split_into_lanes(index, 2, 1)
    assert [(lane.first, lane.chunks) for lane in found] == [(0, 3), (3, 3)]
    assert dealt.file_of.tolist() == [1, 1, 1, 0, 0, 2]
    assert dealt.offset.tolist() == [20, 21, 22, 10, 11, 30]
    assert dealt.first.tolist() == [0, 4, 8, 0, 4, 0]
    assert dealt.count.tolist() == [4, 4, 2, 4, 3, 3]


@pytest.mark.parametrize("seed", [0, 1, 12345, -1])
def test_lanes_of_one_shape_differ_in_order(seed):
    """The orders of two equal lanes agree no more often than random orders."""
    _, found = lanes.split_into_lanes(index_of(*[7] * 16), 16, seed)
    places = tf.range(1000, dtype=tf.int64)
    orders = [
        input_pipeline._permuted(places, 1000, lane.seed, 3, 2).numpy()
        for lane in found
    ]
    pairs = itertools.combinations(orders, 2)
    # 120 pairs agree at 1 position each by chance, ± 1 / sqrt(120).
    assert np.mean([(a == b).sum() for a, b in pairs]) < 1 + 3 / np.sqrt(120)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Make lanes of 8 chunks in windows of 8, 4 or 2, for 1, 2 or 4 lanes."""
    monkeypatch.setattr(record_index, "CHUNK", 4)
    monkeypatch.setattr(input_pipeline, "CHUNK", 4)
    monkeypatch.setattr(input_pipeline, "WINDOW", 8)


@pytest.fixture
def index(tmp_path):
    """Return records 0, 1, 2 … in four files; the first id is the record's number."""
    return record_index.index_files(
        [
            record_files.write(
                tmp_path / f"part {file}", record_files.numbered(file * SIZE, SIZE)
            )
            for file in range(4)
        ]
    )


def train(index, batch_size, first=0, count=1, rows=None, seed=1):
    """Return int [count, rows], the record numbers of some batches."""
    batches = training_batches(index, RECORD_FORMAT, batch_size, seed, first, rows)
    return np.array(
        [batch["input_ids"][:, 0] for batch in batches.take(count)], np.int64
    )


def streams(index, batch_size, count):
    """Return int [lanes, records], each lane's records in the first batches."""
    batches = train(index, batch_size, count=count)
    split = batches.reshape(count, LANES_OF[batch_size], -1)
    return split.transpose(1, 0, 2).reshape(LANES_OF[batch_size], -1)


@pytest.mark.parametrize("batch_size", [slow(5), 6, slow(22), slow(8), slow(28)])
def test_any_batch_without_those_before(index, batch_size):
    whole = train(index, batch_size, count=30)
    assert whole.shape == (30, batch_size)
    assert len(np.unique(whole, axis=0)) == 30
    for first in (1, 7, 26):
        found = train(index, batch_size, first, count=30 - first)
        np.testing.assert_array_equal(found, whole[first:])


def test_far_into_a_run(index):
    first = 10**9
    whole = train(index, 8, first, count=30)
    np.testing.assert_array_equal(train(index, 8, first + 11, 19), whole[11:])


@pytest.mark.parametrize("batch_size", LANES_OF)
def test_every_record_of_a_lane_once_in_its_epochs(index, batch_size):
    found = streams(index, batch_size, count=4 * TOTAL // batch_size)
    files = files_of_lanes([SIZE] * 4, batch_size)
    assert len(files) == LANES_OF[batch_size]
    for own, stream in zip(files, found, strict=True):
        numbers = [own_file * SIZE + n for own_file in own for n in range(SIZE)]
        epochs = stream[: 3 * len(numbers)].reshape(3, -1)
        for epoch in epochs:
            assert sorted(epoch) == numbers
        assert len(np.unique(epochs, axis=0)) == 3


def test_each_lane_has_its_order(index):
    """Lanes have different orders, even if their files are equal."""
    within = streams(index, 8, count=SIZE) % SIZE
    assert len(np.unique(within, axis=0)) == 4


@pytest.mark.parametrize(
    ("batch_size", "window", "own"), [(5, 8, 8), (6, 8, 4), (8, 8, 2), (8, 3, 1)]
)
def test_lanes_share_the_window(tmp_path, monkeypatch, batch_size, window, own):
    """The first window of a lane has `own` chunks of 4 records, well mixed."""
    monkeypatch.setattr(input_pipeline, "WINDOW", window)
    index = record_index.index_files(
        [
            record_files.write(
                tmp_path / f"{file}", record_files.numbered(file * 32, 32)
            )
            for file in range(4)
        ]
    )
    for stream in streams(index, batch_size, count=20):
        chunks = stream // 4
        assert len(set(chunks[: 4 * own])) == own
        assert len(set(chunks[: 4 * own + 1])) == own + 1
        assert own == 1 or len(set(chunks[:4])) > 1


def test_orders_stay_from_version_to_version(index):
    """Orders do not change between versions; otherwise old runs could not resume."""
    assert train(index, 5, first=22, count=2, seed=7).tolist() == [
        [31, 29, 99, 6, 41],
        [42, 83, 115, 92, 80],
    ]


@pytest.mark.parametrize(
    ("batch_size", "workers"), [slow(5, 2), slow(6, 3), slow(6, 4), slow(8, 3), (8, 5)]
)
def test_workers_rows_are_the_whole_batch(index, batch_size, workers):
    borders = [worker * batch_size // workers for worker in range(workers + 1)]
    parts = [
        train(index, batch_size, first=3, count=9, rows=rows)
        for rows in itertools.pairwise(borders)
    ]
    whole = train(index, batch_size, first=3, count=9)
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), whole)


def test_all_features_are_those_of_the_rows(tmp_path):
    path = record_files.write(tmp_path / "mini", record_files.mini_records())
    record_format = record_parsing.RecordFormat(examples.feature_spec(32, 5), {}, {})
    index = record_index.index_files([path])
    (whole,) = training_batches(index, record_format, 9, 1).take(1)
    (part,) = training_batches(index, record_format, 9, 1, rows=(2, 5)).take(1)
    assert set(part) == set(whole)
    for name, values in whole.items():
        np.testing.assert_array_equal(part[name], values[2:5])


@pytest.mark.parametrize("rows", [(-1, 2), (0, 0), (3, 3), (5, 2), (2, 9)])
def test_rows_that_no_batch_has(index, rows):
    with pytest.raises(ValueError, match=f"{rows[0]} to {rows[1]} in a batch of 8"):
        train(index, 8, rows=rows)


@pytest.mark.parametrize("workers", [slow(2), 4])
def test_a_worker_opens_its_lanes_files_only(index, workers):
    batch_size = 8
    own, share = 4 // workers, batch_size // workers
    whole = train(index, batch_size, count=40)
    for path in index.files:
        os.rename(path, path + " away")
    for worker in range(workers):
        files = index.files[worker * own : (worker + 1) * own]
        for path in files:
            os.rename(path + " away", path)
        start = worker * share
        found = train(index, batch_size, count=40, rows=(start, start + share))
        np.testing.assert_array_equal(found, whole[:, start : start + share])
        with pytest.raises(tf.errors.NotFoundError):
            train(index, batch_size)
        for path in files:
            os.rename(path, path + " away")


@pytest.mark.parametrize("batch_size", [slow(5), 8])
def test_only_wanted_rows_are_checked(index, batch_size):
    """An invalid id is reported only to the worker that reads its row."""
    whole = train(index, batch_size, count=TOTAL // batch_size)
    values = record_files.numbered(SIZE, SIZE)
    values[11]["input_ids"][3] = 4000
    bad = record_files.write(index.files[1], values)
    index = record_index.index_files(index.files)
    batch = int(np.flatnonzero((whole == SIZE + 11).any(axis=1))[0])
    found = batch_records(index, batch_size, 1, batch)
    row = [place[:2] for place in found].index((bad, 11))
    for rows in [(0, row), (row + 1, batch_size)]:
        if rows[0] < rows[1]:
            train(index, batch_size, batch, rows=rows)
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        train(index, batch_size, batch, rows=(row, row + 1))
    error = record_parsing.user_error(caught.value, index, RECORD_FORMAT)
    assert f"{bad} record 11: input_ids is 4000" in str(error)


@pytest.mark.parametrize("batch_size", LANES_OF)
@pytest.mark.parametrize("batch", [slow(0), 40])
def test_records_of_a_batch(index, batch_size, batch):
    found = batch_records(index, batch_size, 1, batch)
    (numbers,) = train(index, batch_size, batch)
    assert len(found) == batch_size
    for (path, record, serialized), number in zip(found, numbers, strict=True):
        assert (index.files.index(path), record) == divmod(number, SIZE)
        example = tf.train.Example.FromString(serialized)
        assert example.features.feature["input_ids"].int64_list.value[0] == number


@pytest.mark.parametrize("batch_size", [slow(5), 8])
def test_a_run_that_starts_later_does_not_read_what_came_before(index, batch_size):
    path, record, serialized = batch_records(index, batch_size, 1, 0)[0]
    with open(path, "rb") as source:
        data = source.read()
    assert data.count(serialized) == 1
    with open(path, "wb") as target:
        target.write(data.replace(serialized, b"x" * len(serialized)))
    # Batch 0 belongs to the first windows, and the last batch of an epoch does
    # not.
    last = TOTAL // batch_size - 1
    train(index, batch_size, last)
    with pytest.raises(tf.errors.DataLossError):
        train(index, batch_size)
    with pytest.raises(tf.errors.DataLossError):
        train(index, batch_size, last, count=last + 2)


@pytest.mark.parametrize("rows", [None, (0, 2), (1, 5)])
@pytest.mark.parametrize("batch_size", [5, 6, 8])
def test_shapes_are_static(index, batch_size, rows):
    batches = training_batches(index, RECORD_FORMAT, batch_size, 1, rows=rows)
    start, stop = rows or (0, batch_size)
    spec = record_files.stacked(record_files.numbered(0, stop - start))
    assert {n: s.shape.as_list() for n, s in batches.element_spec.items()} == {
        name: list(values.shape) for name, values in spec.items()
    }


def test_shapes_of_evaluation_but_for_the_last_batch_are_static(index):
    batches = input_pipeline.evaluation_batches(index, RECORD_FORMAT, 8, 100)
    assert batches.element_spec["input_ids"].shape.as_list() == [None, 4]
    assert batches.element_spec["masked_lm_weights"].shape.as_list() == [None, 2]
