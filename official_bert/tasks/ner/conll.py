"""Read and write CoNLL columns; see `files`."""

import itertools
import os
import re
from collections.abc import Container, Sequence
from typing import Any

from official_bert import files
from official_bert.errors import UserError
from official_bert.metrics import entities
from official_bert.metrics.entities import IOB2
from official_bert.tables.table_files import fail_for_rows, name_lines
from official_bert.tasks.ner.sentences import CONLL, NerData, Sentence, word_sentence

DOCUMENT_START = "-DOCSTART-"
BLANKS = re.compile("[ \t]+")


def read_conll(
    path: str, text: str, labels: Container[str] | None, with_tags: bool
) -> NerData:
    """Read a text of columns as `NerData`.

    Args:
      path: the file, for messages.
      text: the file's text, with Unix line ends.
      labels: set of allowed types; None allows all.
      with_tags: see `files.read_ner_file`.

    Raises:
      UserError: see `files.read_ner_file`.
    """
    rows: list[tuple[int, list[str]]] = []
    documents: list[list[Any]] = [[]]
    problems, width = [], None
    # The added empty line ends the last sentence.
    for line, content in enumerate([*text.split("\n"), ""], 1):
        cells = BLANKS.split(content.strip(" \t"))
        is_border = cells[0] == DOCUMENT_START
        if is_border or cells == [""]:
            if rows:
                documents[-1].append(rows)
                rows = []
            if is_border:
                documents.append([])
            continue
        width = width or len(cells)
        problem = _what_is_wrong(cells, width, labels, with_tags)
        if problem:
            problems.append((line, problem))
        rows.append((line, cells))
    if problems:
        fail_for_rows(path, problems, _advice_on_columns(problems))
    has_borders = len(documents) > 1
    documents = [document for document in documents if document]
    if not documents:
        raise UserError(f"{path} contains no words. Write one word per line.")
    notes = []
    if not has_borders and len(documents[0]) > 1:
        notes.append(
            f"{path} has no {DOCUMENT_START} rows: its {len(documents[0])} sentences "
            "are read as one document."
        )
    return tagged_data(path, documents, with_tags, notes)


def has_tag(row: str) -> bool:
    """Return whether a row of columns ends with a tag after its word."""
    cells = BLANKS.split(row.strip(" \t"))
    is_border = cells[0] == DOCUMENT_START
    return not is_border and not _what_is_wrong(cells, len(cells), None, True)


def _what_is_wrong(cells, width, labels, with_tags):
    """Return the problem of a row, or None."""
    if len(cells) != width:
        count = "1 column" if len(cells) == 1 else f"{len(cells)} columns"
        return f"has {count} instead of {width}"
    if not with_tags:
        return None
    if len(cells) == 1:
        return "has a word without a tag"
    try:
        letter, label = entities.split_tag(cells[-1])
    except ValueError:
        return f"has {cells[-1]!r}, which is not a tag"
    if labels is not None and letter != entities.OUTSIDE and label not in labels:
        return f"has the tag {cells[-1]!r} of an unknown type"
    return None


def _advice_on_columns(problems):
    if any("of an unknown type" in what for _, what in problems):
        return "correct them, or train with a file that has these types"
    return (
        "a row is a word, then the same columns in all rows, then a tag such as "
        "O, B-PER or I-PER"
    )


def tagged_data(
    path: str,
    documents: Sequence[Sequence[Sequence[tuple[int, list[str]]]]],
    with_tags: bool,
    notes: list[str],
) -> NerData:
    """Convert rows to `NerData`.

    Args:
      path: the file, for notes.
      documents: lists of sentences, which are lists of (line, cells). Cells are the
        word, further columns, and the tag if there are tags.
      with_tags: see `files.read_ner_file`.
      notes: list of str, the notes so far.
    """
    if with_tags:
        scheme = _scheme_of(itertools.chain.from_iterable(documents))
        notes = [*notes, f"{path}: the tags are {scheme}."]

    def sentence_of(rows):
        tags, end = None, None
        if with_tags:
            end = -1
            tags = entities.convert_tags([cells[-1] for _, cells in rows], IOB2)
        words = [cells[0] for _, cells in rows]
        columns = [tuple(cells[1:end]) for _, cells in rows]
        return word_sentence(words, tags, rows[0][0], columns)

    converted = [list(map(sentence_of, document)) for document in documents]
    return NerData(CONLL, converted, notes)


def _scheme_of(sentences):
    """Describe the scheme of the tags, for a note.

    Only IOB1 has entities that begin with I. Only IOB2 has entities that begin with B
    without an entity of the same type directly before.
    """
    inside, begun = [], 0  # Entities with I: lines; IOB2 entities: count.
    for rows in sentences:
        tags = [cells[-1] for _, cells in rows]
        if any(tag[0] in "ESLU" for tag in tags):
            return "BIOES and were converted to IOB2"
        before = None
        for entity in entities.to_spans(tags):
            touches = before and before[1:] == (entity.start, entity.label)
            if tags[entity.start][0] == "I":
                inside.append(rows[entity.start][0])
            elif not touches:
                begun += 1
            before = entity
    if not inside:
        return "IOB2"
    if not begun:
        return "IOB1 and were converted to IOB2"
    return (
        f"IOB2, but {len(inside)} of {len(inside) + begun} entities begin with I; "
        f"their first tags were changed to B: {name_lines(inside)}"
    )


def write_conll(
    path: str | os.PathLike[str],
    documents: Sequence[Sequence[Sentence]],
    tags: Sequence[Sequence[Sequence[str]]],
) -> None:
    """Write predictions as CoNLL columns, atomically.

    A row is a word, its further columns, its tag in IOB2 if known, and the predicted
    tag, separated by spaces, as `conlleval` reads them. If there are several
    documents, each begins with `-DOCSTART-`, which `conlleval` counts as a word
    outside of entities.

    Args:
      path: the file.
      documents: documents as in `NerData`.
      tags: the tags of the words, for each sentence of each document.
    """
    lines = []
    for sentences, tags_of_document in zip(documents, tags, strict=True):
        blocks = [
            _conll_rows(sentence, predicted)
            for sentence, predicted in zip(sentences, tags_of_document, strict=True)
            if sentence.words
        ]
        # All rows have the same number of columns, and so has the -DOCSTART- row.
        if len(documents) > 1 and blocks:
            num_tags = 1 if sentences[0].tags is None else 2
            border = ["-X-"] * (len(blocks[0][0]) - num_tags) + ["O"] * num_tags
            blocks.insert(0, [[DOCUMENT_START, *border[1:]]])
        for rows in blocks:
            lines += [" ".join(row) + "\n" for row in rows] + ["\n"]
    files.write_text(path, "".join(lines))


def _conll_rows(sentence, tags):
    """Return the rows of a sentence, lists of str."""
    parts = [sentence.words, tags]
    if sentence.tags is not None:
        parts.insert(1, sentence.tags)
    columns = sentence.columns or [()] * len(sentence.words)
    return [
        [word, *further, *known_and_predicted]
        for further, word, *known_and_predicted in zip(columns, *parts, strict=True)
    ]
