import json
import math
import threading

import pytest

from official_bert import files
from official_bert.data.records import manifest
from official_bert.errors import UserError


def _write(folder, name, **entry):
    path = folder / name
    path.write_bytes(b"x" * 10)
    manifest.write_manifest({str(path): entry})
    return str(path)


def test_several_runs_share_a_folder(tmp_path):
    train = _write(tmp_path, "train.tfrecord", num_records=1)
    held_out = _write(tmp_path, "heldout.tfrecord", num_records=2)
    assert manifest.read_manifest(train) == {"num_records": 1, "num_bytes": 10}
    assert manifest.read_manifest(held_out)["num_records"] == 2
    _write(tmp_path, "train.tfrecord", num_records=3)
    assert manifest.read_manifest(train)["num_records"] == 3
    assert manifest.read_manifest(held_out)["num_records"] == 2
    content = json.loads((tmp_path / "manifest.json").read_text())
    assert list(content) == ["format", "files"] and content["format"] == 1


def test_outputs_of_one_run_may_lie_in_two_folders(tmp_path):
    paths = [tmp_path / "a" / "x", tmp_path / "b" / "x"]
    for path in paths:
        path.parent.mkdir()
        path.write_bytes(b"")
    manifest.write_manifest({str(path): {"n": str(path)} for path in paths})
    for path in paths:
        assert manifest.read_manifest(str(path))["n"] == str(path)


def test_runs_at_the_same_time_lose_no_entry(tmp_path):
    threads = [
        threading.Thread(target=_write, args=(tmp_path, f"{number}"))
        for number in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    content = json.loads((tmp_path / "manifest.json").read_text())
    assert len(content["files"]) == 12


def test_without_a_manifest_or_an_entry_there_is_none(tmp_path):
    assert manifest.read_manifest(str(tmp_path / "a")) is None
    _write(tmp_path, "a")
    assert manifest.read_manifest(str(tmp_path / "b")) is None


def test_a_file_of_another_size_is_refused_with_both(tmp_path):
    path = _write(tmp_path, "a")
    with open(path, "ab") as file:
        file.write(b"more")
    with pytest.raises(UserError, match="has 14 bytes, but .* states 10"):
        manifest.read_manifest(path)


@pytest.mark.parametrize("content", ["{", "[]", '{"files": {}}', '{"format": 9}'])
def test_a_damaged_manifest_is_named(tmp_path, content):
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(UserError, match="manifest.json"):
        manifest.check_manifest(str(tmp_path / "a"))


def test_another_vocabulary_is_named_with_the_records(tmp_path):
    vocab_file = tmp_path / "vocab.txt"
    vocab_file.write_text("[PAD]\n")
    own = files.sha256_of(vocab_file)
    entries = {"a": {"vocab_sha256": own}, "b": {}, "c": None}
    manifest.check_vocabulary(entries, str(vocab_file))
    entries["d"] = {"vocab_sha256": "0" * 64}
    with pytest.raises(UserError, match="vocab.txt is not the vocabulary of d"):
        manifest.check_vocabulary(entries, str(vocab_file))


def test_label_statistics():
    found = manifest.describe_labels([0, 6, 2], {0: "x", 1: "the", 2: "a"})
    expected = -0.75 * math.log(0.75) - 0.25 * math.log(0.25)
    assert found["unigram_entropy"] == pytest.approx(expected)
    assert found["most_frequent_token"] == {"token": "the", "share": 0.75}


def test_where_nothing_is_masked_there_is_a_warning(caplog):
    """A warning is logged if all whole words have more tokens than may be masked."""
    found = manifest.describe_labels([0, 0], {0: "x", 1: "the"})
    assert found["unigram_entropy"] == found["most_frequent_token"]["share"] == 0
    assert "No record has a masked word" in caplog.text
