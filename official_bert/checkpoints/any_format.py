"""Open a checkpoint in any supported format."""

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
      path: a model directory (Google's, ours, a training run's output
        directory, Hugging Face's, a KerasHub preset); a checkpoint prefix or
        its `.index` (Google's or Model Garden's); a Hugging Face
        `.safetensors`, `.h5` or `.bin` file; or a `.zip` or `.tar.gz` of one of
        these.

    Yields:
      `Checkpoint`.

    Raises:
      UserError: the checkpoint does not exist or is damaged.
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
    """Return whether a directory holds a complete model.

    A directory with only numbered checkpoints is an unfinished run, which can
    resume.
    """
    index_file = os.path.join(directory, f"{names.MODEL_PREFIX}.index")
    return files.exists(index_file) or archive.is_foreign(directory)
