"""Opening a checkpoint of whatever format a path holds."""

import contextlib
import os
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

from official_bert import files
from official_bert.checkpoints import google, model_garden, names
from official_bert.checkpoints.checkpoint import Checkpoint
from official_bert.checkpoints.huggingface import transformers_model
from official_bert.checkpoints.keras_hub import preset
from official_bert.checkpoints.keras_hub.detection import is_preset
from official_bert.errors import UserError

ARCHIVES = (".zip", ".tar.gz", ".tgz")
# What unpacking one that is damaged, encrypted or of an unknown method may raise.
DAMAGED = (
    shutil.ReadError,
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    EOFError,
    RuntimeError,
)


@contextlib.contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[Checkpoint]:
    """Open a checkpoint; use it as `with any_format.opened(path) as checkpoint`.

    Args:
      path: of a model's directory (Google's, ours, an output directory of a
        training run, Hugging Face's, a KerasHub preset), of a checkpoint
        prefix or its `.index` (Google's or Model Garden's), of a single
        `.safetensors`, `.h5` or `.bin` of Hugging Face, or of a `.zip` or
        `.tar.gz` with one of these, such as Google's releases.

    Yields:
      `Checkpoint`.

    Raises:
      UserError: there is no checkpoint, or it is damaged.
    """
    given_path = path = os.fspath(path)
    with contextlib.ExitStack() as stack:
        if path.endswith(ARCHIVES) and os.path.isfile(path):
            path = _unpack(path, stack.enter_context(tempfile.TemporaryDirectory()))
        if is_preset(path):
            yield preset.open_preset(path, given_path)
        elif transformers_model.is_model(path):
            yield transformers_model.open_model(path, given_path)
        else:
            prefix = google.find_prefix(path)
            if model_garden.is_checkpoint(prefix):
                yield model_garden.open_checkpoint(prefix, given_path)
            else:
                yield google.open_weights(prefix, given_path)


def _unpack(path, folder):
    """Unpack an archive; return the folder within that holds the checkpoint."""
    # It keeps files of a tar inside of the folder; zip files need none.
    options: dict[str, Any] = {} if path.endswith(".zip") else {"filter": "data"}
    if options and not hasattr(tarfile, "data_filter"):  # Python before 3.11.4.
        raise UserError(
            f"{path} cannot be unpacked safely by this Python; unpack it and give the "
            "directory."
        )
    try:
        shutil.unpack_archive(path, folder, **options)
    except DAMAGED as error:
        raise UserError(f"{path} cannot be unpacked ({error}).") from error
    models = [
        directory
        for directory, _, names in os.walk(folder)
        # A Mac adds files that begin with "._".
        if any(name.endswith(".index") and not name.startswith("._") for name in names)
        or _is_foreign(directory)
    ]
    if len(models) != 1:
        what = "more than one model" if models else "no checkpoint (bert_model.ckpt)"
        raise UserError(f"{path} holds {what}; unpack it and give the directory.")
    return models[0]


def holds_model(directory: str | os.PathLike[str]) -> bool:
    """Return whether a directory is a model that training has not left half-way.

    Numbered checkpoints alone are a run, which can be continued.
    """
    index_file = os.path.join(directory, f"{names.MODEL_PREFIX}.index")
    return files.exists(index_file) or _is_foreign(directory)


def _is_foreign(directory):
    return is_preset(directory) or transformers_model.is_model(directory)
