"""Sentences with words and tags: the content of all files of tagged text."""

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from official_bert.metrics import entities
from official_bert.tasks.ner.words import joined
from official_bert.tokenization.basic import BasicTokenizer

CONLL, JSON_LINES = "CoNLL columns", "JSON lines"
# If at least this fraction of the words has inner punctuation, it is systematic.
MANY = 0.01
# Cased, so that the words of a text do not depend on the model that reads them.
_WORDS = BasicTokenizer(do_lower_case=False)


@dataclasses.dataclass(frozen=True)
class Sentence:
    """A sequence of W words, with their offsets in the text.

    Attributes:
      line: line of the file in which it begins, counted from 1.
      text: the text that the offsets refer to. CoNLL columns do not contain it, so
        it is the words joined by spaces.
      words: tuple of W str.
      offsets: tuple of W (start, end); text[start:end] is the word.
      tags: tuple of W str in IOB2, or None if unknown.
      columns: for CoNLL columns, the cells between each word and its tag, a tuple of
        str per word; else ().
    """

    line: int
    text: str
    words: tuple[str, ...]
    offsets: tuple[tuple[int, int], ...]
    tags: tuple[str, ...] | None = None
    columns: tuple[tuple[str, ...], ...] = ()


@dataclasses.dataclass(frozen=True)
class NerData:
    """The content of a file.

    Attributes:
      format: `CONLL` or `JSON_LINES`.
      documents: list of documents, each a list of `Sentence`, at least one.
      notes: list of str, a sentence about each thing that was detected or changed.
    """

    format: str
    documents: list[list[Sentence]]
    notes: list[str]

    @functools.cached_property
    def labels(self) -> tuple[str, ...]:
        """The types of the entities, a sorted tuple of str."""
        sentences = itertools.chain.from_iterable(self.documents)
        tags = {tag for sentence in sentences for tag in sentence.tags or ()}
        types = {entities.split_tag(tag) for tag in tags - {entities.OUTSIDE}}
        return tuple(sorted({label for _, label in types}))


def split_words(text: str) -> list[tuple[int, int]]:
    """Return the words of a text, as a list of (start, end).

    They are the words of `BasicTokenizer` without lower-casing: whitespace separates
    them, and each punctuation mark and Chinese character is a word. Control
    characters belong to a word only inside it.

    Args:
      text: str.
    """
    return [
        (spans[0][0], spans[-1][1]) for _, spans in _WORDS.tokenize_with_offsets(text)
    ]


def text_sentence(text: str, line: int = 1, as_columns: bool = False) -> Sentence:
    """Return a text as a `Sentence` without tags.

    Args:
      text: str.
      line: see `Sentence`.
      as_columns: whether to split words as CoNLL columns do (module `words`)
        instead of `split_words`.
    """
    offsets = split_words(text)
    if as_columns:
        offsets = joined(text, offsets)
    words = tuple(text[start:end] for start, end in offsets)
    return Sentence(line, text, words, tuple(offsets))


def word_sentence(
    words: Sequence[str],
    tags: Iterable[str] | None = None,
    line: int = 1,
    columns: Iterable[tuple[str, ...]] = (),
) -> Sentence:
    """Return words as a `Sentence`. Its text is the words joined by spaces."""
    offsets, start = [], 0
    for word in words:
        offsets.append((start, start + len(word)))
        start += len(word) + 1
    tags = None if tags is None else tuple(tags)
    return Sentence(
        line, " ".join(words), tuple(words), tuple(offsets), tags, tuple(columns)
    )


def text_entities(sentence: Sentence, tags: Sequence[str]) -> list[dict[str, Any]]:
    """Return the entities that tags define in a sentence, for JSON.

    Args:
      sentence: `Sentence`.
      tags: list of str of any scheme, one per word.

    Returns:
      list of dict: `start` and `end` in the text, `label`, and `text`, which is
      text[start:end].

    Raises:
      ValueError: the number of tags is wrong, or a string is not a tag.
    """
    if len(tags) != len(sentence.words):
        raise ValueError(f"There are {len(tags)} tags for {len(sentence.words)} words.")
    listed = []
    for first, behind, label in entities.to_spans(tags):
        start, end = sentence.offsets[first][0], sentence.offsets[behind - 1][1]
        text = sentence.text[start:end]
        listed.append({"start": start, "end": end, "label": label, "text": text})
    return listed


def has_joined_words(documents: Iterable[Iterable[Sentence]]) -> bool:
    """Return whether words have inner punctuation, as in CoNLL columns.

    At least the fraction `MANY` of the words must have it, so a single web address
    does not count.
    """
    sentences = itertools.chain.from_iterable(documents)
    words = [word for sentence in sentences for word in sentence.words]
    cut = sum(len(split_words(word)) > 1 for word in words)
    return cut >= MANY * len(words) > 0
