"""Write an export for TensorFlow Serving: a folder with numbered versions."""

import logging
import os
from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from official_bert import files
from official_bert.errors import UserError
from official_bert.export import samples
from official_bert.export.saved_model import server_files
from official_bert.export.saved_model.exports import Export
from official_bert.export.saved_model.signatures import SERVING
from official_bert.export.saved_model.verify import columns_of, verify


def next_version(directory: str | os.PathLike[str]) -> int:
    """Return the number after the last version in a folder; 1 for the first."""
    if not files.is_directory(directory):
        return 1
    numbers = [
        int(name)
        for name in files.list_directory(directory)
        if name.isdecimal() and name.isascii()
    ]
    return max(numbers, default=0) + 1


def write(
    directory: str | os.PathLike[str],
    export: Export,
    model_name: str,
    version: int | None = None,
    rows: Iterable[dict[str, str | list[str]]] | None = None,
) -> tuple[str, dict[str, Any]]:
    """Write a version, after a fresh process has confirmed Python's outputs.

    A server that watches the folder sees the complete version or nothing.

    Args:
      directory: the folder of the versions; it may already contain some.
      export: `Export`.
      model_name: the model's name on the server.
      version: int; None for `next_version`.
      rows: see `verify`.

    Returns:
      (the version's folder; the dict of `verify` with `has_warmup` and
      `changed`,
      the names of edited files that were kept).

    Raises:
      UserError: the version already exists or differs from Python, or another
        process exports to the directory.
    """
    files.make_directory(directory, "--export_dir")
    with files.locked_directory(directory, "--export_dir"):
        version = next_version(directory) if version is None else version
        path = os.path.join(directory, str(version))
        if files.exists(path):
            raise UserError(f"--version: {path} already exists. Choose another number.")
        files.remove_leftovers(directory)
        with files.atomic_directory(path, "--export_dir") as folder:
            _save(export, folder)
            server_files.write_assets(folder, export)
            report = verify(folder, export, rows)
            report["has_warmup"] = server_files.write_warmup(folder, export, model_name)
        report["changed"] = server_files.write_server_files(
            directory, export, model_name, _answer(export)
        )
    return path, report


def _save(export, folder):
    traced = {name: one.traced() for name, one in export.signatures.items()}
    # TensorFlow would warn about the names of hundreds of variables.
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        tf.saved_model.save(export.module, folder, signatures=traced)
    finally:
        logging.disable(level)


def _answer(export):
    """Return the model's prediction for the first sample, in REST form."""
    signature = export.signatures[SERVING]
    row = columns_of([samples.first_row(signature.specs)])
    inputs = {name: tf.constant(values) for name, values in row.items()}
    answer = {
        name: _plain(value[0].numpy())
        for name, value in signature.compute(**inputs).items()
        if value.shape.rank < 3
    }
    # A server omits the name of a single output.
    return next(iter(answer.values())) if len(answer) == 1 else answer


def _plain(value):
    """Return an array of one row as JSON values."""
    if isinstance(value, bytes):
        return value.decode()
    if value.dtype == object:
        return [text.decode() for text in value]
    return value.tolist()
