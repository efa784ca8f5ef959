"""The files that hold a Hugging Face model's weights, opened."""

import functools
import json
import math
import os

import h5py
import ml_dtypes
import numpy as np

from official_bert import files
from official_bert.checkpoints import torch_file
from official_bert.checkpoints.huggingface import names
from official_bert.checkpoints.stored_tensor import StoredTensor
from official_bert.errors import UserError

# What a model's directory may hold; of several, the first is read.
FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "tf_model.h5",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
ENDINGS = (".safetensors", ".h5", ".bin", ".safetensors.index.json", ".bin.index.json")

# How `.safetensors` spells types.
DTYPES = {
    "F64": np.dtype(np.float64),
    "F32": np.dtype(np.float32),
    "F16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "I64": np.dtype(np.int64),
    "I32": np.dtype(np.int32),
    "I16": np.dtype(np.int16),
    "I8": np.dtype(np.int8),
    "U8": np.dtype(np.uint8),
    "BOOL": np.dtype(np.bool_),
}


def find(place):
    """Return the file of weights at a place, or None.

    Args:
      place: a model's directory, or a file of a known ending.
    """
    if os.path.isdir(place):
        found = [os.path.join(place, name) for name in FILES]
        return next((path for path in found if os.path.isfile(path)), None)
    return place if place.endswith(ENDINGS) and os.path.isfile(place) else None


def open_tensors(path):
    """Open a file of weights, or an index of several.

    Args:
      path: a file of one of `ENDINGS`.

    Returns:
      (tensors, layout): dict of name -> `StoredTensor`, and whose names they
      are, `TORCH` or `TENSORFLOW` of `huggingface_names`.

    Raises:
      UserError: it is damaged or missing, or holds something else.
    """
    _require_weights(path)
    if path.endswith(".index.json"):
        return _open_shards(path)
    if path.endswith(".safetensors"):
        return _open_safetensors(path)
    if path.endswith(".h5"):
        return _open_h5(path), names.TENSORFLOW
    return torch_file.open_tensors(path), names.TORCH


def _require_weights(path):
    """Raise `UserError` if a file cannot be read, or only stands for one."""
    try:
        with open(path, "rb") as file:
            begin = file.read(40)
    except OSError as error:
        raise UserError(f"Cannot read {path}: {error.strerror}.") from error
    if begin.startswith(b"version https://git-lfs"):
        raise UserError(
            f"{path} is a pointer of Git LFS, not the weights: run git lfs pull "
            "where it came from."
        )


def _open_shards(path):
    """Open the files that an index lists; a `UserError` names a missing one."""
    shard_of = files.read_json(path, "an index of weights").get("weight_map")
    if not isinstance(shard_of, dict) or not shard_of:
        raise UserError(f"{path} is no index of weights: it has no weight_map.")
    shards = sorted({os.path.basename(str(shard)) for shard in shard_of.values()})
    tensors = {}
    for shard in shards:
        shard_path = os.path.join(os.path.dirname(path), shard)
        if not os.path.isfile(shard_path):
            raise UserError(
                f"{shard_path} is missing: it is one of the {len(shards)} files of "
                f"{os.path.basename(path)}; download it too."
            )
        found, layout = open_tensors(shard_path)
        tensors |= found
    lost = [name for name in shard_of if name not in tensors]
    if lost:
        raise UserError(
            f"{path} names {lost[0]}, which {shard_of[lost[0]]} does not hold; "
            "download both again."
        )
    return tensors, layout


def _open_safetensors(path):
    """Open a `.safetensors`: its header's length, the header, the numbers.

    The package `safetensors` would read it too, but not bfloat16 without
    PyTorch.
    """
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if 8 + length > size:
            raise _damaged(path, "its header is cut off")
        try:
            header = json.loads(file.read(length))
            metadata = header.pop("__metadata__", None) or {}
            tensors = {
                name: _safetensor(path, name, entry, 8 + length, size)
                for name, entry in header.items()
            }
        except UserError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise _damaged(path, "its header is not one") from error
    if metadata.get("format") == "flax":
        raise UserError(
            f"{path} was written by Flax, whose names are not read: save it again "
            "with from_pretrained(…, from_flax=True) of transformers 4."
        )
    is_tensorflow = metadata.get("format") == "tf"
    return tensors, names.TENSORFLOW if is_tensorflow else names.TORCH


def _safetensor(path, name, entry, data, size):
    """Return the `StoredTensor` of an entry of the header.

    Args:
      path: of the file.
      name: of the tensor.
      entry: dict with `dtype`, `shape` and `data_offsets`.
      data: where in the file the offsets count from.
      size: of the file.
    """
    if entry["dtype"] not in DTYPES:
        raise UserError(
            f"{path}: {name} has numbers of type {entry['dtype']}, which are not "
            "read; save it again with float32."
        )
    dtype, shape = DTYPES[entry["dtype"]], tuple(entry["shape"])
    begin, end = entry["data_offsets"]
    if not 0 <= begin <= end or end - begin != math.prod(shape) * dtype.itemsize:
        raise _damaged(path, f"{name} has not the size of its shape")
    if data + end > size:
        raise _damaged(path, f"{name} is cut off")
    read = functools.partial(_read_numbers, path, data + begin, shape, dtype)
    return StoredTensor(shape, dtype, read)


def _read_numbers(path, start, shape, dtype):
    """Return the array, read-only, that begins at a position of a file."""
    try:
        with open(path, "rb") as file:
            file.seek(start)
            data = file.read(math.prod(shape) * dtype.itemsize)
        return np.frombuffer(data, dtype).reshape(shape)
    except (OSError, ValueError) as error:
        raise _damaged(path, error) from error


def _open_h5(path):
    """Open what Keras 2 wrote: groups of layers, which hold the variables."""
    tensors = {}

    def add(name, item):
        # Not what only an optimizer remembers, in a model saved as a whole.
        is_array = isinstance(item, h5py.Dataset) and item.dtype.kind in "fiub"
        if is_array and not name.startswith("optimizer_weights/"):
            read = functools.partial(_read_h5, path, name)
            tensors[name] = StoredTensor(item.shape, item.dtype, read)

    try:
        with h5py.File(path, "r") as file:
            file.visititems(add)
    except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:
        raise _damaged(path, error) from error
    return tensors


def _read_h5(path, name):
    try:
        with h5py.File(path, "r") as file:
            return file[name][()]
    except (OSError, RuntimeError, KeyError, ValueError) as error:
        raise _damaged(path, f"{name}: {error}") from error


def _damaged(path, reason):
    return UserError(f"{path} cannot be read; it may be truncated ({reason}).")
