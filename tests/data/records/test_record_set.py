"""Record files that do not fit the model, the flags or each other."""

import dataclasses
import math

import numpy as np
import pytest
import record_files
from record_files import MINI, MINI_CONFIG, mini_manifest, mini_records, numbered

from official_bert.data.records import record_set
from official_bert.data.records.manifest import write_manifest
from official_bert.data.records.record_set import open_record_set
from official_bert.errors import UserError


def refused(words, patterns, config=MINI_CONFIG, **options):
    with pytest.raises(UserError) as caught:
        open_record_set(str(patterns), config, **options)
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("manifest", [False, True])
def test_lengths_are_those_of_the_records(tmp_path, manifest):
    found = open_record_set(record_files.write_mini(tmp_path, manifest), MINI_CONFIG)
    assert (found.max_seq_length, found.max_predictions_per_seq) == (32, 5)
    assert found.index.num_records == 41
    assert found.format.limits["input_ids"] == 128
    assert found.format.limits["masked_lm_positions"] == 32
    assert found.do_lower_case == (True if manifest else None)


def test_the_casing_is_that_of_any_file_that_tells_it(tmp_path):
    glob = record_files.write_mini(tmp_path)
    assert open_record_set(glob, MINI_CONFIG).do_lower_case is None
    entry = {**record_files.mini_manifest(), "do_lower_case": False}
    write_manifest({str(tmp_path / "1.tfrecord"): entry})
    assert open_record_set(glob, MINI_CONFIG).do_lower_case is False


@pytest.mark.parametrize("manifest", [False, True])
@pytest.mark.parametrize(
    ("flag", "value", "found"),
    [("max_seq_length", 128, 32), ("max_predictions_per_seq", 20, 5)],
)
def test_lengths_that_are_not_the_flags(tmp_path, manifest, flag, value, found):
    glob = record_files.write_mini(tmp_path, manifest)
    words = [f"--{flag} is {value}", "0.tfrecord", f"with {found}"]
    refused(words, glob, **{flag: value})
    open_record_set(glob, MINI_CONFIG, **{flag: found})


@pytest.mark.parametrize("asked", [None, 4])
def test_files_of_two_lengths(tmp_path, asked):
    record_files.write(tmp_path / "a", numbered(0, 2))
    record_files.write(tmp_path / "b", numbered(0, 2, length=6))
    words = [str(tmp_path / "b"), "max_seq_length", "6", "4"]
    refused(words, tmp_path / "*", max_seq_length=asked)


def test_an_empty_file_among_others(tmp_path):
    record_files.write(tmp_path / "a", [])
    record_files.write(tmp_path / "b", numbered(0, 2))
    assert open_record_set(str(tmp_path / "*"), MINI_CONFIG).index.num_records == 2


def test_only_empty_files(tmp_path):
    path = record_files.write(tmp_path / "a", [])
    refused([path, "no records"], path)


def test_sequences_longer_than_the_model(tmp_path):
    config = dataclasses.replace(MINI_CONFIG, max_position_embeddings=16)
    refused(
        ["32", "16", "max_position_embeddings"],
        record_files.write_mini(tmp_path),
        config,
    )


def test_vocabulary_of_another_size(tmp_path):
    glob = record_files.write_mini(tmp_path, manifest=True)
    config = dataclasses.replace(MINI_CONFIG, vocab_size=100)
    refused(["125", "vocab_size is 100"], glob, config)


def test_another_vocabulary_of_the_same_size(tmp_path):
    glob = record_files.write_mini(tmp_path, manifest=True)
    other = tmp_path / "vocab.txt"
    other.write_text((MINI / "vocab.txt").read_text().replace("\nthan\n", "\nthen\n"))
    assert other.read_text() != (MINI / "vocab.txt").read_text()
    refused([str(other), "0.tfrecord"], glob, vocab_file=str(other))
    open_record_set(glob, MINI_CONFIG, vocab_file=str(MINI / "vocab.txt"))


def test_file_shorter_than_its_manifest_says(tmp_path):
    """A file cut at the end of a record is noticed through the manifest."""
    path = record_files.write(tmp_path / "a", mini_records())
    write_manifest({path: mini_manifest()})
    record_files.write(path, mini_records()[:-1])
    refused([path, "manifest.json"], path)


def test_directory(tmp_path):
    refused([str(tmp_path), "directory"], tmp_path)


def test_records_that_are_missing(tmp_path):
    words = ["--eval_input_file", "create_pretraining_data.py", "x00.tfrecord"]
    refused(words, tmp_path / "x*.tfrecord", flag="--eval_input_file")


def test_records_that_are_there_are_not_to_be_made_again(tmp_path):
    """The suggested command creates the missing file, not the existing one."""
    there = record_files.write_mini(tmp_path)
    missing = tmp_path / "missing.tfrecord"
    words = [f"no file matches '{missing}'", f"--output_file={missing} "]
    refused(words, f"{there},{missing}")


def test_text_instead_of_records(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("One sentence.\n" * 10)
    refused([str(path), "not a TFRecord file"], path)


def test_records_of_something_else(tmp_path):
    path = record_files.write(tmp_path / "a", [{"label": [1], "image": [2, 3]}])
    refused([path, "input_ids", "image, label"], path)


def test_rows_and_records_of_a_batch(tmp_path):
    found = open_record_set(record_files.write_mini(tmp_path), MINI_CONFIG)
    (whole,) = found.training_batches(6, seed=3, first_batch=9).take(1)
    (rows,) = found.training_batches(6, seed=3, first_batch=9, rows=(1, 4)).take(1)
    written = found.batch_records(6, seed=3, batch=9)
    for name, values in rows.items():
        np.testing.assert_array_equal(values, whole[name][1:4])
    for row, (path, record, _) in enumerate(written):
        values = mini_records(found.index.files.index(path))[record]
        assert whole["input_ids"][row].numpy().tolist() == values["input_ids"]


def test_statistics_by_hand(tmp_path, monkeypatch):
    found = open_record_set(record_files.write_mini(tmp_path), MINI_CONFIG)
    counts = np.zeros(125)
    for record in mini_records(0) + mini_records(1):
        for label, weight in zip(
            record["masked_lm_ids"], record["masked_lm_weights"], strict=True
        ):
            counts[label] += weight
    shares = counts[counts > 0] / counts.sum()
    entropy, most = found.label_statistics()
    assert entropy == pytest.approx(sum(-p * math.log(p) for p in shares), rel=1e-9)
    assert most == pytest.approx(shares.max(), rel=1e-9)
    assert 0 < most < 0.5 < entropy < math.log(125)


def test_statistics_of_records_without_masks(tmp_path):
    records = numbered(0, 3, masked_lm_weights=[0.0, 0.0])
    path = record_files.write(tmp_path / "a", records)
    assert open_record_set(path, MINI_CONFIG).label_statistics() == (0.0, 0.0)


def test_statistics_are_of_a_sample(tmp_path, monkeypatch):
    monkeypatch.setattr(record_set, "SAMPLED", 256)
    records = numbered(0, 256) + numbered(0, 256, masked_lm_ids=[9, 9])
    for record in records:
        record["input_ids"] = [1] * 4
    path = record_files.write(tmp_path / "a", records)
    assert open_record_set(path, MINI_CONFIG).label_statistics() == (0.0, 1.0)
