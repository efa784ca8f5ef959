"""An export as TensorFlow Serving wants it: a folder of numbered versions."""

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
    """Return the number behind the last version in a folder; 1 for the first."""
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
    """Write a version, once it answers in a fresh process what Python answers.

    A server that watches the folder sees the whole version or nothing.

    Args:
      directory: the folder of the versions; it may have some.
      export: `Export`.
      model_name: what a server calls the model.
      version: int; None for `next_version`.
      rows: see `verify`.

    Returns:
      (the version's folder, the dict of `verify` with `has_warmup` and `changed`,
      the files beside the versions that stay as somebody has changed them).

    Raises:
      UserError: the version is there already, or differs from Python; or another
        process exports to the directory.
    """
    files.make_directory(directory, "--export_dir")
    with files.locked_directory(directory, "--export_dir"):
        version = next_version(directory) if version is None else version
        path = os.path.join(directory, str(version))
        if files.exists(path):
            raise UserError(f"--version: {path} exists already; choose another number.")
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
    # TensorFlow warns of the names of hundreds of captured variables.
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        tf.saved_model.save(export.module, folder, signatures=traced)
    finally:
        logging.disable(level)


def _answer(export):
    """Return what the model answers to the first sample, as REST shows a row."""
    signature = export.signatures[SERVING]
    row = columns_of([samples.first_row(signature.specs)])
    inputs = {name: tf.constant(values) for name, values in row.items()}
    answer = {
        name: _plain(value[0].numpy())
        for name, value in signature.compute(**inputs).items()
        if value.shape.rank < 3
    }
    # A server leaves out the name of an only output.
    return next(iter(answer.values())) if len(answer) == 1 else answer


def _plain(value):
    """Return an array of one row for JSON."""
    if isinstance(value, bytes):
        return value.decode()
    if value.dtype == object:
        return [text.decode() for text in value]
    return value.tolist()
