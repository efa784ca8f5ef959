"""Dataclasses that are kept as small JSON records, read strictly."""

import dataclasses
import math
import types
import typing
from collections.abc import Container
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Record = TypeVar("_Record", bound="DataclassInstance")


def from_json(
    record_class: type[_Record], values: Any, optional: Container[str] = ()
) -> _Record:
    """Return a dataclass of the JSON object that `dataclasses.asdict` became.

    Other keys are ignored: a later version may write more.

    Args:
      record_class: a dataclass. Its fields are str, int, float, bool or dict; tuples
        of one of these, `tuple[str, ...]`, from a list; such dataclasses; or each of
        these or None.
      values: dict.
      optional: names of fields that may be missing, and have their defaults then.

    Raises:
      KeyError: a field is missing.
      ValueError: a value is of another type than its field.
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
    if typing.get_origin(kind) is tuple and isinstance(value, list):
        return tuple(_convert(each, typing.get_args(kind)[0], name) for each in value)
    if kind is float and type(value) in (int, float) and math.isfinite(value):
        return float(value)
    # A bool is an int, but not what an int field should hold.
    if kind is float or type(value) is not kind:
        raise ValueError(f"{name} is {value!r}")
    return value
