"""Batch k is a function of (files, seed, k), and invalid records are named."""

import itertools
import math
import pathlib

import numpy as np
import pytest
import record_files
import tensorflow as tf
from marks import slow

from official_bert.data import input_pipeline, record_parsing
from official_bert.data.input_pipeline import evaluation_batches, training_batches
from official_bert.data.records import examples, tfrecord
from official_bert.data.records import index as record_index
from official_bert.errors import UserError

# Records of the files; one exceeds a chunk, and one is empty.
COUNTS = (10, 0, 1, 12)
TOTAL = sum(COUNTS)
LIMITS = {
    "input_ids": 1000,
    "masked_lm_ids": 1000,
    "segment_ids": 2,
    "masked_lm_positions": 4,
    "next_sentence_labels": 2,
}
RECORD_FORMAT = record_parsing.RecordFormat(examples.feature_spec(4, 2), {}, LIMITS)


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    starts = itertools.accumulate(COUNTS, initial=0)
    return [
        record_files.write(
            folder / str(file), record_files.numbered(start, count) if count else []
        )
        for file, (start, count) in enumerate(zip(starts, COUNTS, strict=False))
    ]


@pytest.fixture(params=[slow((256, 64)), (4, 2), slow((1, 3))], ids=str)
def index(request, paths, monkeypatch):
    """Index the files with several sizes of chunks and windows."""
    chunk, window = request.param
    monkeypatch.setattr(record_index, "CHUNK", chunk)
    monkeypatch.setattr(input_pipeline, "CHUNK", chunk)
    monkeypatch.setattr(input_pipeline, "WINDOW", window)
    return record_index.index_files(paths)


def numbers(batches, count):
    """Return the numbers of the records of the first `count` batches."""
    return [batch["input_ids"][:, 0].numpy().tolist() for batch in batches.take(count)]


def train(index, batch_size, seed=1, first=0, count=10):
    return numbers(
        training_batches(index, RECORD_FORMAT, batch_size, seed, first), count
    )


def test_any_batch_without_those_before(index):
    """Any batch can be read directly, also across files, windows and epochs."""
    whole = train(index, 5, count=15)
    assert all(len(batch) == 5 for batch in whole)
    for first in (4, 9, 13):
        assert train(index, 5, first=first, count=15 - first) == whole[first:]


def test_any_record_without_those_before(index):
    (whole,) = train(index, TOTAL, count=1)
    for first in (1, 12, 22):
        assert train(index, 1, first=first, count=1) == [[whole[first]]]
    assert train(index, 1, first=0, count=TOTAL) == [[number] for number in whole]


def test_every_record_once_in_each_epoch(index):
    order = list(itertools.chain(*train(index, 4, count=TOTAL)))
    epochs = [order[start : start + TOTAL] for start in range(0, 4 * TOTAL, TOTAL)]
    for epoch in epochs:
        assert sorted(epoch) == list(range(TOTAL))
    assert len({tuple(epoch) for epoch in epochs}) == 4


def test_each_seed_has_its_order(index):
    seeds = (0, 1, 2, 257, 2**32 - 1)
    orders = {tuple(train(index, TOTAL, seed, count=1)[0]) for seed in seeds}
    assert len(orders) == len(seeds)
    assert train(index, TOTAL, 2, count=1)[0] in map(list, orders)


@pytest.mark.parametrize("size", [1, 2, 23, 64, 256, 1000])
def test_orders_are_as_if_drawn_by_lot(size):
    """Neighbors and positions are kept no more often than by chance."""
    places = tf.range(size, dtype=tf.int64)
    orders = [
        input_pipeline._permuted(places, size, 1, epoch, window).numpy()
        for epoch in range(10)
        for window in range(3)
    ]
    for order in orders:
        assert sorted(order) == list(range(size))
    if size > 2:
        by_chance = 1 / size + 3 / math.sqrt(size * len(orders) * size)
        assert np.mean([np.diff(order) == 1 for order in orders]) < by_chance
        assert np.mean([order == places for order in orders]) < by_chance
        assert len(set(map(tuple, orders))) == len(orders)


def test_files_are_mixed_within_a_window(paths):
    """Most first batches contain records of several files."""
    index = record_index.index_files(paths)
    firsts = [train(index, 8, seed, count=1)[0] for seed in range(3)]
    assert sum({n < 10 for n in batch} == {True, False} for batch in firsts) > 1


def test_more_than_one_window_of_the_real_size(tmp_path, monkeypatch):
    """600 records in windows of 512: the window ends inside a batch."""
    monkeypatch.setattr(input_pipeline, "WINDOW", 2)
    path = record_files.write(tmp_path / "a", record_files.numbered(0, 600))
    index = record_index.index_files([path])
    whole = train(index, 100, count=13)
    assert sorted(itertools.chain(*whole[:6])) == list(range(600))
    assert sorted(itertools.chain(*whole[6:12])) == list(range(600))
    for first in (4, 5, 6, 11):
        assert train(index, 100, first=first, count=1) == whole[first : first + 1]


def test_no_thread_tunes_the_pipeline(index):
    """It could delay the end of a stopped run by a minute."""
    training = training_batches(index, RECORD_FORMAT, 4, 1)
    evaluation = evaluation_batches(index, RECORD_FORMAT, 4, 1)
    for batches in (training, evaluation):
        assert batches.options().autotune.enabled is False


def test_far_into_a_run(paths):
    index = record_index.index_files(paths)
    first = 10**9
    a = train(index, 8, first=first, count=3)
    assert a[1:] == train(index, 8, first=first + 1, count=2)


def test_evaluation_is_in_file_order(index):
    batches = evaluation_batches(index, RECORD_FORMAT, 5, 100)
    expected = [list(range(start, min(start + 5, TOTAL))) for start in range(0, 23, 5)]
    assert numbers(batches, 100) == expected
    assert len(expected[-1]) == 3
    assert numbers(evaluation_batches(index, RECORD_FORMAT, 5, 2), 100) == expected[:2]


def test_features_are_the_records(tmp_path):
    path = record_files.write(tmp_path / "mini", record_files.mini_records())
    index = record_index.index_files([path])
    record_format = record_parsing.RecordFormat(examples.feature_spec(32, 5), {}, {})
    (batch,) = evaluation_batches(index, record_format, 100, 1)
    expected = record_files.stacked(record_files.mini_records())
    assert set(batch) == set(expected)
    for name, values in expected.items():
        assert batch[name].numpy().dtype == values.dtype
        np.testing.assert_array_equal(batch[name], values)


def test_other_names_become_the_original_s(tmp_path):
    values = record_files.numbered(3, 1)[0]
    values["input_word_ids"] = values.pop("input_ids")
    path = record_files.write(tmp_path / "a", [values])
    theirs = {name: name for name in examples.FEATURES} | {
        "input_ids": "input_word_ids"
    }
    record_format = record_parsing.RecordFormat(
        examples.feature_spec(4, 2, theirs), {"input_word_ids": "input_ids"}, LIMITS
    )
    index = record_index.index_files([path])
    (batch,) = evaluation_batches(index, record_format, 1, 1)
    assert batch["input_ids"].numpy().tolist() == [[3, 1, 1, 1]]
    assert "input_word_ids" not in batch


def test_batch_larger_than_the_data(index):
    with pytest.raises(UserError, match="batch size 24 .* 23 records"):
        training_batches(index, RECORD_FORMAT, 24, 1)
    assert len(train(index, 23, count=1)[0]) == 23


def failure(path, record_format=RECORD_FORMAT, batches=evaluation_batches):
    """Return the error message for an invalid file."""
    index = record_index.index_files([path])
    with pytest.raises(tf.errors.OpError) as caught:
        list(batches(index, record_format, 4, 1000))
    return str(record_parsing.user_error(caught.value, index, record_format))


@pytest.mark.parametrize(
    ("bad", "change", "words"),
    [
        (0, {"input_ids": [1, 999, 1000, 2]}, "input_ids is 1000, but the model's"),
        (6, {"input_ids": [1, 999, 1000, 2]}, "vocab_size is 1000"),
        (3, {"input_ids": [1, 999, -7, 2]}, "input_ids is -7"),
        (3, {"masked_lm_ids": [5, 30000]}, "masked_lm_ids is 30000"),
        (4, {"masked_lm_positions": [4, 0]}, "positions is 4, but max_seq_length"),
        (4, {"segment_ids": [1, 1, 1, 2]}, "segment_ids is 2, but the model's typ"),
        (5, {"next_sentence_labels": [2]}, "next_sentence_labels is 2"),
    ],
)
def test_numbers_out_of_range(tmp_path, change, words, bad):
    values = record_files.numbered(1, 7)
    values[bad] |= change
    path = record_files.write(tmp_path / "records of me", values)
    message = failure(path)
    assert f"{path} record {bad}: " in message
    assert words in message
    assert "\\" not in message and "\n" not in message


def test_largest_id_is_allowed(tmp_path):
    values = record_files.numbered(1, 2, input_ids=[0, 999, 5, 5])
    index = record_index.index_files([record_files.write(tmp_path / "a", values)])
    assert len(list(evaluation_batches(index, RECORD_FORMAT, 4, 1))) == 1


def test_bad_ids_in_the_second_file_while_training(paths, tmp_path):
    values = record_files.numbered(1, 5)
    values[3]["input_ids"][2] = 4000
    bad = record_files.write(tmp_path / "bad", values)
    index = record_index.index_files([paths[0], bad])
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        list(training_batches(index, RECORD_FORMAT, 5, 1).take(3))
    error = record_parsing.user_error(caught.value, index, RECORD_FORMAT)
    assert f"{bad} record 3: input_ids is 4000" in str(error)


def test_non_ascii_path(tmp_path):
    values = record_files.numbered(1, 2, input_ids=[0, 2000, 5, 5])
    path = record_files.write(tmp_path / "größe 王", values)
    assert f"{path} record 0:" in failure(path)


@pytest.mark.parametrize(
    "change", [{"input_ids": [1, 2, 3]}, {"masked_lm_weights": [1.0] * 3}]
)
def test_other_lengths_later_in_the_file(tmp_path, change):
    values = record_files.numbered(1, 5)
    values[3] |= change
    path = record_files.write(tmp_path / "a", values)
    message = failure(path)
    assert f"{path}: record 3 is not a pre-training record" in message
    assert "'input_ids': 4" in message and "'masked_lm_ids': 2" in message


def test_damaged_record(tmp_path):
    path = record_files.write(tmp_path / "a", record_files.numbered(1, 5))
    data = bytearray((tmp_path / "a").read_bytes())
    data[len(data) // 2] ^= 0xFF
    (tmp_path / "a").write_bytes(data)
    assert failure(path) == f"{path}: record 2 is damaged. Create the file again."


def test_other_errors_are_not_the_data_s(paths):
    index = record_index.index_files(paths)
    error = tf.errors.InternalError(None, None, "out of everything")
    assert record_parsing.user_error(error, index, RECORD_FORMAT) is None


@pytest.fixture
def packed(paths, tmp_path, monkeypatch):
    """Return the same files, compressed, in chunks of four."""
    monkeypatch.setattr(record_index, "CHUNK", 4)
    monkeypatch.setattr(input_pipeline, "CHUNK", 4)
    monkeypatch.setattr(input_pipeline, "WINDOW", 2)
    monkeypatch.setattr(tfrecord, "RECORDS_PER_MEMBER", 4)
    names = []
    for path in paths:
        found = list(tf.data.TFRecordDataset(path).as_numpy_iterator())
        names.append(str(tmp_path / f"{pathlib.Path(path).name}.gz"))
        tfrecord.write_records(found, names[-1], names[-1])
    return names


def test_compressed_records_give_the_same_batches(paths, packed):
    plain = record_index.index_files(paths)
    index = record_index.index_files(packed)
    assert train(index, 5, count=12) == train(plain, 5, count=12)
    assert train(index, 5, first=7, count=3) == train(plain, 5, first=7, count=3)
    mixed = record_index.index_files([packed[0], *paths[1:]])
    assert train(mixed, 5, count=12) == train(plain, 5, count=12)
    evaluated = numbers(evaluation_batches(index, RECORD_FORMAT, 5, 100), 100)
    assert list(itertools.chain(*evaluated)) == list(range(TOTAL))
    assert next(examples.read_examples(packed[0])) == next(
        examples.read_examples(paths[0])
    )


def test_compressed_records_that_were_damaged_since_are_a_sentence(packed):
    index = record_index.index_files(packed)
    with open(packed[0], "r+b") as file:
        file.seek(30)
        file.write(b"damage")
    with pytest.raises(tf.errors.OpError) as error:
        train(index, 5)
    message = str(record_parsing.user_error(error.value, index, RECORD_FORMAT))
    assert message.startswith(f"{packed[0]} is truncated, or not a gzip file")
    assert message.endswith("Create the file again.")


def test_chunks_are_the_members_of_our_files():
    assert tfrecord.RECORDS_PER_MEMBER == record_index.CHUNK
