"""TF Serving's REST requests: JSON to arrays.

A request has its rows in `instances` (a list; each row is a value, or an object
of input name -> value) or its columns in `inputs` (one value, or an object of
input name -> value). Bytes are written {"b64": "..."}. What TF Serving refuses is
refused here, with the same words as far as they are known from its source,
tensorflow_serving/util/json_tensor.cc.
"""

import base64
import binascii
import dataclasses
import json

import numpy as np

from official_bert.serving.request_error import RequestError

# How many characters of a refused value a message shows.
SHOWN = 200
# How deep lists within lists may go; NumPy's own limit is 64.
MAX_RANK = 32
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Type in TF's words -> what NumPy calls it.
_NUMBERS = {
    "float": np.float32,
    "double": np.float64,
    "int8": np.int8,
    "uint8": np.uint8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "uint32": np.uint32,
    "uint64": np.uint64,
}


@dataclasses.dataclass(frozen=True)
class InputSpec:
    """What a signature says of one input.

    Attributes:
      dtype: type in TF's words: "string", "bool", "int32", "float", "double" ...
      shape: tuple of int, -1 where any size will do; None if any shape will.
    """

    dtype: str
    shape: tuple[int, ...] | None = None


def parse(body):
    """Return the JSON object that the body of a request holds.

    Bytes that are not UTF-8 stay what they are, as in TF Serving, which passes
    them on to the model: in the strings they are lone surrogates
    (`surrogateescape`), and `read_inputs` makes bytes of them again.

    Args:
      body: bytes.

    Raises:
      RequestError: it is not JSON, or no object.
    """
    body = body.removeprefix(_BYTE_ORDER_MARK)
    if not body:
        raise RequestError("JSON Parse error: The document is empty")
    try:
        text, errors = body.decode("utf-8"), "strict"
    except UnicodeDecodeError:
        errors = "surrogateescape"
        text = body.decode("utf-8", errors)
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise RequestError(
            f"JSON Parse error: {error.msg} at offset: {error.pos}"
        ) from error
    except (ValueError, RecursionError) as error:
        # A number of thousands of digits, or lists within lists within lists.
        raise RequestError(f"JSON Parse error: {error}") from error
    if not isinstance(value, dict):
        raise RequestError(f"JSON Value: {_shown(value)} Is not object")
    if "\\ud" in text.lower():
        _refuse_lone_surrogates(value, errors)
    return value


def _refuse_lone_surrogates(value, errors):
    """Refuse half a character, as an escaped D800 alone is: no encoding has it."""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8", errors)
    except UnicodeEncodeError as error:
        raise RequestError(
            "JSON Parse error: The surrogate pair in string is invalid."
        ) from error


def signature_name(request):
    """Return the signature that a parsed request names, or None.

    Raises:
      RequestError: the name is no string.
    """
    name = request.get("signature_name", "")
    if not isinstance(name, str):
        raise RequestError(
            f"JSON Value: {_shown(request)} not formatted correctly. "
            "'signature_name' key must be a string value."
        )
    return name or None


def read_inputs(request, specs):
    """Turn the values of a request into arrays.

    Args:
      request: dict, see `parse`.
      specs: dict of input name -> `InputSpec`, at least one.

    Returns:
      (dict of input name -> array, of bytes objects for strings; whether the
      answer goes by rows).

    Raises:
      RequestError: the values are not what the inputs take.
    """
    if "instances" in request and "inputs" in request:
        raise RequestError(
            f"JSON Value: {_shown(request)} Not formatted correctly expecting only "
            "one of 'inputs' or 'instances' keys to exist "
        )
    if "instances" in request:
        arrays = _read_instances(request["instances"], specs, request)
    elif "inputs" in request:
        arrays = _read_columns(request["inputs"], specs)
    else:
        raise RequestError("Missing 'inputs' or 'instances' key")
    for name, array in arrays.items():
        _require_shape(name, array.shape, specs[name].shape)
    return arrays, "instances" in request


def _read_instances(rows, specs, request):
    if not isinstance(rows, list):
        raise RequestError(
            f"JSON Value: {_shown(request)} Excepting 'instances' to be an list/array"
        )
    if not rows:
        raise RequestError(
            f"JSON Value: {_shown(request)} No values in 'instances' array"
        )
    return read_rows(rows, specs)


def read_rows(rows, specs):
    """Turn rows into arrays with a row for each.

    Args:
      rows: list, not empty, of values as JSON has them: of the one input, or
        dicts of input name -> value.
      specs: dict of input name -> `InputSpec`.

    Returns:
      dict of input name -> array [rows, ...].

    Raises:
      RequestError: a row does not fit the inputs or the rows before it.
    """
    named = _is_named(rows[0])
    if not named and len(specs) > 1:
        raise RequestError(
            "instances is a plain list, but expecting list of objects as multiple "
            "input tensors required as per tensorinfo_map"
        )
    only_name = next(iter(specs))
    found = {name: [] for name in specs}
    shapes = {}
    for number, row in enumerate(rows):
        if _is_named(row) != named:
            expected = "object but got list" if named else "value/list but got object"
            raise RequestError(f"Expecting {expected} at item {number} of input list")
        if not named:
            _add_value(row, only_name, number, "", specs, shapes, found)
            continue
        for name, value in row.items():
            _add_value(value, name, number, f" key: {name}", specs, shapes, found)
        _require_names(row, number, specs)
    return {
        name: _as_array(found[name], (len(rows), *shapes[name]), specs[name].dtype)
        for name in specs
    }


def _is_named(row):
    """Whether a row gives names to its values."""
    return isinstance(row, dict) and not _is_base64(row)


def _require_names(row, number, specs):
    if row.keys() != specs.keys():
        raise RequestError(
            f"Failed to process element: {number} of 'instances' list. JSON object: "
            f"{_shown(row)} keys must be equal to: {','.join(sorted(specs))}"
        )


def _add_value(value, name, number, key, specs, shapes, found):
    """Append one input of one row to `found`; the first row says the shape."""
    try:
        if name not in specs:
            raise RequestError(f"JSON object: does not have named input: {name}")
        shape = _shape_of(value)
        values = []
        _collect(value, 0, shape, _reader(specs[name].dtype), values)
        _require_same(shape, shapes.setdefault(name, shape))
        found[name] += values
    except RequestError as error:
        raise RequestError(
            f"Failed to process element: {number}{key} of 'instances' list. "
            f"Error: INVALID_ARGUMENT: {error}",
            error.status,
        ) from error


def _require_same(shape, first):
    if np.prod(shape, dtype=object) != np.prod(first, dtype=object):
        raise RequestError(
            f"Expecting tensor size: {np.prod(first, dtype=object)} but got: "
            f"{np.prod(shape, dtype=object)}"
        )
    if shape != first:
        raise RequestError(
            f"Expecting shape {_listed(first)} but got: {_listed(shape)}"
        )


def _read_columns(inputs, specs):
    """Turn `inputs` into arrays; names that no input has are passed over."""
    if not _is_named(inputs):
        if len(specs) > 1:
            raise RequestError(
                "inputs is a plain value/list, but expecting an object as multiple "
                "input tensors required as per tensorinfo_map"
            )
        inputs = dict.fromkeys(specs, inputs)
    arrays = {}
    for name, spec in specs.items():
        if name not in inputs:
            raise RequestError(f"Missing named input: {name} in 'inputs' object.")
        shape, values = _shape_of(inputs[name]), []
        _collect(inputs[name], 0, shape, _reader(spec.dtype), values)
        arrays[name] = _as_array(values, shape, spec.dtype)
    return arrays


def _shape_of(value):
    """Return the lengths of the lists, each the first within the one before."""
    shape = []
    while isinstance(value, list):
        shape.append(len(value))
        value = value[0] if value else None
    if len(shape) > MAX_RANK:
        raise RequestError(f"Lists within lists go deeper than {MAX_RANK} levels.")
    return tuple(shape)


def _collect(value, level, shape, read, values):
    """Append what nested lists hold to `values`, all of it as deep as `shape`."""
    if not isinstance(value, list):
        if level != len(shape):
            raise RequestError(
                f"JSON Value: {_shown(value)} found at incorrect level: {level + 1} "
                f"in the JSON DOM. Expected at level: {len(shape)}"
            )
        values.append(read(value))
        return
    if level >= len(shape):
        raise RequestError(
            f"Encountered list at unexpected level: {level} expected < {len(shape)}"
        )
    if len(value) != shape[level]:
        raise RequestError(
            f"Encountered list at unexpected size: {len(value)} at level: {level} "
            f"expected size: {shape[level]}"
        )
    for item in value:
        _collect(item, level + 1, shape, read, values)


def _as_array(values, shape, dtype):
    numpy_dtype = {"string": object, "bool": bool}.get(dtype) or _NUMBERS[dtype]
    return np.array(values, numpy_dtype).reshape(shape)


def _require_shape(name, shape, expected):
    fits = expected is None or (
        len(shape) == len(expected)
        and all(
            wanted in (-1, size) for size, wanted in zip(shape, expected, strict=True)
        )
    )
    if not fits:
        raise RequestError(
            f"Input {name} has shape {_listed(shape)} but the signature takes "
            f"{_listed(expected)}"
        )


def _reader(dtype):
    """Return the function that reads one value of a type."""
    if dtype == "string":
        return _read_string
    if dtype == "bool":
        return _read_bool
    if dtype in ("float", "double"):
        return lambda value: _read_decimal(value, dtype)
    if dtype in _NUMBERS:
        info = np.iinfo(_NUMBERS[dtype])
        low, high = int(info.min), int(info.max)
        return lambda value: _read_whole(value, dtype, low, high)
    raise RequestError(f"Conversion of JSON values to type: {dtype}", 501)


def _read_string(value):
    if isinstance(value, dict):
        return _read_base64(value)
    if not isinstance(value, str):
        raise _type_error(value, "string")
    try:
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise RequestError("The surrogate pair in string is invalid.") from error


def _is_base64(value):
    return (
        isinstance(value, dict)
        and value.keys() == {"b64"}
        and isinstance(value["b64"], str)
    )


def _read_base64(value):
    if not _is_base64(value):
        raise RequestError(
            f"JSON Value: {_shown(value)} not formatted correctly for base64 data"
        )
    digits = "".join(value["b64"].split()).rstrip("=")
    try:
        return base64.b64decode(digits + "=" * (-len(digits) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise RequestError("Unable to base64 decode") from error


def _read_bool(value):
    if not isinstance(value, bool):
        raise _type_error(value, "bool")
    return value


def _read_whole(value, dtype, low, high):
    if isinstance(value, bool) or not isinstance(value, int):
        raise _type_error(value, dtype)
    if not low <= value <= high:
        raise _type_error(value, dtype)
    return value


def _read_decimal(value, dtype):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _type_error(value, dtype)
    info = np.finfo(_NUMBERS[dtype])
    if isinstance(value, int):
        # Of more digits the type keeps only the first.
        is_lossless = abs(value) < 1 << (info.nmant + 1)
    else:
        is_lossless = not np.isfinite(value) or abs(value) <= float(info.max)
    if not is_lossless:
        raise RequestError(
            f"Cannot convert JSON value: {_shown(value)} to {dtype} without loss of "
            "precision."
        )
    return value


def _type_error(value, dtype):
    return RequestError(
        f"JSON Value: {_shown(value)} Type: {_type_name(value)} is not of expected "
        f"type: {dtype}"
    )


def _type_name(value):
    if isinstance(value, bool) or value is None:
        return "Null" if value is None else str(value)
    names = {dict: "Object", list: "Array", str: "String"}
    return names.get(type(value), "Number")


def _shown(value):
    """Return a value as JSON, cut where it is long."""
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _listed(shape):
    return f"[{','.join(map(str, shape))}]"
