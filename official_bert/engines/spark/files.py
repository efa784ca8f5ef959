"""Files for Spark's workers: local files, and s3://, gs:// and hdfs://.

All use the file systems of `pyarrow`, which Spark needs for Python anyway.
"""

import contextlib
import errno
import fnmatch
import functools
import gzip
import io
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator
from typing import IO, Any

from official_bert.corpus import readers, text_blocks
from official_bert.engines import cluster_outputs
from official_bert.engines.cluster_job import Storage
from official_bert.errors import UserError
from official_bert.files import is_remote

_COPIED_AT_ONCE = 1 << 20


@functools.cache
def _root(scheme_and_host):
    """Return a URL's file system and the path of its root in it."""
    from pyarrow import fs

    return fs.FileSystem.from_uri(f"{scheme_and_host}/")


def _find(path):
    """Return (file system, path in it), also for local paths."""
    from pyarrow import fs

    if not is_remote(path):
        return fs.LocalFileSystem(), path
    scheme, _, rest = path.partition("://")
    host, _, name = rest.partition("/")
    system, root = _root(f"{scheme}://{host}")
    return system, f"{root.rstrip('/')}/{name}"


def find_inputs(patterns: str | Iterable[str], flag: str = "--input_file") -> list[str]:
    """Return the paths for names and globs; see `cluster_outputs.find_inputs`."""
    return cluster_outputs.find_inputs(patterns, flag, "spark", _match)


def _match(pattern, flag):
    """Return the paths for a remote glob, sorted."""
    from pyarrow import fs

    names = pattern.split("/")
    fixed = next((n for n, name in enumerate(names) if re.search(r"[*?[]", name)), -1)
    folder = "/".join(names[:fixed])
    try:
        system, path = _find(folder)
        selector = fs.FileSelector(path, recursive=fixed not in (-1, len(names) - 1))
        files = [info.path for info in system.get_file_info(selector) if info.is_file]
    except (OSError, ValueError) as error:
        raise UserError(f"{flag}: cannot list {pattern}: {error}") from error
    found = [folder + name.removeprefix(path.rstrip("/")) for name in files]
    found = [name for name in found if _is_match(name.split("/"), names)]
    if not found:
        raise UserError(f"{flag}: no file matches {pattern!r}. Check the path.")
    return sorted(found)


def _is_match(names, patterns):
    return len(names) == len(patterns) and all(map(fnmatch.fnmatch, names, patterns))


def size_of(path: str) -> int:
    """Return the size of a file in bytes."""
    system, name = _find(path)
    return system.get_file_info(name).size


@contextlib.contextmanager
def open_text(path: str) -> Iterator[IO[bytes]]:
    """Open a file to read its bytes, unpacked if its name ends in `.gz`."""
    if not is_remote(path):
        with text_blocks.open_text(path) as source:
            yield source
        return
    with readers.reading_errors(path), _opened(path) as source:
        unpacked: Any = gzip.GzipFile(fileobj=source)
        yield unpacked if path.endswith(".gz") else source


def _opened(path):
    """Open a file, as a context manager, to read its bytes without unpacking."""
    system, name = _find(path)
    return io.BufferedReader(system.open_input_stream(name, compression=None))


def read(path: str) -> bytes:
    """Return all bytes of a file."""
    with _opened(path) as source:
        return source.read()


@contextlib.contextmanager
def temporary_folder(path: str) -> Iterator[str]:
    """Create a folder, yield its path, and remove it with its content.

    Raises:
      UserError: the folder already exists, or its location is not writable.
    """
    from pyarrow import fs

    try:
        system, name = _find(path)
        if system.get_file_info(name).type != fs.FileType.NotFound:
            raise UserError(
                f"{path} already exists: another run uses it, or a run was "
                "killed. If no other run uses it, remove it."
            )
        system.create_dir(name, recursive=False)
    except (OSError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(
            f"Cannot create the folder {path} for temporary files: {error}"
        ) from error
    try:
        yield path
    finally:
        with contextlib.suppress(OSError):
            system.delete_dir(name)


@contextlib.contextmanager
def written(path: str) -> Iterator[IO[bytes]]:
    """Open a file to write bytes; it gets its name when it is complete.

    Several workers may do this at the same time: each writes its own temporary
    file.

    Raises:
      UserError: the location is not writable, or the disk is full.
    """
    try:
        system, name = _find(path)
        temporary = f"{name}.tmp.{uuid.uuid4().hex}"
        try:
            with system.open_output_stream(temporary, compression=None) as target:
                yield target
            system.move(temporary, name)
        except BaseException:
            with contextlib.suppress(OSError):
                system.delete_file(temporary)
            raise
    except OSError as error:
        is_full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
        reason = "no space is left" if is_full else error
        raise UserError(
            f"Cannot write {path}: {reason}. Free space, or choose another path."
        ) from error


def append(path: str, target: IO[bytes]) -> None:
    """Write all bytes of a file to an open file."""
    with _opened(path) as source:
        shutil.copyfileobj(source, target, _COPIED_AT_ONCE)


def fetch(path: str, local_path: str) -> None:
    """Copy a file to this machine, if it exists."""
    from pyarrow import fs

    system, name = _find(path)
    if system.get_file_info(name).type != fs.FileType.NotFound:
        with open(local_path, "wb") as target:
            append(path, target)


def send(local_path: str | os.PathLike[str], path: str) -> None:
    """Copy a local file to a path that the workers can reach."""
    with open(local_path, "rb") as source, written(path) as target:
        shutil.copyfileobj(source, target, _COPIED_AT_ONCE)


STORAGE = Storage(size_of, written, append, fetch, send)
