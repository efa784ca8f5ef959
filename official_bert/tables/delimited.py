"""Split the text of a CSV or TSV file into rows.

* CSV as spreadsheets write it: `"` around a cell that contains commas, quotes
  (doubled) or line ends. If the first line contains no comma but a semicolon (or a
  tab), and most rows have the same number of cells with it, that is the delimiter.
* TSV exists in two forms: quoted as above, and as in GLUE, where a quote is an
  ordinary character. The reader uses quoting only if all quotes are correctly placed,
  and one of these holds: quoting reduces the number of rows with a wrong number of
  cells; or no row has a wrong number, and both forms give the same number of rows.
  A single stray quote therefore never swallows the lines after it.
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
      cells: tuple of str. From JSON lines, numbers and booleans are text as in
        JSON, and lists and objects stay Python values.
    """

    line: int
    cells: tuple[Any, ...]


def read_csv(text: str) -> tuple[list[Row], list[tuple[int, str]]]:
    """Split a CSV text into rows.

    Args:
      text: str.

    Returns:
      (list of `Row`, list of (line, problem)). All rows have as many cells as the
      first one; rows with another number are problems. Blank lines are skipped,
      and extra empty cells at the end of a row are dropped.
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
    """Split a TSV text into rows, quoted or not; see `read_csv`."""
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
    """Return (list of `Row`, list of (line, problem)), without blank lines."""
    # Lines may end with a line feed, a carriage return, or both.
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)
    records: list[Row] = []
    problems: list[tuple[int, str]] = []
    # The csv module limits cells to 131,072 characters by default.
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
        return "has text after a closing quote"
    return f"is malformed ({error})"


def _rectangular(records, problems):
    """Return the records that are as wide as the first one, and all problems."""
    width = len(records[0].cells) if records else 0
    rows, problems = [], list(problems)
    for record in records:
        cells = record.cells
        if len(cells) == 1 < width and not cells[0].strip():
            continue  # The line contains only spaces.
        if not any(cells[width:]):
            cells = cells[:width]
        if len(cells) == width:
            rows.append(Row(record.line, cells))
        else:
            count = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
            problems.append((record.line, f"has {count} instead of {width}"))
    return rows, problems
