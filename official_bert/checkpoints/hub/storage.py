"""The folder for models that no library caches, and the space on its disk."""

import os
import shutil

from official_bert.errors import UserError

GIGABYTE = 1e9


def models_folder() -> str:
    """Return Keras' folder of models: `$KERAS_HOME/models` or `~/.keras/models`."""
    home = os.environ.get("KERAS_HOME") or os.path.join("~", ".keras")
    return os.path.join(os.path.expanduser(home), "models")


def make_folder(path: str, variable: str = "KERAS_HOME") -> None:
    """Create a folder for downloads; `variable` of the environment moves it.

    Raises:
      UserError: it cannot be created or written.
    """
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"Cannot create {path} for downloaded models: {error.strerror}. Set "
            f"{variable} to a folder that you can write."
        ) from error
    if not os.access(path, os.W_OK):
        raise UserError(
            f"{path}, the folder for downloaded models, is not writable. Set "
            f"{variable} to a folder that you can write."
        )


def check_space(folder: str, needed: float, name: str, variable: str) -> None:
    """Raise `UserError` unless the disk of a folder has room for a download.

    Args:
      folder: where the files go; it need not exist yet.
      needed: bytes.
      name: of the model, for the message.
      variable: of the environment, which moves the folder.
    """
    there = os.path.abspath(folder)
    while not os.path.exists(there):
        there = os.path.dirname(there)
    free = shutil.disk_usage(there).free
    if free < needed:
        raise UserError(
            f"{name} needs {needed / GIGABYTE:.2f} GB on the disk of {folder}, which "
            f"has {free / GIGABYTE:.2f} GB free. Free some, or set {variable} to a "
            "folder on another disk."
        )
