"""The labels of a user's own data: which there are, and what a cell means.

A label is of one of three kinds (`KINDS`). If the user names none, the training
file tells, see `infer_kind`:

* `single_label`: one of the labels that the training file has;
* `multi_label`: any number of them, as a list in JSON or Python (`["a", "b"]`) or
  split at a separator; a list may be empty;
* `regression`: a finite number.

Labels are text without the space around it; case matters. The training file makes
the list of labels, and every other file must keep to it.
"""

import ast
import dataclasses
import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from official_bert.errors import list_some
from official_bert.tables.table_files import as_cell, is_number

SINGLE_LABEL, MULTI_LABEL, REGRESSION = "single_label", "multi_label", "regression"
KINDS = (SINGLE_LABEL, MULTI_LABEL, REGRESSION)


@dataclasses.dataclass(frozen=True)
class Labels:
    """What labels a task has.

    Attributes:
      kind: one of `KINDS`.
      names: tuple of str in natural order; empty for regression.
      separator: str between the labels of a cell, or None if they are lists.
    """

    kind: str
    names: tuple[str, ...]
    separator: str | None = None


def infer_kind(cells: Sequence[Any], separator: str | None = None) -> tuple[str, str]:
    """Tell the kind of labels from a training file's.

    The first of these that applies decides:

    1. there is a separator, or every label is a list: `multi_label`;
    2. some label is not a number: `single_label`;
    3. some number is not whole: `regression` if there are more than 20
       different ones, or more than half as many as rows;
    4. all are whole: `regression` if there are more than 20 different ones
       and fewer than five rows for each;
    5. else `single_label`: stars from 1 to 5 are labels.

    Args:
      cells: list of labels that are not empty, str or list.
      separator: str or None.

    Returns:
      (one of `KINDS`, str: why).
    """
    if separator is not None:
        return MULTI_LABEL, "there is a separator"
    if cells and all(_as_list(cell) is not None for cell in cells):
        return MULTI_LABEL, "every label is a list"
    if not all(map(is_number, cells)):
        return SINGLE_LABEL, "not every label is a number or a list"
    numbers = set(map(float, cells))
    # Up to 20 different numbers are taken for labels, as stars and grades are.
    many = len(numbers) > 20
    if all(number.is_integer() for number in numbers):
        amounts = many and len(cells) < 5 * len(numbers)
    else:
        amounts = many or 2 * len(numbers) > len(cells)
    kind = REGRESSION if amounts else SINGLE_LABEL
    return kind, f"numbers, of which {len(numbers)} are different"


def natural_sorted(names: Iterable[str]) -> list[str]:
    """Sort as a person would: 2 before 10, "level 2" before "level 10"."""
    names = list(names)
    if names and all(map(is_number, names)):
        return sorted(names, key=lambda name: (float(name), name))
    return sorted(names, key=_natural_key)


def _natural_key(name):
    # Digits are at the odd places, so that like is compared with like.
    parts = re.split(r"([0-9]{1,300})", name)
    parts[1::2] = map(int, parts[1::2])
    return parts, name


def parse_label(cell: Any, labels: Labels) -> str | tuple[str, ...] | float:
    """Return the label that a cell holds.

    Args:
      cell: str, or a list from JSON.
      labels: `Labels`; any label goes if it has no names.

    Returns:
      str, tuple of str or float, see `Example`.

    Raises:
      ValueError: says what is wrong with the cell.
    """
    if labels.kind == REGRESSION:
        if not is_number(cell) or not math.isfinite(float(cell)):
            raise ValueError(f"has the label {show(cell)}, which is no number")
        return float(cell)
    if labels.kind == SINGLE_LABEL:
        if not isinstance(cell, str):
            raise ValueError(f"has the label {show(cell)} where one text belongs")
        chosen = [cell.strip()]
    else:
        listed = _as_list(cell)
        if listed is None and labels.separator is None:
            raise ValueError(f"has the label {show(cell)}, which is no list")
        if listed is None:
            listed = cell.split(labels.separator) if isinstance(cell, str) else [cell]
        if not all(isinstance(name, str | int | float | None) for name in listed):
            raise ValueError(f"has the label {show(cell)}, which is no list of texts")
        chosen = list(filter(None, (as_cell(name).strip() for name in listed)))
    for name in chosen:
        if labels.names and name not in labels.names:
            raise ValueError(f"has the unknown label {show(name)}")
    return chosen[0] if labels.kind == SINGLE_LABEL else tuple(dict.fromkeys(chosen))


def _as_list(cell):
    """Return the list that a cell is, or is the text of; None if it is none."""
    if isinstance(cell, list):
        return cell
    if not isinstance(cell, str) or not cell.strip().startswith("["):
        return None
    # Tables written by pandas hold lists as Python writes them.
    for parse in (json.loads, ast.literal_eval):
        try:
            value = parse(cell.strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
        return value if isinstance(value, list) else None
    return None


def show(value: Any) -> str:
    """Return a value as it stands in a message, cut if it is long."""
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "…"


def advice_on(labels: Labels) -> str:
    """Return what to do about a label that `parse_label` refuses."""
    if labels.kind == REGRESSION:
        return (
            "write numbers such as 3.5, or choose another --label_kind or "
            "--label_column"
        )
    if labels.names:
        names = list_some(map(repr, labels.names), most=20)
        return f"the training file has only the labels {names}"
    if labels.kind == MULTI_LABEL:
        return 'write lists such as ["a", "b"], or give --label_separator'
    return "write one label a row, or give --label_kind=multi_label"
