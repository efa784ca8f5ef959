"""The precision that a model computes in; its weights are float32 in all of them."""

import contextlib
from collections.abc import Iterator

import keras


@contextlib.contextmanager
def computing_in(precision: str) -> Iterator[None]:
    """Let Keras layers that are made in this block compute in a precision.

    Matrix products, GELU and what flows between layers are in that precision;
    LayerNorm, softmax and losses in float32 always. float16 wants the loss to
    be scaled, see `guard.Guard`.

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
