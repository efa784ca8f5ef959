"""Opening a checkpoint of whatever format a path holds."""

import contextlib
import os
import tempfile
from collections.abc import Iterator

from official_bert import files
from official_bert.checkpoints import archive, google, model_garden, names
from official_bert.checkpoints.checkpoint import Checkpoint
from official_bert.checkpoints.huggingface import transformers_model
from official_bert.checkpoints.keras_hub import preset
from official_bert.checkpoints.keras_hub.detection import is_preset


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
        if path.endswith(archive.ENDINGS) and os.path.isfile(path):
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            path = archive.unpack(path, folder)
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


def holds_model(directory: str | os.PathLike[str]) -> bool:
    """Return whether a directory is a model that training has not left half-way.

    Numbered checkpoints alone are a run, which can be continued.
    """
    index_file = os.path.join(directory, f"{names.MODEL_PREFIX}.index")
    return files.exists(index_file) or archive.is_foreign(directory)
