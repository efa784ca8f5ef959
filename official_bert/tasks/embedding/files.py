"""Read files of related texts as examples for sentence embeddings.

A file is CSV, TSV or JSON lines (`tables.table_files`), or plain text. Its columns
decide how rows are read:

* pairs: an anchor and a positive text. Further texts are hard negatives.
* pairs with a score: two texts and their similarity.
* groups: a text and the number or name of its group. All texts of a group have the
  same meaning. In JSON lines a row may also be a complete group, `{"texts": [...]}`.
* texts: one column, or one text per line of a `.txt`.

The caller names the columns, or the reader recognizes their usual names.
"""

import dataclasses
import os
from collections.abc import Iterator, Sequence

from official_bert.constants import COSENT, COSINE, INFO_NCE, SIMCSE
from official_bert.errors import UserError
from official_bert.tables.columns import describe_columns, find_column
from official_bert.tables.table_files import (
    Table,
    convert_rows,
    numbered_lines,
    read_table,
    read_text,
)

# Usual names of the columns of pairs.
_PAIRS = (
    ("anchor", "positive"),
    ("query", "positive"),
    ("question", "answer"),
    ("query", "answer"),
    ("sentence1", "sentence2"),
    ("sentence_a", "sentence_b"),
    ("text_a", "text_b"),
    ("text1", "text2"),
    ("question1", "question2"),
)
SCORES = ("score", "similarity", "similarity_score")
GROUPS = ("group", "cluster", "group_id", "cluster_id")
_TEXTS = ("text", "sentence", "question")
WHOLE_GROUP = "texts"
# Prefix of the names of hard negatives.
_NEGATIVE = "negative"
PLAIN = (".txt", ".txt.gz")


@dataclasses.dataclass(frozen=True)
class EmbeddingExample:
    """Texts that are compared with each other.

    Attributes:
      guid: line of the file in which the row starts.
      texts: an anchor, its positive and hard negatives; or one text.
      score: similarity of the first two texts; None if unknown.
      group: texts of one group have the same meaning; None without groups.
    """

    guid: int
    texts: tuple[str, ...]
    score: float | None = None
    group: str | None = None


@dataclasses.dataclass(frozen=True)
class ColumnNames:
    """The columns of a table, by name or number, as in the flags.

    Attributes:
      texts: names; () to recognize usual names.
      score: name; None to recognize a usual name.
      group: name; None to recognize a usual name.
      has_header: whether the first row is a header; None to guess.
    """

    texts: tuple[str, ...] = ()
    score: str | None = None
    group: str | None = None
    has_header: bool | None = None


USUAL = ColumnNames()


def read_examples(
    path: str | os.PathLike[str],
    flag: str,
    columns: ColumnNames = USUAL,
) -> list[EmbeddingExample]:
    """Return the examples of a file, in order.

    A group of N texts becomes N pairs of neighbouring texts, including the last with
    the first; a group of two becomes one pair. A group with one text is left out.

    Args:
      path: the file.
      flag: the flag that named the file, for messages.
      columns: `ColumnNames`.

    Raises:
      UserError: the file cannot be read, its columns do not exist or are ambiguous, or
        a row lacks a text or has a score that is not a number.
    """
    path = os.fspath(path)
    if path.endswith(PLAIN):
        lines = numbered_lines(read_text(path, flag))
        examples = [EmbeddingExample(line, (text.strip(),)) for line, text in lines]
    else:
        names = [*columns.texts, columns.score, columns.group]
        table = read_table(path, flag, columns.has_header, filter(None, names))
        examples = convert_table(table, columns)
    if not examples:
        raise UserError(
            f"{flag}: {path} has no examples. Add rows with two texts, or with one "
            "text for --loss=simcse."
        )
    return examples


def convert_table(table: Table, columns: ColumnNames = USUAL) -> list[EmbeddingExample]:
    """Return the examples of a table; see `read_examples`."""
    is_named = columns.texts or columns.score or columns.group
    if WHOLE_GROUP in table.columns and not is_named:
        return _whole_groups(table)
    return _rows(table, *_find(table, columns))


def find_pair(names: Sequence[str]) -> tuple[str, str] | None:
    """Return the two column names that usually hold a pair, or None."""
    lower = [name.lower() for name in names]
    for first, second in _PAIRS:
        if lower.count(first) == lower.count(second) == 1:
            return names[lower.index(first)], names[lower.index(second)]
    return None


def _find(table, columns):
    """Return (numbers of the text columns, number of score, number of group).

    Score and group may be None.
    """
    score = _one(table, columns.score, "--score_column", SCORES)
    group = _one(table, columns.group, "--group_column", GROUPS)
    if columns.texts:
        texts = [find_column(table, n, "--text_columns") for n in columns.texts]
    else:
        texts = _guess_texts(table, {score, group}, group is not None)
    chosen = [each for each in (*texts, score, group) if each is not None]
    if len(set(chosen)) < len(chosen):
        raise UserError(
            "--text_columns, --score_column and --group_column must be different "
            f"columns. The columns of {table.path} are {describe_columns(table)}."
        )
    if group is not None and (len(texts) != 1 or score is not None):
        raise UserError(
            f"{table.path}: a table of groups has one text column and no scores. Name "
            "one column in --text_columns, or leave out --group_column."
        )
    if score is not None and len(texts) != 2:
        # The usual name belongs to a label with another meaning.
        if columns.score is None:
            return texts, None, group
        raise UserError(
            f"{table.path}: a score needs two texts, but --text_columns names "
            f"{len(texts)} columns. Name two."
        )
    return texts, score, group


def _one(table, name, flag, usual):
    """Return the number of the named column, or of a usual name; or None."""
    if name is not None:
        return find_column(table, name, flag)
    lower = [column.lower() for column in table.columns]
    found = [lower.index(each) for each in usual if lower.count(each) == 1]
    return found[0] if table.has_header and found else None


def _guess_texts(table, taken, is_group):
    lower = [column.lower() for column in table.columns]
    if table.has_header and not is_group and (pair := find_pair(table.columns)):
        negatives = [
            index for index, name in enumerate(lower) if name.startswith(_NEGATIVE)
        ]
        return [*map(table.columns.index, pair), *negatives]
    if table.has_header:
        for name in _TEXTS:
            if lower.count(name) == 1:
                return [lower.index(name)]
    free = [index for index in range(len(table.columns)) if index not in taken]
    if len(free) == 1 or (len(free) == 2 and not table.has_header):
        return free
    raise UserError(
        f"{table.path}: the text columns are ambiguous. Choose --text_columns from "
        f"{describe_columns(table)}."
    )


def _whole_groups(table):
    column = table.columns.index(WHOLE_GROUP)

    def convert(line, cells):
        texts = cells[column]
        if not isinstance(texts, list) or not all(isinstance(t, str) for t in texts):
            raise ValueError(f'has a "{WHOLE_GROUP}" that is not a list of texts')
        return line, str(line), [_text(text) for text in texts]

    rows = [(row.line, row.cells) for row in table.rows]
    advice = 'write lines like {"texts": ["Where is it?", "Where can I find it?"]}'
    groups = convert_rows(table.path, rows, convert, advice)
    return [pair for group in groups for pair in _pairs(*group)]


def _rows(table, texts, score, group):
    def convert(line, cells):
        # Rows may have different numbers of hard negatives.
        own = [_text(cells[index]) for index in texts[:2]]
        own += [_text(cells[index]) for index in texts[2:] if cells[index] != ""]
        value = None if score is None else _score(cells[score])
        name = None if group is None else str(cells[group])
        return EmbeddingExample(line, tuple(own), value, name)

    rows = [(row.line, row.cells) for row in table.rows]
    examples = convert_rows(table.path, rows, convert, "correct or remove them")
    return examples if group is None else _grouped(examples)


def _grouped(examples):
    groups: dict[str, list[EmbeddingExample]] = {}
    for example in examples:
        groups.setdefault(example.group, []).append(example)
    return [
        pair
        for name, members in groups.items()
        for pair in _pairs(members[0].guid, name, [one.texts[0] for one in members])
    ]


def _pairs(guid: int, group: str, texts: Sequence[str]) -> Iterator[EmbeddingExample]:
    """Yield each text of a group with the next one, and the last with the first."""
    count = len(texts) if len(texts) > 2 else len(texts) - 1
    for index in range(count):
        pair = (texts[index], texts[(index + 1) % len(texts)])
        yield EmbeddingExample(guid, pair, group=group)


def _text(cell):
    if not isinstance(cell, str) or not cell.strip():
        raise ValueError("has an empty text")
    return cell.strip()


def _score(cell):
    try:
        return float(cell)
    except (TypeError, ValueError) as error:
        raise ValueError(f"has the score {cell!r}, which is not a number") from error


def check_loss(examples: Sequence[EmbeddingExample], loss: str, flag: str) -> None:
    """Raise `UserError` if a loss cannot use one of the examples.

    Args:
      examples: list of `EmbeddingExample`.
      loss: one of `constants.EMBEDDING_LOSSES`.
      flag: the flag that named their file, for messages.
    """
    for example in examples:
        if loss in (COSINE, COSENT) and example.score is None:
            raise UserError(
                f"{flag}: --loss={loss} needs pairs with scores, but line "
                f"{example.guid} has no score. Add --score_column, or choose "
                "another --loss."
            )
        if loss == INFO_NCE and len(example.texts) < 2:
            raise UserError(
                f"{flag}: --loss={loss} needs two texts per row, but line "
                f"{example.guid} has one. Name two --text_columns, or use "
                "--loss=simcse."
            )


def default_loss(examples: Sequence[EmbeddingExample]) -> str:
    """Return the default loss for examples with scores, with pairs or with one text."""
    if all(example.score is not None for example in examples):
        return COSENT
    return INFO_NCE if len(examples[0].texts) > 1 else SIMCSE
