"""Serve the newest of the numbered versions in a folder, and switch while in use.

    reviews/
      1/saved_model.pb ...
      2/saved_model.pb ...

If a version cannot be loaded, for example because it is incomplete, the previous one
stays in use. A request keeps the model that it started with.
"""

import gc
import os
import pathlib
from collections.abc import Iterator
from typing import NamedTuple

from absl import logging

from official_bert.errors import UserError
from official_bert.serving import saved_model
from official_bert.serving.json_tensors import RequestError


class VersionStatus(NamedTuple):
    """TF Serving's state of a version, and its loading error or ""."""

    state: str
    error: str = ""


class ModelVersions:
    """The versions of one model.

    Attributes:
      name: name of the model.
      directory: the folder of the numbered versions.
      current: the served `SavedModel`, None before the first `refresh`. Each request
        reads it once and keeps that object.
      statuses: dict of version -> `VersionStatus`.
    """

    def __init__(self, name: str, directory: str | os.PathLike[str]):
        self.name = name
        self.directory = directory
        self.current: saved_model.SavedModel | None = None
        self.statuses: dict[int, VersionStatus] = {}
        # Version that is served or failed to load -> `_file_states` at that time.
        self._tried: dict[int, set[tuple[pathlib.Path, int, int]]] = {}

    def refresh(self) -> None:
        """Load the newest version if it is not served yet or its files have changed.

        One thread may call this while others serve.

        Raises:
          UserError: nothing is served yet, and a version needs a package that is
            missing.
        """
        served = self.current.version if self.current else None
        before = self.statuses
        for version, folder in sorted(find_versions(self.directory), reverse=True):
            if self._load(version, folder) or version == served:
                break
        if self.current:
            for version, status in self.statuses.items():
                if status.error and status is not before.get(version):
                    logging.warning(
                        "Version %d could not be loaded: %s", version, status.error
                    )

    def _load(self, version, folder):
        """Load a version and serve it; return whether it is new and could be loaded."""
        file_states = _file_states(folder)
        if self._tried.get(version) == file_states:
            return False
        self._tried[version] = file_states
        before = self.current
        is_served = before is not None and before.version == version
        if not is_served:
            self._set_status(version, "LOADING")
        try:
            loaded = saved_model.load(folder, version)
        except Exception as error:  # A damaged file can raise any error.
            if isinstance(error, UserError) and before is None:
                raise  # It says which package is missing.
            state = "AVAILABLE" if is_served else "END"
            self._set_status(version, state, " ".join(str(error).split()))
            return False
        self.current = loaded
        self._set_status(version, "AVAILABLE")
        if before:
            if not is_served:
                self._set_status(before.version, "END")
                self._tried.pop(before.version, None)
            logging.info(
                "Now serving version %d instead of %d.", version, before.version
            )
            del before
            gc.collect()  # Free its reference cycles.
        return True

    def _set_status(self, version, state, error=""):
        # Create a new dict: another thread may be iterating over the old one.
        self.statuses = {**self.statuses, version: VersionStatus(state, error)}

    def get(self, name: str, version: int | None = None) -> saved_model.SavedModel:
        """Return the `SavedModel` for a request; version None means the served one.

        Raises:
          RequestError: this version is not served.
        """
        current = self.current
        if current and name == self.name and version in (None, current.version):
            return current
        wanted = (
            f"Latest({name})" if version is None else f"Specific({name}, {version})"
        )
        raise RequestError(f"Servable not found for request: {wanted}", 404)


def find_versions(directory: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Yield (version, folder) of the SavedModels in numbered folders."""
    for path in pathlib.Path(directory).glob(f"*/{saved_model.FILE}"):
        name = path.parent.name
        if name.isascii() and name.isdecimal():
            yield int(name), str(path.parent)


def _file_states(folder):
    """Return paths, sizes and times of the files in a folder, for comparison."""
    states = set()
    for path in pathlib.Path(folder).rglob("*"):
        try:
            status = path.stat()
        except OSError:  # Just deleted, or a broken link.
            continue
        states.add((path, status.st_size, status.st_mtime_ns))
    return states


def open_model(
    name: str, directory: str | os.PathLike[str], flag: str = "--model"
) -> ModelVersions:
    """Return `ModelVersions` with the newest version loaded.

    Raises:
      UserError: there is no version, none can be loaded, or a package is missing.
    """
    if not os.path.isdir(directory):
        raise UserError(
            f"{flag}={directory} is not a directory. Give the folder that an export "
            "was written to."
        )
    if os.path.isfile(os.path.join(directory, saved_model.FILE)):
        parent = os.path.dirname(os.path.abspath(directory))
        raise UserError(
            f"{flag}={directory} is one version of a model. Give the folder of the "
            f"numbered versions, for example {parent}."
        )
    versions = ModelVersions(name, directory)
    versions.refresh()
    if not versions.statuses:
        raise UserError(
            f"{flag}={directory} has no SavedModel in a numbered folder, such as "
            f"{os.path.join(directory, '1', saved_model.FILE)}. Give the folder that "
            "an export was written to."
        )
    if not versions.current:
        newest = max(versions.statuses)
        raise UserError(
            f"{flag}: version {newest} in {directory} cannot be loaded "
            f"({versions.statuses[newest].error[:300]}). Export it again."
        )
    return versions
