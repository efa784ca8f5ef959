"""A `.tflite` of `export_model.py`: what runs it, and what it carries with it."""

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
# What it is called in the folder that is exported.
FILE = f"model{ENDING}"
# What `zipfile` raises for bytes that are no archive, or a damaged one.
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, UnicodeDecodeError)
_IDENTIFIER = b"TFL3"
# Carried: the SHA-256 of the model.
HASH_FILE = "model.sha256"
# A signature for each length of rows.
SIGNATURE = "length_{}"
# These outputs have a value for each token.
OF_TOKENS = ("start_logits", "end_logits", "tags", "tag_logits", "sequence_output")


def find_file(path: str | os.PathLike[str]) -> str | None:
    """Return the path of a `.tflite`: this one, or that in this folder; else None."""
    for file in (os.fspath(path), os.path.join(path, FILE)):
        if file.endswith(ENDING) and os.path.isfile(file):
            return file
    return None


def read_files(path: str | os.PathLike[str]) -> dict[str, bytes]:
    """Return the files that a model carries.

    Args:
      path: of a `.tflite`.

    Returns:
      dict of name -> bytes.

    Raises:
      UserError: it cannot be read, is no `.tflite`, carries none, or is damaged,
        be it in the files or in the model.
    """
    try:
        with open(path, "rb") as source:
            if source.read(8)[4:] != _IDENTIFIER:
                raise UserError(
                    f"{path} is no model for TFLite; give a .tflite of export_model.py "
                    "--format=tflite."
                )
            with zipfile.ZipFile(source) as packed:
                contents = {name: packed.read(name) for name in packed.namelist()}
                offsets = (one.header_offset for one in packed.infolist())
                model_size = min(offsets, default=0)
            source.seek(0)
            model = source.read(model_size)
        # The interpreter does not look: a damaged model ends the process, or answers.
        expected = contents.get(HASH_FILE)
        if expected and expected.decode() != hashlib.sha256(model).hexdigest():
            raise EOFError("its SHA-256 is not what it was")
        return contents
    except OSError as error:
        raise UserError(
            f"Cannot read a model from {path}: {error.strerror}."
        ) from error
    except _DAMAGE as error:
        raise UserError(
            f"{path} carries no files, or is damaged: {error}; export it with "
            "export_model.py --format=tflite, or copy it again if that made it."
        ) from error


@contextlib.contextmanager
def carried_files(path: str | os.PathLike[str]) -> Iterator[str]:
    """Yield a folder, for as long as it is needed, with the files in a `.tflite`.

    They are `task.json`, `vocab.txt`, and what else `export_model.py` puts there.

    Raises:
      UserError: see `read_files`. One that is raised in the block and names the
        folder names the `.tflite` instead.
    """
    with tempfile.TemporaryDirectory() as folder:
        for name, content in read_files(path).items():
            # Others are none that an export packs.
            if re.fullmatch(r"\w[\w.]{,99}", name):
                pathlib.Path(folder, name).write_bytes(content)
        try:
            yield folder
        except UserError as error:
            raise UserError(str(error).replace(folder, str(path))) from error


class TfliteModel:
    """A model in the interpreter, in place of what `outputs.compile_model` returns.

    It may be called from several threads; they take turns.

    Attributes:
      lengths: of its signatures, rising.
    """

    def __init__(self, path: str | os.PathLike[str]):
        """Load a model.

        Args:
          path: of a `.tflite`.

        Raises:
          UserError: the file is no model, or has other signatures. Damage inside a
            model can end the process here; `read_files` notices it before.
        """
        try:
            self._interpreter = interpreter(path)
        except (ValueError, RuntimeError) as error:
            raise UserError(
                f"{path} is damaged, or no model for TFLite: {error}; export it again."
            ) from error
        names = self._interpreter.get_signature_list()
        matches = [re.fullmatch(SIGNATURE.format(r"(\d+)"), name) for name in names]
        self.lengths = sorted(int(match[1]) for match in matches if match)
        if not self.lengths:
            raise UserError(
                f"{path} has no signature {SIGNATURE.format('…')}; give a model of "
                "export_model.py --format=tflite."
            )
        self._runners: dict[int, Any] = {}
        self._lock = threading.Lock()

    def outputs(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Return dict of name -> (dtype, shape) of the shortest signature's outputs."""
        details = self._runner(self.lengths[0]).get_output_details()
        return {
            name: (np.dtype(one["dtype"]).name, tuple(map(int, one["shape"])))
            for name, one in details.items()
        }

    def __call__(self, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the outputs of rows.

        Args:
          batch: dict of `INPUTS`, int32 [B, S], S <= the longest of `lengths`.

        Returns:
          dict of float32 or int32 arrays [B, …]; those of tokens are [B, S, …], 0
          where there is padding.
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
        """Return the signature of a length; memory is taken with the first call."""
        if length not in self._runners:
            name = SIGNATURE.format(length)
            self._runners[length] = self._interpreter.get_signature_runner(name)
        return self._runners[length]


def interpreter(path: str | os.PathLike[str], num_threads: int | None = None) -> Any:
    """Return an interpreter of a `.tflite`: LiteRT's where installed, or TensorFlow's.

    Args:
      path: of the file.
      num_threads: int; None for one for each core.
    """
    threads = num_threads or os.cpu_count()
    try:
        litert = importlib.import_module("ai_edge_litert.interpreter")
    except ImportError:
        import tensorflow as tf

        with warnings.catch_warnings():
            # It says that LiteRT is to be used instead.
            warnings.simplefilter("ignore")
            return tf.lite.Interpreter(str(path), num_threads=threads)
    return litert.Interpreter(str(path), num_threads=threads)


def _fitted(values, length):
    """Return an array [T, …] cut or padded with 0 to a length."""
    padding = [(0, max(0, length - len(values)))] + [(0, 0)] * (values.ndim - 1)
    return np.pad(values[:length], padding)
