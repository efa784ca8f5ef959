"""Read PyTorch tensor files (`pytorch_model.bin`) without PyTorch.

`torch.save` writes a pickle, and a pickle is a program: it can run any command.
This reader allows only ordered dicts and tensors, and rejects all other names
before anything is called.

Two layouts exist. Since version 1.6 the file is a zip archive, with the pickle
in `<name>/data.pkl` and the numbers of each storage in `<name>/data/<key>`.
Older files contain five pickles in a row (a magic number, the version, the
machine, the tensors, the keys of the storages). Then follow the storages in the
order of the keys, each as a count (int64) and its numbers.
"""

import collections
import contextlib
import functools
import io
import os
import pickle
import zipfile
from typing import NamedTuple

import ml_dtypes
import numpy as np

from official_bert.checkpoints.checkpoint import StoredTensor
from official_bert.errors import UserError

# PyTorch's storage class -> type of its numbers.
STORAGES = {
    "FloatStorage": np.dtype(np.float32),
    "HalfStorage": np.dtype(np.float16),
    "BFloat16Storage": np.dtype(ml_dtypes.bfloat16),
    "DoubleStorage": np.dtype(np.float64),
    "LongStorage": np.dtype(np.int64),
    "IntStorage": np.dtype(np.int32),
    "ShortStorage": np.dtype(np.int16),
    "CharStorage": np.dtype(np.int8),
    "ByteStorage": np.dtype(np.uint8),
    "BoolStorage": np.dtype(np.bool_),
}


class Storage(NamedTuple):
    """A sequence of numbers in the file, under the name `key`.

    `start` is the offset of the first number; it is above 0 only in the oldest
    files.
    """

    key: str
    dtype: np.dtype
    count: int  # type: ignore[assignment]  # Hides the method of tuples.
    start: int


class View(NamedTuple):
    """A tensor as a view of a storage; several tensors may share one storage.

    `offset` (of the first number, from the storage's start) and `strides`
    (distances between neighbors on each axis) are counted in numbers.
    """

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def open_tensors(path: str | os.PathLike[str]) -> dict[str, StoredTensor]:
    """Open a file that `torch.save` wrote from a `state_dict()`.

    Returns:
      dict of name -> `StoredTensor`, in the order of the file.

    Raises:
      UserError: the file is truncated, in another format, or contains other
        objects than tensors.
    """
    with _reading(path):
        open_layout = _open_archive if zipfile.is_zipfile(path) else _open_older
        views, read = open_layout(path)
    # Tensors that share a storage are usually neighbors.
    read = functools.lru_cache(maxsize=1)(read)
    return {
        name: StoredTensor(
            view.shape, view.storage.dtype, functools.partial(_read, path, view, read)
        )
        for name, view in views.items()
    }


@contextlib.contextmanager
def _reading(path):
    """Convert exceptions for a damaged file to `UserError`.

    Invalid pickles and zip archives can raise any exception.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise _damaged(path, error) from error


def _open_archive(path):
    """Open the newer layout; return name -> `View`, and a reader for a `Storage`."""
    with zipfile.ZipFile(path) as archive:
        sizes = {info.filename: info.file_size for info in archive.infolist()}
        pickles = [name for name in sizes if name.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise _damaged(path, "it is a zip file without data.pkl")
        root = pickles[0].removesuffix("data.pkl")
        if root + "byteorder" in sizes:
            order = archive.read(root + "byteorder").decode("ascii", "replace")
            _require_little_endian(path, order == "little")
        views = _views(
            path, _Unpickler(path, io.BytesIO(archive.read(pickles[0]))).load()
        )
    for view in views.values():
        storage = view.storage
        if sizes[f"{root}data/{storage.key}"] < storage.count * storage.dtype.itemsize:
            raise _damaged(path, f"storage {storage.key} is too short")

    def read(storage):
        with zipfile.ZipFile(path) as archive:
            return archive.read(f"{root}data/{storage.key}")

    return views, read


def _open_older(path):
    """Open the older layout; return the same as `_open_archive`."""
    with open(path, "rb") as file:
        if file.read(2) == b"PK":
            raise _damaged(path, "its end, the list of its parts, is missing")
        file.seek(0)
        # Files of this layout begin with this number.
        if _Unpickler(path, file).load() != 0x1950A86A20F9469CFC6C:
            raise _damaged(path, "it does not begin with PyTorch's magic number")
        _Unpickler(path, file).load()
        machine = _Unpickler(path, file).load()
        little = isinstance(machine, dict) and machine.get("little_endian", True)
        _require_little_endian(path, little)
        views = _views(path, _Unpickler(path, file).load())
        storages = {view.storage.key: view.storage for view in views.values()}
        keys, starts = _Unpickler(path, file).load(), {}
        for key in keys:
            storage = storages[key]
            if int.from_bytes(file.read(8), "little") != storage.count:
                raise _damaged(path, f"storage {key} is not at the expected position")
            starts[key] = file.tell()
            file.seek(storage.count * storage.dtype.itemsize, os.SEEK_CUR)
            if file.tell() > os.fstat(file.fileno()).st_size:
                raise _damaged(path, f"storage {key} is cut off")
    if starts.keys() != storages.keys():
        raise _damaged(path, "a storage is missing")

    def read(storage):
        with open(path, "rb") as file:
            file.seek(starts[storage.key])
            return file.read(storage.count * storage.dtype.itemsize)

    return views, read


class _Unpickler(pickle.Unpickler):
    """An unpickler that accepts only the names needed for tensors."""

    def __init__(self, path, file):
        super().__init__(file)
        self.path = path

    def find_class(self, module, name):
        """Return the replacement for a global; called before any global is used."""
        # A pickle can set attributes of returned objects, so they are immutable
        # or new each time.
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if module == "torch" and name in STORAGES:
            return name
        if module == "torch._utils":
            if name in ("_rebuild_tensor", "_rebuild_tensor_v2"):
                return lambda storage, offset, shape, strides, *_: View(
                    storage, offset, tuple(shape), tuple(strides)
                )
            if name == "_rebuild_parameter":
                return lambda view, *_: view
        raise UserError(
            f"{self.path} contains {module}.{name}, which is not a tensor and "
            "could run a program, so it was not loaded. Save only "
            "model.state_dict(), preferably as model.safetensors."
        )

    def persistent_load(self, pid):
        """Return the `Storage` of ("storage", class, key, device, count, view)."""
        _, kind, key, _, count, *rest = pid
        # The oldest files have storages that are parts of other storages.
        start = rest[0][1] if rest and rest[0] else 0
        return Storage(key, STORAGES[kind], count, start)


def _views(path, loaded):
    """Check the content of the tensor pickle; return a dict of name -> `View`."""
    if not isinstance(loaded, dict):
        raise UserError(f"{path} contains no named tensors. Save model.state_dict().")
    views = dict(dict.items(loaded))
    for name, view in views.items():
        if not (isinstance(name, str) and isinstance(view, View)):
            raise UserError(
                f"{path} contains {str(name)[:80]!r}, which is not a tensor. "
                "Save only model.state_dict()."
            )
        if not _lies_within_its_storage(view):
            raise _damaged(path, f"{name} lies outside its storage")
    return views


def _lies_within_its_storage(view):
    storage, offset, shape, strides = view
    if not isinstance(storage, Storage) or len(shape) != len(strides):
        return False
    numbers = (storage.count, storage.start, offset, *shape, *strides)
    if not all(type(number) is int and number >= 0 for number in numbers):
        return False
    steps = sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
    return 0 in shape or storage.start + offset + steps < storage.count


def _read(path, view, read):
    """Return the numbers of a view, read-only, with its shape and type."""
    storage = view.storage
    with _reading(path):
        numbers = np.frombuffer(read(storage), storage.dtype, storage.count)
    strides = [stride * storage.dtype.itemsize for stride in view.strides]
    first = numbers[storage.start + view.offset :]
    return np.lib.stride_tricks.as_strided(first, view.shape, strides, writeable=False)


def _require_little_endian(path, is_little):
    if not is_little:
        raise UserError(
            f"{path} was written on a big-endian machine. Save it again as "
            "model.safetensors, which is portable."
        )


def _damaged(path, reason):
    return UserError(
        f"{path} is not a readable PyTorch file; it may be truncated "
        f"({reason}). Download or copy it again."
    )
