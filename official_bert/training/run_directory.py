"""The output directory of a run: held by one process, and left alone by a refused run.

A run is refused if it ends with a `UserError` before it has saved anything, for example
because a record is invalid, which is seen only when the record is read.
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

# The files that a run, or a sweep of runs, writes before it has saved anything; their
# former contents are restored. Each start has an event file of its own.
_FIRST_FILES = (".lock", MANIFEST_FILE, METRICS_FILE, "runs.json")
_EVENT_FILES = "events/*"
# What is worth keeping: checkpoints, results of a sweep's runs, batches to look at.
_SAVED = ("model.ckpt-*", "*/model.ckpt-*", "*/result.json", "not_finite_batch*")


@contextlib.contextmanager
def opened_directory(
    strategy: tf.distribute.Strategy, directory: str
) -> Iterator[None]:
    """Create a run's output directory and keep other processes out of it.

    Half-written files of a killed run are removed. If this run is refused, the
    directory is as it was before.

    Raises:
      UserError: the directory cannot be written, or another process holds it.
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
    """Remove what a refused run wrote; `missing` are the folders it has created."""
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
        # It stays if somebody else has put a file there.
        with contextlib.suppress(OSError):
            os.rmdir(folder)
