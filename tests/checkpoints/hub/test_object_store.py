"""Models in TensorFlow's file systems; one of them is in memory."""

import os
import pathlib
import shutil

import pytest

from official_bert.checkpoints.hub.find import find_model
from official_bert.errors import UserError

DATA, INDEX = "bert_model.ckpt.data-00000-of-00001", "bert_model.ckpt.index"
SIDE_FILES = {"bert_config.json", "vocab.txt"}


@pytest.fixture
def store(cache):
    """Return the address of a model directory in TensorFlow's memory."""
    import tensorflow as tf

    address = f"ram://bucket-{os.getpid()}/model"
    tf.io.gfile.makedirs(address)
    for name in (*SIDE_FILES, DATA, INDEX, "events.log"):
        write(f"{address}/{name}", f"first {name}")
    yield address
    tf.io.gfile.rmtree(address)


def write(path, text):
    import tensorflow as tf

    with tf.io.gfile.GFile(path, "w") as file:
        file.write(text)


def test_a_directory(store, cache):
    model = find_model(store)
    folder = pathlib.Path(model.path)
    assert folder.parent == cache / "keras" / "models"
    assert {*model.files} == {*SIDE_FILES, DATA, INDEX}
    assert {p.name for p in folder.iterdir()} == {*model.files, "download.json"}
    assert (folder / DATA).read_text() == f"first {DATA}"
    assert (model.name, model.source) == (store, store)


@pytest.mark.parametrize("name", ["bert_model.ckpt", INDEX])
def test_a_prefix(store, name):
    model = find_model(f"{store}/{name}")
    assert model.path.endswith("/bert_model.ckpt")
    assert os.path.exists(f"{model.path}.index")
    assert {*model.files} == {*SIDE_FILES, DATA, INDEX}


def test_an_archive(store):
    write(f"{store}/model.zip", "zip")
    path = pathlib.Path(find_model(f"{store}/model.zip").path)
    assert path.read_text() == "zip"


def test_only_files_that_changed_are_copied_again(store, monkeypatch):
    import tensorflow as tf

    folder = pathlib.Path(find_model(store).path)
    copied, copy = [], tf.io.gfile.copy
    monkeypatch.setattr(
        tf.io.gfile,
        "copy",
        lambda *args, **kw: copied.append(args[0]) or copy(*args, **kw),
    )
    find_model(store)
    assert copied == []
    tf.io.gfile.remove(f"{store}/{DATA}")
    write(f"{store}/{DATA}", "second, of another size")
    find_model(store)
    assert copied == [f"{store}/{DATA}"]
    assert (folder / DATA).read_text().startswith("second")


def test_a_checkpoint_that_is_gone_is_not_read_any_more(store):
    """A copied checkpoint is removed if the store no longer has it.

    Otherwise the directory of a run would stay at its first checkpoint.
    """
    import tensorflow as tf

    find_model(store)
    for name in (DATA, INDEX):
        tf.io.gfile.remove(f"{store}/{name}")
    write(f"{store}/model.ckpt-9.index", "later")
    folder = pathlib.Path(find_model(store).path)
    left = {path.name for path in folder.iterdir()}
    assert left == {*SIDE_FILES, "model.ckpt-9.index", "download.json"}


@pytest.mark.parametrize("name", ["gone", "gone/model.ckpt", "gone.zip"])
def test_nothing_there(store, name):
    with pytest.raises(
        UserError, match=f"does not contain a model|Cannot read .*{name}"
    ):
        find_model(f"{store}/{name}")


def test_a_full_disk(store, monkeypatch):
    usage = shutil.disk_usage("/")._replace(free=10)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(UserError, match="KERAS_HOME"):
        find_model(store)
