"""Multiple choice in files: SWAG's table, ARC's, and JSON lines.

* SWAG ("regular" layout): CSV with the columns `sent1`, `sent2`, `ending0`, … and
  `label`, which counts from 0; others are not looked at. JSON lines with these keys
  are read as well. The model reads `sent1` and, for each choice, `sent2` and the
  ending with a space between them.
* JSON lines: `question` (or `context`, or `prompt`), `choices`, and the answer.
  `choices` is a list of texts, a list of `{"text": …, "label": "A"}` or
  `{"text": […], "label": […]}`, also within a `question` that holds a `stem`, as
  ARC has them. The answer is `answerKey`, one of the choices' own labels, or else
  a letter from A or a number from 1; or it is `label`, a letter or a number from 0.
* CSV without those names: the question, the choices and in the last column the
  answer, a letter from A or a number from 1. Where there are fewer choices, the
  cells behind them are empty. A header is known by `question` in its first cell.

Files are read by `tables.read_table`.
"""

import dataclasses
import string

from official_bert.errors import UserError
from official_bert.tasks.tables import (
    JSON_LINES,
    fail_for_rows,
    name_lines,
    read_table,
)

SENTENCE, START, ENDING, LABEL = "sent1", "sent2", "ending", "label"
GOLD_SOURCE = "gold-source"
# What the source of an ending begins with that a language model wrote.
_GENERATED = "gen"
_QUESTIONS = ("question", "context", "prompt")
_ANSWER_KEY = "answerKey"


@dataclasses.dataclass(frozen=True)
class ChoiceExample:
    """A text and C continuations or answers, one of which is right.

    Attributes:
      guid: which row it is, for messages: the `id` of JSON lines, or the line of
        its file in which it starts.
      context: the first text, common to all choices.
      choices: tuple of C str, C >= 2, the second texts.
      label: the place of the right one, or None where it is not known.
    """

    guid: str | int
    context: str
    choices: tuple[str, ...]
    label: int | None = None


def read_swag(path, flag="--train_file", is_test=False, leave_out_generated=False):
    """Read a file in SWAG's regular layout; see the module's docstring.

    Args:
      path: the file.
      flag: the flag it came from, for messages.
      is_test: whether labels may be missing, one or all.
      leave_out_generated: whether to leave out rows whose right ending was
        written by a language model ("gen" or "gen-orig" in `gold-source`).

    Returns:
      (list of `ChoiceExample`, at least one; list of str: what was left out).

    Raises:
      UserError: the file cannot be read, lacks columns, or has rows without a
        sentence, an ending or a label; names the lines.
    """
    table = read_table(path, flag, has_header=True)
    columns = {name: place for place, name in enumerate(table.columns)}
    endings = _ending_columns(table, columns, is_test, leave_out_generated)
    rows, notes = table.rows, []
    if leave_out_generated:
        source = columns[GOLD_SOURCE]
        rows = [r for r in rows if not str(r.cells[source]).startswith(_GENERATED)]
        num_rows = len(table.rows)
        notes.append(
            f"{table.path}: {num_rows - len(rows)} of {num_rows} rows were left out, "
            "whose right ending was generated."
        )

    def example_of(row):
        sentence, start = row.cells[columns[SENTENCE]], row.cells[columns[START]]
        texts = [row.cells[place] for place in endings]
        _require_text(sentence, SENTENCE)
        if not isinstance(start, str):
            raise ValueError(f"has no text as its {START}")
        for number, text in enumerate(texts):
            _require_text(text, f"{ENDING}{number}")
        label = None
        answer = row.cells[columns[LABEL]] if LABEL in columns else ""
        if answer or not is_test:
            label = _place_of(answer, list(map(str, range(len(texts)))))
        choices = tuple(f"{start} {text}" for text in texts)
        return ChoiceExample(row.line, sentence, choices, label)

    return _examples(table.path, rows, example_of, notes, leave_out_damaged=False)


def _ending_columns(table, columns, is_test, with_source):
    """Return the places of the endings; `UserError` if columns are missing."""
    names = [f"{ENDING}{number}" for number in range(len(columns))]
    endings = [name for name in names if name in columns]
    # A gap, ending0 and ending2, is a column that is missing, too.
    expected = names[: max(2, names.index(endings[-1]) + 1 if endings else 0)]
    needed = [SENTENCE, START, *expected]
    needed += [] if is_test else [LABEL]
    needed += [GOLD_SOURCE] if with_source else []
    missing = [name for name in needed if name not in columns]
    if missing:
        raise UserError(
            f"{table.path} has no column {', '.join(missing)}; SWAG's regular files "
            "(train.csv, val.csv, test.csv) have them in their first row."
        )
    return [columns[name] for name in expected]


def read_choices(path, flag="--train_file", is_test=False, leave_out_damaged=False):
    """Read JSON lines or ARC's CSV; see the module's docstring.

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
    table = read_table(path, flag, has_header=False)
    rows = table.rows
    if table.format == JSON_LINES:

        def example_of(row):
            record = dict(zip(table.columns, row.cells, strict=True))
            return _example_of_record(record, row.line, is_test)

    else:
        if str(rows[0].cells[0]).strip().lower() in _QUESTIONS:
            rows = rows[1:]

        def example_of(row):
            return _example_of_cells(row.cells, row.line, is_test)

    return _examples(table.path, rows, example_of, [], leave_out_damaged)


def _examples(path, rows, example_of, notes, leave_out_damaged):
    """Return the (examples, notes) of rows; `UserError` if some are damaged.

    Args:
      path: of the file, for messages.
      rows: list of `Row`.
      example_of: makes a `ChoiceExample` of one; its `ValueError` says what is
        wrong.
      notes: list of str.
      leave_out_damaged: see `read_choices`.
    """
    examples, problems = [], []
    for row in rows:
        try:
            examples.append(example_of(row))
        except ValueError as error:
            problems.append((row.line, str(error)))
    if problems and not (leave_out_damaged and examples):
        advice = "a row is a question, two choices or more, and the right one of them"
        fail_for_rows(path, problems, advice)
    if not examples:
        raise UserError(f"{path} has no rows that are examples.")
    if problems:
        lines = name_lines([line for line, _ in problems])
        notes = [
            *notes,
            f"{path}: {len(problems)} of {len(rows)} rows were left out, which cannot "
            f"be used: {lines}.",
        ]
    return examples, notes


def _example_of_cells(cells, line, is_test):
    """Return the `ChoiceExample` of a row: question, choices, answer."""
    question, *texts, answer = cells
    while texts and not texts[-1].strip():
        texts.pop()
    choices = _checked(question, texts)
    if is_test and not answer.strip():
        return ChoiceExample(line, question, choices)
    return ChoiceExample(line, question, choices, _counted(answer, choices, first=1))


def _example_of_record(record, line, is_test):
    """Return the `ChoiceExample` of a line of JSON."""
    question = next((record[key] for key in _QUESTIONS if record.get(key)), "")
    listed = record.get("choices") or ""
    if isinstance(question, dict):
        question, listed = question.get("stem"), question.get("choices")
    texts, own_labels = _texts_and_labels(listed)
    choices = _checked(question, texts)
    guid = str(record.get("id") or "") or line
    key, label = record.get(_ANSWER_KEY) or "", record.get(LABEL) or ""
    if is_test and not (key or label):
        return ChoiceExample(guid, question, choices)
    if own_labels:
        return ChoiceExample(
            guid, question, choices, _place_of(key or label, own_labels)
        )
    place = _counted(key, choices, 1) if key else _counted(label, choices, 0)
    return ChoiceExample(guid, question, choices, place)


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
    """Return the place that a letter means, or a number counted from `first`."""
    letters = list(string.ascii_uppercase[: len(choices)])
    if isinstance(answer, str) and answer.strip().upper() in letters:
        return letters.index(answer.strip().upper())
    numbers = [str(first + place) for place in range(len(choices))]
    if isinstance(answer, str) and answer.strip() in numbers:
        return numbers.index(answer.strip())
    return _place_of(answer, letters)


def _place_of(answer, labels):
    """Return the place of an answer among labels."""
    if answer == "":
        raise ValueError("has no answer")
    if not isinstance(answer, str) or answer.strip() not in labels:
        raise ValueError(f"has the answer {answer!r}, which is none of {_all(labels)}")
    return labels.index(answer.strip())


def _all(labels):
    return f"{', '.join(labels[:-1])} and {labels[-1]}"
