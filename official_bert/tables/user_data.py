"""Read rows of a user's CSV, TSV and JSON lines files as labeled examples.

Labels are of one of three kinds, see `labels`. The list of labels comes from the
training file. All other files may contain only these labels.

Rows of training and dev files without a text or a label are left out and counted.
Test files keep every row, so each row gets a prediction. They need no labels, but
labels that they contain must be valid.

A `Table` can replace a file, for example one that comes from a TFDS dataset.
"""

import dataclasses
import itertools
import os
from collections.abc import Iterable, Sequence
from typing import Any

from official_bert.errors import UserError
from official_bert.tables.columns import (
    LABEL_FLAG,
    TEXT_FLAG,
    Columns,
    choose_columns,
    find_columns,
    has_column,
)
from official_bert.tables.examples import Example
from official_bert.tables.labels import (
    KINDS,
    MULTI_LABEL,
    REGRESSION,
    SINGLE_LABEL,
    Labels,
    advice_on,
    infer_kind,
    natural_sorted,
    parse_label,
    show,
)
from official_bert.tables.table_files import (
    JSON_LINES,
    Table,
    convert_rows,
    fail_for_rows,
    looks_like_header,
    name_lines,
    read_table,
)


def read_training_examples(
    source: str | os.PathLike[str] | Table,
    text_column: str | int | None = None,
    text_b_column: str | int | None = None,
    label_column: str | int | None = None,
    kind: str | None = None,
    separator: str | None = None,
    has_header: bool | None = None,
    label_names: Sequence[str] = (),
) -> tuple[list[Example], Columns, Labels, list[str]]:
    """Read a training file, and return the columns and labels for the other files.

    Args:
      source: the file, see `table_files`, or a `Table`.
      text_column: str or int, name or number of a column; None guesses, see
        `columns`.
      text_b_column: the same for the second text of pairs; None for no pairs.
      label_column: the same for the label; None guesses.
      kind: one of `KINDS`; None infers it.
      separator: str between the labels of a cell; makes the task multi-label.
      has_header: bool; None guesses, see `table_files.read_table`.
      label_names: the labels in their order; () for the labels of the rows.

    Returns:
      (list of `Example`, `Columns`, `Labels`, list of str: sentences about
      everything that was guessed, inferred or left out).

    Raises:
      UserError: the file cannot be used. The message names the rows.
    """
    _check_kind(kind, separator)
    given = [text_column, text_b_column, label_column]
    names = [name for name in given if name is not None]
    table = _table_of(source, "--train_file", has_header, names)
    path = table.path
    columns, notes = choose_columns(table, *given)
    rows, left_out = _leave_out(path, "a text", _lacks_text, _select(table, columns))
    if kind is None:
        cells = [row.label for row in rows if not _is_blank(row.label)]
        kind, reason = infer_kind(cells, separator)
        notes.append(f"{path}: the labels are read as {kind} ({reason}).")
    labels = Labels(kind, tuple(label_names), separator)
    examples, unlabeled = _labeled_examples(path, rows, labels)
    if kind != REGRESSION and not label_names:
        known: Iterable[Any] = (each.label for each in examples)
        if kind == MULTI_LABEL:
            known = itertools.chain.from_iterable(known)
        labels = dataclasses.replace(labels, names=tuple(natural_sorted(set(known))))
    _check_label_count(path, examples, labels)
    return examples, columns, labels, notes + left_out + unlabeled


def read_examples(
    source: str | os.PathLike[str] | Table,
    columns: Columns,
    labels: Labels,
    flag: str,
    is_test: bool = False,
) -> tuple[list[Example], list[str]]:
    """Read a dev or test file with the columns and labels of the training file.

    Args:
      source: the file, see `table_files`, or a `Table`.
      columns: `Columns` of the training file.
      labels: `Labels` of the training file.
      flag: the flag that named the file, such as "--dev_file".
      is_test: whether rows may lack labels.

    Returns:
      (list of `Example`, list of str: sentences about rows that were left out). A
      test file gives one example per row; a missing text is "".

    Raises:
      UserError: the file cannot be used, or has a label that is not in `labels`.
        The message names the rows.
    """
    names = columns.names + ([] if is_test else [columns.label])
    table = _table_of(source, flag, columns.has_header, names)
    path = table.path
    if not is_test:
        rows = _select(table, columns)
        rows, left_out = _leave_out(path, "a text", _lacks_text, rows)
        examples, unlabeled = _labeled_examples(path, rows, labels)
        return examples, left_out + unlabeled
    if columns.label is None or not has_column(table, columns.label):
        columns = dataclasses.replace(columns, label=None)
    rows = _select(table, columns)
    textless = list(filter(_lacks_text, rows))
    notes = _notes_on(path, "a text", textless, "kept for prediction")
    notes += _notes_on_header(table, columns)
    return _with_labels(path, rows, labels), notes


def _table_of(source, flag, has_header, names):
    if isinstance(source, Table):
        return source
    return read_table(source, flag, has_header, names)


def _notes_on_header(table, columns):
    """Return a note on a first row whose meaning may have been guessed wrong."""
    if table.format == JSON_LINES:
        return []
    if columns.has_header is None:
        what = "is a header" if table.has_header else "is not a header"
        note = f"the first row probably {what}; --has_header or --nohas_header decides"
    elif not table.has_header and looks_like_header(table.rows):
        note = (
            "the first row looks like a header but is read as data, because the "
            "training file had no header; --has_header skips it"
        )
    else:
        return []
    return [f"{table.path}: {note}."]


def _select(table, columns):
    """Return an `Example` of each row. Its label is the unchanged cell."""
    indexes = find_columns(table, columns.text, columns.text_b, columns.label)
    rows, problems = [], []
    for row in table.rows:
        cells: list[Any] = [
            None if index is None else row.cells[index] for index in indexes
        ]
        if any(isinstance(cell, list | dict) for cell in cells[:2]):
            problems.append((row.line, "has a list or an object as its text"))
        rows.append(Example(row.line, *cells))
    if problems:
        fail_for_rows(table.path, problems, "write each text as one string")
    return rows


def _lacks_text(row):
    return _is_blank(row.text_a) or _is_blank(row.text_b)


def _leave_out(path, what, lacks, rows):
    """Return the rows that do not lack something, and notes on the others."""
    usable = [row for row in rows if not lacks(row)]
    return usable, _notes_on(path, what, list(filter(lacks, rows)), "left out")


def _notes_on(path, what, rows, done):
    if not rows:
        return []
    count = f"{len(rows)} rows without {what} were"
    if len(rows) == 1:
        count = f"1 row without {what} was"
    return [f"{path}: {count} {done} ({name_lines([row.guid for row in rows])})."]


def _labeled_examples(path, rows, labels):
    """Return examples of the rows that have a label, and notes on the others."""
    rows, notes = _leave_out(
        path, "a label", lambda row: _has_no_label(row, labels), rows
    )
    if not rows:
        raise UserError(
            f"{path}: no row has both a text and a label. Fill them in, or check "
            f"{TEXT_FLAG} and {LABEL_FLAG}."
        )
    return _with_labels(path, rows, labels), notes


def _with_labels(path, rows, labels):
    """Convert the label cells of rows; a `UserError` lists invalid labels."""

    def with_label(_, row):
        is_missing = _has_no_label(row, labels)
        label = None if is_missing else parse_label(row.label, labels)
        return dataclasses.replace(row, label=label)

    numbered = [(row.guid, row) for row in rows]
    return convert_rows(path, numbered, with_label, advice_on(labels))


def _has_no_label(row, labels):
    # With a separator, an empty cell means "no label applies".
    return row.label is None or (labels.separator is None and _is_blank(row.label))


def _is_blank(cell):
    return isinstance(cell, str) and not cell.strip()


def _check_kind(kind, separator):
    if kind is not None and kind not in KINDS:
        raise UserError(
            f"--label_kind={kind} is unknown. Choose one of {', '.join(KINDS)}."
        )
    if separator is not None and kind not in (None, MULTI_LABEL):
        raise UserError(
            f"--label_separator cannot be used with {kind} labels. Leave it out."
        )
    if separator == "":
        raise UserError("--label_separator is empty. Give a character.")


def _check_label_count(path, examples, labels):
    """Raise `UserError` if the labels leave nothing to learn."""
    if labels.kind == SINGLE_LABEL and len(labels.names) < 2:
        raise UserError(
            f"{path}: every row has the label {labels.names[0]!r}. A classifier needs "
            "at least two labels."
        )
    if labels.kind == MULTI_LABEL and not labels.names:
        raise UserError(f"{path}: no row has a label. A classifier needs some.")
    if labels.kind == REGRESSION and len({each.label for each in examples}) < 2:
        raise UserError(
            f"{path}: every row has the same number as its label. Choose another "
            f"{LABEL_FLAG}."
        )
    if labels.kind == SINGLE_LABEL and 10 < len(examples) == len(labels.names):
        raise UserError(
            f"{path}: every row has a different label, such as "
            f"{show(examples[0].label)}. Choose another "
            f"{LABEL_FLAG}, or --label_kind=regression for numbers."
        )
