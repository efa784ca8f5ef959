"""Run a `.tflite` file of `export_model.py`, and read the files inside it."""

import contextlib
import hashlib
import importlib
import os
import pathlib
import re
import tempfile
import threading
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from official_bert.constants import INPUTS
from official_bert.errors import UserError

ENDING = ".tflite"
# Name of the file in the export folder.
FILE = f"model{ENDING}"
# Errors of `zipfile` for bytes that are not an archive or are damaged.
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, UnicodeDecodeError)
_IDENTIFIER = b"TFL3"
# File inside the `.tflite`: the SHA-256 of the model.
HASH_FILE = "model.sha256"
# Name of a signature; there is one for each sequence length.
SIGNATURE = "length_{}"
# Outputs with a value per token.
OF_TOKENS = ("start_logits", "end_logits", "tags", "tag_logits", "sequence_output")


def find_file(path: str | os.PathLike[str]) -> str | None:
    """Return the path of a `.tflite` file: this one, or the one in this folder."""
    for file in (os.fspath(path), os.path.join(path, FILE)):
        if file.endswith(ENDING) and os.path.isfile(file):
            return file
    return None


def read_files(path: str | os.PathLike[str]) -> dict[str, bytes]:
    """Return the files inside a `.tflite` file.

    Args:
      path: path of a `.tflite` file.

    Returns:
      dict of name -> bytes.

    Raises:
      UserError: the file cannot be read, is not a `.tflite` file, contains no files,
        or is damaged (the model or the files inside).
    """
    try:
        with open(path, "rb") as source:
            if source.read(8)[4:] != _IDENTIFIER:
                raise UserError(
                    f"{path} is not a TFLite model. Give a .tflite file of "
                    "export_model.py --format=tflite."
                )
            with zipfile.ZipFile(source) as packed:
                contents = {name: packed.read(name) for name in packed.namelist()}
                offsets = (one.header_offset for one in packed.infolist())
                model_size = min(offsets, default=0)
            source.seek(0)
            model = source.read(model_size)
        # The interpreter does not check: a damaged model crashes it or gives wrong
        # outputs.
        expected = contents.get(HASH_FILE)
        if expected and expected.decode() != hashlib.sha256(model).hexdigest():
            raise EOFError("the SHA-256 of the model has changed")
        return contents
    except OSError as error:
        raise UserError(f"Cannot read the model {path}: {error.strerror}.") from error
    except _DAMAGE as error:
        raise UserError(
            f"{path} is damaged, or contains no files ({error}). Export it with "
            "export_model.py --format=tflite. If it was exported so, copy it again."
        ) from error


@contextlib.contextmanager
def carried_files(path: str | os.PathLike[str]) -> Iterator[str]:
    """Yield a temporary folder with the files inside a `.tflite` file.

    They are `task.json`, `vocab.txt`, and other files from `export_model.py`.

    Raises:
      UserError: see `read_files`. If the block raises an error that names the folder,
        it names the `.tflite` file instead.
    """
    with tempfile.TemporaryDirectory() as folder:
        for name, content in read_files(path).items():
            # An export never packs files with other names.
            if re.fullmatch(r"\w[\w.]{,99}", name):
                pathlib.Path(folder, name).write_bytes(content)
        try:
            yield folder
        except UserError as error:
            raise UserError(str(error).replace(folder, str(path))) from error


class TfliteModel:
    """A model in the interpreter. It replaces the result of `outputs.compile_model`.

    Several threads may call it; it runs one call at a time.

    Attributes:
      lengths: sequence lengths of its signatures, in increasing order.
    """

    def __init__(self, path: str | os.PathLike[str]):
        """Load a model.

        Args:
          path: path of a `.tflite` file.

        Raises:
          UserError: the file is not a model, or has other signatures. Damage inside a
            model can end the process here; call `read_files` first to detect it.
        """
        try:
            self._interpreter = interpreter(path)
        except (ValueError, RuntimeError) as error:
            raise UserError(
                f"{path} is damaged or not a TFLite model: {error}. Export it again."
            ) from error
        names = self._interpreter.get_signature_list()
        matches = [re.fullmatch(SIGNATURE.format(r"(\d+)"), name) for name in names]
        self.lengths = sorted(int(match[1]) for match in matches if match)
        if not self.lengths:
            raise UserError(
                f"{path} has no signature {SIGNATURE.format('…')}. Give a model of "
                "export_model.py --format=tflite."
            )
        self._runners: dict[int, Any] = {}
        self._lock = threading.Lock()

    def outputs(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Return name -> (dtype, shape) of the outputs of the shortest signature."""
        details = self._runner(self.lengths[0]).get_output_details()
        return {
            name: (np.dtype(one["dtype"]).name, tuple(map(int, one["shape"])))
            for name, one in details.items()
        }

    def __call__(self, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the outputs for a batch.

        Args:
          batch: dict of `INPUTS`, int32 [B, S], S <= the longest of `lengths`.

        Returns:
          dict of float32 or int32 arrays [B, …]. Outputs per token are [B, S, …], and
          0 at padding.
        """
        size, outputs = batch["input_ids"].shape[1], []
        for index, mask in enumerate(batch["input_mask"]):
            used = max(1, int(np.flatnonzero(mask).max(initial=-1)) + 1)
            length = next(each for each in self.lengths if each >= used)
            inputs = {
                name: _fitted(batch[name][index][:used], length)[None]
                for name in INPUTS
            }
            with self._lock:
                results = self._runner(length)(**inputs)
            outputs.append(
                {
                    name: _fitted(value[0][:used], size)
                    if name in OF_TOKENS
                    else value[0]
                    for name, value in results.items()
                }
            )
        return {name: np.stack([one[name] for one in outputs]) for name in outputs[0]}

    def _runner(self, length):
        """Return the runner of a length; the first call allocates its memory."""
        if length not in self._runners:
            name = SIGNATURE.format(length)
            self._runners[length] = self._interpreter.get_signature_runner(name)
        return self._runners[length]


def interpreter(path: str | os.PathLike[str], num_threads: int | None = None) -> Any:
    """Return an interpreter of a `.tflite` file, LiteRT's if it is installed.

    Args:
      path: path of the file.
      num_threads: int; None for one thread per core.
    """
    threads = num_threads or os.cpu_count()
    try:
        litert = importlib.import_module("ai_edge_litert.interpreter")
    except ImportError:
        import tensorflow as tf

        with warnings.catch_warnings():
            # Suppress the warning that recommends LiteRT.
            warnings.simplefilter("ignore")
            return tf.lite.Interpreter(str(path), num_threads=threads)
    return litert.Interpreter(str(path), num_threads=threads)


def _fitted(values, length):
    """Cut an array [T, …] to a length, or pad it with 0."""
    padding = [(0, max(0, length - len(values)))] + [(0, 0)] * (values.ndim - 1)
    return np.pad(values[:length], padding)
