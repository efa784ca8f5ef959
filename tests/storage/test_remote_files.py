"""Files of an object store, in TensorFlow's memory file system (`ram://`)."""

import pathlib
import secrets

import pytest

from official_bert import files, given_paths, object_store
from official_bert.errors import UserError


@pytest.fixture
def folder():
    """Return a new empty folder."""
    return f"ram://test-{secrets.token_hex(4)}"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("gs://bucket/a", True),
        ("s3://bucket", True),
        ("ram://x", True),
        ("a/b", False),
        ("/a//b", False),
        ("C:/a", False),
        (pathlib.Path("gs:/bucket"), False),
    ],
)
def test_what_is_remote(path, expected):
    assert files.is_remote(path) is expected


def test_a_text_file(folder):
    path = f"{folder}/a/b.json"
    assert not files.exists(path)
    files.write_json(path, {"x": "ä"})
    assert files.exists(path) and files.is_file(path)
    assert files.is_directory(f"{folder}/a") and not files.is_file(f"{folder}/a")
    assert files.read_json(path, "JSON") == {"x": "ä"}
    assert files.size(path) == len('{\n  "x": "ä"\n}\n'.encode())


def test_the_same_digest_as_a_local_file(folder, tmp_path):
    (tmp_path / "file").write_bytes(bytes(range(256)) * 9999)
    files.copy(tmp_path / "file", f"{folder}/file")
    assert files.sha256_of(f"{folder}/file") == files.sha256_of(tmp_path / "file")
    files.copy(f"{folder}/file", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == (tmp_path / "file").read_bytes()


def test_a_block_that_fails_writes_nothing(folder):
    files.write_text(f"{folder}/file", "before")
    with pytest.raises(ZeroDivisionError), files.atomic_path(f"{folder}/file") as path:
        pathlib.Path(path).write_text("half")
        raise ZeroDivisionError
    assert files.read_text(f"{folder}/file", "text") == "before"


def test_a_folder_is_uploaded_at_the_end(folder):
    with files.atomic_directory(f"{folder}/model", "--output_dir") as local:
        pathlib.Path(local, "variables").mkdir()
        pathlib.Path(local, "variables", "data").write_text("1")
        pathlib.Path(local, "model.pb").write_text("2")
        assert not files.exists(f"{folder}/model/model.pb")
    assert files.read_text(f"{folder}/model/variables/data", "text") == "1"
    with (
        pytest.raises(UserError, match="--output_dir: ram://.* is not empty"),
        files.atomic_directory(f"{folder}/model", "--output_dir"),
    ):
        pass


def test_globs(folder):
    for name in ("b.tfrecord", "a.tfrecord", "a.txt"):
        object_store.write(f"{folder}/data/{name}", b"1")
    expected = [f"{folder}/data/{name}.tfrecord" for name in "ab"]
    assert given_paths.find_input_files(f"{folder}/data/*.tfrecord") == expected
    assert files.find_in(f"{folder}/data", "*.txt") == [f"{folder}/data/a.txt"]
    with pytest.raises(UserError, match=r"--input_file: no file matches 'ram://.*gz'"):
        given_paths.find_input_files(f"{folder}/data/*.gz")


def test_lines_and_positions(folder):
    text = b"".join(b"line %d\n" % number for number in range(9999)) + b"end"
    object_store.write(f"{folder}/lines", text)
    with files.opened(f"{folder}/lines") as lines:
        assert list(lines) == text.splitlines(keepends=True)
    with files.opened(f"{folder}/lines") as source:
        assert source.seek(-3, 2) == len(text) - 3
        assert source.read() == b"end"
        source.seek(5)
        assert source.read(1) == b"0"


def test_a_missing_object_is_one_sentence(folder):
    with pytest.raises(UserError, match=f"{folder}/gone: it does not exist: check"):
        files.read_text(f"{folder}/gone", "text")
    files.remove(f"{folder}/gone")


def test_an_unknown_scheme():
    with pytest.raises(UserError, match="zip://a/b: this installation of TensorFlow"):
        files.exists("zip://a/b")
