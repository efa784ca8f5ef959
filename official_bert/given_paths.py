"""Expand the paths that a user gives (lists, globs, shards), and check them."""

import contextlib
import glob
import itertools
import os
import re
from collections.abc import Iterable, Iterator

from official_bert import files, object_store
from official_bert.errors import UserError, list_some
from official_bert.object_store import is_remote

_SHARDS = re.compile(r"@(\d{1,5})(?=\.|$)")


def split_list(value: str | Iterable[str]) -> list[str]:
    """Split a comma-separated flag into its stripped, non-empty parts."""
    parts = value.split(",") if isinstance(value, str) else map(os.fspath, value)
    return [part.strip() for part in parts if part.strip()]


def split_shards(value: str | Iterable[str]) -> list[str]:
    """Split a flag of output files; `@3` in a name stands for three files.

    `train@3.tfrecord` stands for `train-00000-of-00003.tfrecord` and so on.

    Returns:
      list of str.
    """
    names = []
    for name in split_list(value):
        folder, base = os.path.split(name)
        match = _SHARDS.search(base)
        number = int(match[1]) if match else 0
        names += [
            os.path.join(folder, _SHARDS.sub(f"-{shard:05d}-of-{number:05d}", base, 1))
            for shard in range(number)
        ] or [name]
    return names


def find_input_files(
    patterns: str | Iterable[str], flag: str = "--input_file"
) -> list[str]:
    """Return the files that match a list of names and globs.

    Args:
      patterns: a comma-separated string or a list of paths and globs. The order of the
        patterns is kept and each glob is sorted, as in the original's `tf.gfile.Glob`.
      flag: the flag that named the patterns, for messages.

    Returns:
      list of str.

    Raises:
      UserError: no file matches, or a match is a directory.
    """
    patterns = split_list(patterns)
    if not patterns:
        raise UserError(f"{flag} is empty. Give at least one file or glob.")
    paths = []
    for pattern in patterns:
        matches = find_matches(pattern)
        if not matches:
            raise UserError(f"{flag}: no file matches {pattern!r}.")
        paths += matches
    for path in paths:
        require_readable(path, flag)
    return paths


def find_matches(pattern: str) -> list[str]:
    """Return the paths that match a name or glob, sorted."""
    # An existing name with brackets is a file, not a glob.
    if is_remote(pattern):
        is_name = object_store.exists(pattern)
        return [pattern] if is_name else object_store.find(pattern)
    return [pattern] if os.path.exists(pattern) else sorted(glob.glob(pattern))


def require_readable(path: str | os.PathLike[str], flag: str) -> None:
    """Raise `UserError` unless `path` is a file that can be opened."""
    if files.is_directory(path):
        raise UserError(
            f"{flag}: {path} is a directory. Name its files, for example "
            f"{os.path.join(path, '*')}."
        )
    try:
        files.opened(path).close()
    except OSError as error:
        raise UserError(f"{flag}: cannot read {path}: {error.strerror}.") from error


def require_parent(path: str | os.PathLike[str], flag: str) -> None:
    """Raise `UserError` unless the parent folder of `path` exists."""
    if is_remote(path):  # Object stores need no folders.
        return
    parent = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(parent):
        raise UserError(
            f"{flag}: the folder {parent} does not exist. Create it first (mkdir -p "
            f"{parent})."
        )
    _require_file_name(path, flag)
    if not os.access(parent, os.W_OK):
        raise UserError(
            f"{flag}: the folder {parent} is not writable. Choose another folder."
        )


def require_possible_file(path: str | os.PathLike[str], flag: str) -> None:
    """Raise `UserError` for a file whose folders `made_parents` cannot create."""
    if is_remote(path):  # Object stores need no folders.
        return
    _require_file_name(path, flag)
    files.require_possible_directory(os.path.dirname(os.path.abspath(path)), flag)


def _require_file_name(path, flag):
    if os.path.isdir(path):
        raise UserError(f"{flag}: {path} is a directory. Name a file in it.")
    if os.path.exists(path) and not os.path.isfile(path):
        raise UserError(
            f"{flag}: {path} exists but is not a regular file. Choose another name."
        )


def named(paths: Iterable[str]) -> str:
    """Return the first three paths and the number of others, for messages."""
    return list_some(paths, 3)


def require_no_input(
    outputs: Iterable[str | os.PathLike[str]],
    inputs: Iterable[str | os.PathLike[str]],
    flag: str,
) -> None:
    """Raise `UserError` if one of the output paths is also an input."""
    read = set(map(files.real, inputs))
    for path in outputs:
        if files.real(path) in read:
            raise UserError(f"{flag}: {path} is also an input. Name another file.")


def existing_parent(path: str | os.PathLike[str]) -> str:
    """Return the innermost existing folder that contains `path`."""
    there = os.path.dirname(os.path.abspath(path))
    while not os.path.exists(there):
        there = os.path.dirname(there)
    return there


@contextlib.contextmanager
def made_parents(paths: Iterable[str | os.PathLike[str]], flag: str) -> Iterator[None]:
    """Create the folders of files; after an error, remove those that are empty.

    Only folders that did not exist before are removed.

    Raises:
      UserError: a folder cannot be created.
    """
    local = itertools.filterfalse(is_remote, paths)
    parents = dict.fromkeys(os.path.dirname(os.path.abspath(path)) for path in local)
    missing = {each for parent in parents for each in files.missing_directories(parent)}
    try:
        for parent in parents:
            files.make_directory(parent, flag)
        yield
    except BaseException:
        for folder in sorted(missing, key=len, reverse=True):
            # Keep a folder that contains a file, for example finished work.
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        raise
