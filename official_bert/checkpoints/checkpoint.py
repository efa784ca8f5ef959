"""What every format is read into: `Checkpoint`, and `StoredTensor` for its files."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from official_bert.config import BertConfig


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """An open checkpoint of any format.

    Names are Google's (`bert/encoder/layer_0/attention/self/query/kernel`,
    `cls/predictions/output_bias`, `output_weights`, …), and so are shapes:
    kernels are [in, out]. A tensor that no part of BERT is known by keeps the
    name of its file. Optimizer slots are left out.

    Attributes:
      path: what the user gave, for messages.
      format: "google", "model_garden", "huggingface" or "keras_hub".
      shapes: dict of name -> tuple of int.
      read: function: name -> float32 array, C-contiguous; raises `UserError` if
        the file is damaged.
      config: `BertConfig`, or None where no file states it.
      vocab_file: path of its `vocab.txt`, or None. It may be gone once the
        checkpoint is closed.
      do_lower_case: its casing, or None where no file states it.
      notes: sentences about it that a user should read.
      global_step: the updates that it has had, where its file states them.
    """

    path: str
    format: str
    shapes: dict[str, tuple[int, ...]]
    read: Callable[[str], np.ndarray]
    config: BertConfig | None = None
    vocab_file: str | None = None
    do_lower_case: bool | None = None
    notes: tuple[str, ...] = ()
    global_step: int | None = None

    def tensors(self) -> dict[str, np.ndarray]:
        """Return all weights: dict of name -> float32 array."""
        return {name: self.read(name) for name in self.shapes}


class StoredTensor(NamedTuple):
    """A tensor in a file, under the name that the file has for it.

    Attributes:
      shape: tuple of int.
      dtype: its type in the file; `ml_dtypes.bfloat16` is one too.
      read: function without arguments -> array of this shape and type, which
        may be read-only; raises `UserError` if the file is damaged.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    read: Callable[[], np.ndarray]
