"""Read multiple choice from files: SWAG's table, ARC's table, and JSON lines.

The content decides, not the file name: a file is JSON lines if its first character
that is not blank is `{`, otherwise a table. The commands read tables as SWAG's. Only
`read_choices` in Python reads ARC's.

* SWAG ("regular" layout): CSV with the columns `sent1`, `sent2`, `ending0`, … and
  `label`, which counts from 0. Other columns are ignored. JSON lines with these keys
  are also read. The model reads `sent1` and, for each choice, `sent2` and the ending
  joined by a space.
* JSON lines: `question` (or `context`, or `prompt`), `choices`, and the answer.
  `choices` is a list of texts, a list of `{"text": …, "label": "A"}`, or
  `{"text": […], "label": […]}`. It may also be inside a `question` object with a
  `stem`, as in ARC. The answer is `answerKey` or `label`. `answerKey` is a label of the
  choices; without labels it is a letter from A or a number from 1. `label` is a letter
  from A or a number from 0.
* ARC's CSV, without these names: the question, the choices, and in the last column the
  answer, a letter from A or a number from 1. Cells of missing choices are empty. The
  first row is a header if its first cell is `question`.

Text is UTF-8, plain or gzipped; see `table_files.read_text`. A table whose first line
contains a tab is TSV. A missing key of a JSON line, and null, are empty.
"""

import dataclasses
import os
import re
import string
from collections.abc import Sequence
from typing import Any

from official_bert.errors import UserError
from official_bert.tables.delimited import read_csv, read_tsv
from official_bert.tables.table_files import (
    as_cell,
    convert_rows,
    fail_for_rows,
    name_lines,
    numbered_lines,
    parse_object,
    read_text,
)

SENTENCE, START, ENDING, LABEL = "sent1", "sent2", "ending", "label"
GOLD_SOURCE = "gold-source"
# Prefix of the source of endings that a language model wrote.
_GENERATED = "gen"
_QUESTIONS = ("question", "context", "prompt")
_ANSWER_KEY = "answerKey"
# Blank lines at the start of a table, which are skipped.
_BLANK_LINES = re.compile(r"\A\s*[\r\n]")
_BLANKS = re.compile(r"[^\r\n]")


@dataclasses.dataclass(frozen=True)
class ChoiceExample:
    """A text with C continuations or answers, one of which is correct.

    Attributes:
      guid: identifies the row in messages: the `id` of JSON lines, or the line of the
        file in which the row starts.
      context: the first text, common to all choices.
      choices: tuple of C str, C >= 2, the second texts.
      label: the index of the correct choice, or None if unknown.
    """

    guid: str | int
    context: str
    choices: tuple[str, ...]
    label: int | None = None


def is_json_lines(path: str | os.PathLike[str], flag: str = "--train_file") -> bool:
    """Return whether the first character of a file that is not blank is `{`.

    Args:
      path: the file.
      flag: the flag that named the file, for messages.

    Raises:
      UserError: the file cannot be read.
    """
    return _begins_with_object(read_text(str(path), flag))


def read_swag(
    path: str | os.PathLike[str],
    flag: str = "--train_file",
    is_test: bool = False,
    leave_out_generated: bool = False,
    leave_out_damaged: bool = False,
) -> tuple[list[ChoiceExample], list[str]]:
    """Read JSON lines or SWAG's regular table; see the module's docstring.

    Args:
      path: the file.
      flag: the flag that named the file, for messages.
      is_test: whether rows may lack labels.
      leave_out_generated: whether to leave out rows of a table whose correct ending
        was written by a language model ("gen" or "gen-orig" in `gold-source`).
      leave_out_damaged: for JSON lines, see `read_choices`.

    Returns:
      (list of `ChoiceExample`, at least one; list of str: notes on rows that were
      left out).

    Raises:
      UserError: the file cannot be read, lacks columns, or has rows without a
        sentence, an ending or a label. The message names the lines.
    """
    path = str(path)
    text = read_text(path, flag)
    if _begins_with_object(text):
        rows = numbered_lines(text)
        return _examples(path, rows, _example_of_line, is_test, leave_out_damaged)
    rows = _swag_rows(path, text, not is_test, leave_out_generated)
    notes: list[str] = []
    if leave_out_generated:
        rows, notes = _without_generated(path, rows)
    examples, _ = _examples(path, rows, _example_of_swag, is_test)
    return examples, notes


def read_choices(
    path: str | os.PathLike[str],
    flag: str = "--train_file",
    is_test: bool = False,
    leave_out_damaged: bool = False,
) -> tuple[list[ChoiceExample], list[str]]:
    """Read JSON lines (also with SWAG's keys) or ARC's CSV; see the module's docstring.

    Args:
      path: the file.
      flag: the flag that named the file, for messages.
      is_test: whether rows may lack answers.
      leave_out_damaged: whether to leave out invalid rows, and list them in a note,
        instead of rejecting the file.

    Returns:
      (list of `ChoiceExample`, at least one; list of str: notes on rows that were
      left out). The number of choices may differ between examples.

    Raises:
      UserError: the file cannot be read; or a row has no question, fewer than two
        choices, an empty choice, or an answer that is not one of them. The message
        names the lines.
    """
    path = str(path)
    text = read_text(path, flag)
    if _begins_with_object(text):
        rows, example_of = numbered_lines(text), _example_of_line
    else:
        rows = [(row.line, row.cells) for row in _table_rows(path, text)]
        if rows[0][1][0].strip().lower() in _QUESTIONS:
            rows = rows[1:]
        example_of = _example_of_cells
    return _examples(path, rows, example_of, is_test, leave_out_damaged)


def read_records(
    path: str,
    records: Sequence[dict[str, Any]],
    is_test: bool = False,
    leave_out_generated: bool = False,
    leave_out_damaged: bool = False,
) -> tuple[list[ChoiceExample], list[str]]:
    """Return the examples of records that do not come from lines of a file.

    Args:
      path: the source of the records, for messages.
      records: dicts with the keys of JSON lines or of SWAG, see the module's
        docstring. Numbers are text; keys may be missing.
      is_test: whether records may lack answers.
      leave_out_generated: see `read_swag`.
      leave_out_damaged: see `read_choices`.

    Returns:
      see `read_choices`.

    Raises:
      UserError: see `read_choices`. The message names the rows, counted from 1.
    """
    rows, notes = list(enumerate(records, 1)), []
    if leave_out_generated:
        rows, notes = _without_generated(path, rows)
    examples, left_out = _examples(
        path, rows, _example_of_record, is_test, leave_out_damaged
    )
    return examples, notes + left_out


def read_prompts(
    path: str | os.PathLike[str], flag: str = "--input_file"
) -> list[tuple[str, tuple[str, ...]]]:
    """Read JSON lines or SWAG's table for predictions, and ignore answers.

    Args:
      path: the file.
      flag: the flag that named the file, for messages.

    Returns:
      list of (prompt, choices), at least one, see `parse_prompt`.

    Raises:
      UserError: see `read_choices`.
    """
    path = str(path)
    text = read_text(path, flag)
    if _begins_with_object(text):
        rows, parse = numbered_lines(text), parse_prompt
    else:
        rows, parse = _swag_rows(path, text), _prompt_of_record
    advice = "a row is a question and at least two choices"
    return convert_rows(path, rows, lambda _, content: parse(content), advice)


def parse_prompt(line: str) -> tuple[str, tuple[str, ...]]:
    """Return the (prompt, tuple of choices) of a line of JSON, without its answer.

    Args:
      line: str, in a format of the module's docstring.

    Raises:
      ValueError: the line is not valid; the message describes the problem.
    """
    return _prompt_of_record(_parse(line))


def _prompt_of_record(record):
    unanswered = record | {LABEL: "", _ANSWER_KEY: ""}
    example = _example_of_record(0, unanswered, is_test=True)
    return example.context, example.choices


def _begins_with_object(text):
    return text.lstrip().startswith("{")


def _parse(content):
    """Return the object on a line, with values as in the cells of a table."""
    return {name: as_cell(value) for name, value in parse_object(content).items()}


def _table_rows(path, text):
    """Return the rows of a table, including a header; `UserError` without rows."""
    text = _BLANK_LINES.sub(lambda match: _BLANKS.sub("", match[0]), text)
    first = text.lstrip("\r\n").partition("\n")[0]
    rows, problems = read_tsv(text) if "\t" in first else read_csv(text)
    if problems:
        fail_for_rows(
            path, problems, "correct them, and put quotes around cells with a delimiter"
        )
    if not rows:
        raise UserError(f"{path} is empty. Add at least one row with a text.")
    return rows


def _swag_rows(path, text, with_label=False, with_source=False):
    """Return (line, dict of column -> cell) of each row of SWAG's table."""
    if text.lstrip().startswith("["):
        raise UserError(
            f"{path} contains one JSON list. Write JSON lines: one object per line."
        )
    header, *rows = _table_rows(path, text)
    columns = [cell.strip() for cell in header.cells]
    needed = [SENTENCE, START, *_ending_names(columns)]
    if not set(needed) & set(columns):
        raise UserError(
            f"{path} is neither SWAG's CSV, whose first row has the columns "
            f"{SENTENCE}, {START}, {ENDING}0, {ENDING}1 and so on, nor JSON lines with "
            "one object in braces per line. Convert it to one of these formats."
        )
    needed += [LABEL] if with_label else []
    needed += [GOLD_SOURCE] if with_source else []
    for name in needed:
        if columns.count(name) > 1:
            raise UserError(f"{path} has two columns {name}. Remove one of them.")
    missing = [name for name in needed if name not in columns]
    if missing:
        raise UserError(
            f"{path} has no column {', '.join(missing)}. The first row of SWAG's "
            "regular files (train.csv, val.csv, test.csv) has these columns."
        )
    if not rows:
        raise UserError(f"{path} contains a header but no rows. Add rows below it.")
    return [(row.line, dict(zip(columns, row.cells, strict=True))) for row in rows]


def _without_generated(path, rows):
    """Return the rows whose correct ending was not generated, and a note."""
    kept = [row for row in rows if not row[1][GOLD_SOURCE].startswith(_GENERATED)]
    note = (
        f"{path}: {len(rows) - len(kept)} of {len(rows)} rows were left out, because "
        "a language model wrote their correct ending."
    )
    return kept, [note]


def _ending_names(columns):
    """Return the names `ending0` to the last ending in the columns, at least two.

    Gaps are included, so a file with ending0 and ending2 lacks the column ending1.
    """
    names = [f"{ENDING}{number}" for number in range(len(columns) + 1)]
    ends = [number for number, name in enumerate(names, 1) if name in columns]
    return names[: max([2, *ends])]


def _examples(path, rows, example_of, is_test, leave_out_damaged=False):
    """Return (examples, notes) of rows, (line, content); see `read_choices`.

    `example_of` converts (line, content, is_test) to an example. Its `ValueError`
    describes the problem of a row.
    """
    examples, problems, notes = [], [], []
    for line, content in rows:
        try:
            examples.append(example_of(line, content, is_test))
        except ValueError as error:
            problems.append((line, str(error)))
    if problems and not (leave_out_damaged and examples):
        advice = "a row is a question, at least two choices, and the correct one"
        fail_for_rows(path, problems, advice)
    if not examples:
        raise UserError(f"{path} contains no examples. Add rows with choices.")
    if problems:
        lines = name_lines([line for line, _ in problems])
        notes.append(
            f"{path}: {len(problems)} of {len(rows)} rows cannot be used and were left "
            f"out: {lines}."
        )
    return examples, notes


def _example_of_swag(line, record, is_test):
    """Return the `ChoiceExample` of a row of SWAG, a dict of column -> cell."""
    sentence, start = record[SENTENCE], record.get(START)
    _require_text(sentence, SENTENCE)
    if not isinstance(start, str):
        raise ValueError(f"has no text as its {START}")
    endings = [(name, record.get(name, "")) for name in _ending_names(record)]
    for name, text in endings:
        _require_text(text, name)
    choices = tuple(f"{start} {text}" for _, text in endings)
    answer, label = record.get(LABEL, ""), None
    if answer or not is_test:
        label = _index_of(answer, list(map(str, range(len(choices)))))
    return ChoiceExample(line, sentence, choices, label)


def _example_of_cells(line, cells, is_test):
    """Return the `ChoiceExample` of a row with question, choices and answer."""
    if len(cells) < 2:
        raise ValueError("has 1 cell")
    question, *texts, answer = cells
    while texts and not texts[-1].strip():
        texts.pop()
    choices, label = _checked(question, texts), None
    if answer.strip() or not is_test:
        label = _counted(answer, choices, first=1)
    return ChoiceExample(line, question, choices, label)


def _example_of_line(line, content, is_test):
    return _example_of_record(line, _parse(content), is_test)


def _example_of_record(line, record, is_test):
    """Return the `ChoiceExample` of a line of JSON, or of a row of SWAG."""
    if SENTENCE in record:
        return _example_of_swag(line, record, is_test)
    question: Any = next((record[key] for key in _QUESTIONS if record.get(key)), "")
    listed = record.get("choices") or ""
    if isinstance(question, dict):
        question, listed = question.get("stem"), question.get("choices")
    texts, own_labels = _texts_and_labels(listed)
    choices = _checked(question, texts)
    guid = str(record.get("id") or "") or line
    key, label = record.get(_ANSWER_KEY) or "", record.get(LABEL) or ""
    if is_test and not (key or label):
        index = None
    elif own_labels:
        index = _index_of(key or label, own_labels)
    else:
        index = _counted(key or label, choices, first=1 if key else 0)
    return ChoiceExample(guid, question, choices, index)


def _texts_and_labels(listed):
    """Return (texts, labels) of `choices`; the labels are [] if it has none."""
    if isinstance(listed, dict):
        texts, labels = listed.get("text"), listed.get("label")
    elif isinstance(listed, list) and any(isinstance(one, dict) for one in listed):
        pairs = [one if isinstance(one, dict) else {} for one in listed]
        texts = [pair.get("text") for pair in pairs]
        labels = [pair.get("label") for pair in pairs]
    else:
        texts, labels = listed or [], []
    if not isinstance(texts, list) or not isinstance(labels, list):
        raise ValueError("has choices that are not a list of texts")
    if labels and (
        len(labels) != len(texts)
        or not all(isinstance(label, str) for label in labels)
        or len(set(labels)) < len(labels)
    ):
        raise ValueError("has choices with missing or repeated labels")
    return texts, labels


def _checked(question, texts):
    """Return the choices as a tuple; raise `ValueError` if a row is incomplete."""
    _require_text(question, "question")
    if len(texts) < 2:
        raise ValueError(f"has {'1 choice' if texts else 'no choices'}")
    for text in texts:
        _require_text(text, "choice")
    return tuple(texts)


def _require_text(text, what):
    if not isinstance(text, str):
        raise ValueError(f"has no text as its {what}")
    if not text.strip():
        raise ValueError(f"has an empty {what}")


def _counted(answer, choices, first):
    """Return the index for a letter, or for a number counted from `first`."""
    letters = list(string.ascii_uppercase[: len(choices)])
    numbers = [str(first + index) for index in range(len(choices))]
    text = answer.strip() if isinstance(answer, str) else None
    if text and text.upper() in letters:
        return letters.index(text.upper())
    return numbers.index(text) if text in numbers else _index_of(answer, letters)


def _index_of(answer, labels):
    """Return the index of an answer among labels."""
    if answer == "":
        raise ValueError("has no answer")
    if not isinstance(answer, str) or answer.strip() not in labels:
        listed = f"{', '.join(labels[:-1])} and {labels[-1]}"
        raise ValueError(f"has the answer {answer!r}, which is not one of {listed}")
    return labels.index(answer.strip())
