"""Exported training steps as files, for machines with and without TensorFlow.

A step NAME consists of `NAME.hlo.pb.gz`, the program, and `NAME.json`, which describes
its arguments and results. A step with a reference also has `NAME.npz`.
"""

import dataclasses
import gzip
import json
import pathlib
import zlib

import numpy as np

from benchmarks import workload
from official_bert.errors import UserError

# Training steps of the comparison with TensorFlow.
NUM_CHECKED = 10
# Width of the uniform distribution with the standard deviation 0.02.
SPREAD = 0.02 * 12**0.5


@dataclasses.dataclass(frozen=True)
class Step:
    """The description of an exported step.

    Attributes:
      size: name of a released size.
      precision: "float32" or "bfloat16".
      batch: sequences.
      length: tokens of each.
      flops: operations of the matrix products in one training step.
      arguments: list of dicts with `name`, `shape` and `dtype`: the features, then
        the variables.
      results: list of dicts with `name`, the name of a report value or of an
        argument, which gets this new value.
    """

    size: str
    precision: str
    batch: int
    length: int
    flops: float
    arguments: list
    results: list

    @property
    def name(self):
        """Return the name of its files, without suffix."""
        return name_of(self.size, self.batch, self.length, self.precision)

    def batch_of(self, seed, shortest):
        """Return a random batch; see `workload.pretraining_batch`."""
        vocab_size = workload.size_of(self.size)["vocab_size"]
        return workload.pretraining_batch(
            vocab_size, self.batch, shortest, self.length, seed
        )


def name_of(size, batch, length, precision):
    """Return the name of a step's files, such as "tiny_8x128_float32"."""
    return f"{size}_{batch}x{length}_{precision}"


def first_value(name, shape, dtype):
    """Return a variable's value before the first training step, an array.

    It is the same on every machine, because it uses no files and no functions
    whose last bits differ.

    Args:
      name: Google's name of a weight, or the name of a moment or counter.
      shape: sequence of int.
      dtype: name of the dtype.
    """
    if _is_moment(name) or len(shape) < 2:
        value = np.ones if is_weight(name) and name.endswith("gamma") else np.zeros
        return value(shape, dtype)
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    return (rng.random(shape, np.float32) - np.float32(0.5)) * np.float32(SPREAD)


def is_weight(name):
    """Return whether a variable is a weight of the model."""
    return name.startswith(("bert/", "cls/")) and not _is_moment(name)


def _is_moment(name):
    return name.endswith(("adam_m", "adam_v"))


def write(folder, step, program):
    """Write a step.

    Args:
      folder: path.
      step: `Step`.
      program: a serialized `HloModuleProto`.
    """
    folder = pathlib.Path(folder)
    (folder / f"{step.name}.hlo.pb.gz").write_bytes(gzip.compress(program, mtime=0))
    described = json.dumps(dataclasses.asdict(step))
    (folder / f"{step.name}.json").write_text(described + "\n")


def read(folder, name):
    """Return (`Step`, its program) that `write` wrote.

    Raises:
      UserError: the files do not exist.
    """
    folder = pathlib.Path(folder)
    if not (folder / f"{name}.json").exists():
        exported = ", ".join(sorted(path.stem for path in folder.glob("*.json")))
        raise UserError(
            f"{folder} does not contain the step {name}, only: "
            f"{exported or 'none'}. Export it with "
            "benchmarks/accelerators/export_steps.py."
        )
    step = Step(**json.loads((folder / f"{name}.json").read_text()))
    return step, gzip.decompress((folder / f"{name}.hlo.pb.gz").read_bytes())
