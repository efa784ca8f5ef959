"""Unpacking a zip or tar file that holds a model, such as Google's releases."""

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
# What unpacking one that is damaged, encrypted or of an unknown method may raise.
DAMAGED = (
    shutil.ReadError,
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    EOFError,
    RuntimeError,
)


def unpack(path: str, folder: str, given_path: str | None = None) -> str:
    """Unpack an archive; return the folder within that holds the checkpoint.

    Args:
      path: of the archive, which has one of `ENDINGS`.
      folder: where its files go.
      given_path: what messages call it; default: `path`.

    Raises:
      UserError: it is damaged, or does not hold one model.
    """
    given_path = given_path or path
    # It keeps files of a tar inside of the folder; zip files need none.
    options: dict[str, Any] = {} if path.endswith(".zip") else {"filter": "data"}
    if options and not hasattr(tarfile, "data_filter"):  # Python before 3.11.4.
        raise UserError(
            f"{given_path} cannot be unpacked safely by this Python; unpack it and "
            "give the directory."
        )
    try:
        shutil.unpack_archive(path, folder, **options)
    except DAMAGED as error:
        raise UserError(f"{given_path} cannot be unpacked ({error}).") from error
    models = [
        directory
        for directory, _, names in os.walk(folder)
        # A Mac adds files that begin with "._".
        if any(name.endswith(".index") and not name.startswith("._") for name in names)
        or is_foreign(directory)
    ]
    if len(models) != 1:
        what = "more than one model" if models else "no checkpoint (bert_model.ckpt)"
        raise UserError(f"{given_path} holds {what}; unpack it and give the directory.")
    return models[0]


def is_foreign(directory: str | os.PathLike[str]) -> bool:
    """Return whether a directory is a model of Hugging Face or a KerasHub preset."""
    return is_preset(directory) or transformers_model.is_model(directory)
