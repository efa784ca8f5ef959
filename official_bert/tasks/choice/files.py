"""Multiple choice in files: SWAG's table, ARC's, and JSON lines.

What is in a file decides, not its name: one whose first character that is no blank
is `{` is JSON lines, any other a table. The commands take a table for SWAG's; ARC's
is read by `read_choices` alone, from Python.

* SWAG ("regular" layout): CSV with the columns `sent1`, `sent2`, `ending0`, … and
  `label`, which counts from 0; others are not looked at. JSON lines with these keys
  are read as well. The model reads `sent1` and, for each choice, `sent2` and the
  ending with a space between them.
* JSON lines: `question` (or `context`, or `prompt`), `choices`, and the answer.
  `choices` is a list of texts, a list of `{"text": …, "label": "A"}` or
  `{"text": […], "label": […]}`, also within a `question` that holds a `stem`, as
  ARC has them. The answer is `answerKey`, one of the choices' own labels, or else
  a letter from A or a number from 1; or it is `label`, a letter or a number from 0.
* ARC's CSV, without those names: the question, the choices and in the last column the
  answer, a letter from A or a number from 1. Where there are fewer choices, the
  cells behind them are empty. A header is known by `question` in its first cell.

Text is UTF-8 as `table_files.read_text` reads it, plain or gzipped. A table whose
first line has a tab in it is TSV. A key that a line of JSON lacks, or null, is empty.
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
# What the source of an ending begins with that a language model wrote.
_GENERATED = "gen"
_QUESTIONS = ("question", "context", "prompt")
_ANSWER_KEY = "answerKey"
# Those that a table begins with: without their spaces they are no rows.
_BLANK_LINES = re.compile(r"\A\s*[\r\n]")
_BLANKS = re.compile(r"[^\r\n]")


@dataclasses.dataclass(frozen=True)
class ChoiceExample:
    """A text and C continuations or answers, one of which is right.

    Attributes:
      guid: which row it is, for messages: the `id` of JSON lines, or the line of
        its file in which it starts.
      context: the first text, common to all choices.
      choices: tuple of C str, C >= 2, the second texts.
      label: the index of the right one, or None where it is not known.
    """

    guid: str | int
    context: str
    choices: tuple[str, ...]
    label: int | None = None


def is_json_lines(path: str | os.PathLike[str], flag: str = "--train_file") -> bool:
    """Tell whether a file is JSON lines, by its first character that is no blank.

    Args:
      path: the file.
      flag: the flag it came from, for messages.

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
    """Read JSON lines, or a table in SWAG's regular layout; see the module's docstring.

    Args:
      path: the file.
      flag: the flag it came from, for messages.
      is_test: whether labels may be missing, one or all.
      leave_out_generated: whether to leave out rows of a table whose right
        ending was written by a language model ("gen" or "gen-orig" in
        `gold-source`).
      leave_out_damaged: of JSON lines, see `read_choices`.

    Returns:
      (list of `ChoiceExample`, at least one; list of str: what was left out).

    Raises:
      UserError: the file cannot be read, lacks columns, or has rows without a
        sentence, an ending or a label; names the lines.
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
    """Read JSON lines, of SWAG's keys too, or ARC's CSV; see the module's docstring.

    Args:
      path: the file.
      flag: the flag it came from, for messages.
      is_test: whether answers may be missing, one or all.
      leave_out_damaged: whether to leave out rows that cannot be used, and name
        them in a note, instead of refusing the file.

    Returns:
      (list of `ChoiceExample`, at least one; list of str: what was left out).
      Not all of them need have as many choices.

    Raises:
      UserError: the file cannot be read, or has rows without a question, fewer
        than two choices, an empty one, or an answer that is none of them;
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
    """Return the examples of records that are not lines of a file.

    Args:
      path: where they are from, for messages.
      records: dicts with the keys of JSON lines or of SWAG, see the module's
        docstring. Numbers are text; a key may be missing.
      is_test: whether answers may be missing, one or all.
      leave_out_generated: see `read_swag`.
      leave_out_damaged: see `read_choices`.

    Returns:
      see `read_choices`.

    Raises:
      UserError: see `read_choices`; names the rows, counted from 1.
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
    """Read JSON lines, or SWAG's table, to be answered: answers are not looked at.

    Args:
      path: the file.
      flag: the flag it came from, for messages.

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
    advice = "a row is a question and two choices or more"
    return convert_rows(path, rows, lambda _, content: parse(content), advice)


def parse_prompt(line: str) -> tuple[str, tuple[str, ...]]:
    """Return the (prompt, tuple of choices) of a line of JSON, without its answer.

    Args:
      line: str, as the module's docstring has it.

    Raises:
      ValueError: says what is wrong.
    """
    return _prompt_of_record(_parse(line))


def _prompt_of_record(record):
    unanswered = record | {LABEL: "", _ANSWER_KEY: ""}
    example = _example_of_record(0, unanswered, is_test=True)
    return example.context, example.choices


def _begins_with_object(text):
    return text.lstrip().startswith("{")


def _parse(content):
    """Return the object on a line; its values are cells, as those of a table."""
    return {name: as_cell(value) for name, value in parse_object(content).items()}


def _table_rows(path, text):
    """Return the rows of a table, a header among them; `UserError` if it has none."""
    text = _BLANK_LINES.sub(lambda match: _BLANKS.sub("", match[0]), text)
    first = text.lstrip("\r\n").partition("\n")[0]
    rows, problems = read_tsv(text) if "\t" in first else read_csv(text)
    if problems:
        fail_for_rows(
            path, problems, "mend them, and put quotes around cells with a delimiter"
        )
    if not rows:
        raise UserError(f"{path} is empty; it needs at least one row with a text.")
    return rows


def _swag_rows(path, text, with_label=False, with_source=False):
    """Return the (line, dict of column -> cell) of the rows of SWAG's table."""
    if text.lstrip().startswith("["):
        raise UserError(
            f"{path} holds one JSON list; write JSON lines, one object a line."
        )
    header, *rows = _table_rows(path, text)
    columns = [cell.strip() for cell in header.cells]
    needed = [SENTENCE, START, *_ending_names(columns)]
    if not set(needed) & set(columns):
        raise UserError(
            f"{path} is neither SWAG's CSV, whose first row names the columns "
            f"{SENTENCE}, {START}, {ENDING}0, {ENDING}1 and so on, nor JSON lines, "
            "each an object in braces; bring it into one of these forms."
        )
    needed += [LABEL] if with_label else []
    needed += [GOLD_SOURCE] if with_source else []
    for name in needed:
        if columns.count(name) > 1:
            raise UserError(f"{path} has two columns {name}; leave one of them out.")
    missing = [name for name in needed if name not in columns]
    if missing:
        raise UserError(
            f"{path} has no column {', '.join(missing)}; SWAG's regular files "
            "(train.csv, val.csv, test.csv) have them in their first row."
        )
    if not rows:
        raise UserError(f"{path} holds a header and no rows; add rows below it.")
    return [(row.line, dict(zip(columns, row.cells, strict=True))) for row in rows]


def _without_generated(path, rows):
    """Return the rows whose right ending was not generated, and a note."""
    kept = [row for row in rows if not row[1][GOLD_SOURCE].startswith(_GENERATED)]
    note = (
        f"{path}: {len(rows) - len(kept)} of {len(rows)} rows were left out, whose "
        "right ending was generated."
    )
    return kept, [note]


def _ending_names(columns):
    """Return `ending0` to the last one among columns, two at least.

    A gap, as ending0 and ending2, is a column that is missing, too.
    """
    names = [f"{ENDING}{number}" for number in range(len(columns) + 1)]
    ends = [number for number, name in enumerate(names, 1) if name in columns]
    return names[: max([2, *ends])]


def _examples(path, rows, example_of, is_test, leave_out_damaged=False):
    """Return (examples, notes) of rows, (line, content); see `read_choices`.

    `example_of` makes an example of (line, content, is_test). Its `ValueError` says
    what is wrong with the row.
    """
    examples, problems, notes = [], [], []
    for line, content in rows:
        try:
            examples.append(example_of(line, content, is_test))
        except ValueError as error:
            problems.append((line, str(error)))
    if problems and not (leave_out_damaged and examples):
        advice = "a row is a question, two choices or more, and the right one of them"
        fail_for_rows(path, problems, advice)
    if not examples:
        raise UserError(f"{path} has no rows that are examples.")
    if problems:
        lines = name_lines([line for line, _ in problems])
        notes.append(
            f"{path}: {len(problems)} of {len(rows)} rows were left out, which cannot "
            f"be used: {lines}."
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
    """Return the `ChoiceExample` of a row: question, choices, answer."""
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
    """Return (texts, their labels, [] for none) of what `choices` holds."""
    if isinstance(listed, dict):
        texts, labels = listed.get("text"), listed.get("label")
    elif isinstance(listed, list) and any(isinstance(one, dict) for one in listed):
        pairs = [one if isinstance(one, dict) else {} for one in listed]
        texts = [pair.get("text") for pair in pairs]
        labels = [pair.get("label") for pair in pairs]
    else:
        texts, labels = listed or [], []
    if not isinstance(texts, list) or not isinstance(labels, list):
        raise ValueError("has choices that are no list of texts")
    if labels and (
        len(labels) != len(texts)
        or not all(isinstance(label, str) for label in labels)
        or len(set(labels)) < len(labels)
    ):
        raise ValueError("has choices that do not have a label each")
    return texts, labels


def _checked(question, texts):
    """Return the choices as a tuple; `ValueError` if a row is incomplete."""
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
    """Return the index that a letter means, or a number counted from `first`."""
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
        raise ValueError(f"has the answer {answer!r}, which is none of {listed}")
    return labels.index(answer.strip())
