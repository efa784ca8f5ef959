"""Google's format: TensorFlow 1's name-based checkpoints, and a model's files.

The project's own format too; whatever is trained here is written in it.
"""

import os
import shutil
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from official_bert import files, object_store
from official_bert.checkpoints import names, remote_checkpoint
from official_bert.checkpoints.checkpoint import Checkpoint
from official_bert.config import BertConfig
from official_bert.errors import UserError

# What the files of a model directory are called.
CONFIG_FILE = "bert_config.json"
VOCAB_FILE = "vocab.txt"
TOKENIZER_FILE = "tokenizer_config.json"

# A checkpoint's files. There is one while there is an index, so that is
# written last and removed first.
ENDINGS = (".index", ".data-00000-of-00001")


def find_prefix(path: str | os.PathLike[str]) -> str:
    """Return the checkpoint prefix that a path stands for.

    Args:
      path: a prefix (`…/bert_model.ckpt`), its `.index` file, or a directory
        with `bert_model.ckpt` or, in an output directory, `model.ckpt-N`, or
        else with one `.index` file or several numbered ones, as Model Garden
        has them (`bert_model.ckpt-1`, `ckpt-20000`).

    Raises:
      UserError: there is no checkpoint.
    """
    path = os.fspath(path)
    if path.endswith(".index"):
        path = path.removesuffix(".index")
    if files.exists(path + ".index"):
        return path
    if files.is_directory(path):
        released = os.path.join(path, names.MODEL_PREFIX)
        if files.exists(released + ".index"):
            return released
        steps = names.numbered_checkpoints(path)
        if steps:
            return os.path.join(path, f"model.ckpt-{steps[-1]}")
        others = files.find_in(path, "*.index")
        others = [name.removesuffix(".index") for name in others]
        if others:
            # The highest number at the end counts, and none is below all.
            ends = {name: name.rpartition("-")[2] for name in others}
            return max(others, key=lambda n: int(ends[n]) if ends[n].isdigit() else -1)
        problem = f"{path} holds no checkpoint ({names.MODEL_PREFIX}.index)"
    else:
        problem = f"There is no checkpoint at {path} ({path}.index is missing)"
    raise UserError(
        f"{problem}; give a model's folder, its zip file, or the prefix of its files, "
        f"such as uncased_L-12_H-768_A-12/{names.MODEL_PREFIX}."
    )


def open_weights(prefix: str, path: str) -> Checkpoint:
    """Open the weights at a prefix, with the files of a model beside them.

    Returns:
      `Checkpoint`, without optimizer slots and what else a training run remembers;
      its messages name `path`, what the user gave.

    Raises:
      UserError: the checkpoint or a file beside it is damaged.
    """
    reader = open_checkpoint(prefix)
    shapes = reader.get_variable_to_shape_map()
    directory = os.path.dirname(prefix)
    config_file = os.path.join(directory, CONFIG_FILE)
    vocab_file = os.path.join(directory, VOCAB_FILE)
    step = None
    if names.GLOBAL_STEP in shapes:
        step = int(read_tensor(reader, names.GLOBAL_STEP, prefix))
    return Checkpoint(
        path,
        "google",
        {name: tuple(shapes[name]) for name in sorted(shapes) if names.is_weight(name)},
        lambda name: np.asarray(read_tensor(reader, name, prefix), np.float32),
        BertConfig.from_json_file(config_file) if files.exists(config_file) else None,
        vocab_file if files.exists(vocab_file) else None,
        read_casing(directory),
        global_step=step,
    )


def write_model(directory: str | os.PathLike[str], checkpoint: Checkpoint) -> list[str]:
    """Write a model directory: config, vocabulary, casing, and last the weights.

    No optimizer state goes into it. The directory exists already.

    Returns:
      sentences about what this format cannot hold: none.
    """
    if checkpoint.config:
        config_file = os.path.join(directory, CONFIG_FILE)
        files.write_text(config_file, checkpoint.config.to_json_string())
    if checkpoint.vocab_file:
        files.copy(checkpoint.vocab_file, os.path.join(directory, VOCAB_FILE))
    write_casing(directory, checkpoint.do_lower_case)
    prefix = os.path.join(directory, names.MODEL_PREFIX)
    write_checkpoint(prefix, checkpoint.tensors())
    return []


def read_casing(directory: str | os.PathLike[str]) -> bool | None:
    """Return the `do_lower_case` that a directory states, or None."""
    path = os.path.join(directory, TOKENIZER_FILE)
    if not files.exists(path):
        return None
    return files.read_json(path, "a tokenizer config").get("do_lower_case")


def write_casing(directory: str | os.PathLike[str], do_lower_case: bool | None) -> None:
    """Write a tokenizer's casing, unless it is None, which is not known."""
    if do_lower_case is not None:
        path = os.path.join(directory, TOKENIZER_FILE)
        files.write_json(path, {"do_lower_case": do_lower_case})


def open_checkpoint(prefix: str) -> Any:
    """Return a `tf.train` reader of the checkpoint at `prefix`.

    Raises:
      UserError: the files are missing, truncated or no checkpoint.
    """
    remote_checkpoint.check(prefix)
    try:
        if files.is_remote(prefix):  # The other asks whether it is a folder.
            return tf.compat.v1.train.NewCheckpointReader(prefix)
        return tf.train.load_checkpoint(prefix)
    except (tf.errors.OpError, ValueError) as error:
        _raise_if_of_store(error, prefix)
        raise UserError(
            f"{prefix} is no readable checkpoint; it may be truncated ({error})."
        ) from error


def read_tensor(reader: Any, name: str, prefix: str) -> np.ndarray:
    """Return one tensor as an array; a `UserError` names file and tensor."""
    try:
        return reader.get_tensor(name)
    except (tf.errors.OpError, ValueError, RuntimeError, IndexError) as error:
        _raise_if_of_store(error, prefix)
        raise UserError(
            f"{prefix}: cannot read {name}; it may be truncated."
        ) from error


def _raise_if_of_store(error, prefix):
    """Raise the error of an object store, which does not show what a file holds."""
    of_store = object_store.error_of(error, prefix)
    if of_store:
        raise of_store from error


def write_checkpoint(
    prefix: str, tensors: Mapping[str, np.ndarray | np.generic]
) -> None:
    """Write tensors under their names, readable by any TensorFlow 1 tool.

    The data file is put in place before the index, which is what makes a
    checkpoint exist, and an old index goes first: a reader sees the whole of
    a checkpoint, or none. An object store has no rename: there the checkpoint is
    uploaded, and its list of parts comes last (`remote_checkpoint`).

    Args:
      prefix: path without the endings `.index`, `.data-00000-of-00001`.
      tensors: dict of name -> array.

    Raises:
      UserError: the disk is full, or the file larger than is allowed.
    """
    if files.is_remote(prefix):
        with tempfile.TemporaryDirectory() as folder:
            inside = os.path.join(folder, "part")
            _save(inside, tensors, prefix)
            remote_checkpoint.upload(inside, prefix, ENDINGS)
        return
    temporary = f"{prefix}.tmp.{os.getpid()}"
    os.makedirs(temporary, exist_ok=True)
    try:
        inside = os.path.join(temporary, "part")
        _save(inside, tensors, prefix)
        for ending in ENDINGS:
            with open(inside + ending, "r+b") as written:
                os.fsync(written.fileno())
        delete_checkpoint(prefix)
        for ending in reversed(ENDINGS):
            os.replace(inside + ending, prefix + ending)
        files.sync_directory(os.path.dirname(prefix))
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _save(inside, tensors, prefix):
    """Write the two files of a checkpoint; messages name `prefix`, its final name."""
    ordered = sorted(tensors)
    try:
        tf.raw_ops.SaveV2(
            prefix=inside,
            tensor_names=ordered,
            shape_and_slices=[""] * len(ordered),
            tensors=[tensors[name] for name in ordered],
        )
    except tf.errors.ResourceExhaustedError as error:
        raise UserError(
            f"No space left on the disk of {prefix}: free some and run the "
            "command again."
        ) from error
    except tf.errors.OpError as error:
        reason = error.message.rpartition(";")[2].partition(" [Op:")[0].strip()
        raise UserError(f"Cannot write {prefix}: {reason}.") from error


def delete_checkpoint(prefix: str) -> None:
    """Remove a checkpoint: what makes it exist goes first."""
    for ending in _endings(prefix):
        if files.exists(prefix + ending):
            files.remove(prefix + ending)


def set_aside(prefix: str) -> None:
    """Add `.damaged` to the names of a checkpoint's files, index first."""
    for ending in _endings(prefix):
        if files.exists(prefix + ending):
            files.rename(prefix + ending, f"{prefix}{ending}.damaged")


def _endings(prefix):
    """Return the ends of the names of a checkpoint's files, to be removed in order."""
    return (names.PARTS, *ENDINGS) if files.is_remote(prefix) else ENDINGS


def remove_halves(directory: str | os.PathLike[str]) -> None:
    """Remove the data of checkpoints whose index was never put in place.

    In an object store that is the list of parts.
    """
    last = names.PARTS if files.is_remote(directory) else ENDINGS[0]
    for ending in _endings(os.fspath(directory))[1:]:
        for path in files.find_in(directory, f"model.ckpt-*{ending}"):
            if not files.exists(path.removesuffix(ending) + last):
                files.remove(path)
