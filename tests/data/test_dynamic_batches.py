"""Dynamic masks are the same after a restart and on any worker."""

import itertools

import numpy as np
import pytest
import record_files
from marks import slow
from record_files import MINI_CONFIG

from official_bert.data import input_pipeline
from official_bert.data.records import record_set

# Records, and records per batch; 41 = 6 * 7 - 1, so batches cross epochs.
RECORDS, SIZE = 41, 6
MASKED = ("input_ids", "masked_lm_ids", "masked_lm_positions", "masked_lm_weights")


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unmasked")
    return record_set.open_record_set(record_files.write_unmasked(folder), MINI_CONFIG)


def train(records, first=0, count=1, rows=None, seed=1, size=SIZE):
    """Return each feature of some batches as [count, rows, …]."""
    batches = records.training_batches(size, seed, first, rows).take(count)
    return stacked(list(batches.as_numpy_iterator()))


def evaluate(records, size, max_batches=100):
    """Return each feature of the evaluation batches as [rows, …]."""
    batches = list(records.evaluation_batches(size, max_batches).as_numpy_iterator())
    return {name: np.concatenate([b[name] for b in batches]) for name in batches[0]}


def stacked(batches):
    return {name: np.stack([batch[name] for batch in batches]) for name in batches[0]}


def assert_equal(found, expected):
    assert set(found) == set(expected)
    for name, values in expected.items():
        assert found[name].dtype == values.dtype
        np.testing.assert_array_equal(found[name], values, err_msg=name)


@pytest.fixture(scope="module")
def whole(records):
    """Return three epochs and a part, without an interruption."""
    return train(records, count=21)


@pytest.mark.parametrize("first", [1, 6, slow(7), 13, slow(20)])
def test_any_batch_without_those_before(records, whole, first):
    found = train(records, first, count=21 - first)
    assert_equal(found, {name: values[first:] for name, values in whole.items()})


def test_far_into_a_run(records):
    first = 10**9
    expected = train(records, first, count=4)
    found = train(records, first + 3)
    assert_equal(found, {name: values[3:] for name, values in expected.items()})


@pytest.mark.parametrize("workers", [slow(2), 3, slow(4)])
def test_workers_rows_are_the_whole_batch(records, whole, workers):
    borders = [worker * SIZE // workers for worker in range(workers + 1)]
    parts = [
        train(records, first=5, count=8, rows=rows)
        for rows in itertools.pairwise(borders)
    ]
    found = {
        name: np.concatenate([part[name] for part in parts], axis=1) for name in whole
    }
    assert_equal(found, {name: values[5:13] for name, values in whole.items()})


def test_workers_that_read_files_of_their_own(tmp_path):
    """With two lanes, each worker opens one file."""
    numbers = [{"masked_lm_weights": [1.0, 1.0]}] * 2
    for file, changes in enumerate(numbers):
        values = record_files.numbered(100 * file + 9, 12, length=12, **changes)
        path = record_files.write(
            tmp_path / f"{file}.tfrecord", map(record_files.unmasked, values)
        )
        entry = record_files.unmasked_manifest(max_predictions_per_seq=2)
        record_files.write_manifest({path: entry})
    found = record_set.open_record_set(str(tmp_path / "*.tfrecord"), MINI_CONFIG)
    expected = train(found, count=7, size=4)
    parts = [train(found, count=7, size=4, rows=rows) for rows in ((0, 2), (2, 4))]
    joined = {name: np.concatenate([p[name] for p in parts], 1) for name in expected}
    assert_equal(joined, expected)


def test_the_number_of_readers_does_not_matter(records, whole, monkeypatch):
    """Chunks of 4 in windows of 2, read in any parallel order, give equal batches."""
    original = input_pipeline.tf.data.Dataset.map

    def one_by_one(self, function, num_parallel_calls=None, **options):
        return original(self, function, **options | {"deterministic": None})

    monkeypatch.setattr(input_pipeline.tf.data.Dataset, "map", one_by_one)
    assert_equal(train(records, count=21), whole)


def by_text(batches, records):
    """Return each record's masks, in the order of arrival: text -> list."""
    found = {}
    flat = {
        name: values.reshape(-1, *values.shape[2:]) for name, values in batches.items()
    }
    for row in range(len(flat["input_ids"])):
        ids = flat["input_ids"][row].copy()
        real = flat["masked_lm_weights"][row] > 0
        positions = flat["masked_lm_positions"][row][real]
        ids[positions] = flat["masked_lm_ids"][row][real]
        found.setdefault(tuple(ids), []).append(tuple(positions))
    return found


def test_epochs_have_other_masks(records):
    """Epochs have the same texts, but different masks."""
    found = by_text(train(records, count=4 * RECORDS), records)
    texts = [
        record_files.unmasked(r) for f in (0, 1) for r in record_files.mini_records(f)
    ]
    expected = {tuple(text["input_ids"]) for text in texts}
    assert set(found) == expected
    epochs = 4 * SIZE
    assert sum(map(len, found.values())) == epochs * RECORDS
    different = [len(set(masks)) / len(masks) for masks in found.values()]
    assert np.mean(different) > 0.9


def test_seeds_have_other_masks(tmp_path):
    """Seeds have different masks, shown on equal records, whose order is invisible."""
    text = record_files.unmasked(record_files.mini_records()[0])
    path = record_files.write(tmp_path / "a", [text] * 12)
    record_files.write_manifest({path: record_files.unmasked_manifest()})
    same = record_set.open_record_set(path, MINI_CONFIG)
    one, other = (
        train(same, count=20, seed=seed)["masked_lm_positions"].reshape(120, -1)
        for seed in (1, 2)
    )
    assert (one == other).all(axis=1).mean() < 0.1


def test_shapes_and_dtypes_are_those_of_static_records(records, tmp_path):
    static = record_set.open_record_set(record_files.write_mini(tmp_path), MINI_CONFIG)
    for rows in (None, (1, 4)):
        ours = records.training_batches(SIZE, 1, 0, rows).element_spec
        assert ours == static.training_batches(SIZE, 1, 0, rows).element_spec
    ours = records.evaluation_batches(SIZE, 3).element_spec
    assert ours == static.evaluation_batches(SIZE, 3).element_spec


def test_evaluation_masks_are_always_the_same(records):
    expected = evaluate(records, 8)
    assert len(expected["input_ids"]) == RECORDS
    for size in (8, 5, 64):
        assert_equal(evaluate(records, size), expected)
    some = {name: values[:15] for name, values in expected.items()}
    assert_equal(evaluate(records, 5, max_batches=3), some)


def test_records_of_a_batch_are_its_rows(records, whole):
    """The saved records of a bad batch are unmasked, like the files."""
    held = records.batch_records(SIZE, seed=1, batch=9)
    for row, (path, number, _) in enumerate(held):
        file = records.index.files.index(path)
        text = record_files.unmasked(record_files.mini_records(file)[number])
        masked = {name: values[9:10, row : row + 1] for name, values in whole.items()}
        assert list(by_text(masked, records)) == [tuple(text["input_ids"])]


def test_static_records_are_passed_on(tmp_path):
    """Static records are returned unchanged in training and evaluation."""
    found = record_set.open_record_set(record_files.write_mini(tmp_path), MINI_CONFIG)
    assert found.format.masking is None
    texts = record_files.mini_records(0) + record_files.mini_records(1)
    for batch in (evaluate(found, 8), train(found, size=RECORDS)):
        rows = {name: batch[name].reshape(RECORDS, -1) for name in MASKED}
        key = {tuple(values): row for row, values in enumerate(rows["input_ids"])}
        for text in texts:
            row = key[tuple(text["input_ids"])]
            for name in MASKED:
                np.testing.assert_array_equal(rows[name][row], text[name])
