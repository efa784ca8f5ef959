"""Files of tagged text: CoNLL columns and JSON lines, read and written.

* CoNLL: a word a line, with its tag in the last column; blank lines end sentences
  and rows that begin with `-DOCSTART-` begin documents. Columns stand between
  spaces or tabs. The scheme of the tags is found by looks, and they are converted
  to IOB2. Without `-DOCSTART-` a file is one document.
* JSON lines: `{"text": …, "entities": [{"start": …, "end": …, "label": …}]}`, each
  line a document of one sentence. Offsets count characters (code points), and the
  end is behind the last one. The words are those of `split_words`; an entity that
  ends within one is read as the whole word, and a note tells where that was.

Text is UTF-8 as `tables.read_text` reads it, plain or gzipped. Whatever cannot be
used is collected over the whole file and reported once.
"""

import bisect
import dataclasses
import json
import os
import re

from official_bert import files
from official_bert.errors import UserError
from official_bert.metrics import entities
from official_bert.metrics.entities import BIOES, IOB1, IOB2
from official_bert.tasks.json_lines import parse_object
from official_bert.tasks.tables import fail_for_rows, name_lines, read_text
from official_bert.tokenization.basic import BasicTokenizer

CONLL, JSON_LINES = "CoNLL columns", "JSON lines"
DOCUMENT_START = "-DOCSTART-"
_ENDINGS = (".jsonl", ".ndjson", ".json")
_BLANKS = re.compile("[ \t]+")
# Cased: so the words of a text do not depend on the model that will read them.
_WORDS = BasicTokenizer(do_lower_case=False)


@dataclasses.dataclass(frozen=True)
class Sentence:
    """Words that belong together, W of them, and where they stand.

    Attributes:
      line: of its file, counted from 1, in which it begins.
      text: the text that the offsets are of; for CoNLL columns, which do not
        tell it, the words with spaces between them.
      words: tuple of W str.
      offsets: tuple of W (start, end); text[start:end] is the word.
      tags: tuple of W str in IOB2, or None where they are not known.
      columns: of CoNLL columns, for each word what stood between it and its
        tag, a tuple of str; else ().
    """

    line: int
    text: str
    words: tuple[str, ...]
    offsets: tuple[tuple[int, int], ...]
    tags: tuple[str, ...] | None = None
    columns: tuple[tuple[str, ...], ...] = ()


@dataclasses.dataclass(frozen=True)
class NerData:
    """What a file holds.

    Attributes:
      path: the file.
      format: `CONLL` or `JSON_LINES`.
      documents: list of documents, each a list of `Sentence`, at least one.
      labels: tuple of str, the types of the entities, sorted.
      scheme: of the tags before they were converted, one of
        `entities.SCHEMES`; None for JSON lines and without tags.
      notes: list of str, a sentence each: what was found by looks or changed.
    """

    path: str
    format: str
    documents: list[list[Sentence]]
    labels: tuple[str, ...]
    scheme: str | None
    notes: list[str]


def read_ner_file(path, flag="--train_file", labels=None, with_tags=True):
    """Read a file; the module's docstring says what it may look like.

    Args:
      path: the file: JSON lines if it ends in `.jsonl`, `.ndjson` or `.json`
        (also with `.gz`) or begins with a JSON object, else CoNLL columns.
      flag: the flag it came from, for messages.
      labels: the types there may be, as `NerData.labels`; None for any.
      with_tags: whether the words have tags. If not, columns behind a word,
        and entities, are not looked at.

    Returns:
      `NerData`.

    Raises:
      UserError: the file cannot be read, or holds no sentences; or rows have
        more or fewer columns than the first, or tags that are none or of an
        unknown type; or lines are no such JSON, or have entities that leave
        the text, overlap, or share a word. Names the lines.
    """
    path = os.fspath(path)
    text = _read_lines(path, flag)
    read = _read_json_lines if _is_json_lines(path, text) else _read_conll
    return read(path, text, None if labels is None else set(labels), with_tags)


def has_tags(path, flag):
    """Tell whether a file has tags, by its first row or line.

    Raises:
      UserError: the file cannot be read.
    """
    path = os.fspath(path)
    text = _read_lines(path, flag)
    rows = (line.strip(" \t") for line in text.split("\n"))
    first = next((r for r in rows if r and not r.startswith(DOCUMENT_START)), "")
    if _is_json_lines(path, text):
        return '"entities"' in first
    return len(_BLANKS.split(first)) > 1


def _read_lines(path, flag):
    return read_text(path, flag).replace("\r\n", "\n").replace("\r", "\n")


def _is_json_lines(path, text):
    is_json = path.removesuffix(".gz").lower().endswith(_ENDINGS)
    return is_json or _begins_with_object(text)


def _begins_with_object(text):
    try:
        return isinstance(json.loads(text.lstrip().partition("\n")[0]), dict)
    except (ValueError, RecursionError):
        return False


def split_words(text):
    """Return where the words of a text are: a list of (start, end).

    They are those of `BasicTokenizer` without lower-casing: whitespace ends
    them, and punctuation and Chinese characters are words of their own.
    Control characters are not part of a word unless they stand within one.

    Args:
      text: str.
    """
    return [
        (spans[0][0], spans[-1][1]) for _, spans in _WORDS.tokenize_with_offsets(text)
    ]


def text_sentence(text, line=1):
    """Return a text as a `Sentence` without tags; see `split_words`."""
    offsets = split_words(text)
    words = tuple(text[start:end] for start, end in offsets)
    return Sentence(line, text, words, tuple(offsets))


def word_sentence(words, tags=None, line=1, columns=()):
    """Return words as a `Sentence`, whose text has spaces between them."""
    offsets, start = [], 0
    for word in words:
        offsets.append((start, start + len(word)))
        start += len(word) + 1
    tags = None if tags is None else tuple(tags)
    return Sentence(
        line, " ".join(words), tuple(words), tuple(offsets), tags, tuple(columns)
    )


def text_entities(sentence, tags):
    """Return the entities that tags make of a sentence, fit for JSON.

    Args:
      sentence: `Sentence`.
      tags: as many str as it has words, of any scheme.

    Returns:
      list of dict: `start` and `end` in the text, `label`, and `text`, which
      is text[start:end].

    Raises:
      ValueError: the tags are more or fewer, or something is no tag.
    """
    if len(tags) != len(sentence.words):
        raise ValueError(f"{len(tags)} tags for {len(sentence.words)} words.")
    found = []
    for first, behind, label in entities.to_spans(tags):
        start, end = sentence.offsets[first][0], sentence.offsets[behind - 1][1]
        text = sentence.text[start:end]
        found.append({"start": start, "end": end, "label": label, "text": text})
    return found


def write_entities(path, documents, tags):
    """Write predictions as JSON lines, one of each sentence, atomically.

    A line is `{"text": …, "entities": …}`, see `text_entities`, and can be read
    again by `read_ner_file`.

    Args:
      path: of the file.
      documents: as those of `NerData`.
      tags: for each document and sentence of it the tags of its words.
    """
    lines = []
    for sentences, tags_of_document in zip(documents, tags, strict=True):
        for sentence, found in zip(sentences, tags_of_document, strict=True):
            record = {
                "text": sentence.text,
                "entities": text_entities(sentence, found),
            }
            lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    files.write_text(path, "".join(lines))


def write_conll(path, documents, tags):
    """Write predictions as CoNLL columns, atomically.

    A row is a word, its further columns, its tag in IOB2 if it is known, and
    the predicted tag, with spaces between them, as `conlleval` reads them. If
    there are several documents, `-DOCSTART-` begins each; `conlleval` counts
    it as a word outside of entities.

    Args:
      path: of the file.
      documents: as those of `NerData`.
      tags: for each document and sentence of it the tags of its words.
    """
    lines = []
    for sentences, tags_of_document in zip(documents, tags, strict=True):
        rows = [
            _conll_rows(sentence, found)
            for sentence, found in zip(sentences, tags_of_document, strict=True)
        ]
        # Rows of all documents are as long as each other, and so is the border.
        if len(documents) > 1 and any(rows):
            width = len(next(filter(None, rows))[0])
            num_tags = 1 if sentences[0].tags is None else 2
            border = [DOCUMENT_START, *["-X-"] * (width - num_tags - 1)]
            rows.insert(0, [[*border, *["O"] * num_tags]])
        for of_sentence in filter(None, rows):
            lines += [" ".join(row) + "\n" for row in of_sentence]
            lines.append("\n")
    files.write_text(path, "".join(lines))


def _conll_rows(sentence, tags):
    """Return the rows of a sentence, lists of str."""
    empty = [()] * len(sentence.words)
    known = [()] * len(sentence.words)
    if sentence.tags is not None:
        known = [(tag,) for tag in sentence.tags]
    parts = (sentence.words, sentence.columns or empty, known, tags)
    return [
        [word, *columns, *tag, predicted]
        for word, columns, tag, predicted in zip(*parts, strict=True)
    ]


def _read_conll(path, text, labels, with_tags):
    """Return the `NerData` of a text of columns."""
    documents, rows, problems, has_borders = [[]], [], [], False
    width = None
    # Whatever the last line is, a sentence ends behind it.
    for line, content in enumerate([*text.split("\n"), ""], 1):
        cells = _BLANKS.split(content.strip(" \t"))
        is_border = cells[0] == DOCUMENT_START
        if is_border or cells == [""]:
            if rows:
                documents[-1].append(rows)
                rows = []
            if is_border:
                documents.append([])
                has_borders = True
            continue
        width = width or len(cells)
        problem = _what_is_wrong(cells, width, labels, with_tags)
        if problem:
            problems.append((line, problem))
        rows.append((line, cells))
    if problems:
        fail_for_rows(path, problems, _advice_on_columns(problems))
    documents = [document for document in documents if document]
    if not documents:
        raise UserError(f"{path} holds no words; give a file with a word a line.")
    notes = []
    if not has_borders and len(documents[0]) > 1:
        notes.append(
            f"{path} has no {DOCUMENT_START} rows: its {len(documents[0])} sentences "
            "are read as one document."
        )
    return _tagged_data(path, documents, with_tags, notes)


def _what_is_wrong(cells, width, labels, with_tags):
    """Return what is wrong with a row, or None."""
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
        return f"has {cells[-1]!r} for a tag"
    if labels is not None and letter != entities.OUTSIDE and label not in labels:
        return f"has the tag {cells[-1]!r} of an unknown type"
    return None


def _advice_on_columns(problems):
    if any("of an unknown type" in what for _, what in problems):
        return "correct them, or train with a file that has these types"
    return (
        "a row is a word, further columns if all rows have them, and a tag such as "
        "O, B-PER or I-PER"
    )


def _tagged_data(path, documents, with_tags, notes):
    """Return the `NerData` of documents whose sentences are (line, cells) rows."""
    scheme, tag_notes = None, []
    if with_tags:
        every = [sentence for document in documents for sentence in document]
        scheme, tag_notes = _scheme_of(path, every)
    converted = [
        [_sentence_of_rows(rows, with_tags) for rows in document]
        for document in documents
    ]
    labels = _labels_of(converted)
    return NerData(path, CONLL, converted, labels, scheme, notes + tag_notes)


def _sentence_of_rows(rows, with_tags):
    words = [cells[0] for _, cells in rows]
    tags, behind = None, None
    if with_tags:
        tags, behind = entities.iob1_to_iob2([cells[-1] for _, cells in rows]), -1
    columns = [tuple(cells[1:behind]) for _, cells in rows]
    return word_sentence(words, tags, rows[0][0], columns)


def _scheme_of(path, sentences):
    """Return the scheme of tags, and notes on it.

    Only in IOB1 do entities begin with I, and only in IOB2 with B where none
    of their type ends just before.
    """
    inside, begun = [], 0  # Lines of entities that begin with I; count of the latter.
    for rows in sentences:
        tags = [cells[-1] for _, cells in rows]
        if any(tag[0] in "ESLU" for tag in tags):
            note = f"{path}: the tags are BIOES and were converted to IOB2."
            return BIOES, [note]
        before = None
        for entity in entities.to_spans(tags):
            touches = before and before[1:] == (entity.start, entity.label)
            if tags[entity.start][0] == "I":
                inside.append(rows[entity.start][0])
            elif not touches:
                begun += 1
            before = entity
    if not inside:
        return IOB2, [f"{path}: the tags are IOB2."]
    if not begun:
        return IOB1, [f"{path}: the tags are IOB1 and were converted to IOB2."]
    return IOB2, [
        f"{path}: the tags are IOB2, but {len(inside)} of {len(inside) + begun} "
        f"entities begin with I; they were made to begin with B: {name_lines(inside)}."
    ]


def _labels_of(documents):
    """Return the sorted types of the entities of documents."""
    every = (sentence for document in documents for sentence in document)
    tags = {tag for sentence in every for tag in sentence.tags or ()}
    split = map(entities.split_tag, tags)
    return tuple(sorted({label for letter, label in split if letter != "O"}))


def _read_json_lines(path, text, labels, with_tags):
    """Return the `NerData` of a text of JSON lines."""
    documents, problems, widened, count = [], [], [], 0
    for line, content in enumerate(text.split("\n"), 1):
        if not content.strip():
            continue
        try:
            sentence, num_entities, num_widened = _parse_line(
                content, line, labels, with_tags
            )
        except ValueError as error:
            problems.append((line, str(error)))
            continue
        documents.append([sentence])
        count += num_entities
        widened += [line] * num_widened
    if problems:
        advice = (
            'write lines like {"text": "In Rome.", "entities": [{"start": 3, "end": 7, '
            '"label": "LOC"}]}, with offsets in characters'
        )
        fail_for_rows(path, problems, advice)
    if not documents:
        raise UserError(f"{path} is empty; it needs at least one line with a text.")
    notes = []
    if widened:
        notes.append(
            f"{path}: {len(widened)} of {count} entities do not begin and end with a "
            "word; they are read as the whole words: "
            f"{name_lines(list(dict.fromkeys(widened)))}."
        )
    return NerData(path, JSON_LINES, documents, _labels_of(documents), None, notes)


def _parse_line(content, line, labels, with_tags):
    """Return (`Sentence`, number of entities, how many were widened).

    Raises:
      ValueError: says what is wrong.
    """
    record = parse_object(content, numbers_as_text=False)
    if not isinstance(record.get("text"), str):
        raise ValueError('has no "text" that is a string')
    sentence = text_sentence(record["text"], line)
    if not with_tags:
        return sentence, 0, 0
    listed = record.get("entities")
    if not isinstance(listed, list):
        raise ValueError('has no list of "entities"')
    found = sorted(_parse_entity(each, sentence.text, labels) for each in listed)
    spans, num_widened, end_before = [], 0, 0
    for start, end, label in found:
        if start < end_before:
            raise ValueError(f"has entities that overlap (at character {start})")
        first, behind, is_whole = _words_of(sentence.offsets, start, end)
        if first == behind:
            raise ValueError(f"has an entity without a word (at character {start})")
        if spans and first < spans[-1][1]:
            raise ValueError(f"has two entities in one word (at character {start})")
        spans.append((first, behind, label))
        num_widened += not is_whole
        end_before = end
    tags = entities.to_tags(spans, len(sentence.words))
    return dataclasses.replace(sentence, tags=tuple(tags)), len(spans), num_widened


def _parse_entity(record, text, labels):
    """Return (start, end, label) in characters, or raise `ValueError`."""
    if not isinstance(record, dict) or not {"start", "end", "label"} <= set(record):
        raise ValueError("has an entity without start, end and label")
    start, end, label = record["start"], record["end"], record["label"]
    if type(start) is not int or type(end) is not int:
        raise ValueError("has an entity whose start or end is no whole number")
    if not 0 <= start < end <= len(text):
        raise ValueError(
            f"has an entity from {start} to {end} in a text of {len(text)} characters"
        )
    if not isinstance(label, str) or label.split() != [label]:
        raise ValueError(f"has the label {label!r}, which is not one word")
    if labels is not None and label not in labels:
        raise ValueError(f"has an entity of the unknown type {label!r}")
    return start, end, label


def _words_of(offsets, start, end):
    """Return which words characters belong to: (first, behind, are they whole).

    Characters of no word, as spaces, do not matter.
    """
    first = bisect.bisect_right(offsets, start, key=lambda word: word[1])
    behind = bisect.bisect_left(offsets, end, key=lambda word: word[0])
    words = offsets[first:behind]
    is_whole = bool(words) and start <= words[0][0] and words[-1][1] <= end
    return first, max(first, behind), is_whole
