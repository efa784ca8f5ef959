"""The labels of a user's data: list the labels, and read label cells.

There are three kinds of labels (`KINDS`). If the user does not choose one,
`infer_kind` chooses it from the training file:

* `single_label`: one of the labels that occur in the training file;
* `multi_label`: any number of them, as a list in JSON or Python (`["a", "b"]`) or
  joined by a separator; the list may be empty;
* `regression`: a finite number.

Labels are text without surrounding white space, and case matters. The list of labels
comes from the training file. All other files may contain only these labels.
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
    """The kind and the names of a task's labels.

    Attributes:
      kind: one of `KINDS`.
      names: tuple of str in natural order; empty for regression.
      separator: str between the labels of a cell, or None if cells are lists.
    """

    kind: str
    names: tuple[str, ...]
    separator: str | None = None


def infer_kind(cells: Sequence[Any], separator: str | None = None) -> tuple[str, str]:
    """Return the kind of labels that a training file has, and the reason.

    The first rule that applies decides:

    1. a separator is given, or all labels are lists: `multi_label`;
    2. at least one label is not a number: `single_label`;
    3. at least one number is not whole: `regression` if there are more than 20
       distinct numbers, or more than half as many as rows;
    4. all numbers are whole: `regression` if there are more than 20 distinct
       numbers, and fewer than five rows per number;
    5. otherwise: `single_label`. Ratings from 1 to 5 are labels, for example.

    Args:
      cells: list of labels that are not empty, str or list.
      separator: str or None.

    Returns:
      (one of `KINDS`, str: the reason).
    """
    if separator is not None:
        return MULTI_LABEL, "--label_separator is given"
    if cells and all(_as_list(cell) is not None for cell in cells):
        return MULTI_LABEL, "every label is a list"
    if not all(map(is_number, cells)):
        return SINGLE_LABEL, "not every label is a number or a list"
    numbers = set(map(float, cells))
    # Up to 20 distinct numbers count as labels, such as ratings and grades.
    many = len(numbers) > 20
    if all(number.is_integer() for number in numbers):
        amounts = many and len(cells) < 5 * len(numbers)
    else:
        amounts = many or 2 * len(numbers) > len(cells)
    kind = REGRESSION if amounts else SINGLE_LABEL
    return kind, f"numbers, {len(numbers)} of them distinct"


def natural_sorted(names: Iterable[str]) -> list[str]:
    """Sort in natural order: 2 before 10, "level 2" before "level 10"."""
    names = list(names)
    if names and all(map(is_number, names)):
        return sorted(names, key=lambda name: (float(name), name))
    return sorted(names, key=_natural_key)


def _natural_key(name):
    # Texts are at even and digits at odd indexes, so equal types are compared.
    parts = re.split(r"([0-9]{1,300})", name)
    parts[1::2] = map(int, parts[1::2])
    return parts, name


def parse_label(cell: Any, labels: Labels) -> str | tuple[str, ...] | float:
    """Return the label that a cell contains.

    Args:
      cell: str, or a list from JSON.
      labels: `Labels`. If it has no names, every label is valid.

    Returns:
      str, tuple of str or float, see `Example`.

    Raises:
      ValueError: the cell is not valid; the message describes the problem.
    """
    if labels.kind == REGRESSION:
        if not is_number(cell) or not math.isfinite(float(cell)):
            raise ValueError(f"has the label {show(cell)}, which is not a number")
        return float(cell)
    if labels.kind == SINGLE_LABEL:
        if not isinstance(cell, str):
            raise ValueError(f"has the label {show(cell)}, which is not a text")
        chosen = [cell.strip()]
    else:
        listed = _as_list(cell)
        if listed is None and labels.separator is None:
            raise ValueError(f"has the label {show(cell)}, which is not a list")
        if listed is None:
            listed = cell.split(labels.separator) if isinstance(cell, str) else [cell]
        if not all(isinstance(name, str | int | float | None) for name in listed):
            raise ValueError(
                f"has the label {show(cell)}, which is not a list of texts"
            )
        chosen = list(filter(None, (as_cell(name).strip() for name in listed)))
    for name in chosen:
        if labels.names and name not in labels.names:
            raise ValueError(f"has the unknown label {show(name)}")
    return chosen[0] if labels.kind == SINGLE_LABEL else tuple(dict.fromkeys(chosen))


def _as_list(cell):
    """Return the list that a cell is or contains as text; None if it is not a list."""
    if isinstance(cell, list):
        return cell
    if not isinstance(cell, str) or not cell.strip().startswith("["):
        return None
    # pandas writes lists in Python's syntax.
    for parse in (json.loads, ast.literal_eval):
        try:
            value = parse(cell.strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
        return value if isinstance(value, list) else None
    return None


def show(value: Any) -> str:
    """Return a value as messages show it, cut if it is long."""
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "…"


def advice_on(labels: Labels) -> str:
    """Return the remedy for a label that `parse_label` rejects."""
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
    return "write one label per row, or add --label_kind=multi_label"
