"""Find the models that a command was given, once, and record them for `run.json`."""

import functools
import logging
import os
from collections.abc import Mapping
from typing import Any, overload

from official_bert.command_line.flag_values import locate
from official_bert.command_line.tensorflow_start import start_tensorflow

# Models found by name in this process: name -> `LocalModel`.
_FOUND: dict[str, Any] = {}


@overload
def find(value: str) -> str: ...


@overload
def find(value: None) -> None: ...


def find(value: str | None) -> str | None:
    """Return the local path of a flag's model; download a model given by name.

    Args:
      value: a path, also relative to the project's root, or a name; see `find_model`.

    Raises:
      UserError: the name is unknown, or the model cannot be downloaded.
    """
    return _find(value).path if value else value


@functools.cache
def _find(value):
    if "://" in value:
        # Object stores need TensorFlow. Import it here without its messages.
        start_tensorflow(lambda: None)
    # These libraries log each request at INFO, and commands show INFO messages.
    for library in ("httpx", "httpx2"):
        logging.getLogger(library).setLevel(logging.WARNING)
    # Import late: most commands check all their flags first.
    from official_bert.checkpoints.hub.find import find_model
    from official_bert.checkpoints.hub.local_model import LOCAL

    model = find_model(locate(value))
    if model.source != LOCAL:
        _FOUND[value] = model
    return model


def path_of(value: str | None) -> str | None:
    """Return the path that `find` returned, or `value` itself if it was not called."""
    return _FOUND[value].path if value in _FOUND else locate(value)


def describe(hashes: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the record of the models that this process found by name.

    Args:
      hashes: path of a file -> its SHA-256. Other files are hashed here.
    """
    from official_bert.files import sha256_of

    described = {}
    for name, model in _FOUND.items():
        paths = {each: os.path.join(model.path, each) for each in model.files}
        described[name] = {
            "source": model.source,
            "revision": model.revision,
            "files": {
                each: hashes.get(path) or sha256_of(path)
                for each, path in paths.items()
            },
        }
    return described
