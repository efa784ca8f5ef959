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

from official_bert.errors import StoreError, UserError

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://")
_COPIED_AT_ONCE = 8 << 20
# Words of TensorFlow's client, in errors of any operation that reads or writes.
_REQUEST = "Error executing an HTTP request"
_STATUS = re.compile(r"HTTP response code (\d{3})")
_PATH = re.compile(r"\b(?!https?:)[a-z][a-z0-9+.-]*://[^\s'\",;]+")
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
    import tensorflow as tf

    # `isdir` would return False after any error.
    with _explained(path):
        try:
            return _gfile().stat(path).is_directory
        except tf.errors.NotFoundError:
            return False


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
    if not is_directory(path):
        return []
    with _explained(path):
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

    try:
        yield
    except tf.errors.OpError as error:
        raise _sentence(error, path) from error


def error_of(error: BaseException, path: str | None = None) -> UserError | None:
    """Return an error of a store, which any operation may raise, as a sentence.

    Args:
      error: an exception.
      path: the object; None for the one that the error names.

    Returns:
      `UserError` if the object does not exist, else `StoreError`; None if it is not
      an error of a store.
    """
    if isinstance(error, StoreError):
        return error
    of_tensorflow = type(error).__module__.partition(".")[0] == "tensorflow"
    if not of_tensorflow or _REQUEST not in str(error):
        return None
    named = _PATH.search(str(error))
    return _sentence(error, path or (named[0] if named else "The object store"))


def _sentence(error, path):
    """Return the `UserError` of a TensorFlow error: problem, reason and remedy."""
    import tensorflow as tf

    reasons: dict[str, tuple[type[Exception], str]] = {
        "404": (
            tf.errors.NotFoundError,
            "it does not exist: check the bucket and the name",
        ),
        "401": (
            tf.errors.UnauthenticatedError,
            "the store asks for credentials: log in, for example with gcloud auth "
            "application-default login",
        ),
        "403": (
            tf.errors.PermissionDeniedError,
            "permission is denied: check the access rights of your account for this "
            "bucket",
        ),
        "429": (
            tf.errors.ResourceExhaustedError,
            "the quota of the store or its rate limit is used up: wait, or ask for "
            "more",
        ),
        "412": (
            tf.errors.FailedPreconditionError,
            "another process has changed it at the same time: run the command again",
        ),
        "": (
            tf.errors.UnimplementedError,
            "this installation of TensorFlow cannot read its scheme",
        ),
        "503": (tf.errors.UnavailableError, "the store does not answer: try again"),
        "5": (
            tf.errors.AbortedError,
            "the store broke the transfer off repeatedly: try again",
        ),
    }
    status = _STATUS.search(str(error))
    code = status[1] if status else None
    kinds = [c for c, (kind, _) in reasons.items() if isinstance(error, kind)]
    code = code if code in reasons else next(iter(kinds), None)
    reason = reasons[code][1] if code is not None else "the store refused it"
    kind = UserError if code in ("404", "") else StoreError
    return kind(f"{path}: {reason} ({_short(error)}).")


def _short(error):
    """Return what a TensorFlow error says, on one line of at most 120 characters."""
    text = " ".join(str(error).split()) or type(error).__name__
    text = text[text.find(_REQUEST) :] if _REQUEST in text else text
    text = text.removeprefix(f"{_REQUEST}: ").partition(" with body")[0]
    return text[:120].rstrip(". ")


def _gfile() -> Any:
    import tensorflow as tf

    return tf.io.gfile
