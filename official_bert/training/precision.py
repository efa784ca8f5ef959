"""The precision of a model's computations; its weights are always float32."""

import contextlib
from collections.abc import Iterator

import keras


@contextlib.contextmanager
def computing_in(precision: str) -> Iterator[None]:
    """Let Keras layers that are created in this block compute in a precision.

    Matrix products, GELU and the tensors between layers have that precision. LayerNorm,
    softmax and losses are always float32. float16 also needs loss scaling, see
    `guard.Guard`.

    Args:
      precision: one of `constants.PRECISIONS`.
    """
    before = keras.config.dtype_policy()
    mixed = precision if precision == "float32" else f"mixed_{precision}"
    keras.config.set_dtype_policy(mixed)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)
