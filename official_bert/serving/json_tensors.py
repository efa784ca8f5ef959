"""Convert TF Serving's JSON to arrays, and arrays to JSON.

A request has rows in `instances` or columns in `inputs`. `instances` is a list. Each
row is a value, or an object of input name -> value. `inputs` is one value, or an object
of input name -> value. Bytes are written {"b64": "..."}. Error messages are those of TF
Serving's source, tensorflow_serving/util/json_tensor.cc.
"""

import base64
import functools
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import types_pb2

# Maximum characters of a rejected value in a message.
SHOWN = 200
# Maximum depth of lists; NumPy's own limit is 64.
MAX_RANK = 32
# Output strings whose name has this suffix are bytes, not text.
BYTES_SUFFIX = "_bytes"
_FLOATS = tf.float32, tf.float64
_INTEGERS = tf.int8, tf.uint8, tf.int16, tf.int32, tf.uint32, tf.int64, tf.uint64
_dumps = functools.partial(json.dumps, ensure_ascii=False)


class RequestError(Exception):
    """An invalid request; the message goes to the client.

    Attributes:
      status: the HTTP status that TF Serving returns in this case.
    """

    def __init__(self, message: str, status: int = 400):
        super().__init__(message)
        self.status = status


def parse_request(body: bytes) -> dict[str, Any]:
    """Return the JSON object in the body of a request, bytes.

    TF Serving passes bytes that are not UTF-8 to the model. In the result they are lone
    surrogates (`surrogateescape`), which `read_inputs` converts back to bytes.

    Raises:
      RequestError: the body is not a JSON object, or its signature's name is not a
        string.
    """
    if not body:
        raise RequestError("JSON Parse error: The document is empty")
    try:
        value = json.loads(body.decode("utf-8-sig", "surrogateescape"))
        if b"\\u" in body:
            _refuse_escaped_surrogates(value, body)
    except (ValueError, RecursionError) as error:
        # Not JSON, a number with thousands of digits, or too deeply nested lists.
        raise RequestError(f"JSON Parse error: {error}") from error
    if not isinstance(value, dict):
        raise _refusal(value, "Is not object")
    if not isinstance(value.get("signature_name", ""), str):
        key = "'signature_name' key must be a string value."
        raise _refusal(value, f"not formatted correctly. {key}")
    return value


def _refuse_escaped_surrogates(value, body):
    """Reject an escaped surrogate, such as D800, without its other half."""
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        # Its lone surrogates may be bytes that are not UTF-8.
        return
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        message = "JSON Parse error: The surrogate pair in string is invalid."
        raise RequestError(message) from error


def read_inputs(
    request: Mapping[str, Any], specs: Mapping[str, tf.TensorSpec]
) -> dict[str, np.ndarray]:
    """Convert the values of a request of `parse_request` to arrays.

    Args:
      request: the request, a dict.
      specs: dict of input name -> `tf.TensorSpec`, at least one.

    Returns:
      dict of input name -> array; strings are bytes in arrays of objects.

    Raises:
      RequestError: the values do not fit the inputs.
    """
    if request.keys() >= {"instances", "inputs"}:
        raise _refusal(
            request,
            "Not formatted correctly expecting only one of 'inputs' or 'instances' "
            "keys to exist ",
        )
    if "instances" in request:
        rows = request["instances"]
        if not isinstance(rows, list):
            raise _refusal(request, "Excepting 'instances' to be an list/array")
        if not rows:
            raise _refusal(request, "No values in 'instances' array")
        arrays = read_rows(rows, specs)
    elif "inputs" in request:
        arrays = _read_columns(request["inputs"], specs)
    else:
        raise RequestError("Missing 'inputs' or 'instances' key")
    for name, array in arrays.items():
        expected = specs[name].shape
        if not expected.is_compatible_with(array.shape):
            raise RequestError(
                f"Input {name} has shape {_brackets(array.shape)} but the signature "
                f"takes {_brackets(expected)}"
            )
    return arrays


def _read_columns(inputs, specs):
    """Convert `inputs`; unknown names are ignored, as in TF Serving."""
    if not _is_named(inputs):
        if len(specs) > 1:
            raise RequestError(
                "inputs is a plain value/list, but expecting an object as multiple "
                "input tensors required as per tensorinfo_map"
            )
        inputs = dict.fromkeys(specs, inputs)
    for name in specs:
        if name not in inputs:
            raise RequestError(f"Missing named input: {name} in 'inputs' object.")
    return {name: _to_array(inputs[name], spec.dtype) for name, spec in specs.items()}


def read_rows(
    rows: Sequence[Any], specs: Mapping[str, tf.TensorSpec]
) -> dict[str, np.ndarray]:
    """Convert rows to a dict of input name -> array [rows, ...].

    Args:
      rows: non-empty list of JSON values of the only input, or of dicts of input name
        -> value.
      specs: dict of input name -> `tf.TensorSpec`.

    Raises:
      RequestError: a row does not fit the inputs or the rows before it.
    """
    named = _is_named(rows[0])
    if not named and len(specs) > 1:
        raise RequestError(
            "instances is a plain list, but expecting list of objects as multiple "
            "input tensors required as per tensorinfo_map"
        )
    columns: dict[str, list[np.ndarray]] = {name: [] for name in specs}
    for number, row in enumerate(rows):
        if _is_named(row) != named:
            expected = "object but got list" if named else "value/list but got object"
            raise RequestError(f"Expecting {expected} at item {number} of input list")
        for name, value in (row if named else dict.fromkeys(specs, row)).items():
            try:
                _append(columns, name, value, specs)
            except RequestError as error:
                raise RequestError(
                    f"Failed to process element: {number}"
                    f"{f' key: {name}' if named else ''} of 'instances' list. Error: "
                    f"INVALID_ARGUMENT: {error}",
                    error.status,
                ) from error
        if named and row.keys() != specs.keys():
            raise RequestError(
                f"Failed to process element: {number} of 'instances' list. JSON "
                f"object: {_shown(row)} keys must be equal to: "
                f"{','.join(sorted(specs))}"
            )
    return {name: np.stack(arrays) for name, arrays in columns.items()}


def _append(columns, name, value, specs):
    """Append one input of one row to its column; the first row sets the shape."""
    if name not in specs:
        raise RequestError(f"JSON object: does not have named input: {name}")
    array = _to_array(value, specs[name].dtype)
    first = columns[name][0] if columns[name] else array
    if array.size != first.size:
        raise RequestError(f"Expecting tensor size: {first.size} but got: {array.size}")
    if array.shape != first.shape:
        shapes = _brackets(first.shape), _brackets(array.shape)
        raise RequestError("Expecting shape {} but got: {}".format(*shapes))
    columns[name].append(array)


def _is_named(value):
    """Return whether a row or `inputs` is an object of input name -> value."""
    return isinstance(value, dict) and not _is_base64(value)


def _to_array(value, dtype):
    """Convert a value, or nested lists of one shape, to an array."""
    if dtype not in (tf.string, tf.bool, *_FLOATS, *_INTEGERS):
        name = _type_name(dtype)
        raise RequestError(f"Conversion of JSON values to type: {name}", 501)
    # NumPy keeps lists in the array if their lengths differ.
    array = np.array(value, object)
    values = array.ravel().tolist()
    if array.ndim > MAX_RANK or any(isinstance(each, list) for each in values):
        raise _shape_error(values, array.ndim)
    if dtype == tf.string:
        # For a single value, NumPy returns bytes instead of an array.
        return np.array(np.frompyfunc(_to_bytes, 1, 1)(array), object)
    _check_numbers(values, dtype)
    return array.astype(dtype.as_numpy_dtype)


def _shape_error(values, level):
    """Return the error for lists of different shapes, some of which are in `values`."""
    first = values[0]
    for each in values:
        if not isinstance(each, list) and isinstance(first, list):
            return _refusal(
                each,
                f"found at incorrect level: {level + 1} in the JSON DOM. Expected at "
                f"level: {level + np.array(first, object).ndim}",
            )
        if isinstance(each, list) and not isinstance(first, list):
            message = f"list at unexpected level: {level} expected < {level}"
            return RequestError(f"Encountered {message}")
        if isinstance(each, list) and len(each) != len(first):
            message = f"list at unexpected size: {len(each)} at level: {level}"
            return RequestError(f"Encountered {message} expected size: {len(first)}")
    return RequestError(f"Lists are nested deeper than {MAX_RANK} levels.")


def _check_numbers(values, dtype):
    """Reject values of another type, and numbers that the type cannot hold."""
    name, is_float = _type_name(dtype), dtype in _FLOATS
    low: float = -math.inf
    limits: dict[type, float] = {bool: True}
    if is_float:
        info = np.finfo(dtype.as_numpy_dtype)
        # The type keeps only the first digits of larger integers.
        limits = {int: 2 ** (info.nmant + 1) - 1, float: float(info.max)}
    elif dtype in _INTEGERS:
        low, limits = int(dtype.min), {int: int(dtype.max)}
    for value in values:
        limit = limits.get(type(value))
        if limit is None or not (is_float or low <= value <= limit):
            raise _type_error(value, name)
        if is_float and limit < abs(value) < math.inf:
            raise RequestError(
                f"Cannot convert JSON value: {_shown(value)} to {name} without loss of "
                "precision."
            )


def _to_bytes(value):
    """Return a string or an object of base64 as bytes."""
    try:
        if isinstance(value, str):
            return value.encode("utf-8", "surrogateescape")
        if not isinstance(value, dict):
            raise _type_error(value, "string")
        if not _is_base64(value):
            raise _refusal(value, "not formatted correctly for base64 data")
        digits = "".join(value["b64"].split()).rstrip("=")
        return base64.b64decode(digits + "=" * (-len(digits) % 4), validate=True)
    except UnicodeEncodeError as error:
        raise RequestError("The surrogate pair in string is invalid.") from error
    except ValueError as error:
        raise RequestError("Unable to base64 decode") from error


def _is_base64(value):
    return value.keys() == {"b64"} and isinstance(value["b64"], str)


def _type_error(value, name):
    names = {dict: "Object", str: "String", bool: str(value), type(None): "Null"}
    actual = names.get(type(value), "Number")
    return _refusal(value, f"Type: {actual} is not of expected type: {name}")


def _type_name(dtype):
    """Return TF Serving's name of a type, such as "float" for float32."""
    return types_pb2.DataType.Name(dtype.as_datatype_enum)[len("DT_") :].lower()


def _refusal(value, reason):
    return RequestError(f"JSON Value: {_shown(value)} {reason}")


def _shown(value):
    """Return a value as JSON, shortened if it is long."""
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _brackets(shape):
    """Return a shape as TF Serving writes it; -1 means any size."""
    return f"[{','.join('-1' if size is None else str(size) for size in shape)}]"


def to_rows(outputs: Mapping[str, np.ndarray]) -> list[Any]:
    """Return `predictions`, the outputs of each row.

    Args:
      outputs: dict of output name -> array [rows, ...].

    Returns:
      A list with one item per row: the value if there is one output, else a dict of
        output name -> value, sorted by name.

    Raises:
      RequestError: the outputs have no rows, or different numbers of rows.
    """
    sizes = []
    for name in sorted(outputs):
        if not outputs[name].shape:
            raise RequestError(f"Tensor name: {name} has no shape information ")
        sizes.append(len(outputs[name]))
        if sizes[-1] != sizes[0]:
            raise RequestError(
                f"Tensor name: {name} has inconsistent batch size: {sizes[-1]} "
                f"expecting: {sizes[0]}"
            )
    columns = to_columns(outputs)
    if len(outputs) == 1:
        return columns
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def to_columns(outputs: Mapping[str, np.ndarray]) -> Any:
    """Return `outputs`: the value of the only output, or a dict by name."""
    columns = {name: _to_lists(outputs[name], name) for name in sorted(outputs)}
    return next(iter(columns.values())) if len(columns) == 1 else columns


def _to_lists(array, name):
    """Return an array as nested lists of JSON values."""
    if array.ndim > 1:
        # Convert row by row: while NumPy converts, no other thread runs.
        return [_to_lists(row, name) for row in array]
    if array.dtype == object:

        def encode(value):
            if name.endswith(BYTES_SUFFIX):
                return {"b64": base64.b64encode(value).decode("ascii")}
            # U+FFFD replaces bytes that are not UTF-8.
            return value.decode("utf-8", "replace")

        # For a single value, NumPy does not return an array.
        return np.array(np.frompyfunc(encode, 1, 1)(array), object).tolist()
    if array.dtype.kind in "biu" or array.dtype == np.float64:
        return array.tolist()
    if array.dtype.kind not in "fV":
        raise RequestError(f"Failed to write JSON value for tensor type: {array.dtype}")
    # The shortest digits of this float32: 0.2, not 0.20000000298.
    return array.astype(np.float32).astype(str).astype(np.float64).tolist()


def dump(value: Any) -> bytes:
    """Return the body of a response, UTF-8.

    Not-a-number and infinities are written as `NaN`, `Infinity` and `-Infinity`, as in
    TF Serving. JSON itself cannot express them.
    """
    return _text_of(value).encode("utf-8", "replace")


def _text_of(value):
    """Return JSON; write rows one by one, because `dumps` blocks other threads."""
    if isinstance(value, dict):
        items = (f"{_dumps(name)}: {_text_of(item)}" for name, item in value.items())
        return f"{{{', '.join(items)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_dumps, value))}]"
    return _dumps(value)
