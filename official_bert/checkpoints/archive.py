"""Unpack a zip or tar file that holds a model, such as Google's releases."""

import os
import shutil
import tarfile
import zipfile
import zlib
from typing import Any

from official_bert.checkpoints.huggingface import transformers_model
from official_bert.checkpoints.keras_hub.detection import is_preset
from official_bert.errors import UserError

ENDINGS = (".zip", ".tar.gz", ".tgz")
# Exceptions raised for damaged, encrypted or unsupported archives.
DAMAGED = (
    shutil.ReadError,
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    EOFError,
    RuntimeError,
)


def unpack(path: str, folder: str, given_path: str | None = None) -> str:
    """Unpack an archive and return its folder with the checkpoint.

    Args:
      path: the archive; its name ends with one of `ENDINGS`.
      folder: target of the files.
      given_path: the name used in messages; default: `path`.

    Raises:
      UserError: the archive is damaged, or does not hold exactly one model.
    """
    given_path = given_path or path
    # The filter rejects tar members outside the folder; `zipfile` always does.
    options: dict[str, Any] = {} if path.endswith(".zip") else {"filter": "data"}
    if options and not hasattr(tarfile, "data_filter"):  # Python before 3.11.4.
        raise UserError(
            f"This Python version cannot unpack {given_path} safely. Unpack the "
            "file yourself and give the directory."
        )
    try:
        shutil.unpack_archive(path, folder, **options)
    except DAMAGED as error:
        raise UserError(
            f"Cannot unpack {given_path} ({error}). Download or copy the file again."
        ) from error
    models = [
        directory
        for directory, _, names in os.walk(folder)
        # macOS adds files that begin with "._".
        if any(name.endswith(".index") and not name.startswith("._") for name in names)
        or is_foreign(directory)
    ]
    if len(models) != 1:
        what = "more than one model" if models else "no checkpoint (bert_model.ckpt)"
        raise UserError(
            f"{given_path} contains {what}. Unpack it and give the directory of "
            "one model."
        )
    return models[0]


def is_foreign(directory: str | os.PathLike[str]) -> bool:
    """Return whether a directory is a Hugging Face model or a KerasHub preset."""
    return is_preset(directory) or transformers_model.is_model(directory)
