"""The newest of the numbered versions under a folder, switched while in use.

    reviews/
      1/saved_model.pb ...
      2/saved_model.pb ...

A version is served from the moment it is whole; until then, and where it cannot
be loaded, the one before it goes on. Requests keep the model that they began
with, so a switch disturbs none.
"""

import dataclasses
import gc
import os

from absl import logging

from official_bert.errors import UserError
from official_bert.serving import saved_model
from official_bert.serving.request_error import RequestError

# What TF Serving calls the states of a version.
LOADING = "LOADING"
AVAILABLE = "AVAILABLE"
END = "END"


@dataclasses.dataclass(frozen=True)
class VersionStatus:
    """How a version fares.

    Attributes:
      state: `LOADING`, `AVAILABLE` or `END`.
      error: why it could not be loaded, or "".
    """

    state: str
    error: str = ""


class ModelVersions:
    """The versions of one model; see `refresh`.

    Attributes:
      name: of the model.
      directory: the folder that holds the numbered ones.
      current: `SavedModel` that is served, None before the first `refresh`. Read
        it once for each request and hold what was read.
      statuses: dict of version -> `VersionStatus`.
    """

    def __init__(self, name, directory):
        self.name = name
        self.directory = directory
        self.current = None
        self.statuses = {}
        # Version that is served, or could not be loaded -> how its files looked then.
        self._tried = {}

    def open(self):
        """Load the newest version that can be loaded; return whether there is one."""
        self.refresh()
        for version, status in self.statuses.items():
            if self.current and status.error:
                self._warn_of(version)
        return self.current is not None

    def refresh(self):
        """Load the newest version there is, unless it is served already.

        One whose files have changed is loaded anew: an export may have taken its
        place. One that cannot be loaded is tried again then, too: it may still be on
        its way. One thread may call this while others serve.
        """
        folders = find_versions(self.directory)
        for version in sorted(folders, reverse=True):
            if self.current and self.current.version == version:
                self._load(version, folders[version])
                return
            if self._load(version, folders[version]):
                return

    def _load(self, version, folder):
        """Load a version and serve it; return whether that was done and went well."""
        looks = _looks_of(folder)
        if self._tried.get(version) == looks:
            return False
        self._tried[version] = looks
        is_current = bool(self.current) and self.current.version == version
        if not is_current:
            self._set_status(version, LOADING)
        try:
            loaded = saved_model.load(folder, version)
        except Exception as error:  # Whatever a damaged file makes TensorFlow say.
            state = AVAILABLE if is_current else END
            self._set_status(version, state, " ".join(str(error).split()))
            if self.current:
                self._warn_of(version)
            return False
        before, self.current = self.current, loaded
        self._set_status(version, AVAILABLE)
        if before:
            if not is_current:
                self._set_status(before.version, END)
                self._tried.pop(before.version, None)
            logging.info("Version %d takes over from %d.", version, before.version)
            del before
            # A SavedModel refers to itself, so it would stay for a while.
            gc.collect()
        return True

    def _warn_of(self, version):
        error = self.statuses[version].error
        logging.warning("Version %d cannot be loaded: %s", version, error)

    def _set_status(self, version, state, error=""):
        # A new dict: another thread may be going through the old one.
        self.statuses = {**self.statuses, version: VersionStatus(state, error)}

    def get(self, name, version=None):
        """Return the `SavedModel` that answers a request.

        Args:
          name: of the model that is asked for.
          version: number, or None for the one that is served.

        Raises:
          RequestError: it is not served.
        """
        current = self.current
        known = name == self.name and current is not None
        if known and version in (None, current.version):
            return current
        asked = f"Latest({name})" if version is None else f"Specific({name}, {version})"
        raise RequestError(f"Servable not found for request: {asked}", 404)


def find_versions(directory):
    """Return version -> folder of the SavedModels in numbered folders."""
    try:
        entries = list(os.scandir(directory))
    except OSError:  # It is gone: what is served goes on.
        return {}
    return {
        int(entry.name): entry.path
        for entry in entries
        if entry.name.isascii()
        and entry.name.isdecimal()
        and os.path.isfile(os.path.join(entry.path, saved_model.FILE))
    }


def open_model(name, directory, flag="--model_dir"):
    """Return `ModelVersions` with the newest version loaded.

    Raises:
      UserError: there is none, or none can be loaded.
    """
    _require_directory(directory, flag)
    versions = ModelVersions(name, directory)
    if versions.open():
        return versions
    if not versions.statuses:
        raise UserError(
            f"{flag}: {directory} holds no SavedModel in a numbered folder, such as "
            f"{os.path.join(directory, '1', saved_model.FILE)}; give the folder that "
            "an export was written to."
        )
    newest = max(versions.statuses)
    raise UserError(
        f"{flag}: version {newest} in {directory} cannot be loaded "
        f"({versions.statuses[newest].error[:300]}); export it again."
    )


def _require_directory(directory, flag):
    if not os.path.isdir(directory):
        raise UserError(
            f"{flag}: {directory} is not a directory; give the folder that an export "
            "was written to."
        )
    if os.path.isfile(os.path.join(directory, saved_model.FILE)):
        parent = os.path.dirname(os.path.abspath(directory))
        raise UserError(
            f"{flag}: {directory} is one version of a model; give the folder that "
            f"holds the numbered versions, for example {parent}."
        )


def _looks_of(folder):
    """Return names, sizes and times of the files in a folder, to compare."""
    looks = set()
    for parent, _, names in os.walk(folder):
        for path in (os.path.join(parent, name) for name in names):
            try:
                status = os.stat(path)
            except OSError:  # Just gone, or a link to nowhere.
                continue
            looks.add((path, status.st_size, status.st_mtime_ns))
    return looks
