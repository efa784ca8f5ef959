"""Read tables from CSV, TSV and JSON lines files, plain or gzipped.

The file name decides the format: `.csv`, `.tsv` or `.tab`, `.jsonl`, `.ndjson`
or `.json`, each also with `.gz`. For other names the first line decides: JSON lines
if it begins with `{`, TSV if it contains a tab, otherwise CSV.

* Text is UTF-8 with or without a byte order mark. Lines end as on Unix, Windows
  or classic Mac OS. Blank lines are skipped.
* CSV and TSV: see `delimited`. All rows have as many cells as the first one.
* JSON lines: one object per line. The columns are the keys, in the order of their
  first appearance. A missing key and null are empty cells.

White space around column names is removed.

The reader checks the complete file, and one error reports all problems.
"""

import dataclasses
import io
import json
import os
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn, TypeVar

from official_bert import files, given_paths
from official_bert.errors import UserError, list_some
from official_bert.tables.delimited import Row, read_csv, read_tsv

_Content = TypeVar("_Content")
_Value = TypeVar("_Value")

CSV, TSV, JSON_LINES = "CSV", "TSV", "JSON lines"
_ENDINGS = {
    ".csv": CSV,
    ".tsv": TSV,
    ".tab": TSV,
    ".jsonl": JSON_LINES,
    ".ndjson": JSON_LINES,
    ".json": JSON_LINES,
}
_BOM = "\ufeff"
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_WORD = re.compile(r"[^\W\d][\w.-]*")
# Common names of columns. If the first line has none of them,
# `looks_like_header` compares it with the lines below.
_COMMON_NAMES = (
    "category class content comment id idx index intent label labels message name "
    "polarity question query rating review score sentence sentence1 sentence2 "
    "sentiment stars tag tags target text text_a text_b title topic tweet"
)


@dataclasses.dataclass(frozen=True)
class Table:
    """The rows of a file, each with one cell for each column.

    path: the file.
    format: `CSV`, `TSV` or `JSON_LINES`.
    columns: tuple of str, the names; "0", "1", … without a header.
    has_header: bool. The header is not one of the rows.
    rows: list of `Row`, at least one.
    """

    path: str
    format: str
    columns: tuple[str, ...]
    has_header: bool
    rows: list[Row]


def read_table(
    path: str | os.PathLike[str],
    flag: str = "--train_file",
    has_header: bool | None = None,
    names: Iterable[str | int | None] = (),
) -> Table:
    """Read a table from a file; the module's docstring describes the formats.

    Args:
      path: the file.
      flag: the flag that named the file, for messages.
      has_header: whether the first row of a CSV or TSV is a header. None: it is a
        header if `names` contains a name and not only numbers, or if
        `looks_like_header` returns True.
      names: columns that the caller needs, by name or number.

    Returns:
      `Table`.

    Raises:
      UserError: the file cannot be read, is empty, or contains only a header.
        Rows are not JSON objects, are badly quoted, or have more or fewer cells
        than the first one. Missing cells are never filled in. Extra empty cells
        at the end of a row are dropped.
    """
    path = os.fspath(path)
    text = read_text(path, flag)
    kind = _format_of(path, text)
    if kind == JSON_LINES:
        return _read_json_lines(path, text)
    rows, problems = read_csv(text) if kind == CSV else read_tsv(text)
    if problems:
        advice = "correct them, and put quotes around cells with the delimiter"
        if any("quote" in what for _, what in problems):
            advice = 'put quotes around the complete cell, and double inner quotes ("")'
        fail_for_rows(path, problems, advice)
    if not rows:
        raise UserError(f"{path} is empty. Add at least one row with a text.")
    if has_header is None:
        by_name = any(not str(name).isdecimal() for name in names)
        has_header = by_name or looks_like_header(rows)
    columns = tuple(map(str, range(len(rows[0].cells))))
    if has_header:
        columns = tuple(cell.strip() for cell in rows.pop(0).cells)
    if not rows:
        raise UserError(f"{path} contains a header but no rows. Add rows below it.")
    return Table(path, kind, columns, has_header, rows)


def read_text(path: str, flag: str) -> str:
    """Return the text of a UTF-8 file, plain or gzipped, without its BOM.

    Raises:
      UserError: the file cannot be read, is not UTF-8, or contains NUL
        characters. The message names the lines.
    """
    given_paths.require_readable(path, flag)
    try:
        with files.opened_unpacked(path) as source:
            content = source.read()
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{flag}: {path} cannot be read: {error}.") from error
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise UserError(f"{path} is UTF-16. Save it as UTF-8 (in Excel: CSV UTF-8).")
    if content[:4] == b"PK\x03\x04":
        raise UserError(f"{path} is an archive or a workbook. Save it as CSV (UTF-8).")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        # Invalid bytes become lone surrogates, which mark the lines.
        lines = enumerate(content.decode(errors="surrogateescape").split("\n"), 1)
        bad = [number for number, line in lines if re.search("[\udc80-\udcff]", line)]
        raise UserError(
            f"{path} is not UTF-8 in {name_lines(bad)}. Save it as UTF-8."
        ) from error
    if "\0" in text:
        bad = [i for i, line in enumerate(text.split("\n"), 1) if "\0" in line]
        raise UserError(
            f"{path} contains NUL characters in {name_lines(bad)}. It is damaged or "
            "not text. Save it again as UTF-8, or remove these characters."
        )
    return text.removeprefix(_BOM)


def _format_of(path, text):
    ending = os.path.splitext(path.removesuffix(".gz"))[1].lower()
    if ending in _ENDINGS:
        return _ENDINGS[ending]
    first = text.lstrip().partition("\n")[0]
    if first.startswith("{"):
        return JSON_LINES
    return TSV if "\t" in first else CSV


def looks_like_header(rows: Sequence[Row]) -> bool:
    """Return whether the first row of a CSV or TSV is a header.

    The first rule that applies decides:

    1. a cell is a number, or occurs again below in its column: no header;
    2. it is the only row: a header if a cell is a common name (`text`);
    3. a cell is a common name: a header;
    4. all cells below a cell are numbers: a header;
    5. otherwise: a header if every cell is empty or one word.

    Args:
      rows: list of `Row`, not empty.
    """
    first, *others = ([cell.strip() for cell in row.cells] for row in rows)
    columns = list(zip(*others, strict=True)) or [()] * len(first)
    named = [
        (cell, column) for cell, column in zip(first, columns, strict=True) if cell
    ]
    if any(is_number(cell) or cell in column for cell, column in named):
        return False
    if any(cell.lower() in _COMMON_NAMES.split() for cell, _ in named):
        return True
    if not others:
        return False
    if any(all(map(is_number, column)) for _, column in named):
        return True
    return all(_WORD.fullmatch(cell) for cell, _ in named)


def is_number(cell: Any) -> bool:
    """Return whether a cell is a decimal number, such as 3, -0.5 or 1e-3."""
    return isinstance(cell, str) and bool(_NUMBER.fullmatch(cell.strip()))


def name_lines(lines: Sequence[int | str]) -> str:
    """Return "line 3", or "lines 3, 4, 8, 9, 12 and 7 more"."""
    return f"line{'s' * (len(lines) > 1)} {list_some(map(str, lines))}"


def numbered_lines(text: str) -> list[tuple[int, str]]:
    """Return (line, content) of each line of a text that is not blank."""
    lines = enumerate(io.StringIO(text, newline=""), 1)
    return [(line, content) for line, content in lines if content.strip()]


def convert_rows(
    path: str,
    rows: Iterable[tuple[int, _Content]],
    convert: Callable[[int, _Content], _Value],
    advice: str,
) -> list[_Value]:
    """Convert each row; one `UserError` lists all rows that fail.

    Args:
      path: the file.
      rows: iterable of (line, content).
      convert: function: (line, content) -> value. Its `ValueError` describes the
        problem of the row.
      advice: see `fail_for_rows`.
    """
    values, problems = [], []
    for line, content in rows:
        try:
            values.append(convert(line, content))
        except ValueError as error:
            problems.append((line, str(error)))
    if problems:
        fail_for_rows(path, problems, advice)
    return values


def fail_for_rows(
    path: str, problems: Iterable[tuple[int, str]], advice: str
) -> NoReturn:
    """Raise a `UserError` about rows of a file.

    Args:
      path: the file.
      problems: list of (line, problem), not empty, such as (3, "has 1 cell
        instead of 2").
      advice: the remedy, without a period.
    """
    listed = [f"line {line} {what}" for line, what in sorted(problems)]
    count = "1 row" if len(listed) == 1 else f"{len(listed)} rows"
    raise UserError(f"{path}: {count} cannot be used: {list_some(listed)}; {advice}.")


def _read_json_lines(path, text):
    """Read a text of JSON lines as a `Table`."""
    if text.lstrip().startswith("["):
        raise UserError(
            f"{path} contains one JSON list. Write JSON lines: one object per line."
        )
    objects = convert_rows(
        path,
        numbered_lines(text),
        lambda line, content: (line, parse_object(content)),
        "write one JSON object per line",
    )
    if not objects:
        raise UserError(f"{path} is empty. Add at least one row with a text.")
    keys = list(dict.fromkeys(key for _, each in objects for key in each))
    rows = [
        Row(line, tuple(as_cell(each.get(key)) for key in keys))
        for line, each in objects
    ]
    columns = tuple(key.strip() for key in keys)
    return Table(path, JSON_LINES, columns, True, rows)


def parse_object(content: str, numbers_as_text: bool = True) -> dict[str, Any]:
    """Return the JSON object of a line as a dict.

    Args:
      content: str.
      numbers_as_text: whether numbers stay str as written, because 1.0 and 1 may be
        two labels.

    Raises:
      ValueError: the line is not valid; the message describes the problem, such as
        "is not JSON (...)".
    """
    parsers: dict[str, Any] = {"parse_int": _whole_number}
    if numbers_as_text:
        parsers = dict.fromkeys(("parse_int", "parse_float", "parse_constant"), str)
    try:
        record = json.loads(content, object_pairs_hook=_without_duplicates, **parsers)
        json.dumps(record, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON ({error.msg})") from error
    except UnicodeEncodeError as error:
        raise ValueError("contains a lone surrogate (half a character)") from error
    if not isinstance(record, dict):
        raise ValueError("is not a JSON object")
    return record


def _whole_number(digits):
    try:
        return int(digits)
    except ValueError as error:
        raise ValueError("has a whole number of too many digits") from error


def _without_duplicates(pairs):
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("has a key twice")
    return record


def as_cell(value: Any) -> Any:
    """Convert a JSON value to a cell: scalars become text, null becomes ""."""
    if value is None:
        return ""
    if isinstance(value, str | list | dict):
        return value
    return json.dumps(value)
