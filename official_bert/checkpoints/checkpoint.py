"""`Checkpoint` and `StoredTensor`: the common form of all checkpoint formats."""

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
    kernels are [in, out]. Tensors that are not part of BERT keep the name from
    the file. Optimizer slots are left out.

    Attributes:
      path: the path that the user gave, for messages.
      format: "google", "model_garden", "huggingface" or "keras_hub".
      shapes: dict of name -> tuple of int.
      read: function: name -> float32 array, C-contiguous; raises `UserError` if
        the file is damaged.
      config: `BertConfig`, or None if no file states it.
      vocab_file: path of its `vocab.txt`, or None. The file may be deleted when
        the checkpoint is closed.
      do_lower_case: its casing, or None if no file states it.
      notes: sentences that a user should read.
      global_step: number of training steps, or None if the file does not state
        it.
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
    """A tensor under the name from its file.

    Attributes:
      shape: tuple of int.
      dtype: its type in the file, which may be `ml_dtypes.bfloat16`.
      read: function without arguments -> array of this shape and type, possibly
        read-only; raises `UserError` if the file is damaged.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    read: Callable[[], np.ndarray]
