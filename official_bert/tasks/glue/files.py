"""Read GLUE's files: tables of text with one example per row.

Rows end only at line feeds and cells only at tabs. Quotes are text, as in the
original's `_read_tsv`. A byte order mark and carriage returns at line ends are
removed. Bytes that are not UTF-8 are also removed, with a warning.
"""

import codecs
import math
import os
from collections.abc import Callable

from absl import logging

from official_bert import files
from official_bert.errors import UserError, list_some
from official_bert.tables.examples import Example
from official_bert.tasks.glue.tasks import MSR_TRAIN, GlueTask

# A warning lists at most this many row numbers.
LISTED_ROWS = 10


def read_examples(
    task: GlueTask, data_dir: str | os.PathLike[str], split: str
) -> list[Example]:
    """Return the examples of one split of a task.

    Args:
      task: `GlueTask`.
      data_dir: the task's folder, or the folder with the folders of all tasks.
      split: "train", "dev" or "test".

    Returns:
      list of `Example`, at least one. Labels are one of `task.labels`, floats for
      regression, and None in a test set without labels.

    Raises:
      UserError: see `read_file`; or the file of the split does not exist.
    """
    if split not in task.layouts:
        raise UserError(
            f"{task.name} has no {split} set, only {', '.join(task.layouts)}."
        )
    path = _path_of(task, data_dir, split)
    if not path:
        raise UserError(
            f"--data_dir: {data_dir} and its folder {task.directory} do not contain "
            f"{' or '.join(task.layouts[split].files)}. Give the folder of "
            f"{task.name}'s data."
        )
    # Microsoft's file contains both the train and the dev set.
    wanted = None
    if os.path.basename(path) == MSR_TRAIN:
        wanted = _msr_rows_of(path, split)
    return read_file(path, task, split, wanted)


def has_examples(task: GlueTask, data_dir: str | os.PathLike[str], split: str) -> bool:
    """Return whether the file of a split exists; see `read_examples`."""
    return _path_of(task, data_dir, split) is not None


def _path_of(task, data_dir, split):
    """Return the path of a split's file, or None."""
    for name in task.layouts[split].files:
        for folder in (data_dir, os.path.join(data_dir, task.directory)):
            path = files.normal(os.path.join(folder, name))
            if files.is_file(path):
                return path
    return None


def read_file(
    path: str | os.PathLike[str],
    task: GlueTask,
    split: str,
    wanted: Callable[[list[str]], bool] | None = None,
) -> list[Example]:
    """Return the examples of one file.

    Rows with more or fewer cells than the header are left out, and a warning lists
    them. A test set keeps all rows, because predictions refer to row numbers. There
    missing cells are empty, and extra cells are ignored.

    Args:
      path: the file.
      task: `GlueTask`.
      split: "train", "dev" or "test", a key of `task.layouts`.
      wanted: None, or a function: cells of a row -> whether to keep the row.

    Returns:
      list of `Example`. The number in their `guid` counts rows of the file from 0,
      including the header, as in the original.

    Raises:
      UserError: the file cannot be read, has too few columns or no rows, or a label
        does not belong to the task. The message names the row, counted from 1.
    """
    layout, rows = task.layouts[split], _read_rows(path)
    num_columns = layout.num_columns or _header_size(rows, path, layout, task)
    examples, malformed = [], []
    for number, cells in rows:
        if len(cells) != num_columns:
            malformed.append(number)
            if split != "test":
                continue
            cells = (cells + [""] * num_columns)[:num_columns]
        if layout.language and cells[0] != layout.language:
            continue
        if wanted is None or wanted(cells):
            text_b = None if layout.text_b is None else cells[layout.text_b]
            label = None
            if layout.label is not None:
                label = _label(cells[layout.label], task, f"{path}: row {number}")
            guid = f"{split}-{number - 1}"
            examples.append(Example(guid, cells[layout.text_a], text_b, label))
    if malformed:
        what = "missing cells are empty" if split == "test" else "they were left out"
        _warn_of(path, malformed, f"do not have {num_columns} cells; {what}")
    if not examples:
        raise UserError(
            f"{path} contains no examples of {task.name}. Check --data_dir and "
            "--task_name."
        )
    return examples


def _read_rows(path):
    """Yield (number from 1, cells) of each row that is not blank."""
    try:
        with files.opened(path) as source:
            content = source.read().removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        raise UserError(f"Cannot read {path}: {error.strerror}.") from error
    invalid = []
    for number, line in enumerate(content.split(b"\n"), 1):
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError:
            invalid.append(number)
            text = line.decode("utf-8", "ignore")
        text = text.removesuffix("\r")
        if text:
            yield number, text.split("\t")
    if invalid:
        _warn_of(path, invalid, "have bytes that are not UTF-8; these were removed")


def _warn_of(path, numbers, what):
    listed = list_some(map(str, numbers), LISTED_ROWS)
    logging.warning("%s: %d rows %s: rows %s.", path, len(numbers), what, listed)


def _header_size(rows, path, layout, task):
    """Remove the header from `rows`, and return its number of columns."""
    _, header = next(rows, (1, []))
    columns = (layout.text_a, layout.text_b, layout.label)
    needed = max(c + 1 if c >= 0 else -c for c in columns if c is not None)
    if len(header) < needed:
        raise UserError(
            f"{path}: the first row has {len(header)} columns, but {task.name} needs "
            f"{needed}, separated by tabs. Check that the file belongs to this task."
        )
    return len(header)


def _label(text, task, where):
    """Return the label in a cell, a str or a float."""
    if not task.label_range:
        label = task.aliases.get(text, text)
        if label not in task.labels:
            raise UserError(
                f"{where}: the label {text!r} is not one of {', '.join(task.labels)}, "
                f"the labels of {task.name}. Correct the row or remove it."
            )
        return label
    low, high = task.label_range
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    # This form of the condition also rejects nan.
    if not low <= number <= high:
        raise UserError(
            f"{where}: the label {text!r} is not a number from {low:g} to {high:g}. "
            "Correct the row or remove it."
        )
    return number


def _msr_rows_of(path, split):
    """Return a function: cells of a row of `MSR_TRAIN` -> whether it is in a split."""
    ids_path = os.path.join(os.path.dirname(path), "dev_ids.tsv")
    if not files.is_file(ids_path):
        raise UserError(
            f"{path} contains both the train and the dev set of mrpc. {ids_path}, "
            "which separates them, is missing. GLUE distributes it."
        )
    dev_ids = {tuple(cells) for _, cells in _read_rows(ids_path)}
    return lambda cells: (tuple(cells[1:3]) in dev_ids) == (split == "dev")
