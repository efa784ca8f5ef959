"""Google's format: name-based checkpoints of TensorFlow 1, and model directories.

Training writes this format.
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

# Names of the files of a model directory.
CONFIG_FILE = "bert_config.json"
VOCAB_FILE = "vocab.txt"
TOKENIZER_FILE = "tokenizer_config.json"

# Files of a checkpoint. A checkpoint exists if its index exists, so the index
# is written last and removed first.
ENDINGS = (".index", ".data-00000-of-00001")


def find_prefix(path: str | os.PathLike[str]) -> str:
    """Return the checkpoint prefix for a path.

    Args:
      path: a prefix (`…/bert_model.ckpt`), its `.index` file, or a directory
        with `bert_model.ckpt`, with `model.ckpt-N` (output directories), or
        with one or more numbered `.index` files (Model Garden:
        `bert_model.ckpt-1`, `ckpt-20000`).

    Raises:
      UserError: the checkpoint does not exist.
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
            # The highest number at the end wins; names without a number come
            # last.
            ends = {name: name.rpartition("-")[2] for name in others}
            return max(others, key=lambda n: int(ends[n]) if ends[n].isdigit() else -1)
        problem = f"{path} contains no checkpoint ({names.MODEL_PREFIX}.index)"
    else:
        problem = f"No checkpoint at {path} ({path}.index does not exist)"
    raise UserError(
        f"{problem}. Give a model directory, its zip file, or a checkpoint "
        f"prefix such as uncased_L-12_H-768_A-12/{names.MODEL_PREFIX}."
    )


def open_weights(prefix: str, path: str) -> Checkpoint:
    """Open the weights at a prefix, with the model's other files in the same folder.

    Returns:
      `Checkpoint` without optimizer slots and other training state. Its
      messages show `path`, which the user gave.

    Raises:
      UserError: the checkpoint or one of the other files is damaged.
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
    """Write a model directory: config, vocabulary, casing, then the weights.

    Optimizer state is not written. The directory must exist.

    Returns:
      an empty list: this format can store everything.
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
    """Return a directory's `do_lower_case`, or None if no file states it."""
    path = os.path.join(directory, TOKENIZER_FILE)
    if not files.exists(path):
        return None
    return files.read_json(path, "a tokenizer config").get("do_lower_case")


def write_casing(directory: str | os.PathLike[str], do_lower_case: bool | None) -> None:
    """Write a tokenizer's casing, unless it is unknown (None)."""
    if do_lower_case is not None:
        path = os.path.join(directory, TOKENIZER_FILE)
        files.write_json(path, {"do_lower_case": do_lower_case})


def open_checkpoint(prefix: str) -> Any:
    """Return a `tf.train` reader of the checkpoint at `prefix`.

    Raises:
      UserError: the files are missing, truncated or not a checkpoint.
    """
    remote_checkpoint.check(prefix)
    try:
        if files.is_remote(prefix):  # `load_checkpoint` would test for a folder.
            return tf.compat.v1.train.NewCheckpointReader(prefix)
        return tf.train.load_checkpoint(prefix)
    except (tf.errors.OpError, ValueError) as error:
        _raise_if_of_store(error, prefix)
        raise UserError(
            f"Cannot read the checkpoint {prefix}; it may be truncated "
            f"({error}). Copy or download it again."
        ) from error


def read_tensor(reader: Any, name: str, prefix: str) -> np.ndarray:
    """Return one tensor as an array; a `UserError` names the file and the tensor."""
    try:
        return reader.get_tensor(name)
    except (tf.errors.OpError, ValueError, RuntimeError, IndexError) as error:
        _raise_if_of_store(error, prefix)
        raise UserError(
            f"{prefix}: cannot read {name}; the file may be truncated. Copy "
            "or download it again."
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

    A checkpoint exists if its index exists. An old index is removed first, and
    the new data file gets its name before the new index. Readers therefore see
    a complete checkpoint or none. Object stores have no rename: the files are
    uploaded, then the list of their parts (`remote_checkpoint`).

    Args:
      prefix: path without the endings `.index`, `.data-00000-of-00001`.
      tensors: dict of name -> array.

    Raises:
      UserError: the disk is full, or the file is larger than allowed.
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
    """Write a checkpoint's two files; messages name `prefix`, the final name."""
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
            f"No space left on the disk of {prefix}. Free some space and repeat "
            "the command."
        ) from error
    except tf.errors.OpError as error:
        reason = error.message.rpartition(";")[2].partition(" [Op:")[0].strip()
        raise UserError(f"Cannot write {prefix}: {reason}.") from error


def delete_checkpoint(prefix: str) -> None:
    """Remove a checkpoint, its index (or list of parts) first."""
    for ending in _endings(prefix):
        if files.exists(prefix + ending):
            files.remove(prefix + ending)


def set_aside(prefix: str) -> None:
    """Add `.damaged` to the names of a checkpoint's files, index first."""
    for ending in _endings(prefix):
        if files.exists(prefix + ending):
            files.rename(prefix + ending, f"{prefix}{ending}.damaged")


def _endings(prefix):
    """Return the file endings of a checkpoint, in the order of removal."""
    return (names.PARTS, *ENDINGS) if files.is_remote(prefix) else ENDINGS


def remove_halves(directory: str | os.PathLike[str]) -> None:
    """Remove the data of checkpoints without an index.

    Interrupted writes leave such files.
    """
    last = names.PARTS if files.is_remote(directory) else ENDINGS[0]
    for ending in _endings(os.fspath(directory))[1:]:
        for path in files.find_in(directory, f"model.ckpt-*{ending}"):
            if not files.exists(path.removesuffix(ending) + last):
                files.remove(path)
