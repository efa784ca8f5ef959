"""Read and write texts with entities as JSON lines; see `files`."""

import bisect
import dataclasses
import json
import os
from collections.abc import Container, Sequence

from official_bert import files
from official_bert.errors import UserError
from official_bert.metrics import entities
from official_bert.tables.table_files import (
    convert_rows,
    name_lines,
    numbered_lines,
    parse_object,
)
from official_bert.tasks.ner.sentences import (
    JSON_LINES,
    NerData,
    Sentence,
    text_entities,
    text_sentence,
)


def read_json_lines(
    path: str, text: str, labels: Container[str] | None, with_tags: bool
) -> NerData:
    """Read a text of JSON lines as `NerData`; see `conll.read_conll`."""
    parsed = convert_rows(
        path,
        numbered_lines(text),
        lambda line, content: _parse_line(content, line, labels, with_tags),
        'write lines like {"text": "In Rome.", "entities": [{"start": 3, "end": 7, '
        '"label": "LOC"}]}, with offsets in characters',
    )
    if not parsed:
        raise UserError(f"{path} is empty. Add at least one line with a text.")
    documents = [[sentence] for sentence, _, _ in parsed]
    widened_lines = [one.line for one, _, num_widened in parsed if num_widened]
    notes = []
    if widened_lines:
        count = sum(num_entities for _, num_entities, _ in parsed)
        num_widened = sum(number for _, _, number in parsed)
        notes.append(
            f"{path}: {num_widened} of {count} entities begin or end inside a word "
            f"and were extended to complete words: {name_lines(widened_lines)}."
        )
    return NerData(JSON_LINES, documents, notes)


def has_entities(content: str) -> bool:
    """Return whether a line of JSON lists entities; False if the line is damaged."""
    try:
        return parse_object(content).get("entities") is not None
    except ValueError:
        return False


def _parse_line(content, line, labels, with_tags):
    """Return (`Sentence`, number of entities, number of extended entities)."""
    record = parse_object(content, numbers_as_text=False)
    if not isinstance(record.get("text"), str):
        raise ValueError('has no string "text"')
    sentence = text_sentence(record["text"], line)
    if not with_tags:
        return sentence, 0, 0
    listed = record.get("entities")
    if not isinstance(listed, list):
        raise ValueError('has no list "entities"')
    parsed = sorted(_parse_entity(each, sentence.text, labels) for each in listed)
    spans: list[tuple[int, int, str]] = []
    num_widened, end_before, offsets = 0, 0, sentence.offsets
    for start, end, label in parsed:
        if start < end_before:
            raise ValueError(f"has entities that overlap (at character {start})")
        # The words that contain the characters. Characters outside of words are
        # ignored.
        first = bisect.bisect_right(offsets, start, key=lambda word: word[1])
        last = bisect.bisect_left(offsets, end, key=lambda word: word[0]) - 1
        if last < first:
            raise ValueError(f"has an entity without a word (at character {start})")
        if spans and first < spans[-1][1]:
            raise ValueError(f"has two entities in one word (at character {start})")
        spans.append((first, last + 1, label))
        num_widened += offsets[first][0] < start or end < offsets[last][1]
        end_before = end
    tags = entities.to_tags(spans, len(sentence.words))
    return dataclasses.replace(sentence, tags=tuple(tags)), len(spans), num_widened


def _parse_entity(record, text, labels):
    """Return (start, end, label) in characters, or raise `ValueError`."""
    if not isinstance(record, dict) or not {"start", "end", "label"} <= set(record):
        raise ValueError("has an entity without start, end and label")
    start, end, label = record["start"], record["end"], record["label"]
    if type(start) is not int or type(end) is not int:
        raise ValueError("has an entity whose start or end is not an integer")
    if not 0 <= start < end <= len(text):
        raise ValueError(
            f"has an entity from {start} to {end} in a text of {len(text)} characters"
        )
    if not isinstance(label, str) or label.split() != [label]:
        raise ValueError(f"has the label {label!r}, which is not one word")
    if labels is not None and label not in labels:
        raise ValueError(f"has an entity of the unknown type {label!r}")
    return start, end, label


def write_entities(
    path: str | os.PathLike[str],
    documents: Sequence[Sequence[Sentence]],
    tags: Sequence[Sequence[Sequence[str]]],
) -> None:
    """Write predictions as JSON lines, one per sentence, atomically.

    A line is `{"text": …, "entities": …}`, see `text_entities`. `read_ner_file` can
    read it. The arguments are those of `conll.write_conll`.
    """
    lines = []
    for sentences, tags_of_document in zip(documents, tags, strict=True):
        for sentence, predicted in zip(sentences, tags_of_document, strict=True):
            entities_of_text = text_entities(sentence, predicted)
            record = {"text": sentence.text, "entities": entities_of_text}
            lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    files.write_text(path, "".join(lines))
