"""`StoredTensor`: a tensor in a file, read when it is asked for."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class StoredTensor(NamedTuple):
    """A tensor in a file.

    Attributes:
      shape: tuple of int.
      dtype: its type in the file; `ml_dtypes.bfloat16` is one too.
      read: function without arguments -> array of this shape and type, which
        may be read-only; raises `UserError` if the file is damaged.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    read: Callable[[], np.ndarray]
