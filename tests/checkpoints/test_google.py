"""TensorFlow 1 reads our checkpoint files, and damaged files are reported."""

import os
import resource

import numpy as np
import pytest
import tensorflow as tf

from official_bert.checkpoints import google, names
from official_bert.errors import UserError

TENSORS = {
    "bert/embeddings/word_embeddings": np.arange(60, dtype=np.float32).reshape(20, 3),
    "cls/predictions/output_bias": np.ones(20, np.float32),
    "global_step": np.int64(7),
}


@pytest.fixture
def prefix(tmp_path):
    google.write_checkpoint(str(tmp_path / "bert_model.ckpt"), TENSORS)
    return str(tmp_path / "bert_model.ckpt")


@pytest.mark.parametrize(
    "read", [tf.train.load_checkpoint, tf.compat.v1.train.NewCheckpointReader]
)
def test_tensorflow_reads_it(prefix, read):
    reader = read(prefix)
    shapes = {name: list(np.shape(value)) for name, value in TENSORS.items()}
    assert reader.get_variable_to_shape_map() == shapes
    for name, value in TENSORS.items():
        np.testing.assert_array_equal(reader.get_tensor(name), value)
        assert reader.get_tensor(name).dtype == value.dtype


def test_tensorflow_1_restores_it(prefix):
    """A TensorFlow 1 Saver restores a variable in a graph, as old tools do."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variable = tf.compat.v1.get_variable(
            "bert/embeddings/word_embeddings", [20, 3], use_resource=False
        )
        tf.compat.v1.train.Saver([variable]).restore(session, prefix)
        restored = session.run(variable)
    np.testing.assert_array_equal(restored, TENSORS[variable.op.name])


def test_nothing_else_is_left(prefix, tmp_path):
    google.write_checkpoint(prefix, TENSORS)
    names = ["bert_model.ckpt.data-00000-of-00001", "bert_model.ckpt.index"]
    assert sorted(os.listdir(tmp_path)) == names


def test_writing_over_another(prefix):
    google.write_checkpoint(prefix, {"other": np.zeros(3, np.float32)})
    assert tf.train.list_variables(prefix) == [("other", [3])]


def test_killed_between_the_two_files(prefix, tmp_path, monkeypatch):
    """After a kill, an old index and new data never exist together."""
    replace = os.replace

    def replace_once(source, target):
        replace(source, target)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", replace_once)
    changed = {name: value + 1 for name, value in TENSORS.items()}
    with pytest.raises(KeyboardInterrupt):
        google.write_checkpoint(prefix, changed)
    assert os.listdir(tmp_path) == ["bert_model.ckpt.data-00000-of-00001"]


def test_a_file_that_may_not_grow(prefix, tmp_path):
    """A file size limit, instead of a full disk, is reported."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(UserError, match="Cannot write .*model.ckpt-2: File too"):
            google.write_checkpoint(
                str(tmp_path / "model.ckpt-2"), {"a": np.ones(100_000, np.float32)}
            )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert len(os.listdir(tmp_path)) == 2
    assert len(tf.train.list_variables(prefix)) == 3


def test_a_full_disk(prefix, tmp_path, monkeypatch):
    def full(**_):
        raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")

    monkeypatch.setattr(tf.raw_ops, "SaveV2", full)
    with pytest.raises(UserError, match="No space left on the disk of .*ckpt. Free"):
        google.write_checkpoint(prefix, {"a": np.ones(3, np.float32)})
    assert len(os.listdir(tmp_path)) == 2
    assert len(tf.train.list_variables(prefix)) == 3


def test_prefix_of_whatever_is_given(prefix, tmp_path):
    assert google.find_prefix(prefix) == prefix
    assert google.find_prefix(prefix + ".index") == prefix
    assert google.find_prefix(tmp_path) == prefix
    run = tmp_path / "run [1]"
    run.mkdir()
    for step in (9, 10, 100):
        google.write_checkpoint(str(run / f"model.ckpt-{step}"), TENSORS)
    (run / "model.ckpt-best.index").touch()
    assert names.numbered_checkpoints(run) == [9, 10, 100]
    assert google.find_prefix(run) == str(run / "model.ckpt-100")
    google.delete_checkpoint(str(run / "model.ckpt-100"))
    assert google.find_prefix(run) == str(run / "model.ckpt-10")


def test_no_checkpoint(tmp_path):
    with pytest.raises(UserError, match="contains no checkpoint"):
        google.find_prefix(tmp_path)
    with pytest.raises(UserError, match=r"No checkpoint at .*there\.ckpt"):
        google.find_prefix(tmp_path / "there.ckpt")


def read_all(prefix):
    reader = google.open_checkpoint(prefix)
    return [google.read_tensor(reader, name, prefix) for name in sorted(TENSORS)]


@pytest.mark.parametrize("kept", [0, 1, 100, -1])
def test_truncated_index(prefix, kept):
    with open(prefix + ".index", "r+b") as file:
        file.truncate(kept if kept >= 0 else os.path.getsize(prefix + ".index") - 1)
    with pytest.raises(UserError, match=rf"Cannot read the checkpoint {prefix}"):
        read_all(prefix)


@pytest.mark.parametrize("kept", [0, 100])
def test_truncated_data(prefix, kept):
    os.truncate(prefix + ".data-00000-of-00001", kept)
    with pytest.raises(UserError, match=rf"{prefix}: cannot read bert/embeddings/wor"):
        read_all(prefix)


def test_missing_data(prefix):
    os.remove(prefix + ".data-00000-of-00001")
    with pytest.raises(UserError, match="cannot read"):
        read_all(prefix)


def test_flipped_bits(prefix):
    with open(prefix + ".data-00000-of-00001", "r+b") as file:
        file.seek(30)
        file.write(b"\xff\xff")
    with pytest.raises(UserError, match="cannot read"):
        read_all(prefix)


def test_index_that_is_a_text(prefix):
    with open(prefix + ".index", "w") as file:
        file.write("no checkpoint, but a text\n" * 20)
    with pytest.raises(UserError, match="Cannot read the checkpoint"):
        read_all(prefix)


def test_a_checkpoint_outlives_a_power_cut(tmp_path, monkeypatch):
    """Data reaches the disk before its names, and the data file before the index."""
    order, sync, replace = [], os.fsync, os.replace

    def note_sync(descriptor):
        order.append("sync")
        sync(descriptor)

    def note_name(source, target):
        order.append(target.rpartition(".")[2])
        replace(source, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "replace", note_name)
    google.write_checkpoint(str(tmp_path / "model.ckpt-1"), TENSORS)
    # Both files, their names, and the names in the folder.
    assert order == ["sync", "sync", "data-00000-of-00001", "index", "sync"]
