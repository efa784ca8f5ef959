"""Read and write files in object stores, such as `gs://bucket/folder/file`.

All functions use TensorFlow's file systems (`tf.io.gfile`). Object stores have no
folders, no atomic rename and no append. An object that exists is complete, because one
upload creates it. `official_bert.files` calls these functions for paths with a scheme
only. TensorFlow is imported with the first remote path.
"""

import contextlib
import io
import os
import re
from typing import Any

from official_bert.errors import UserError

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://")
_COPIED_AT_ONCE = 8 << 20
# Each request takes tens of milliseconds.
_READ_AT_ONCE = 1 << 20


def is_remote(path: str | os.PathLike[str]) -> bool:
    """Return whether a path has a scheme, such as `gs://`."""
    return _SCHEME.match(os.fspath(path)) is not None


def exists(path: str) -> bool:
    """Return whether an object or a folder of objects exists."""
    with _explained(path):
        return _gfile().exists(path)


def is_directory(path: str) -> bool:
    """Return whether objects exist below `path/`."""
    with _explained(path):
        return _gfile().isdir(path)


def is_file(path: str) -> bool:
    """Return whether `path` is an object."""
    return exists(path) and not is_directory(path)


def size(path: str) -> int:
    """Return the size of an object in bytes."""
    with _explained(path):
        return _gfile().stat(path).length


def find(pattern: str) -> list[str]:
    """Return the paths that match a glob, sorted."""
    with _explained(pattern):
        return sorted(_gfile().glob(pattern))


def list_directory(path: str) -> list[str]:
    """Return the names in a folder, sorted; [] if it does not exist."""
    with _explained(path):
        if not _gfile().isdir(path):
            return []
        return sorted(name.rstrip("/") for name in _gfile().listdir(path))


def opened(path: str) -> io.BufferedReader:
    """Open an object to read its bytes."""
    return io.BufferedReader(_Object(path), _READ_AT_ONCE)


def read(path: str) -> bytes:
    """Return the bytes of an object."""
    with _explained(path), _gfile().GFile(path, "rb") as source:
        return source.read()


def write(path: str, data: bytes) -> None:
    """Create or replace an object; readers see the old or the new one."""
    with _explained(path), _created(path) as output:
        output.write(data)


def upload(local: str | os.PathLike[str], path: str) -> None:
    """Copy a local file to an object; readers see the old or the new one."""
    with (
        open(local, "rb") as source,
        _explained(path),
        _created(path) as output,
    ):
        while data := source.read(_COPIED_AT_ONCE):
            output.write(data)


def make_directory(path: str) -> None:
    """Create a folder if the file system has folders; see `tf.io.gfile`."""
    with _explained(path):
        _gfile().makedirs(path)


def remove(path: str) -> None:
    """Delete an object; do nothing if it does not exist."""
    import tensorflow as tf

    with _explained(path), contextlib.suppress(tf.errors.NotFoundError):
        _gfile().remove(path)


def remove_empty_directory(path: str) -> None:
    """Remove a folder without objects, if the file system has folders."""
    if is_directory(path) and not list_directory(path):
        with _explained(path):
            _gfile().rmtree(path)


def rename(path: str, new: str) -> None:
    """Copy an object to another name and delete the first: not atomic."""
    with _explained(path):
        _gfile().rename(path, new, overwrite=True)


def _created(path):
    if path.startswith("ram://"):  # ram:// would append to the object.
        remove(path)
    return _gfile().GFile(path, "wb")


class _Object(io.RawIOBase):
    """An object as a Python file, over `tf.io.gfile.GFile`."""

    def __init__(self, path):
        super().__init__()
        self._path = path
        with _explained(path):
            self._source = _gfile().GFile(path, "rb")
            self._size = self._source.size()

    def readable(self):
        return True

    def seekable(self):
        return True

    def readinto(self, buffer):
        with _explained(self._path):
            data = self._source.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset, whence=os.SEEK_SET):
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self.tell(), os.SEEK_END: self._size}
        with _explained(self._path):
            self._source.seek(start[whence] + offset)
        return self.tell()

    def tell(self):
        return self._source.tell()

    def close(self):
        self._source.close()
        super().close()


@contextlib.contextmanager
def _explained(path):
    """Convert the errors of a file system to a `UserError` about `path`."""
    import tensorflow as tf

    errors: dict[type[Exception], str] = {
        tf.errors.NotFoundError: "it does not exist. Check the bucket and the name",
        tf.errors.PermissionDeniedError: "permission denied. Check that your account "
        "may access this bucket",
        tf.errors.UnauthenticatedError: "the store requires credentials. Log in, for "
        "example with gcloud auth application-default login",
        tf.errors.ResourceExhaustedError: "the quota or rate limit of the store is "
        "exceeded. Wait, or request a higher quota",
        tf.errors.FailedPreconditionError: "another process changed it at the same "
        "time",
        tf.errors.UnimplementedError: "this installation of TensorFlow does not "
        "support its scheme",
        tf.errors.UnavailableError: "the store does not respond",
        tf.errors.AbortedError: "the store repeatedly interrupted the transfer",
    }
    try:
        yield
    except tuple(errors) as error:
        reason = next(text for kind, text in errors.items() if isinstance(error, kind))
        raise UserError(f"{path}: {reason} ({_short(error)}).") from error
    except tf.errors.OpError as error:
        raise UserError(
            f"{path}: the store refused the request ({_short(error)})."
        ) from error


def _short(error):
    """Return the first line of a TensorFlow error, at most 120 characters."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:120].rstrip(". ")


def _gfile() -> Any:
    import tensorflow as tf

    return tf.io.gfile
