"""Word counts on a cluster: keys, counts and their sums.

Each block of text gives (key, count) pairs. The cluster adds up the counts of
each key, and the sums become `WordCounter`s.
"""

import collections
from collections.abc import Callable, Iterable, Iterator, Sequence

from absl import logging

from official_bert import given_paths
from official_bert.corpus import readers, text_blocks
from official_bert.engines import arrivals, word_counting
from official_bert.tokenization.word_counts import WordCounter

# Kinds of counts, the first byte of a key: words of the text, held-out words,
# totals (all words, bytes, lines, lines that are not UTF-8). Words too long for
# WordPiece have the key b"".
TEXT, HELD_OUT, TOTALS = b"t", b"h", b"s"
SUMS_AT_ONCE = 100_000


def count_block(
    block: text_blocks.TextBlock, input_format: str, do_lower_case: bool, hold_out: bool
) -> Iterator[tuple[bytes, int]]:
    """Yield (key, count) for everything counted in a block."""
    found = word_counting.count_block(block, input_format, do_lower_case, hold_out)
    for kind, (words, num_too_long) in ((TEXT, found.text), (HELD_OUT, found.held_out)):
        for word, count in words.items():
            yield kind + word.encode("utf-8", "surrogatepass"), count
        if num_too_long:
            yield kind, num_too_long
        yield TOTALS + b"words", sum(words.values())
    yield TOTALS + b"bytes", found.num_bytes
    yield TOTALS + b"read", found.lines.lines
    yield TOTALS + b"invalid", found.lines.invalid


def as_line(key: bytes, count: int) -> bytes:
    """Return a sum as a line, without line end."""
    # Words contain no white space.
    return b"%s\t%d" % (key, count)


def from_line(line: bytes) -> tuple[bytes, int]:
    """Return the (key, count) of a line."""
    key, _, digits = line.rstrip(b"\n").rpartition(b"\t")
    return key, int(digits)


def read_sums(
    key_counts: Iterable[tuple[bytes, int]],
    do_lower_case: bool,
    text_files: Sequence[str],
    size_of: Callable[[str], int],
) -> tuple[WordCounter, WordCounter]:
    """Return the `WordCounter`s of the text and of held-out sentences.

    Args:
      key_counts: the sum of each key; read one at a time.
      do_lower_case: whether text was lowercased.
      text_files: the files of the text.
      size_of: function, path -> bytes.

    Raises:
      UserError: the cluster has lost data.
    """
    counters = {kind: WordCounter(do_lower_case) for kind in (TEXT, HELD_OUT)}
    sums: dict[bytes, dict[str, int]] = {kind: {} for kind in counters}
    totals: collections.Counter[bytes] = collections.Counter()
    num_words = 0
    for key, count in key_counts:
        kind, word = key[:1], key[1:]
        if kind == TOTALS:
            totals[word] = count
        elif not word:
            counters[kind].add_counts({}, count)
        else:
            num_words += count
            sums[kind][word.decode("utf-8", "surrogatepass")] = count
            if len(sums[kind]) == SUMS_AT_ONCE:
                counters[kind].add_counts(sums.pop(kind))
                sums[kind] = {}
    for kind, counter in counters.items():
        counter.add_counts(sums[kind])
    arrivals.check_text_complete(totals[b"bytes"], text_files, size_of)
    arrivals.check_complete(num_words, totals[b"words"], "words")
    lines = readers.LineCounts(totals[b"read"], totals[b"invalid"])
    lines.warn(given_paths.named(text_files))
    logging.info("%d lines read", lines.lines)
    return counters[TEXT], counters[HELD_OUT]
