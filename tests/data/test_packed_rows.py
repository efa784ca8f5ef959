"""Rows of several sequences: the records of a row, and batches of such rows."""

import gzip
import itertools

import numpy as np
import packed_batches
import pytest
import record_files
import tensorflow as tf
from marks import slow
from record_files import MINI_CONFIG

from official_bert.data import input_pipeline, packed_rows
from official_bert.data.packed_rows import NO_RECORD, RowPacking
from official_bert.data.record_parsing import RecordFormat
from official_bert.data.records import index as record_index
from official_bert.data.records import record_set
from official_bert.errors import UserError

# Records of the files, and rows per batch, whose ends differ from those of
# epochs.
COUNTS, SIZE = (30, 7, 26), 5
ALL = record_files.short(sum(COUNTS))
PACKING = RowPacking(RecordFormat({}, {}, {}), max_seq_length=32, max_predictions=5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("short")
    starts = itertools.accumulate(COUNTS, initial=0)
    for file, (start, count) in enumerate(zip(starts, COUNTS, strict=False)):
        path = folder / f"{file}.tfrecord"
        record_files.write(path, ALL[start : start + count])
    return folder


def open_packed(folder, config=MINI_CONFIG):
    records = record_set.open_record_set(str(folder / "*.tfrecord*"), config)
    return records.packed()


@pytest.fixture(scope="module")
def records(folder):
    """Make records in chunks of 8 and windows of 2, so that all borders occur."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_index, "CHUNK", 8)
        patch.setattr(input_pipeline, "CHUNK", 8)
        patch.setattr(input_pipeline, "WINDOW", 2)
        yield open_packed(folder)


def train(records, first=0, count=1, rows=None, seed=1, size=SIZE):
    """Return some batches as a list of dicts of arrays."""
    batches = records.training_batches(size, seed, first, rows).take(count)
    return list(batches.as_numpy_iterator())


def assert_equal(ours, theirs):
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert set(one) == set(other)
        for name, values in other.items():
            assert one[name].dtype == values.dtype
            np.testing.assert_array_equal(one[name], values, err_msg=name)


@pytest.fixture(scope="module")
def whole(records):
    """Return two epochs and a part, without an interruption."""
    return train(records, count=2 * records.index.num_rows // SIZE + 2)


def test_the_longest_first_each_where_it_fits_best():
    """Long records come first: 10 joins 22, 8 joins 20, and 4 joins those."""
    lengths = np.array([8, 32, 20, 10, 4, 22])
    rows = PACKING.share_rows(lengths, np.ones(6, int))
    assert rows.tolist() == [[1, -1, -1], [5, 3, -1], [2, 0, 4]]


def test_a_row_has_no_more_than_its_masked_words():
    rows = PACKING.share_rows(np.array([10, 10, 10]), np.array([3, 3, 2]))
    assert rows.tolist() == [[0, 2, -1], [1, -1, -1]]


def test_a_row_has_no_more_than_three_sequences():
    rows = PACKING.share_rows(np.full(7, 5), np.ones(7, int))
    assert [(row >= 0).sum() for row in rows] == [3, 3, 1]


@pytest.mark.parametrize("seed", range(5))
def test_all_limits_at_once(seed):
    rng = np.random.default_rng(seed)
    lengths, words = rng.integers(1, 33, 256), rng.integers(0, 6, 256)
    rows = PACKING.share_rows(lengths, words)
    assert sorted(rows[rows >= 0]) == list(range(256))
    for row in rows:
        own = row[row >= 0]
        assert 1 <= len(own) <= 3
        assert lengths[own].sum() <= 32 and words[own].sum() <= 5
    assert len(rows) < 200


def test_every_record_is_whole_and_occurs_once_in_each_epoch(records, whole):
    """Every record occurs once per epoch; a batch may cross epochs."""
    num_rows = records.index.num_rows
    assert num_rows < 0.9 * len(ALL)
    rows = [
        {name: values[row : row + 1] for name, values in batch.items()}
        for batch in whole
        for row in range(SIZE)
    ]
    orders = []
    for epoch in (0, 1):
        own = rows[epoch * num_rows : (epoch + 1) * num_rows]
        found = [one for row in own for one in packed_batches.unpack(row)]
        numbers = [packed_batches.number_of(record) for record in found]
        assert sorted(numbers) == list(range(len(ALL)))
        for number, record in zip(numbers, found, strict=True):
            assert record == ALL[number]
        orders.append(numbers)
    assert orders[0] != orders[1]


def test_any_batch_without_those_before(records, whole):
    for first in (1, 8, len(whole) - 1):
        assert_equal(train(records, first, len(whole) - first), whole[first:])


def test_workers_rows_are_the_whole_batch(records, whole):
    parts = [train(records, 3, 4, rows) for rows in ((0, 2), (2, 3), (3, 5))]
    joined = [
        {name: np.concatenate([part[name] for part in batch]) for name in batch[0]}
        for batch in zip(*parts, strict=True)
    ]
    assert_equal(joined, whole[3:7])


def test_files_in_lanes(tmp_path):
    """With four equal files, each worker opens one."""
    for file in range(4):
        record_files.write(tmp_path / f"{file}.tfrecord", ALL[:20])
    records = open_packed(tmp_path)
    expected = train(records, 2, 6, size=8)
    parts = [train(records, 2, 6, rows, size=8) for rows in ((0, 4), (4, 8))]
    joined = [
        {name: np.concatenate([part[name] for part in batch]) for name in batch[0]}
        for batch in zip(*parts, strict=True)
    ]
    assert_equal(joined, expected)


def test_shapes_are_static(records):
    spec = records.training_batches(SIZE, 1, 0, (1, 4)).element_spec
    shapes = {name: tuple(value.shape) for name, value in spec.items()}
    assert shapes == {
        **dict.fromkeys(packed_rows.OF_TOKENS, (3, 32)),
        **dict.fromkeys(packed_rows.OF_MASKED_WORDS, (3, 5)),
        **dict.fromkeys(packed_rows.OF_SEQUENCES, (3, 3)),
    }
    floats = {name for name, value in spec.items() if value.dtype == tf.float32}
    assert floats == {"masked_lm_weights", "next_sentence_weights"}
    # A plan has the same shapes.
    planned = packed_rows.zeros(3, max_seq_length=32, max_predictions=5)
    assert {name: tf.TensorSpec.from_tensor(x) for name, x in planned.items()} == spec


def test_evaluations_are_not_packed(records):
    (batch,) = records.evaluation_batches(100, 1).as_numpy_iterator()
    np.testing.assert_array_equal(
        batch["input_ids"], [record["input_ids"] for record in ALL]
    )


def test_records_of_a_batch(records, whole):
    held = records.batch_records(SIZE, seed=1, batch=3)
    assert NO_RECORD not in [serialized for *_, serialized in held]
    starts = [0, *itertools.accumulate(COUNTS)]
    files = records.index.files
    found = [starts[files.index(path)] + number for path, number, _ in held]
    expected = packed_batches.unpack(whole[3])
    assert found == [packed_batches.number_of(record) for record in expected]


def test_compressed_files(records, folder, whole, tmp_path):
    for path in folder.iterdir():
        packed = gzip.compress(path.read_bytes())
        (tmp_path / f"{path.name}.gz").write_bytes(packed)
    assert_equal(train(open_packed(tmp_path), 0, 3), whole[:3])


@pytest.fixture(scope="module")
def unmasked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unmasked")
    path = folder / "0.tfrecord"
    record_files.write(path, map(record_files.unmasked, ALL))
    record_files.write_manifest({str(path): record_files.unmasked_manifest()})
    return folder


def test_masks_that_are_drawn_anew(unmasked):
    records = open_packed(unmasked)
    whole = train(records, count=20)
    texts = sorted(record_files.unmasked(record)["input_ids"] for record in ALL)
    epoch = {
        name: np.concatenate([batch[name] for batch in whole])[: records.index.num_rows]
        for name in whole[0]
    }
    found = packed_batches.unpack(epoch)
    assert sorted(record_files.unmasked(record)["input_ids"] for record in found) == (
        texts
    )
    for record in found:
        words = sum(record["masked_lm_weights"])
        assert words == min(max(1, round(sum(record["input_mask"]) * 0.15)), 5)
    # The same for any start and any worker, and different in each epoch.
    assert_equal(train(records, 7, 2), whole[7:9])
    part = train(records, 7, 1, (2, 4))[0]
    assert_equal([part], [{name: values[2:4] for name, values in whole[7].items()}])
    masks = {}
    for batch in whole:
        for record in packed_batches.unpack(batch):
            text = tuple(record_files.unmasked(record)["input_ids"])
            masks.setdefault(text, set()).add(tuple(record["masked_lm_positions"]))
    assert np.mean([len(own) for own in masks.values()]) > 1.5


def test_left_to_right(unmasked):
    config = packed_batches.dataclasses.replace(MINI_CONFIG, causal_attention=True)
    (batch,) = train(open_packed(unmasked, config))
    numbers, ids = batch["sequence_numbers"], batch["input_ids"]
    for row, positions in enumerate(batch["masked_lm_positions"]):
        real = batch["masked_lm_weights"][row] > 0
        own = positions[real]
        # All tokens except the last of each sequence predict the next one.
        is_last = np.append(numbers[row, 1:] != numbers[row, :-1], True)
        (expected,) = np.nonzero((numbers[row] > 0) & ~is_last)
        np.testing.assert_array_equal(own, expected)
        np.testing.assert_array_equal(
            batch["masked_lm_ids"][row][real], ids[row, own + 1]
        )
        held = batch["next_sentence_weights"][row] > 0
        (ends,) = np.nonzero((numbers[row] > 0) & is_last)
        np.testing.assert_array_equal(batch["pooled_positions"][row][held], ends)


def test_the_line_about_it(records):
    tokens = sum(sum(record["input_mask"]) for record in ALL)
    rows = records.index.num_rows
    after, before = (1 - tokens / (32 * number) for number in (rows, len(ALL)))
    assert records.describe_packing() == (
        f"--pack: 63 sequences in {rows} rows of 32 tokens, {63 / rows:.2f} per row. "
        f"Padding: {after:.1%} of the positions, {before:.1%} without --pack."
    )


def test_a_batch_of_more_rows_than_there_are(records):
    rows = records.index.num_rows
    records.check_batch_size(rows)
    with pytest.raises(UserError) as caught:
        records.check_batch_size(rows + 1)
    assert f"has 63 records ({rows} rows with --pack). Lower --train_batch_size" in str(
        caught.value
    )


@pytest.mark.parametrize("harm", ["checksum", slow("features")])
def test_a_bad_record_is_named(tmp_path, harm):
    path = tmp_path / "0.tfrecord"
    other = {**ALL[2], "input_mask": [1] * 7}
    record_files.write(path, [*ALL[:2], other if harm == "features" else ALL[2]])
    if harm == "checksum":
        data = bytearray(path.read_bytes())
        data[-20] ^= 1
        path.write_bytes(bytes(data))
    with pytest.raises(UserError, match=r"0\.tfrecord: record 2 "):
        open_packed(tmp_path)
