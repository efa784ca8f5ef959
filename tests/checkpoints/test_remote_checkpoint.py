"""Checkpoints in an object store are complete, or reported as incomplete."""

import secrets

import numpy as np
import pytest

from official_bert import object_store
from official_bert.checkpoints import google, names
from official_bert.errors import UserError

TENSORS = {"a/kernel": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.int64(7)}


@pytest.fixture
def folder():
    path = f"ram://checkpoint-{secrets.token_hex(4)}"
    google.write_checkpoint(f"{path}/model.ckpt-5", TENSORS)
    return path


def test_it_is_read_as_it_was_written(folder):
    assert names.numbered_checkpoints(folder) == [5]
    prefix = google.find_prefix(folder)
    assert prefix == f"{folder}/model.ckpt-5"
    reader = google.open_checkpoint(prefix)
    for name, value in TENSORS.items():
        np.testing.assert_array_equal(
            google.read_tensor(reader, name, prefix), value, strict=True
        )


def test_the_list_of_parts_comes_last(folder, monkeypatch):
    written = []
    upload = object_store.upload

    def noted(local, path):
        written.append(path.removeprefix(f"{folder}/model.ckpt-6"))
        upload(local, path)

    monkeypatch.setattr(object_store, "upload", noted)
    google.write_checkpoint(f"{folder}/model.ckpt-6", TENSORS)
    assert written == [*google.ENDINGS, names.PARTS]


def test_without_its_list_it_does_not_count(folder):
    object_store.remove(f"{folder}/model.ckpt-5{names.PARTS}")
    assert names.numbered_checkpoints(folder) == []
    google.remove_halves(folder)
    assert object_store.list_directory(folder) == []


@pytest.mark.parametrize(
    ("harm", "words"), [("remove", "is missing"), ("cut", "has 3 bytes")]
)
def test_a_part_that_is_gone_or_cut_is_noticed(folder, harm, words):
    path = f"{folder}/model.ckpt-5{google.ENDINGS[1]}"
    if harm == "remove":
        object_store.remove(path)
    else:
        object_store.write(path, b"cut")
    with pytest.raises(UserError, match=f"is incomplete: {path} {words}"):
        google.open_checkpoint(f"{folder}/model.ckpt-5")


def test_changed_bytes_are_noticed(folder):
    path = f"{folder}/model.ckpt-5{google.ENDINGS[1]}"
    data = bytearray(object_store.read(path))
    data[0] ^= 1
    object_store.write(path, bytes(data))
    reader = google.open_checkpoint(f"{folder}/model.ckpt-5")
    with pytest.raises(UserError, match="cannot read"):
        for name in TENSORS:
            google.read_tensor(reader, name, folder)


def test_it_is_removed_and_set_aside(folder):
    google.set_aside(f"{folder}/model.ckpt-5")
    assert names.numbered_checkpoints(folder) == []
    assert len(object_store.list_directory(folder)) == 3
    google.write_checkpoint(f"{folder}/model.ckpt-6", TENSORS)
    google.delete_checkpoint(f"{folder}/model.ckpt-6")
    assert all(n.endswith(".damaged") for n in object_store.list_directory(folder))
