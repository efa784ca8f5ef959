"""TF Serving's REST answers: arrays to JSON."""

import base64
import json

import numpy as np

from official_bert.serving.request_error import RequestError

# Strings of outputs that are called so are bytes, not text.
BYTES_SUFFIX = "_bytes"


def as_rows(outputs):
    """Return `predictions`: what each row got.

    Args:
      outputs: dict of output name -> array [rows, ...].

    Returns:
      list of a value for each row if there is one output, else of dicts of
      output name -> value, sorted by name.

    Raises:
      RequestError: the outputs have no rows, or not the same number.
    """
    size = None
    for name in sorted(outputs):
        shape = outputs[name].shape
        if not shape:
            raise RequestError(f"Tensor name: {name} has no shape information ")
        if size is not None and shape[0] != size:
            raise RequestError(
                f"Tensor name: {name} has inconsistent batch size: {shape[0]} "
                f"expecting: {size}"
            )
        size = shape[0]
    columns = {name: _listed(name, outputs[name]) for name in sorted(outputs)}
    if len(columns) == 1:
        return next(iter(columns.values()))
    return [
        dict(zip(columns, row, strict=True))
        for row in zip(*columns.values(), strict=True)
    ]


def as_columns(outputs):
    """Return `outputs`: the value of the one output, or a dict by name."""
    columns = {name: _listed(name, outputs[name]) for name in sorted(outputs)}
    return next(iter(columns.values())) if len(columns) == 1 else columns


def dump(value):
    """Return the body of an answer; not-a-number and infinities are bare words.

    That is `NaN`, `Infinity` and `-Infinity`, as TF Serving writes them; JSON
    itself has none.
    """
    return b"".join(part.encode("utf-8", "replace") for part in _parts_of(value))


def _parts_of(value):
    """Yield the parts of a JSON text, rows of outputs one by one.

    Each is written in one go, in which no other thread of the server does anything.
    """
    if isinstance(value, list) and value:
        for place, item in enumerate(value):
            yield ", " if place else "["
            yield json.dumps(item, ensure_ascii=False)
        yield "]"
    elif isinstance(value, dict) and value:
        for place, (name, item) in enumerate(value.items()):
            yield f"{', ' if place else '{'}{json.dumps(name, ensure_ascii=False)}: "
            yield from _parts_of(item)
        yield "}"
    else:
        yield json.dumps(value, ensure_ascii=False)


def _listed(name, array):
    """Return an array as lists of what JSON can hold."""
    if array.dtype == object:
        is_bytes = name.endswith(BYTES_SUFFIX)
        return _convert(array.tolist(), _as_base64 if is_bytes else _as_text)
    if array.dtype.kind in "biu" or array.dtype == np.float64:
        return array.tolist()
    if array.dtype.kind not in "fV":
        raise RequestError(f"Failed to write JSON value for tensor type: {array.dtype}")
    if array.ndim > 1:
        # Not all at once: while text is made, no other thread does anything.
        return [_listed(name, row) for row in array]
    # The shortest digits that are this float32: 0.2, not 0.20000000298.
    return array.astype(np.float32).astype(str).astype(np.float64).tolist()


def _convert(value, convert):
    if isinstance(value, list):
        return [_convert(item, convert) for item in value]
    return convert(value)


def _as_base64(value):
    return {"b64": base64.b64encode(value).decode("ascii")}


def _as_text(value):
    """Return bytes as text; what is not UTF-8 becomes U+FFFD."""
    return value.decode("utf-8", "replace")
