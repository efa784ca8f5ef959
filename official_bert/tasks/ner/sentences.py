"""Sentences, their words and tags: what all files of tagged text hold."""

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from official_bert.metrics import entities
from official_bert.tasks.ner.words import joined
from official_bert.tokenization.basic import BasicTokenizer

CONLL, JSON_LINES = "CoNLL columns", "JSON lines"
# From so large a part of words on, punctuation within them is no exception.
MANY = 0.01
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
      format: `CONLL` or `JSON_LINES`.
      documents: list of documents, each a list of `Sentence`, at least one.
      notes: list of str, a sentence each: what was found by looks or changed.
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


def text_sentence(text: str, line: int = 1, as_columns: bool = False) -> Sentence:
    """Return a text as a `Sentence` without tags.

    Args:
      text: str.
      line: see `Sentence`.
      as_columns: whether its words are those of columns (`words`), and not
        those of `split_words`.
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
    """Return words as a `Sentence`, whose text has spaces between them."""
    offsets, start = [], 0
    for word in words:
        offsets.append((start, start + len(word)))
        start += len(word) + 1
    tags = None if tags is None else tuple(tags)
    return Sentence(
        line, " ".join(words), tuple(words), tuple(offsets), tags, tuple(columns)
    )


def text_entities(sentence: Sentence, tags: Sequence[str]) -> list[dict[str, Any]]:
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
    listed = []
    for first, behind, label in entities.to_spans(tags):
        start, end = sentence.offsets[first][0], sentence.offsets[behind - 1][1]
        text = sentence.text[start:end]
        listed.append({"start": start, "end": end, "label": label, "text": text})
    return listed


def has_joined_words(documents: Iterable[Iterable[Sentence]]) -> bool:
    """Tell whether words of documents have punctuation within, as columns may.

    It takes `MANY` of them, so that an address on the web does not count.
    """
    sentences = itertools.chain.from_iterable(documents)
    words = [word for sentence in sentences for word in sentence.words]
    cut = sum(len(split_words(word)) > 1 for word in words)
    return cut >= MANY * len(words) > 0
