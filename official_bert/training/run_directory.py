"""The output directory of a run: locked by one process, unchanged by a refused run.

A run is refused if it ends with a `UserError` before it has saved anything. One cause
is an invalid record, which is detected only when it is read.
"""

import contextlib
import os
import pathlib
from collections.abc import Iterator

import tensorflow as tf

from official_bert import files, object_store
from official_bert.checkpoints import google
from official_bert.errors import StoreError, UserError
from official_bert.training import strategies
from official_bert.training.logs.run_log import METRICS_FILE
from official_bert.training.run_manifest import MANIFEST_FILE

# Files that a run, or a sweep of runs, writes before it has saved anything. A refused
# run restores their former contents. Each start writes a new event file.
_FIRST_FILES = (".lock", MANIFEST_FILE, METRICS_FILE, "runs.json")
_EVENT_FILES = "events/*"
# Files worth keeping: checkpoints, results of a sweep's runs, batches to inspect.
_SAVED = ("model.ckpt-*", "*/model.ckpt-*", "*/result.json", "not_finite_batch*")


@contextlib.contextmanager
def opened_directory(
    strategy: tf.distribute.Strategy, directory: str
) -> Iterator[None]:
    """Create a run's output directory and lock it against other processes.

    Half-written files of a killed run are removed. If this run is refused, the
    directory is restored to its state before.

    Raises:
      UserError: the directory is not writable, or another process holds it.
    """
    if not strategies.is_chief(strategy):
        yield
        return
    missing = files.missing_directories(directory)
    before = _first_files(directory)
    files.make_directory(directory, "--output_dir")
    with files.locked_directory(directory):
        files.remove_leftovers(directory)
        google.remove_halves(directory)
        saved = _saved_files(directory)
        try:
            yield
        except UserError:
            if _saved_files(directory) == saved:
                # A store that is out of reach stays as it is.
                with contextlib.suppress(StoreError):
                    _restore(directory, before, missing)
            raise


def _first_files(directory):
    """Return path -> contents of the first files; None for files that only grow."""
    paths = [os.path.join(directory, name) for name in _FIRST_FILES]
    contents = {path: _content(path) for path in paths if files.is_file(path)}
    return contents | dict.fromkeys(_find(directory, _EVENT_FILES))


def _saved_files(directory):
    return [path for pattern in _SAVED for path in _find(directory, pattern)]


def _find(directory, pattern):
    return files.find_in(directory, pattern)


def _content(path):
    with files.opened(path) as source:
        return source.read()


def _restore(directory, before, missing):
    """Undo the writes of a refused run; `missing` are the directories it created."""
    for path, content in _first_files(directory).items():
        if path not in before:
            files.remove(path)
        elif content != before[path]:
            with files.atomic_path(path) as temporary:
                pathlib.Path(temporary).write_bytes(before[path])
    if files.is_remote(directory):
        object_store.remove_empty_directory(os.path.join(directory, "events"))
        return
    for folder in [os.path.join(directory, "events"), *missing]:
        # The directory stays if another process has put a file there.
        with contextlib.suppress(OSError):
            os.rmdir(folder)
