"""Files for Beam's workers: local files and remote files such as gs://.

Paths with `://` go through Beam's file systems. Other inputs are read as
everywhere in the project.
"""

import contextlib
import errno
import gzip
import os
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


def find_inputs(patterns: str | Iterable[str], flag: str = "--input_file") -> list[str]:
    """Return the paths for names and globs; see `cluster_outputs.find_inputs`."""
    return cluster_outputs.find_inputs(patterns, flag, "beam", _match)


def size_of(path: str) -> int:
    """Return the size of a file in bytes."""
    if not is_remote(path):
        return os.path.getsize(path)
    from apache_beam.io.filesystems import FileSystems

    return FileSystems.match([path])[0].metadata_list[0].size_in_bytes


def _match(pattern, flag):
    """Return the paths for a remote glob, sorted."""
    from apache_beam.io.filesystems import FileSystems

    try:
        found = FileSystems.match([pattern])[0].metadata_list
    except (OSError, ValueError) as error:
        raise UserError(f"{flag}: cannot list {pattern}: {error}") from error
    if not found:
        raise UserError(f"{flag}: no file matches {pattern!r}. Check the path.")
    return sorted(file.path for file in found)


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
    from apache_beam.io.filesystem import CompressionTypes
    from apache_beam.io.filesystems import FileSystems

    # Beam could unpack, but accepts truncated files.
    return FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)


def read_lines(path: str) -> Iterator[bytes]:
    """Yield the lines of a file, as bytes."""
    with _opened(path) as source:
        yield from source


@contextlib.contextmanager
def temporary_folder(path: str) -> Iterator[str]:
    """Create a folder, yield its path, and remove it with its content.

    Raises:
      UserError: the folder already exists, or its location is not writable.
    """
    from apache_beam.io.filesystems import FileSystems

    try:
        FileSystems.mkdirs(path)
    except (OSError, ValueError) as error:
        raise UserError(
            f"Cannot create the folder {path} for temporary files ({error}). If "
            "it exists and no other run uses it, remove it."
        ) from error
    try:
        yield path
    finally:
        if is_remote(path):
            # Object stores have no folders, only common name prefixes.
            with contextlib.suppress(OSError):
                FileSystems.delete([f"{path}/"])
        else:
            shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def written(path: str) -> Iterator[IO[bytes]]:
    """Open a file to write bytes; it gets its name when it is complete.

    Several workers may do this at the same time: each writes its own temporary
    file.

    Raises:
      UserError: the location is not writable, or the disk is full.
    """
    from apache_beam.io.filesystem import CompressionTypes
    from apache_beam.io.filesystems import FileSystems

    temporary = f"{path}.tmp.{uuid.uuid4().hex}"
    try:
        with FileSystems.create(
            temporary, compression_type=CompressionTypes.UNCOMPRESSED
        ) as target:
            yield target
        FileSystems.rename([temporary], [path])
    except OSError as error:
        is_full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
        reason = "no space is left" if is_full else error
        raise UserError(
            f"Cannot write {path}: {reason}. Free space, or choose another path."
        ) from error
    finally:
        with contextlib.suppress(OSError):
            if FileSystems.exists(temporary):
                FileSystems.delete([temporary])


def append(path: str, target: IO[bytes]) -> None:
    """Write all bytes of a file to an open file."""
    with _opened(path) as source:
        shutil.copyfileobj(source, target, _COPIED_AT_ONCE)


def fetch(path: str, local_path: str | os.PathLike[str]) -> None:
    """Copy a file to this machine, if it exists."""
    from apache_beam.io.filesystems import FileSystems

    if FileSystems.exists(path):
        with open(local_path, "wb") as target:
            append(path, target)


def send(local_path: str | os.PathLike[str], path: str) -> None:
    """Copy a local file to a path in Beam's file systems."""
    with open(local_path, "rb") as source, written(path) as target:
        shutil.copyfileobj(source, target, _COPIED_AT_ONCE)


STORAGE = Storage(size_of, written, append, fetch, send)
