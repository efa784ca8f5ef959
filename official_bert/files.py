"""Find input files, and write output files atomically."""

import contextlib
import errno
import glob
import gzip
import hashlib
import io
import json
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterator
from typing import IO, Any

from official_bert import lease, object_store
from official_bert.errors import UserError
from official_bert.object_store import is_remote

# The process's umask. Reading it requires setting it.
_UMASK = os.umask(0)
os.umask(_UMASK)

# Folder for unfinished output in a directory that existed before.
_UNFINISHED = "unfinished"
_PACKAGE = pathlib.Path(__file__).resolve().parent


def shipped(name: str) -> pathlib.Path:
    """Return the path of a file that the project keeps outside the package.

    Args:
      name: str, its path in a checkout. A wheel contains it inside the package.
    """
    installed = _PACKAGE / name
    return installed if installed.exists() else _PACKAGE.parent / name


def exists(path: str | os.PathLike[str]) -> bool:
    """Return whether a file or folder exists, local or remote."""
    if is_remote(path):
        return object_store.exists(os.fspath(path))
    return os.path.exists(path)


def is_file(path: str | os.PathLike[str]) -> bool:
    """Return whether `path` is a file, local or remote."""
    if is_remote(path):
        return object_store.is_file(os.fspath(path))
    return os.path.isfile(path)


def is_directory(path: str | os.PathLike[str]) -> bool:
    """Return whether `path` is a folder, local or remote."""
    if is_remote(path):
        return object_store.is_directory(os.fspath(path))
    return os.path.isdir(path)


def size(path: str | os.PathLike[str]) -> int:
    """Return the size of a file in bytes, local or remote."""
    if is_remote(path):
        return object_store.size(os.fspath(path))
    return os.path.getsize(path)


def absolute(path: str | os.PathLike[str]) -> str:
    """Return the absolute form of a local path; remote paths are absolute."""
    return os.fspath(path) if is_remote(path) else os.path.abspath(path)


def normal(path: str | os.PathLike[str]) -> str:
    """Return a path without double or final slashes; a scheme keeps its two."""
    if is_remote(path):
        return os.fspath(path).rstrip("/")
    return os.path.normpath(path)


def opened(path: str | os.PathLike[str]) -> io.BufferedReader:
    """Open a file, local or remote, to read its bytes."""
    if is_remote(path):
        return object_store.opened(os.fspath(path))
    return open(path, "rb")


@contextlib.contextmanager
def opened_unpacked(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file to read its bytes; decompress it if its name ends in `.gz`."""
    with opened(path) as source:
        if os.fspath(path).endswith(".gz"):
            with gzip.open(source) as unpacked:
                yield unpacked  # type: ignore[misc]
        else:
            yield source


def remove(path: str | os.PathLike[str]) -> None:
    """Delete a file, local or remote."""
    if is_remote(path):
        object_store.remove(os.fspath(path))
    else:
        os.remove(path)


def list_directory(path: str | os.PathLike[str]) -> list[str]:
    """Return the names in a folder, sorted."""
    if is_remote(path):
        return object_store.list_directory(os.fspath(path))
    return sorted(os.listdir(path))


def rename(path: str | os.PathLike[str], new: str) -> None:
    """Rename a file; not atomic in an object store."""
    if is_remote(path):
        object_store.rename(os.fspath(path), new)
    else:
        os.replace(path, new)


def find_in(directory: str | os.PathLike[str], pattern: str) -> list[str]:
    """Return the paths in a folder that match a glob, sorted; local or remote."""
    if is_remote(directory):
        return object_store.find(os.path.join(directory, pattern))
    return sorted(glob.glob(os.path.join(glob.escape(os.fspath(directory)), pattern)))


def real(path: str | os.PathLike[str]) -> str:
    """Return the path of a file after resolving symbolic links."""
    return os.fspath(path) if is_remote(path) else os.path.realpath(path)


def require_possible_directory(path: str | os.PathLike[str], flag: str) -> None:
    """Raise `UserError` for a folder that cannot be written; create nothing.

    For a folder of an object store, only the first write shows whether it is writable.
    """
    if is_remote(path):
        return
    there = os.path.abspath(path)
    while not os.path.exists(there):
        there = os.path.dirname(there)
    if not os.path.isdir(there):
        raise UserError(
            f"{flag}={path} is not a folder: {there} is a file. Choose another folder."
        )
    if not os.access(there, os.W_OK):
        raise UserError(
            f"{flag}={path} cannot be written: {there} is not writable. Choose "
            "another folder."
        )


def make_directory(path: str | os.PathLike[str], flag: str) -> None:
    """Create `path` and its parents; a `UserError` gives the reason of a failure."""
    if is_remote(path):
        object_store.make_directory(os.fspath(path))
        return
    require_possible_directory(path, flag)
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{flag}={path} cannot be created: {error.strerror}."
        ) from error


def missing_directories(path: str | os.PathLike[str]) -> list[str]:
    """Return the folders that `make_directory` would create, the innermost first."""
    if is_remote(path):
        return []
    missing, there = [], os.path.abspath(path)
    while not os.path.exists(there):
        missing.append(there)
        there = os.path.dirname(there)
    return missing


@contextlib.contextmanager
def locked_directory(
    path: str | os.PathLike[str], flag: str = "--output_dir"
) -> Iterator[None]:
    """Lock a directory for this process; the lock ends with the process.

    A remote directory is locked by a lease (`lease`).

    Raises:
      UserError: another process has locked it, or it cannot be locked.
    """
    if is_remote(path):
        with lease.held(os.fspath(path), flag):
            yield
        return
    # Import late: doctor.py uses this module and reports if filelock is missing.
    import filelock

    lock = filelock.FileLock(os.path.join(path, ".lock"))
    try:
        held = lock.acquire(timeout=0)
    except filelock.Timeout as error:
        raise UserError(
            f"{flag}: another process is using {path}. Wait until it ends, or choose "
            "another directory."
        ) from error
    except OSError as error:  # Owner differs, or no locks.
        raise UserError(
            f"{flag}: {path} cannot be locked ({error.strerror}). Choose another "
            "directory."
        ) from error
    with held:
        yield


def remove_leftovers(directory: str | os.PathLike[str]) -> None:
    """Remove the temporary files and folders of writers that were killed.

    Object stores have none: an interrupted upload creates no object.
    """
    if is_remote(directory):
        return
    for path in glob.glob(os.path.join(glob.escape(os.fspath(directory)), "*.tmp.*")):
        if path.rpartition(".")[2].isdigit():
            if os.path.isdir(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.remove(path)


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[str]:
    """Yield a temporary path next to `path`; rename it to `path` at the end.

    Readers see either the old file or the complete new one. If the block raises, the
    temporary file is removed and `path` is unchanged. For a remote path, the temporary
    path is a local file that is uploaded at the end.

    Raises:
      UserError: the disk is full, or `path` is a device, pipe or directory, which no
        file may replace.
    """
    path = os.fspath(path)
    if is_remote(path):
        with tempfile.TemporaryDirectory() as folder:
            local = os.path.join(folder, os.path.basename(path))
            yield local
            object_store.upload(local, path)
        return
    if os.path.exists(path) and not os.path.isfile(path):
        raise UserError(
            f"{path} exists but is not a regular file. Choose another name."
        )
    temporary = f"{path}.tmp.{os.getpid()}"
    try:
        yield temporary
        # Some writers (safetensors) create files that only their owner may read.
        os.chmod(temporary, 0o666 & ~_UMASK)
        with open(temporary, "r+b") as written:  # Windows syncs only writable files.
            os.fsync(written.fileno())
        os.replace(temporary, path)
        sync_directory(os.path.dirname(path))
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise UserError(
                f"No space left on the disk of {path}. Free some space and run the "
                "command again. No incomplete file was left."
            ) from error
        raise
    finally:
        pathlib.Path(temporary).unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_directory(path: str | os.PathLike[str], flag: str) -> Iterator[str]:
    """Yield a temporary folder that becomes `path` at the end.

    The temporary folder is next to `path` and is renamed. If `path` exists, it may be a
    mount point or a working directory. The temporary folder is then inside `path`, and
    its contents move up at the end.

    Args:
      path: must not exist yet, or be an empty directory.
      flag: the flag that named the path, for messages.

    Raises:
      UserError: `path` exists and is not empty, or it cannot be written. After any
        exception in the block, the temporary folder is removed.
    """
    if is_remote(path):
        with _uploaded_directory(os.fspath(path), flag) as temporary:
            yield temporary
        return
    path = os.path.realpath(path)
    is_there = os.path.isdir(path)
    if os.path.exists(path) and not (is_there and not os.listdir(path)):
        left = glob.glob(os.path.join(glob.escape(path), f"{_UNFINISHED}.tmp.*"))
        if is_there and len(left) == len(os.listdir(path)):
            raise UserError(
                f"{flag}: {left[0]} exists. It belongs to a run that is still "
                "running or was killed. Remove it, or choose another directory."
            )
        raise UserError(
            f"{flag}: {path} exists and is not an empty directory. Choose another one."
        )
    name = _UNFINISHED if is_there else os.path.basename(path)
    parent = path if is_there else os.path.dirname(path)
    temporary = os.path.join(parent, f"{name}.tmp.{os.getpid()}")
    try:
        make_directory(temporary, flag)
    except UserError as error:
        raise UserError(str(error).replace(temporary, path)) from error
    try:
        yield temporary
        if is_there:
            for name in os.listdir(temporary):
                os.replace(os.path.join(temporary, name), os.path.join(path, name))
        else:
            os.replace(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextlib.contextmanager
def _uploaded_directory(path, flag):
    """Yield a local folder that is uploaded at the end; see `atomic_directory`."""
    if object_store.list_directory(path):
        raise UserError(f"{flag}: {path} exists and is not empty. Choose another one.")
    with tempfile.TemporaryDirectory() as temporary:
        yield temporary
        # Upload the files of the top folder last: one of them makes it a model.
        for folder, _, names in os.walk(temporary, topdown=False):
            inside = os.path.relpath(folder, temporary)
            for name in sorted(names):
                target = os.path.normpath(os.path.join(inside, name))
                object_store.upload(os.path.join(folder, name), f"{path}/{target}")


def copy(source: str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
    """Copy a file atomically; do nothing if both are the same file."""
    if is_remote(source) or is_remote(path):
        if os.fspath(source) != os.fspath(path):
            with (
                atomic_path(path) as temporary,
                opened(source) as data,
                open(temporary, "wb") as output,
            ):
                shutil.copyfileobj(data, output)
        return
    if not (os.path.exists(path) and os.path.samefile(source, path)):
        with atomic_path(path) as temporary:
            shutil.copyfile(source, temporary)


def sync_directory(path: str | os.PathLike[str]) -> None:
    """Make the names in a directory survive a power failure, if the system can."""
    if is_remote(path):
        return
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise
        finally:
            os.close(descriptor)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    r"""Write `text` as UTF-8, with unchanged line ends, atomically.

    File names need not be UTF-8. Python represents their other bytes as halves of
    surrogate pairs. They are written as `\udce9`, which is also valid JSON.
    """
    with atomic_path(path) as temporary:
        pathlib.Path(temporary).write_text(
            text, encoding="utf-8", errors="backslashreplace", newline="\n"
        )


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write `value` as indented JSON, atomically."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_text(path: str | os.PathLike[str], what: str) -> str:
    """Read a UTF-8 file, with or without a byte order mark.

    Args:
      path: the file.
      what: expected content, for messages ("a BERT config").

    Raises:
      UserError: the file cannot be read or is not UTF-8.
    """
    try:
        if is_remote(path):
            return object_store.read(os.fspath(path)).decode("utf-8-sig")
        with open(path, encoding="utf-8-sig") as source:
            return source.read()
    except OSError as error:
        raise UserError(f"Cannot read {what} from {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not {what}: it is not UTF-8 text.") from error


def read_json(path: str | os.PathLike[str], what: str) -> dict[str, Any]:
    """Read a JSON object; a `UserError` names the file and the line.

    Args:
      path: the file.
      what: expected content, for messages ("a BERT config").
    """
    text = read_text(path, what)
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(
            f"{path} is not {what}: line {error.lineno}: {error.msg}."
        ) from error
    except (ValueError, RecursionError) as error:
        # A number with thousands of digits, or deeply nested lists.
        raise UserError(f"{path} is not {what}: its JSON cannot be parsed.") from error
    if not isinstance(value, dict):
        raise UserError(f"{path} is not {what}: it is not a JSON object.")
    return value


def sha256_of(path: str | os.PathLike[str]) -> str:
    """Return the hex SHA-256 of a file's bytes."""
    with opened(path) as source:
        return hashlib.file_digest(source, "sha256").hexdigest()
