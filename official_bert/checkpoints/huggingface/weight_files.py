"""Open the weight files of a Hugging Face model."""

import contextlib
import functools
import os

import h5py
import ml_dtypes
import numpy as np
import safetensors

from official_bert import files
from official_bert.checkpoints import torch_file
from official_bert.checkpoints.checkpoint import StoredTensor
from official_bert.checkpoints.huggingface.tensor_names import TENSORFLOW, TORCH
from official_bert.errors import UserError

# Weight files of a model directory, in the order of precedence.
FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "tf_model.h5",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
ENDINGS = (".safetensors", ".h5", ".bin", ".safetensors.index.json", ".bin.index.json")
# Exceptions of h5py and safetensors for a damaged or missing file.
DAMAGED = (
    OSError,
    RuntimeError,
    KeyError,
    ValueError,
    TypeError,
    safetensors.SafetensorError,
)

# Type names in `.safetensors`. NumPy has bfloat16 only through `ml_dtypes`.
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


def find_file(path: str) -> str | None:
    """Return the weight file of a path (itself, or in its directory), or None."""
    if os.path.isdir(path):
        candidates = [os.path.join(path, name) for name in FILES]
        return next(filter(os.path.isfile, candidates), None)
    return path if path.endswith(ENDINGS) and os.path.isfile(path) else None


def open_tensors(path: str) -> tuple[dict[str, StoredTensor], str]:
    """Open a weight file with one of `ENDINGS`, or an index of several files.

    Returns:
      (tensors, layout): a dict of name -> `StoredTensor`, and `TORCH` or
      `TENSORFLOW`, the origin of the names.

    Raises:
      UserError: the file is damaged, missing, or not a weight file.
    """
    try:
        with open(path, "rb") as file:
            begin = file.read(40)
    except OSError as error:
        raise UserError(f"Cannot read {path}: {error.strerror}.") from error
    if begin.startswith(b"version https://git-lfs"):
        raise UserError(
            f"{path} is a Git LFS pointer, not the weights. Run `git lfs pull` "
            "in its repository."
        )
    if path.endswith(".index.json"):
        return _open_shards(path)
    if path.endswith(".safetensors"):
        return _open_safetensors(path)
    if path.endswith(".h5"):
        return _open_h5(path), TENSORFLOW
    return torch_file.open_tensors(path), TORCH


def _open_shards(path):
    """Open the files that an index lists; a `UserError` names a missing one."""
    shard_of = files.read_json(path, "an index of weights").get("weight_map")
    if not isinstance(shard_of, dict) or not shard_of:
        raise UserError(f"{path} is not an index of weights: it has no weight_map.")
    shards = sorted({os.path.basename(str(shard)) for shard in shard_of.values()})
    tensors: dict[str, StoredTensor] = {}
    for shard in shards:
        shard_path = os.path.join(os.path.dirname(path), shard)
        if not os.path.isfile(shard_path):
            raise UserError(
                f"{shard_path} does not exist, but {os.path.basename(path)} "
                f"lists it as one of {len(shards)} files. Download it too."
            )
        part, layout = open_tensors(shard_path)
        tensors |= part
    lost = [name for name in shard_of if name not in tensors]
    if lost:
        raise UserError(
            f"{path} lists {lost[0]}, which {shard_of[lost[0]]} does not "
            "contain. Download both files again."
        )
    return tensors, layout


def _open_safetensors(path):
    """Open a `.safetensors`."""
    with _readable(path), safetensors.safe_open(path, "numpy") as file:
        written_by = (file.metadata() or {}).get("format")
        headers = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
        tensors = {
            name: _safetensor(path, name, header.get_dtype(), header.get_shape())
            for name, header in headers.items()
        }
    if written_by == "flax":
        raise UserError(
            f"{path} was written by Flax, whose tensor names are not supported. "
            "Save it again with from_pretrained(…, from_flax=True) in "
            "transformers 4."
        )
    return tensors, TENSORFLOW if written_by == "tf" else TORCH


def _safetensor(path, name, kind, shape):
    """Return the `StoredTensor` for a name, type and shape in a file."""
    if kind not in DTYPES:
        raise UserError(
            f"{path}: {name} has the unsupported type {kind}. Save it again as float32."
        )

    def read():
        # Open the file again for each tensor: it is memory-mapped, and reading
        # a file that was truncated in the meantime would kill the process.
        with _readable(path), safetensors.safe_open(path, "numpy") as file:
            return file.get_tensor(name)

    return StoredTensor(tuple(shape), DTYPES[kind], read)


def _open_h5(path):
    """Open a Keras 2 file: groups of layers that contain the variables."""
    tensors: dict[str, StoredTensor] = {}

    def add(name, item):
        # Skip optimizer state in fully saved models.
        is_array = isinstance(item, h5py.Dataset) and item.dtype.kind in "fiub"
        if is_array and not name.startswith("optimizer_weights/"):
            tensors[name] = StoredTensor(
                item.shape, item.dtype, functools.partial(read, name)
            )

    def read(name):
        with _readable(path), h5py.File(path, "r") as file:
            return file[name][()]

    with _readable(path), h5py.File(path, "r") as file:
        file.visititems(add)
    return tensors


@contextlib.contextmanager
def _readable(path):
    """Convert exceptions for a damaged file to `UserError`."""
    try:
        yield
    except UserError:
        raise
    except DAMAGED as error:
        raise UserError(
            f"Cannot read {path}; it may be truncated ({error}). Download "
            "or copy it again."
        ) from error
