"""What follows from the statistics of a corpus: shares, lists, bins."""

import collections
import itertools
import unicodedata
from typing import NamedTuple

from official_bert.tokenization.wordpiece import CONTINUATION, UNKNOWN

# The number of different lines in a large corpus is an estimate, off by 0.4 % or
# less two times in three: shares of repeated lines below this mean little.
NOISE = 0.01
# A line that is in the sample that often has a count good to a quarter.
ENOUGH = 16
LISTED = 5
# Characters of a word that is longer.
WORD_SHOWN = 30


class Found(NamedTuple):
    """Something that occurs often.

    Attributes:
      text: str, quoted and fit to be printed.
      count: int.
      exact: whether it was counted and not estimated.
    """

    text: str
    count: int
    exact: bool


class Unknown(NamedTuple):
    """What became `[UNK]`, the most frequent first.

    Attributes:
      words: list of `Found`.
      characters: list of `Found`, those that the vocabulary lacks; empty if the
        words say the same.
    """

    words: list
    characters: list


def numbers(statistics):
    """Return a dict of counts and shares.

    Args:
      statistics: `CorpusStatistics`.

    Returns:
      dict with the names of its `counts`, "sequences", "padding_share",
      "repeated_lines" (as many as could be left out) and
      "repeated_lines_exact", which is False for an estimate.
    """
    counts = statistics.counts
    names = (
        "documents",
        "one_line_documents",
        "cut_documents",
        "lines",
        "lines_without_tokens",
        "long_lines",
        "tokens",
        "tokens_too_many",
        "unknown_tokens",
    )
    sequences = statistics.sequence_lengths
    places = sequences.total() * statistics.max_seq_length
    used = sum(length * count for length, count in sequences.items())
    sample = statistics.different_lines
    different = len(sample.counts) << sample.level
    repeated = max(0, counts["lines"] - different)
    return {
        **{name: counts[name] for name in names},
        "repeated_lines": _rounded(repeated) if sample.level else repeated,
        "repeated_lines_exact": sample.level == 0,
        "sequences": sequences.total(),
        "padding_share": 1 - used / places if places else 0.0,
    }


def repeated_lines(statistics):
    """Return the lines that occur most often, a list of `Found`."""
    counted, sample = statistics.different_lines, statistics.any_lines
    hits, texts = collections.Counter(), {}
    for place, (line_hash, text) in sample.values.items():
        hits[line_hash] += sample.counts[place]
        texts[line_hash] = text
    scale = statistics.counts["lines"] / max(1, hits.total())
    found = []
    for line_hash, hit in hits.items():
        text = quote(texts[line_hash])
        if line_hash in counted.counts:
            found.append(Found(text, counted.counts[line_hash], True))
        elif hit >= ENOUGH:
            found.append(Found(text, _rounded(hit * scale), False))
    return _most([item for item in found if item.count > 1])


def unknown_words(statistics, tokenizer):
    """Find what became `[UNK]`, in the lines that were kept for it.

    Args:
      statistics: `CorpusStatistics`.
      tokenizer: `FullTokenizer` that made the tokens.

    Returns:
      `Unknown`.
    """
    words, characters = collections.Counter(), collections.Counter()
    sample = statistics.lines_with_unknown
    for place, (_, text) in sample.values.items():
        count = sample.counts[place]
        pieces, offsets = tokenizer.tokenize_with_offsets(text)
        for piece, (start, end) in zip(pieces, offsets, strict=True):
            if piece == UNKNOWN:
                words[text[start:end]] += count
    for word, count in words.items():
        for character in set(word):
            if _is_missing(character, tokenizer):
                characters[character] += count
    total = statistics.counts["unknown_tokens"]
    scale = total / max(1, words.total())
    listed = _most(_scaled(words, scale, _named))
    lacking = _most(_scaled(characters, scale, _named))
    return Unknown(listed, [] if lacking == listed else lacking)


def _scaled(counter, scale, show):
    exact = scale == 1
    return [
        Found(show(text), count if exact else _rounded(count * scale), exact)
        for text, count in counter.items()
    ]


def _is_missing(character, tokenizer):
    """Say whether no piece of the vocabulary is this character."""
    forms = tokenizer.basic_tokenizer.tokenize(character)
    vocab = tokenizer.vocab
    return any(f not in vocab and CONTINUATION + f not in vocab for f in forms)


def _most(found):
    return sorted(found, key=lambda item: (-item.count, item.text))[:LISTED]


def sequence_bins(statistics, num_bins=8):
    """Return (low, high, count) of the tokens of a sequence, about `num_bins`."""
    length = statistics.max_seq_length
    edges = sorted({length * number // num_bins for number in range(num_bins + 1)})
    counts = statistics.sequence_lengths
    return [
        (low + 1, high, sum(counts[n] for n in range(low + 1, high + 1)))
        for low, high in itertools.pairwise(edges)
    ]


def document_bins(statistics):
    """Return (low, high, count) of the tokens of a document, each 4 times longer."""
    counts = collections.Counter()
    for log_length, count in statistics.document_lengths.items():
        counts[log_length // 8] += count
    if not counts:
        return []
    span = range(min(counts), max(counts) + 1)
    return [(4**power, 4 ** (power + 1) - 1, counts[power]) for power in span]


def quote(text):
    """Return a text in quotes, on one line."""
    shown = "".join(c if c.isprintable() else " " for c in text)
    return f'"{shown}"'


def _named(word):
    """Return a word in quotes; of a single character also what it is."""
    if len(word) > WORD_SHOWN:
        word = f"{word[:WORD_SHOWN]}…"
    if len(word) > 1:
        return quote(word)
    return f"{quote(word)} U+{ord(word):04X} {unicodedata.name(word, '')}".rstrip()


def _rounded(number):
    """Return a number to two digits."""
    return int(float(f"{number:.2g}"))
