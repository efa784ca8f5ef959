"""Checkpoints in TensorFlow 1's name-based format, read and written."""

import glob
import os
import shutil

import tensorflow as tf

from official_bert import files
from official_bert.errors import UserError

# What a released model's checkpoint is called within its directory.
MODEL_PREFIX = "bert_model.ckpt"

# A checkpoint's files. There is one while there is an index, so that is
# written last and removed first.
ENDINGS = (".index", ".data-00000-of-00001")


def find_prefix(path):
    """Return the checkpoint prefix that a path stands for.

    Args:
      path: a prefix (`…/bert_model.ckpt`), its `.index` file, or a directory
        with `bert_model.ckpt` or, in an output directory, `model.ckpt-N`.

    Raises:
      UserError: there is no checkpoint.
    """
    path = os.fspath(path)
    if path.endswith(".index"):
        path = path.removesuffix(".index")
    if os.path.exists(path + ".index"):
        return path
    if os.path.isdir(path):
        released = os.path.join(path, MODEL_PREFIX)
        if os.path.exists(released + ".index"):
            return released
        steps = numbered_checkpoints(path)
        if steps:
            return os.path.join(path, f"model.ckpt-{steps[-1]}")
        raise UserError(f"{path} holds no checkpoint ({MODEL_PREFIX}.index).")
    raise UserError(f"There is no checkpoint at {path} ({path}.index is missing).")


def numbered_checkpoints(directory):
    """Return the steps N of the files `model.ckpt-N.index`, ascending."""
    pattern = os.path.join(glob.escape(os.fspath(directory)), "model.ckpt-*.index")
    numbers = [
        os.path.basename(name)[len("model.ckpt-") : -len(".index")]
        for name in glob.glob(pattern)
    ]
    return sorted(int(number) for number in numbers if number.isdigit())


def open_checkpoint(prefix):
    """Return a `tf.train` reader of the checkpoint at `prefix`.

    Raises:
      UserError: the files are missing, truncated or no checkpoint.
    """
    try:
        return tf.train.load_checkpoint(prefix)
    except (tf.errors.OpError, ValueError) as error:
        raise UserError(
            f"{prefix} is no readable checkpoint; it may be truncated ({error})."
        ) from error


def read_tensor(reader, name, prefix):
    """Return one tensor as an array; a `UserError` names file and tensor."""
    try:
        return reader.get_tensor(name)
    except (tf.errors.OpError, ValueError, RuntimeError, IndexError) as error:
        raise UserError(
            f"{prefix}: cannot read {name}; it may be truncated."
        ) from error


def write_checkpoint(prefix, tensors):
    """Write tensors under their names, readable by any TensorFlow 1 tool.

    The data file is put in place before the index, which is what makes a
    checkpoint exist, and an old index goes first: a reader sees the whole of
    a checkpoint, or none.

    Args:
      prefix: path without the endings `.index`, `.data-00000-of-00001`.
      tensors: dict of name -> array.

    Raises:
      UserError: the disk is full, or the file larger than is allowed.
    """
    temporary = f"{prefix}.tmp.{os.getpid()}"
    os.makedirs(temporary, exist_ok=True)
    try:
        inside = os.path.join(temporary, "part")
        names = sorted(tensors)
        tf.raw_ops.SaveV2(
            prefix=inside,
            tensor_names=names,
            shape_and_slices=[""] * len(names),
            tensors=[tensors[name] for name in names],
        )
        for ending in ENDINGS:
            with open(inside + ending, "rb") as written:
                os.fsync(written.fileno())
        delete_checkpoint(prefix)
        for ending in reversed(ENDINGS):
            os.replace(inside + ending, prefix + ending)
        files.sync_directory(os.path.dirname(prefix))
    except tf.errors.ResourceExhaustedError as error:
        raise UserError(
            f"No space left on the disk of {prefix}: free some and run the "
            "command again."
        ) from error
    except tf.errors.OpError as error:
        reason = error.message.rpartition(";")[2].partition(" [Op:")[0].strip()
        raise UserError(f"Cannot write {prefix}: {reason}.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def delete_checkpoint(prefix):
    """Remove a checkpoint, index first."""
    for ending in ENDINGS:
        if os.path.exists(prefix + ending):
            os.remove(prefix + ending)


def set_aside(prefix):
    """Add `.damaged` to the names of a checkpoint's files, index first."""
    for ending in ENDINGS:
        if os.path.exists(prefix + ending):
            os.replace(prefix + ending, f"{prefix}{ending}.damaged")


def remove_halves(directory):
    """Remove the data of checkpoints whose index was never put in place."""
    pattern = os.path.join(
        glob.escape(os.fspath(directory)), "model.ckpt-*" + ENDINGS[1]
    )
    for path in glob.glob(pattern):
        if not os.path.exists(path.removesuffix(ENDINGS[1]) + ENDINGS[0]):
            os.remove(path)
