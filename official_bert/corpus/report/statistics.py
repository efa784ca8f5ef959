"""What a corpus is like, counted while it passes by.

The numbers do not depend on who counted what: statistics of parts of a corpus,
merged in any order and grouping, are those of the whole. Memory is bounded, so
of a large corpus lines are looked at by `HashSample`.
"""

import collections
import hashlib

import numpy as np

# Lines in a sample before it is thinned out. The number of different lines is
# known to 0.4 % then, and a line that makes up 0.2 % of all lines stands in the
# second sample 16 to 32 times.
DIFFERENT_LINES = 2**17
ANY_LINES = 2**14
LINES_WITH_UNKNOWN = 2**10
# Characters that are kept of a line to show it, and of one with unknown words.
SHOWN = 60
SEARCHED = 500

_BITS = 64
_ALL_BITS = 2**_BITS - 1
# The golden ratio's: its multiples lie evenly in 64 bits, however many there are.
_GOLDEN = 0x9E3779B97F4A7C15


class HashSample:
    """Things chosen by a hash: those below a limit, halved whenever they are many.

    What is in the sample depends on what was added alone, not on the order or
    on the merges in between: a thing below the last limit was below all before
    it, so that its count misses nothing.

    Attributes:
      level: how often the limit was halved; 0 when all things are in.
      limit: hashes in the sample are below it.
      counts: dict, hash -> how often it was added.
      values: dict, hash -> its value, where it has one.
    """

    def __init__(self, capacity, level=0):
        self.capacity = capacity
        self.level = level
        self.limit = 2**_BITS >> level
        self.counts = {}
        self.values = {}

    def add(self, key, value=None, count=1):
        """Count a thing of hash `key`, from 0 to 2**64 - 1."""
        if key >= self.limit:
            return
        self.counts[key] = self.counts.get(key, 0) + count
        if value is not None:
            # Should two things have one hash, the same is kept in any order.
            self.values[key] = min(value, self.values.get(key, value))
        if len(self.counts) > self.capacity:
            self._thin_out(self.level + 1)

    def add_all(self, keys):
        """Count things without values, given by their hashes."""
        limit, counts = self.limit, self.counts
        for key in keys:
            if key < limit:
                counts[key] = counts.get(key, 0) + 1
        self._thin_out(self.level)

    def merge(self, other):
        """Add what another sample of the same capacity holds."""
        self._thin_out(max(self.level, other.level))
        for key, count in other.counts.items():
            self.add(key, other.values.get(key), count)

    def _thin_out(self, level):
        """Go to a level, and on until the things are few enough."""
        while level > self.level or len(self.counts) > self.capacity:
            self.level += 1
            self.limit >>= 1
            self.counts = {k: v for k, v in self.counts.items() if k < self.limit}
            self.values = {k: v for k, v in self.values.items() if k < self.limit}

    def to_list(self):
        """Return [level, hashes, counts above 1, values], sorted, fit for JSON."""
        keys = sorted(self.counts)
        hashes = np.array(keys, "<u8").tobytes().hex()
        counts = [[key, self.counts[key]] for key in keys if self.counts[key] > 1]
        values = [self.values[key] for key in keys if key in self.values]
        return [self.level, hashes, counts, values]

    @classmethod
    def from_list(cls, capacity, saved):
        """Return the sample that `to_list` saved; all or none have values."""
        level, hashes, counts, values = saved
        sample = cls(capacity, level)
        keys = np.frombuffer(bytes.fromhex(hashes), "<u8").tolist()
        sample.counts = dict.fromkeys(keys, 1) | dict(counts)
        sample.values = dict(zip(keys, map(tuple, values), strict=False))
        return sample


class CorpusStatistics:
    """Counts of documents, lines, tokens and sequences, and samples of lines.

    Attributes:
      unknown_id: the id of `[UNK]`.
      max_seq_length: S, tokens of a sequence.
      counts: `collections.Counter` of "documents", "one_line_documents",
        "cut_documents", "lines", "lines_without_tokens", "tokens",
        "unknown_tokens", "long_lines" (that no sequence can hold) and
        "tokens_too_many" (those beyond its length).
      document_lengths: Counter, `length_bin` of the tokens -> documents.
      sequence_lengths: Counter, tokens of a sequence -> sequences.
      different_lines: `HashSample` of lines by their text.
      any_lines: `HashSample` of lines by their place: (hash, beginning).
      lines_with_unknown: `HashSample` by place of lines with unknown tokens:
        (hash, beginning).
    """

    def __init__(self, unknown_id, max_seq_length, expected_lines=0):
        """Begin with nothing.

        Args:
          unknown_id: the id of `[UNK]`.
          max_seq_length: S.
          expected_lines: a guess of how many lines the corpus has, the same for
            all its parts. Parts of a large one keep less from the start then.
        """
        self.unknown_id = unknown_id
        self.max_seq_length = max_seq_length
        self.counts = collections.Counter()
        self.document_lengths = collections.Counter()
        self.sequence_lengths = collections.Counter()
        self.different_lines, self.any_lines = (
            HashSample(capacity, (expected_lines // (2 * capacity)).bit_length())
            for capacity in (DIFFERENT_LINES, ANY_LINES)
        )
        self.lines_with_unknown = HashSample(LINES_WITH_UNKNOWN)

    def add_document(self, sentences, ids, place=None):
        """Count one document.

        Args:
          sentences: list of str, the lines.
          ids: list of as many lists of int, their tokens; empty lists are
            lines without tokens. A document without any is none.
          place: str, what tells the document from all others of the corpus,
            such as its block and its number there. Without it the text
            does, and equal documents are chosen or left out together.
        """
        hashes = [_hash(sentence) for sentence in sentences]
        start = _hash(repr(hashes) if place is None else str(place))
        places = [
            ((line_hash ^ start) + number * _GOLDEN) & _ALL_BITS
            for number, line_hash in enumerate(hashes)
        ]
        self._count_lengths(list(map(len, ids)))
        self.different_lines.add_all(hashes)
        limit = self.any_lines.limit
        for number in [n for n, key in enumerate(places) if key < limit]:
            text = (hashes[number], sentences[number][:SHOWN])
            self.any_lines.add(places[number], text)
        unknown_id = self.unknown_id
        for number in [n for n, line_ids in enumerate(ids) if unknown_id in line_ids]:
            text = (hashes[number], sentences[number][:SEARCHED])
            self.counts["unknown_tokens"] += ids[number].count(unknown_id)
            self.lines_with_unknown.add(places[number], text)

    def _count_lengths(self, lengths):
        most = self.max_seq_length - 3
        too_many = [length - most for length in lengths if length > most]
        total = sum(lengths)
        self.counts.update(
            lines=len(lengths),
            lines_without_tokens=lengths.count(0),
            tokens=total,
            long_lines=len(too_many),
            tokens_too_many=sum(too_many),
        )
        if total:
            self.counts.update(
                documents=1, one_line_documents=len(lengths) - lengths.count(0) == 1
            )
            self.document_lengths[length_bin(total)] += 1

    def add_cut_documents(self, number):
        """Count documents that were too large and became several."""
        self.counts["cut_documents"] += number

    def add_sequence(self, num_tokens):
        """Count a sequence of that many tokens, special ones included."""
        self.sequence_lengths[num_tokens] += 1

    def merge(self, other):
        """Add the statistics of another part of the corpus."""
        for name in ("counts", "document_lengths", "sequence_lengths"):
            getattr(self, name).update(getattr(other, name))
        for name in ("different_lines", "any_lines", "lines_with_unknown"):
            getattr(self, name).merge(getattr(other, name))

    def to_dict(self):
        """Return a dict fit for JSON; the same statistics give the same dict."""
        return {
            "unknown_id": self.unknown_id,
            "max_seq_length": self.max_seq_length,
            "counts": {k: v for k, v in sorted(self.counts.items()) if v},
            "document_lengths": sorted(map(list, self.document_lengths.items())),
            "sequence_lengths": sorted(map(list, self.sequence_lengths.items())),
            "different_lines": self.different_lines.to_list(),
            "any_lines": self.any_lines.to_list(),
            "lines_with_unknown": self.lines_with_unknown.to_list(),
        }

    @classmethod
    def from_dict(cls, saved):
        """Return the statistics that `to_dict` saved."""
        statistics = cls(saved["unknown_id"], saved["max_seq_length"])
        statistics.counts.update(saved["counts"])
        statistics.document_lengths.update(dict(saved["document_lengths"]))
        statistics.sequence_lengths.update(dict(saved["sequence_lengths"]))
        for name, capacity in (
            ("different_lines", DIFFERENT_LINES),
            ("any_lines", ANY_LINES),
            ("lines_with_unknown", LINES_WITH_UNKNOWN),
        ):
            setattr(statistics, name, HashSample.from_list(capacity, saved[name]))
        return statistics


def length_bin(length):
    """Return 4 log2(length), rounded down: lengths that are counted together."""
    return (length**4).bit_length() - 1


def _hash(text):
    """Return a hash of 64 bits, the same in any process."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(digest.digest(), "big")
