"""Choose the columns of a table that hold the text and the label.

The user names a column, or gives its number, counted from 0. If a column has this
number as its name, the name wins. The program guesses columns that are not given.
A note reports each guess:

* label: the column called `label` or `labels`. Otherwise the only column except the
  text. Otherwise the only column with few distinct values: at least two, and at most
  half as many as rows;
* text: the column called `text` or `sentence`. Otherwise the only column that contains
  neither numbers nor few distinct values. If several remain, it is the longest one,
  provided that all others are on average at most half as long and have fewer than
  three words;
* row numbers (`id`, `idx`, `index`, a column without a name, or at least ten numbers
  that increase by one) are neither text nor label;
* the second text is never guessed: pairs need `--text_b_column`.

If no column or more than one column fits, the error message lists the columns.
"""

import dataclasses
import statistics

from official_bert.errors import UserError, list_some
from official_bert.tables.table_files import JSON_LINES, Table, is_number

TEXT_FLAG = "--text_column"
TEXT_B_FLAG = "--text_b_column"
LABEL_FLAG = "--label_column"


@dataclasses.dataclass(frozen=True)
class Columns:
    """The names of the columns with texts and labels.

    Attributes:
      text: str, name of the column, or its number.
      text_b: str, the same for the second text, or None if there are no pairs.
      label: str, the same for the label, or None if there are no labels.
      has_header: bool, whether the training file had a header. None: each file is
        checked with `looks_like_header`.
    """

    text: str
    text_b: str | None
    label: str | None
    has_header: bool | None

    @property
    def names(self) -> list[str]:
        """The names of the text columns, list of str."""
        return [self.text] if self.text_b is None else [self.text, self.text_b]


def choose_columns(
    table: Table,
    text_column: str | int | None = None,
    text_b_column: str | int | None = None,
    label_column: str | int | None = None,
) -> tuple[Columns, list[str]]:
    """Return the columns of a training file, and guess those that are not given.

    Args:
      table: `Table`.
      text_column: str or int, name or number of a column; None guesses.
      text_b_column: the same for the second text; None means no pairs.
      label_column: the same for the label; None guesses.

    Returns:
      (`Columns`, list of str: a note on each guess).

    Raises:
      UserError: a column does not exist, is given twice, or cannot be guessed.
    """
    text, text_b, label = find_columns(table, text_column, text_b_column, label_column)
    notes = []
    if label is None:
        label = _only_column_named(table, ("label", "labels"), {text, text_b})
    if text is None:
        text = _guess_text(table, {text_b, label})
        notes.append(_note(table, TEXT_FLAG, text))
    if label is None:
        label = _guess_label(table, {text, text_b})
    if label_column is None:
        notes.append(_note(table, LABEL_FLAG, label))
    chosen = [index for index in (text, text_b, label) if index is not None]
    if len(set(chosen)) < len(chosen):
        raise UserError(
            f"{TEXT_FLAG}, {TEXT_B_FLAG} and {LABEL_FLAG} must be different columns. "
            f"The columns of {table.path} are {describe_columns(table)}."
        )
    second = None if text_b is None else _name_of(table, text_b)
    names = _name_of(table, text), second, _name_of(table, label)
    return Columns(*names, table.has_header), notes


def find_columns(table: Table, *names: str | int | None) -> list[int | None]:
    """Return the numbers of the columns of text, second text and label, or None."""
    flags = TEXT_FLAG, TEXT_B_FLAG, LABEL_FLAG
    return [
        None if name is None else find_column(table, name, flag)
        for name, flag in zip(names, flags, strict=True)
    ]


def find_column(table: Table, name: str | int, flag: str) -> int:
    """Return the number of the column with this name or number.

    Raises:
      UserError: the column does not exist, or several columns have this name.
    """
    name = str(name).strip()
    count = table.columns.count(name)
    if count == 1:
        return table.columns.index(name)
    if count > 1:
        raise UserError(
            f"{flag}: {table.path} has {count} columns called {name!r}. Give the "
            f"number of one column: {describe_columns(table)}."
        )
    if has_column(table, name):
        return int(name)
    header = "" if table.has_header else " (the file was read without a header)"
    hint = ""
    if table.has_header and table.format != JSON_LINES:
        hint = " If the first row is not a header, add --nohas_header."
    raise UserError(
        f"{flag}: {table.path} has no column {name!r}{header}. Its columns are "
        f"{describe_columns(table)}.{hint}"
    )


def has_column(table: Table, name: str) -> bool:
    """Return whether at least one column has this name or number."""
    return name in table.columns or (
        name.isdecimal() and int(name) < len(table.columns)
    )


def describe_columns(table: Table) -> str:
    """Return the numbers of the columns, each with its name or first cell."""
    if table.has_header:
        listed = [f"{index} {name!r}" for index, name in enumerate(table.columns)]
    else:
        cells = table.rows[0].cells
        listed = [f"{index} (as in {cell[:20]!r})" for index, cell in enumerate(cells)]
    return list_some(listed, most=20)


def _name_of(table, index):
    """Return a name or number with which `find_column` returns this column."""
    name = table.columns[index]
    return name if name and table.columns.count(name) == 1 else str(index)


def _note(table, flag, index):
    what = "text" if flag == TEXT_FLAG else "label"
    return (
        f"{table.path}: column {_name_of(table, index)!r} is used as the {what}. "
        f"Choose another one with {flag}."
    )


def _only_column_named(table, names, taken):
    """Return the only free column with one of the names, or None."""
    matching = [
        index
        for index, column in enumerate(table.columns)
        if table.has_header and column.lower() in names and index not in taken
    ]
    return matching[0] if len(matching) == 1 else None


def _guess_text(table, taken):
    named = _only_column_named(table, ("text", "sentence"), taken)
    if named is not None:
        return named
    lengths = {}
    for index in _free_columns(table, taken):
        cells = _cells(table, index)
        is_text = not cells or not all(map(is_number, cells))
        if is_text and all(isinstance(cell, str) for cell in cells):
            lengths[index] = statistics.fmean(map(len, cells)) if cells else 0
    varied = {i: lengths[i] for i in lengths if not _has_few_values(table, i)}
    longest = sorted(varied or lengths, key=lengths.__getitem__, reverse=True)
    if not longest:
        _ask_for(table, TEXT_FLAG, "no column looks like a text")
    for index in longest[1:]:
        words = [len(cell.split()) for cell in _cells(table, index)] or [0]
        if 2 * lengths[index] > lengths[longest[0]] or statistics.fmean(words) >= 3:
            _ask_for(table, TEXT_FLAG, "more than one column may be the text")
    return longest[0]


def _guess_label(table, taken):
    free = _free_columns(table, taken)
    if len(free) != 1:
        free = [index for index in free if _has_few_values(table, index)]
    if not free:
        _ask_for(table, LABEL_FLAG, "no column looks like a label")
    if len(free) > 1:
        _ask_for(table, LABEL_FLAG, "more than one column may be the label")
    return free[0]


def _ask_for(table, flag, reason):
    if len(table.columns) == 1 and table.format == "TSV":
        raise UserError(
            f"{table.path} has only one column, because it contains no tabs. If commas "
            "or semicolons separate the columns, give it a name that ends with .csv."
        )
    raise UserError(
        f"{table.path}: {reason}. Choose one with {flag}: {describe_columns(table)}."
    )


def _free_columns(table, taken):
    """Return the columns that are not taken and are not row numbers."""
    return [
        index
        for index in range(len(table.columns))
        if index not in taken and not _numbers_rows(table, index)
    ]


def _numbers_rows(table, index):
    names = ("", "id", "idx", "index")
    if table.has_header and table.columns[index].lower() in names:
        return True
    cells = [row.cells[index] for row in table.rows]
    if len(cells) < 10 or not all(map(is_number, cells)):
        return False
    numbers = list(map(float, cells))
    return numbers == [numbers[0] + row for row in range(len(numbers))]


def _cells(table, index):
    """Return the cells of a column that are not empty."""
    cells = (row.cells[index] for row in table.rows)
    return [cell for cell in cells if not isinstance(cell, str) or cell.strip()]


def _has_few_values(table, index):
    """Return whether there are at least two values, each twice on average."""
    cells = _cells(table, index)
    distinct = len(set(map(str, cells)))
    return 2 <= distinct <= len(cells) / 2
