"""Files of texts that belong together, as examples for sentence embeddings.

A file is a CSV, a TSV or JSON lines (`tables.table_files`), or plain text. Its columns
decide what a row is:

* pairs: an anchor and a positive text. Further texts are hard negatives.
* pairs with a score: the two texts and how similar they are.
* groups: a text and the number or name of its group. All texts of a group mean the
  same. In JSON lines a row may also be a whole group, `{"texts": [...]}`.
* texts: one column, or a line each of a `.txt`.

Columns are named by the caller, or found by their usual names.
"""

import dataclasses
import os
from collections.abc import Iterator, Sequence

from official_bert.constants import COSENT, COSINE, INFO_NCE, SIMCSE
from official_bert.errors import UserError
from official_bert.tables.columns import describe_columns, find_column
from official_bert.tables.table_files import (
    convert_rows,
    numbered_lines,
    read_table,
    read_text,
)

# What columns of pairs are commonly called; of each tuple all must be there.
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
_SCORES = ("score", "similarity", "similarity_score")
_GROUPS = ("group", "cluster", "group_id", "cluster_id")
_TEXTS = ("text", "sentence", "question")
_WHOLE_GROUP = "texts"
# The names of hard negatives begin with this.
_NEGATIVE = "negative"
PLAIN = (".txt", ".txt.gz")


@dataclasses.dataclass(frozen=True)
class EmbeddingExample:
    """Texts that are compared with each other.

    Attributes:
      guid: line of the file in which the row starts.
      texts: an anchor, its positive and hard negatives; or one text.
      score: how similar the first two are; None if unknown.
      group: texts of one group mean the same; None if there are no groups.
    """

    guid: int
    texts: tuple[str, ...]
    score: float | None = None
    group: str | None = None


@dataclasses.dataclass(frozen=True)
class ColumnNames:
    """The columns of a table, by name or number, as flags give them.

    Attributes:
      texts: () to find them by their usual names.
      score: None to find it.
      group: None to find it.
      has_header: whether the first row names the columns; None to look.
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

    A group of N texts becomes N pairs, of each text and the next; two texts become one.
    A group with one text has no pair and is left out.

    Args:
      path: the file.
      flag: the flag that it came from, for messages.
      columns: `ColumnNames`.

    Raises:
      UserError: the file cannot be read, its columns cannot be found, or a row lacks a
        text or has a score that is not a number.
    """
    path = os.fspath(path)
    if path.endswith(PLAIN):
        lines = numbered_lines(read_text(path, flag))
        examples = [EmbeddingExample(line, (text.strip(),)) for line, text in lines]
    else:
        names = [*columns.texts, columns.score, columns.group]
        given = [name for name in names if name is not None]
        table = read_table(path, flag, columns.has_header, given)
        if _WHOLE_GROUP in table.columns and not given:
            examples = _whole_groups(table)
        else:
            examples = _rows(table, *_find(table, columns))
    if not examples:
        raise UserError(
            f"{flag}: {path} has no examples; add rows with two texts, or with one "
            "text for --loss=simcse."
        )
    return examples


def _find(table, columns):
    """Return (numbers of the text columns, of the score, of the group; or None)."""
    score = _one(table, columns.score, "--score_column", _SCORES)
    group = _one(table, columns.group, "--group_column", _GROUPS)
    if columns.texts:
        texts = [find_column(table, n, "--text_columns") for n in columns.texts]
    else:
        texts = _guess_texts(table, {score, group}, group is not None)
    chosen = [each for each in (*texts, score, group) if each is not None]
    if len(set(chosen)) < len(chosen):
        raise UserError(
            "--text_columns, --score_column and --group_column must be different "
            f"columns; those of {table.path} are {describe_columns(table)}."
        )
    if group is not None and (len(texts) != 1 or score is not None):
        raise UserError(
            f"{table.path}: a table of groups has one column of texts and no scores; "
            "give one --text_columns, or leave --group_column out."
        )
    if score is not None and len(texts) != 2:
        # A label of something else, found by its name.
        if columns.score is None:
            return texts, None, group
        raise UserError(
            f"{table.path}: a score belongs to two texts, and --text_columns names "
            f"{len(texts)}; give two."
        )
    return texts, score, group


def _one(table, name, flag, usual):
    """Return the number of a column that is given, or has a usual name; or None."""
    if name is not None:
        return find_column(table, name, flag)
    lower = [column.lower() for column in table.columns]
    found = [lower.index(each) for each in usual if lower.count(each) == 1]
    return found[0] if table.has_header and found else None


def _guess_texts(table, taken, is_group):
    lower = [column.lower() for column in table.columns]
    if table.has_header and not is_group:
        for pair in _PAIRS:
            if all(lower.count(name) == 1 for name in pair):
                found = [lower.index(name) for name in pair]
                negatives = [
                    index
                    for index, name in enumerate(lower)
                    if name.startswith(_NEGATIVE)
                ]
                return found + negatives
    if table.has_header:
        for name in _TEXTS:
            if lower.count(name) == 1:
                return [lower.index(name)]
    free = [index for index in range(len(table.columns)) if index not in taken]
    if len(free) == 1 or (len(free) == 2 and not table.has_header):
        return free
    raise UserError(
        f"{table.path}: the columns of the texts are unclear; choose with "
        f"--text_columns among {describe_columns(table)}."
    )


def _whole_groups(table):
    column = table.columns.index(_WHOLE_GROUP)

    def convert(line, cells):
        texts = cells[column]
        if not isinstance(texts, list) or not all(isinstance(t, str) for t in texts):
            raise ValueError(f'has a "{_WHOLE_GROUP}" that is not a list of texts')
        return line, str(line), [_text(text) for text in texts]

    rows = [(row.line, row.cells) for row in table.rows]
    advice = 'write lines like {"texts": ["Where is it?", "Where can I find it?"]}'
    groups = convert_rows(table.path, rows, convert, advice)
    return [pair for group in groups for pair in _pairs(*group)]


def _rows(table, texts, score, group):
    def convert(line, cells):
        # A row may have fewer hard negatives than others.
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
    """Yield each text of a group with the next; the last with the first."""
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
      flag: the flag that they came from, for messages.
    """
    for example in examples:
        if loss in (COSINE, COSENT) and example.score is None:
            raise UserError(
                f"{flag}: --loss={loss} needs pairs with scores, and the example in "
                f"line {example.guid} has none; give --score_column or another --loss."
            )
        if loss == INFO_NCE and len(example.texts) < 2:
            raise UserError(
                f"{flag}: --loss={loss} needs two texts in each row, and line "
                f"{example.guid} has one; give two --text_columns, or --loss=simcse."
            )


def default_loss(examples: Sequence[EmbeddingExample]) -> str:
    """Return the loss that fits examples: by their scores, pairs, or texts alone."""
    if all(example.score is not None for example in examples):
        return COSENT
    return INFO_NCE if len(examples[0].texts) > 1 else SIMCSE
