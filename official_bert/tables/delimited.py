"""Texts of cells with a delimiter between them, CSV and TSV, cut into rows.

* CSV is as spreadsheets write it: `"` around a cell that holds commas, quotes
  (doubled) or line ends. If the first line holds no comma but a semicolon (or a
  tab), and most rows agree with it on the number of cells, that is the delimiter.
* TSV comes in two kinds: as above with tabs, and as GLUE has it, where a quote is
  a character like any other. Quotes are quoting if every one of them is in its
  place, and without them more rows have another number of cells than the first,
  or no row has and as many rows come out either way. A lone quote therefore does
  not swallow the lines behind it.
"""

import csv
import dataclasses
import io
from typing import Any


@dataclasses.dataclass(frozen=True)
class Row:
    """One row of a table.

    Attributes:
      line: the line of the file in which the row starts, counted from 1.
      cells: tuple of str; of JSON lines, numbers and booleans are as JSON
        writes them, and lists and objects stay what they are.
    """

    line: int
    cells: tuple[Any, ...]


def read_csv(text: str) -> tuple[list[Row], list[tuple[int, str]]]:
    """Cut a CSV into rows.

    Args:
      text: str.

    Returns:
      (list of `Row`, list of (line, what is wrong)). The rows have as many
      cells as the first; the others are among the problems. Blank lines are
      no rows, and empty cells too many at the end of a row are dropped.
    """
    records, problems = _read_records(text, ",")
    if records and len(records[0].cells) == 1:
        for delimiter in ";\t":
            others, other_problems = _read_records(text, delimiter)
            widths = [len(record.cells) for record in others] or [0]
            if widths[0] > 1 and 2 * widths.count(widths[0]) > len(widths):
                return _rectangular(others, other_problems)
    return _rectangular(records, problems)


def read_tsv(text: str) -> tuple[list[Row], list[tuple[int, str]]]:
    """Cut a TSV into rows, see `read_csv`, with or without quoting."""
    rows, problems = _rectangular(*_read_records(text, "\t", csv.QUOTE_NONE))
    records, misquoted = _read_records(text, "\t") if '"' in text else ([], [])
    if misquoted or not records:
        return rows, problems
    quoted_rows, quoted_problems = _rectangular(records, [])
    if problems:
        use_quotes = len(quoted_problems) < len(problems)
    else:
        use_quotes = len(quoted_rows) == len(rows) and not quoted_problems
    return (quoted_rows, quoted_problems) if use_quotes else (rows, problems)


def _read_records(text, delimiter, quoting=csv.QUOTE_MINIMAL):
    """Return (list of `Row`, list of (line, what is wrong)), without blank lines."""
    # A line may end with a line feed, a carriage return, or both.
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)
    records: list[Row] = []
    problems: list[tuple[int, str]] = []
    # A cell may be longer than the 131,072 characters of the csv module.
    limit = csv.field_size_limit(2**31 - 1)
    try:
        while True:
            line = reader.line_num + 1
            try:
                cells = next(reader)
            except StopIteration:
                return records, problems
            except csv.Error as error:
                problems.append((line, _what_is_wrong(error)))
                continue
            if cells:
                records.append(Row(line, tuple(cells)))
    finally:
        csv.field_size_limit(limit)


def _what_is_wrong(error):
    if "end of data" in str(error):
        return "begins a quoted cell that never ends"
    if "expected after" in str(error):
        return "has text behind a closing quote"
    return f"is malformed ({error})"


def _rectangular(records, problems):
    """Return the records as wide as the first, and all problems."""
    width = len(records[0].cells) if records else 0
    rows, problems = [], list(problems)
    for record in records:
        cells = record.cells
        if len(cells) == 1 < width and not cells[0].strip():
            continue  # A line of spaces.
        if not any(cells[width:]):
            cells = cells[:width]
        if len(cells) == width:
            rows.append(Row(record.line, cells))
        else:
            count = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
            problems.append((record.line, f"has {count} instead of {width}"))
    return rows, problems
