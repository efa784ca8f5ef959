"""Read dataclasses strictly from small JSON records."""

import dataclasses
import math
import os
import types
import typing
from collections.abc import Container
from typing import TYPE_CHECKING, Any, TypeVar

from official_bert import files
from official_bert.errors import UserError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Record = TypeVar("_Record", bound="DataclassInstance")


def read_record(
    record_class: type[_Record], path: str | os.PathLike[str], what: str, remedy: str
) -> _Record:
    """Read a dataclass from a JSON file.

    Args:
      record_class: see `from_json`.
      path: the file.
      what: expected content, for messages ("the result of a run").
      remedy: the remedy if the file is damaged, as the end of a sentence.

    Raises:
      UserError: the file cannot be read, or is not such a record.
    """
    try:
        return from_json(record_class, files.read_json(path, what))
    except KeyError as error:
        problem = f"it has no {error.args[0]}"
    except ValueError as error:
        problem = str(error)
    raise UserError(f"{path} is not {what}: {problem}; {remedy}.")


def from_json(
    record_class: type[_Record], values: Any, optional: Container[str] = ()
) -> _Record:
    """Return the dataclass of a JSON object that `dataclasses.asdict` created.

    Other keys are ignored, because a later version may write more.

    Args:
      record_class: a dataclass. Its fields have the types str, int, float, bool, dict
        or such a dataclass. They can also be tuples of one of these types
        (`tuple[str, ...]`), read from a list, and may allow None.
      values: dict. Tuples may still be tuples, as in `dataclasses.asdict`.
      optional: names of fields that may be missing and then have their defaults.

    Raises:
      KeyError: a field is missing.
      ValueError: a value has a different type than its field.
    """
    if not isinstance(values, dict):
        raise ValueError(f"{record_class.__name__} is not a JSON object")
    return record_class(
        **{
            field.name: _convert(values[field.name], field.type, field.name)
            for field in dataclasses.fields(record_class)
            if field.name in values or field.name not in optional
        }
    )


def _convert(value, kind, name):
    if isinstance(kind, types.UnionType):
        if value is None:
            return None
        kind = next(
            each for each in typing.get_args(kind) if each is not types.NoneType
        )
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return from_json(kind, value)
    if typing.get_origin(kind) is tuple and isinstance(value, list | tuple):
        return tuple(_convert(each, typing.get_args(kind)[0], name) for each in value)
    kind = typing.get_origin(kind) or kind  # The items of a dict are not checked.
    if kind is float and type(value) in (int, float) and math.isfinite(value):
        return float(value)
    # A bool is an int in Python, but is not valid in an int field.
    if kind is float or type(value) is not kind:
        raise ValueError(f"{name} is {value!r}")
    return value
