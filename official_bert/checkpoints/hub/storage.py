"""The folder for models without a library cache, and checks of its disk space."""

import os
import shutil

from official_bert.errors import UserError

GIGABYTE = 1e9


def models_folder() -> str:
    """Return Keras' model folder: `$KERAS_HOME/models` or `~/.keras/models`."""
    home = os.environ.get("KERAS_HOME") or os.path.join("~", ".keras")
    return os.path.join(os.path.expanduser(home), "models")


def make_folder(path: str, variable: str = "KERAS_HOME") -> None:
    """Create a folder for downloads.

    Args:
      path: the folder.
      variable: the environment variable that changes the folder, for messages.

    Raises:
      UserError: the folder cannot be created or written.
    """
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"Cannot create {path} for downloaded models: {error.strerror}. Set "
            f"{variable} to a writable folder."
        ) from error
    if not os.access(path, os.W_OK):
        raise UserError(
            f"{path}, the folder for downloaded models, is not writable. Set "
            f"{variable} to a writable folder."
        )


def check_space(folder: str, needed: float, name: str, variable: str) -> None:
    """Raise `UserError` if the disk of a folder has no room for a download.

    Args:
      folder: target of the files; it need not exist yet.
      needed: bytes.
      name: the model's name, for the message.
      variable: the environment variable that changes the folder.
    """
    there = os.path.abspath(folder)
    while not os.path.exists(there):
        there = os.path.dirname(there)
    free = shutil.disk_usage(there).free
    if free < needed:
        raise UserError(
            f"{name} needs {needed / GIGABYTE:.2f} GB on the disk of {folder}, "
            f"which has {free / GIGABYTE:.2f} GB free. Free some space, or set "
            f"{variable} to a folder on another disk."
        )
