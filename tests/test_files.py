"""Finding inputs and writing outputs without halves."""

import errno
import hashlib
import os

import pytest

from official_bert import files
from official_bert.errors import UserError


def one_sentence(error, *words):
    text = str(error.value)
    assert "\n" not in text and text.endswith(".")
    for word in words:
        assert str(word) in text


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        ("a,b", ["a", "b"]),
        (" a , b ,", ["a", "b"]),
        ("", []),
        (",", []),
        (["a,b", " c "], ["a,b", "c"]),
    ],
)
def test_split_list(value, parts):
    assert files.split_list(value) == parts


def test_split_list_takes_paths(tmp_path):
    assert files.split_list([tmp_path]) == [str(tmp_path)]


def test_patterns_keep_their_order_and_globs_are_sorted(tmp_path):
    for name in ("b.txt", "a.txt", "c.txt", "d[1].txt"):
        (tmp_path / name).write_text("")
    found = files.find_input_files(f"{tmp_path}/c.txt,{tmp_path}/[ab].txt")
    assert [os.path.basename(path) for path in found] == ["c.txt", "a.txt", "b.txt"]
    # A file of exactly that name wins over the glob that the name also is.
    bracketed = f"{tmp_path}/d[1].txt"
    assert files.find_input_files([bracketed]) == [bracketed]


def test_find_input_files_says_what_is_wrong(tmp_path):
    with pytest.raises(UserError) as error:
        files.find_input_files(f"{tmp_path}/*.txt")
    one_sentence(error, "--input_file", f"{tmp_path}/*.txt")
    with pytest.raises(UserError) as error:
        files.find_input_files(" , ", "--train_file")
    one_sentence(error, "--train_file", "empty")
    with pytest.raises(UserError) as error:
        files.find_input_files([tmp_path])
    one_sentence(error, tmp_path, "is a directory", f"{tmp_path}/*")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_file(tmp_path):
    path = tmp_path / "secret"
    path.write_text("")
    path.chmod(0)
    with pytest.raises(UserError) as error:
        files.require_readable(path, "--vocab_file")
    one_sentence(error, "--vocab_file", path, "Permission denied")


def test_require_readable(tmp_path):
    with pytest.raises(UserError) as error:
        files.require_readable(tmp_path / "none", "--vocab_file")
    one_sentence(error, "--vocab_file", tmp_path / "none", "No such file")
    (tmp_path / "some").write_text("")
    files.require_readable(tmp_path / "some", "--vocab_file")


def test_require_parent(tmp_path, monkeypatch):
    files.require_parent(tmp_path / "new", "--output_file")
    with pytest.raises(UserError) as error:
        files.require_parent(tmp_path / "no" / "new", "--output_file")
    one_sentence(error, "--output_file", f"mkdir -p {tmp_path / 'no'}")
    with pytest.raises(UserError) as error:
        files.require_parent(tmp_path, "--output_file")
    one_sentence(error, tmp_path, "is a directory")
    monkeypatch.chdir(tmp_path)
    files.require_parent("new", "--output_file")
    monkeypatch.setattr(files.os, "access", lambda path, mode: mode != os.W_OK)
    with pytest.raises(UserError) as error:
        files.require_parent("new", "--output_file")
    one_sentence(error, tmp_path, "not writable")


def test_make_directory(tmp_path):
    files.make_directory(tmp_path / "a" / "b", "--output_dir")
    files.make_directory(tmp_path / "a" / "b", "--output_dir")
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "under"):
        with pytest.raises(UserError) as error:
            files.make_directory(path, "--output_dir")
        one_sentence(error, "--output_dir", path)


def test_writes_appear_whole_or_not_at_all(tmp_path):
    path = tmp_path / "out.txt"
    files.write_text(path, "old")
    with pytest.raises(RuntimeError), files.atomic_path(path) as temporary:
        with open(temporary, "w") as output:
            output.write("ne")
        assert path.read_text() == "old"
        raise RuntimeError
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.txt"]
    with files.atomic_path(path) as temporary:
        assert os.path.dirname(temporary) == str(tmp_path)  # One file system.
        with open(temporary, "w") as output:
            output.write("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["out.txt"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_full_disk_is_the_users_to_mend(tmp_path, monkeypatch, number):
    path = tmp_path / "out.txt"
    path.write_text("old")

    def fail(descriptor):
        raise OSError(number, "full")

    monkeypatch.setattr(files.os, "fsync", fail)
    with pytest.raises(UserError) as error:
        files.write_text(path, "new")
    one_sentence(error, "No space left", path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_other_failures_of_a_write_stay_what_they_are(tmp_path):
    with pytest.raises(FileNotFoundError):
        files.write_text(tmp_path / "no" / "out.txt", "new")


def test_text_is_the_same_bytes_everywhere(tmp_path):
    files.write_text(tmp_path / "a", "é\nb\r\n")
    assert (tmp_path / "a").read_bytes() == b"\xc3\xa9\nb\r\n"
    files.write_json(tmp_path / "b", {"é": [1, 2.5]})
    assert (tmp_path / "b").read_bytes() == (
        b'{\n  "\xc3\xa9": [\n    1,\n    2.5\n  ]\n}\n'
    )
    assert files.read_json(tmp_path / "b", "x") == {"é": [1, 2.5]}


def test_byte_order_mark_is_no_text(tmp_path):
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbf{}")
    assert files.read_text(tmp_path / "a", "a text") == "{}"
    assert files.read_json(tmp_path / "a", "a config") == {}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"a": 1,\n "b" 2}', ["line 2"]),
        (b"[1]", ["no JSON object"]),
        (b'"\xff"', ["not UTF-8"]),
        (b"", ["line 1"]),
        (None, ["No such file"]),
    ],
)
def test_json_that_is_none_names_the_file(tmp_path, data, words):
    path = tmp_path / "bert_config.json"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(UserError) as error:
        files.read_json(path, "a BERT config")
    one_sentence(error, path, "a BERT config", *words)


def test_sha256_of(tmp_path):
    data = os.urandom(3 * 2**20 + 1)
    (tmp_path / "a").write_bytes(data)
    digest = files.sha256_of(tmp_path / "a")
    assert digest == hashlib.sha256(data).hexdigest()
