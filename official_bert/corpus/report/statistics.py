"""Counts and samples of a corpus, collected while its documents are read.

The numbers do not depend on the distribution of work: statistics of parts of a
corpus, merged in any order and grouping, equal those of the whole corpus.
Memory is bounded: for a large corpus, a `HashSample` keeps some of the lines.
"""

import collections
import hashlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np

# Number of lines in a sample before it is thinned out. The number of different
# lines is then accurate to 0.4 %, and a line with a share of 0.2 % of all lines
# occurs 16 to 32 times in `any_lines`.
CAPACITIES = {"different_lines": 2**17, "any_lines": 2**14, "lines_with_unknown": 2**10}
# Number of characters kept of a line to show it, and to search it for unknown
# words.
SHOWN = 60
SEARCHED = 500

# Keys of `CorpusStatistics.counts`. Long lines do not fit into a sequence;
# their tokens beyond its length are "too many".
COUNTED: tuple[str, ...] = ("documents", "one_line_documents", "cut_documents", "lines")
COUNTED += ("lines_without_tokens", "long_lines", "tokens", "tokens_too_many")
COUNTED += ("unknown_tokens",)
_COUNTERS = ("counts", "document_lengths", "sequence_lengths")
# From the golden ratio: any number of its multiples is spread evenly over 64
# bits.
_GOLDEN = 0x9E3779B97F4A7C15


class HashSample:
    """A sample of the items whose hashes are below a limit.

    The limit is halved when there are too many items. The sample depends only
    on the added items, not on their order or on merges. Its counts are
    complete: an item below the last limit was below all limits before.

    Attributes:
      level: number of times the limit was halved; 0 if all items are in.
      limit: hashes in the sample are below this.
      counts: Counter, hash -> number of times it was added.
      values: dict, hash -> its value, if it has one.
    """

    def __init__(self, capacity: int, level: int = 0):
        self.capacity = capacity
        self.level = level
        self.limit = 2**64 >> level
        self.counts: collections.Counter[int] = collections.Counter()
        self.values: dict[int, tuple[int, str]] = {}

    def add(
        self, key: int, value: tuple[int, str] | None = None, count: int = 1
    ) -> None:
        """Count an item with the hash `key`, from 0 to 2**64 - 1."""
        if key < self.limit:
            self.counts[key] += count
            if value is not None:
                # If two items have the same hash, their order does not matter.
                self.values[key] = min(value, self.values.get(key, value))
            self._thin_out(self.level)

    def add_all(self, keys: Iterable[int]) -> None:
        """Count items without values, given by their hashes."""
        limit = self.limit
        self.counts.update(key for key in keys if key < limit)
        self._thin_out(self.level)

    def merge(self, other: "HashSample") -> None:
        """Add the content of another sample of the same capacity."""
        self._thin_out(max(self.level, other.level))
        for key, count in other.counts.items():
            self.add(key, other.values.get(key), count)

    def _thin_out(self, level):
        """Raise the level to a value, and further until the items are few enough."""
        while level > self.level or len(self.counts) > self.capacity:
            self.level += 1
            self.limit >>= 1
            for items in (self.counts, self.values):
                for key in [key for key in items if key >= self.limit]:
                    del items[key]

    def to_list(self) -> list[Any]:
        """Return [level, hashes, counts above 1, values], sorted, as JSON values."""
        keys = sorted(self.counts)
        hashes = np.array(keys, "<u8").tobytes().hex()
        counts = [[key, self.counts[key]] for key in keys if self.counts[key] > 1]
        return [self.level, hashes, counts, [v for _, v in sorted(self.values.items())]]

    @classmethod
    def from_list(cls, capacity: int, saved: Sequence[Any]) -> Self:
        """Return the sample saved by `to_list`; all or no items have values."""
        level, hashes, counts, values = saved
        sample = cls(capacity, level)
        keys = np.frombuffer(bytes.fromhex(hashes), "<u8").tolist()
        sample.counts.update(dict.fromkeys(keys, 1) | dict(counts))
        sample.values = dict(zip(keys, map(tuple, values), strict=False))
        return sample


class CorpusStatistics:
    """Counts of documents, lines, tokens and sequences, and samples of lines.

    Attributes:
      unknown_id: the id of `[UNK]`.
      max_seq_length: S, tokens of a sequence.
      counts: Counter with the keys `COUNTED`.
      document_lengths: Counter, 4 log2(tokens) rounded down -> documents.
      sequence_lengths: Counter, tokens of a sequence -> sequences.
      different_lines: `HashSample` of lines by their text.
      any_lines: `HashSample` of lines by their position: (hash, beginning).
      lines_with_unknown: the same for lines with unknown tokens.
    """

    counts: collections.Counter[str]
    document_lengths: collections.Counter[int]
    sequence_lengths: collections.Counter[int]
    different_lines: HashSample
    any_lines: HashSample
    lines_with_unknown: HashSample

    def __init__(self, unknown_id: int, max_seq_length: int, expected_lines: int = 0):
        """Start empty, for a part of a corpus with about `expected_lines` lines.

        Parts of a large corpus keep smaller samples from the start.
        """
        self.unknown_id = unknown_id
        self.max_seq_length = max_seq_length
        for name in _COUNTERS:
            setattr(self, name, collections.Counter())
        for name, capacity in CAPACITIES.items():
            # Lines with unknown tokens may be rare in any corpus.
            expected = 0 if name == "lines_with_unknown" else expected_lines
            level = (expected // (2 * capacity)).bit_length()
            setattr(self, name, HashSample(capacity, level))

    def add_document(
        self, sentences: Sequence[str], ids: Sequence[Sequence[int]], document: str
    ) -> None:
        """Count one document.

        Args:
          sentences: list of str, the lines.
          ids: list of lists of int, the tokens of each line; empty lists are
            lines without tokens. A document without tokens is not counted as a
            document.
          document: str, unique name of the document in the corpus, such as its
            block and number.
        """
        hashes = [_hash(sentence) for sentence in sentences]
        self.different_lines.add_all(hashes)
        start = _hash(str(document))
        lines = zip(sentences, ids, hashes, itertools.count(), strict=False)
        for line, line_ids, line_hash, number in lines:
            position = ((line_hash ^ start) + number * _GOLDEN) % 2**64
            self.any_lines.add(position, (line_hash, line[:SHOWN]))
            if num_unknown := line_ids.count(self.unknown_id):
                self.counts["unknown_tokens"] += num_unknown
                self.lines_with_unknown.add(position, (line_hash, line[:SEARCHED]))
        lengths = list(map(len, ids))
        room = self.max_seq_length - 3  # [CLS] and two [SEP].
        beyond = [length - room for length in lengths if length > room]
        tokens, with_tokens = sum(lengths), len(lengths) - lengths.count(0)
        self.counts.update(
            documents=int(with_tokens > 0),
            one_line_documents=int(with_tokens == 1),
            lines=len(lengths),
            lines_without_tokens=lengths.count(0),
            tokens=tokens,
            long_lines=len(beyond),
            tokens_too_many=sum(beyond),
        )
        if tokens:
            self.document_lengths[(tokens**4).bit_length() - 1] += 1

    def sequence_bins(self, num_bins: int) -> list[tuple[int, int, int]]:
        """Return (low, high, count) of sequence lengths in tokens, about `num_bins`."""
        length, counts = self.max_seq_length, self.sequence_lengths
        edges = sorted({length * number // num_bins for number in range(num_bins + 1)})
        return [
            (low + 1, high, sum(counts[n] for n in range(low + 1, high + 1)))
            for low, high in itertools.pairwise(edges)
        ]

    def document_bins(self) -> list[tuple[int, int, int]]:
        """Return (low, high, count) of document lengths in tokens, in powers of 4."""
        counts: collections.Counter[int] = collections.Counter()
        for log_length, count in self.document_lengths.items():
            counts[log_length // 8] += count
        powers = range(min(counts, default=0), max(counts, default=-1) + 1)
        return [(4**power, 4 ** (power + 1) - 1, counts[power]) for power in powers]

    def merge(self, other: "CorpusStatistics") -> None:
        """Add the statistics of another part of the corpus."""
        for name in _COUNTERS:
            getattr(self, name).update(getattr(other, name))
        for name in CAPACITIES:
            getattr(self, name).merge(getattr(other, name))

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of JSON values; equal statistics give equal dicts."""
        return {
            "unknown_id": self.unknown_id,
            "max_seq_length": self.max_seq_length,
            "counts": {k: v for k, v in sorted(self.counts.items()) if v},
            "document_lengths": sorted(map(list, self.document_lengths.items())),
            "sequence_lengths": sorted(map(list, self.sequence_lengths.items())),
            **{name: getattr(self, name).to_list() for name in CAPACITIES},
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Return the statistics saved by `to_dict`."""
        statistics = cls(saved["unknown_id"], saved["max_seq_length"])
        for name in _COUNTERS:
            getattr(statistics, name).update(dict(saved[name]))
        for name, capacity in CAPACITIES.items():
            setattr(statistics, name, HashSample.from_list(capacity, saved[name]))
        return statistics


def _hash(text):
    """Return a 64-bit hash, the same in any process."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "big")
