"""One argument opens any checkpoint format."""

import pathlib
import shutil
import tarfile
import zipfile

import numpy as np
import pytest
import tiny_model

from official_bert.checkpoints import any_format, google
from official_bert.errors import UserError


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny_model.write(tmp_path_factory.mktemp("models") / "tiny")


def all_of(path):
    """Return the content of a checkpoint, read while it is open."""
    with any_format.opened(path) as checkpoint:
        vocab = pathlib.Path(checkpoint.vocab_file).read_bytes()
        casing = checkpoint.do_lower_case
        return checkpoint.tensors(), checkpoint.config, vocab, casing


def assert_is_the_model(path):
    tensors, config, vocab, casing = all_of(path)
    expected = tiny_model.tensors()
    assert tensors.keys() == expected.keys()
    for name, value in tensors.items():
        assert value.tobytes() == expected[name].tobytes(), name
    assert (config, casing) == (tiny_model.MINI_CONFIG, True)
    assert vocab == tiny_model.VOCAB.read_bytes()


@pytest.mark.parametrize("name", ["", "bert_model.ckpt", "bert_model.ckpt.index"])
def test_directory_prefix_and_index(model, name):
    assert_is_the_model(model / name)


@pytest.mark.parametrize("folder", ["", "uncased_L-2_H-16_A-2/", "a/b/"])
def test_a_zip_file_as_released(model, tmp_path, folder, monkeypatch):
    archive = pack(model, tmp_path / "release.zip", folder)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    assert_is_the_model(archive)
    # Unpacked only in a temporary folder, which is gone.
    assert {path.name for path in tmp_path.iterdir()} == {"release.zip", "temporary"}
    assert not list((tmp_path / "temporary").iterdir())


@pytest.mark.parametrize("name", ["bert.tar.gz", "bert.tgz"])
def test_a_tar_file(model, tmp_path, name):
    with tarfile.open(tmp_path / name, "w:gz") as archive:
        archive.add(model, "uncased")
    assert_is_the_model(tmp_path / name)
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    refused(tmp_path / name, f"Cannot unpack {tmp_path}/{name}")


def test_a_tar_file_stays_in_its_folder(model, tmp_path, monkeypatch):
    """Members of a tar file with a path outside the folder are rejected."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    with tarfile.open(tmp_path / "a.tgz", "w:gz") as archive:
        archive.add(model, "uncased")
        archive.add(tiny_model.VOCAB, "../../outside.txt")
    refused(tmp_path / "a.tgz", f"Cannot unpack {tmp_path}/a.tgz")
    assert not list(tmp_path.rglob("outside.txt"))


def test_archives_with_a_python_before_3_11_4(model, tmp_path, monkeypatch):
    """Without the `filter` argument of Python 3.11.4, tar files are rejected."""
    monkeypatch.delattr(tarfile, "data_filter")
    unpack = shutil.unpack_archive
    monkeypatch.setattr(
        shutil, "unpack_archive", lambda path, folder: unpack(path, folder)
    )
    assert_is_the_model(pack(model, tmp_path / "release.zip", ""))
    with tarfile.open(tmp_path / "a.tgz", "w:gz") as archive:
        archive.add(model, "uncased")
    refused(tmp_path / "a.tgz", f"This Python version cannot unpack {tmp_path}/a.tgz")


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["other.ckpt"], "other.ckpt"),
        (["bert_model.ckpt-1"], "bert_model.ckpt-1"),
        (["ckpt-9", "ckpt-10"], "ckpt-10"),
        (["bert_model.ckpt", "ckpt-10", "model.ckpt-5"], "bert_model.ckpt"),
        (["ckpt-10", "model.ckpt-5"], "model.ckpt-5"),
    ],
)
def test_which_checkpoint_of_a_directory(tmp_path, names, wanted):
    for number, name in enumerate(names):
        tensors = {"number": np.float32([number])}
        google.write_checkpoint(str(tmp_path / name), tensors)
    with any_format.opened(tmp_path) as checkpoint:
        assert checkpoint.read("number") == names.index(wanted)


def pack(directory, archive, folder=""):
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr(f"{folder}README.txt", "a release")
        for path in directory.iterdir():
            packed.write(path, folder + path.name)
    return archive


def test_optimizer_state_is_left_out(tmp_path):
    tensors = tiny_model.tensors()
    slots = {
        f"{name}/{slot}": value
        for name, value in tensors.items()
        for slot in ("adam_m", "adam_v")
    }
    more = {"global_step": np.int64(7), "training/run_id": np.int64(1)}
    google.write_checkpoint(
        str(tmp_path / "model.ckpt-7"), {**tensors, **slots, **more}
    )
    with any_format.opened(tmp_path) as checkpoint:
        assert checkpoint.shapes.keys() == tensors.keys()
        assert (checkpoint.config, checkpoint.vocab_file) == (None, None)


def refused(path, *words):
    with pytest.raises(UserError) as caught, any_format.opened(path):
        pass
    for word in words:
        assert word in str(caught.value)


def test_nothing_there(tmp_path):
    refused(tmp_path, str(tmp_path), "contains no checkpoint")
    refused(tmp_path / "x.zip", "No checkpoint at", "x.zip")


def test_zip_files_of_something_else(model, tmp_path):
    with zipfile.ZipFile(tmp_path / "text.zip", "w") as packed:
        packed.writestr("text.txt", "words")
    refused(tmp_path / "text.zip", "text.zip contains no checkpoint")
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as packed:
        for folder in ("a", "b"):
            for path in model.iterdir():
                packed.write(path, f"{folder}/{path.name}")
    refused(tmp_path / "two.zip", "more than one model", "Unpack it")


def test_a_zip_file_of_a_mac(model, tmp_path):
    """A zip file made by macOS is read, although it has a second folder."""
    archive = pack(model, tmp_path / "release.zip")
    with zipfile.ZipFile(archive, "a") as packed:
        packed.writestr("__MACOSX/model/._bert_model.ckpt.index", b"\0\5\x16\7")
    assert_is_the_model(archive)


def test_a_zip_file_of_an_unknown_method(model, tmp_path):
    """Unsupported compression, such as Deflate64 from Windows, is reported."""
    archive = tmp_path / "model.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.write(model / "bert_model.ckpt.index", "bert_model.ckpt.index")
    content = bytearray(archive.read_bytes())
    for mark, offset in ((b"PK\3\4", 8), (b"PK\1\2", 10)):
        content[content.index(mark) + offset] = 9
    archive.write_bytes(content)
    refused(archive, f"Cannot unpack {archive}", "compression")


def test_a_truncated_zip_file(model, tmp_path):
    archive = pack(model, tmp_path / "whole.zip")
    whole = archive.read_bytes()
    (tmp_path / "half.zip").write_bytes(whole[: len(whole) // 2])
    refused(tmp_path / "half.zip", f"Cannot unpack {tmp_path}/half.zip")
    # The file list at the end exists, but the contents are damaged.
    damaged = bytearray(whole)
    damaged[200:5000] = bytes(4800)
    (tmp_path / "bad.zip").write_bytes(damaged)
    refused(tmp_path / "bad.zip", f"Cannot unpack {tmp_path}/bad.zip")


def test_a_truncated_data_file(model, tmp_path):
    for path in model.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    data = tmp_path / "bert_model.ckpt.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:1000])
    with (
        pytest.raises(UserError, match="bert_model.ckpt"),
        any_format.opened(tmp_path) as checkpoint,
    ):
        checkpoint.tensors()
