"""Counting the words of any amount of text in bounded memory."""

import collections
import heapq
import itertools
import operator
import tempfile
from collections.abc import Mapping
from typing import IO

from official_bert.tokenization.basic import BasicTokenizer
from official_bert.tokenization.wordpiece import MAX_INPUT_CHARS_PER_WORD

# A million words with their counts are some 150 MB here and less than 1 GB in
# the trainer; English text has that many different ones in about 10 GB.
MOST_WORDS = 1_000_000
# Chunks (what stands between spaces) are counted before they are tokenized,
# because most have been seen before.
MOST_CHUNKS = 200_000
# Each is an open file.
MOST_RUNS = 64


class WordCounter:
    """How often each word and each character occurs, as our tokenizer sees them.

    Beyond `most_words` different words the counts lie in temporary files, and
    only the most frequent words are given out. Which these are depends on the
    text alone: not on its order, nor on where its parts were counted.

    Attributes:
      most_words: how many different words are held in memory and given out.
      pruned: words that occurred this often or less are not given out; 0 when
        all are.
    """

    def __init__(self, do_lower_case: bool = True, most_words: int = MOST_WORDS):
        self.most_words = most_words
        self._num_too_long = 0
        self._tokenize = BasicTokenizer(do_lower_case).tokenize
        self._chunks: collections.Counter[str] = collections.Counter()
        self._words: collections.Counter[str] = collections.Counter()
        self._runs: list[IO[bytes]] = []
        self._merged = None

    def add(self, line: str) -> None:
        """Count the words of a str; line ends in it separate words."""
        # Only a space or line end is sure to separate: see FullTokenizer.encode.
        self._chunks.update(line.replace("\n", " ").split(" "))
        if len(self._chunks) >= MOST_CHUNKS:
            self._count_chunks()

    def add_counts(self, words: Mapping[str, int], num_too_long: int = 0) -> None:
        """Add what was counted elsewhere: a dict of word -> occurrences."""
        self._words.update(words)
        self._num_too_long += num_too_long
        self._bound_memory()

    def words(self) -> collections.Counter[str]:
        """Return a Counter of word -> occurrences, the most frequent ones."""
        return self._merge()[0]

    def characters(self) -> collections.Counter[str]:
        """Return a Counter of character -> occurrences, of all words."""
        words, rare_characters, _ = self._merge()
        counts = rare_characters.copy()
        _add_characters(counts, words.items())
        return counts

    def num_too_long(self) -> int:
        """Return the occurrences of words too long for any WordPiece."""
        self._count_chunks()
        return self._num_too_long

    @property
    def pruned(self) -> int:
        """How often the most frequent word that is not given out occurred."""
        return self._merge()[2]

    def _count_chunks(self):
        for chunk, count in self._chunks.items():
            for word in self._tokenize(chunk):
                if len(word) <= MAX_INPUT_CHARS_PER_WORD:
                    self._words[word] += count
                else:
                    self._num_too_long += count
        self._chunks.clear()
        self._bound_memory()

    def _bound_memory(self):
        if len(self._words) > self.most_words:
            self._write_run()

    def _write_run(self):
        if len(self._runs) == MOST_RUNS:
            self._runs = [_write_sorted(_merge_runs(self._runs))]
        encoded = (
            # JSON can hold half a surrogate pair.
            (word.encode("utf-8", "surrogatepass"), count)
            for word, count in self._words.items()
        )
        self._runs.append(_write_sorted(sorted(encoded)))
        self._words.clear()
        self._merged = None

    def _merge(self):
        """Return (words, characters of those left out, their highest count)."""
        self._count_chunks()
        if not self._runs:
            return self._words, collections.Counter(), 0
        if self._words:
            self._write_run()
        if self._merged is None:
            self._merged = _most_frequent(self._runs, self.most_words)
        return self._merged


def _most_frequent(runs, most_words):
    """Return the most frequent words of runs, see `WordCounter._merge`."""
    frequencies = collections.Counter(count for _, count in _merge_runs(runs))
    room, pruned = most_words, 0
    for count in sorted(frequencies, reverse=True):
        room -= frequencies[count]
        if room < 0:
            # Words that are equally frequent stay or go together.
            pruned = count
            break
    words: collections.Counter[str] = collections.Counter()
    rare_characters: collections.Counter[str] = collections.Counter()
    for encoded, count in _merge_runs(runs):
        word = encoded.decode("utf-8", "surrogatepass")
        if count > pruned:
            words[word] = count
        else:
            _add_characters(rare_characters, [(word, count)])
    return words, rare_characters, pruned


def _merge_runs(runs):
    """Yield (word as bytes, occurrences in all runs), sorted by word."""
    merged = heapq.merge(*map(_read_sorted, runs))
    for word, group in itertools.groupby(merged, operator.itemgetter(0)):
        yield word, sum(count for _, count in group)


def _write_sorted(counts):
    """Write pairs (word as bytes, occurrences) to a file without a name."""
    run = tempfile.TemporaryFile()  # noqa: SIM115 (goes when the counter goes)
    run.writelines(b"%s\t%d\n" % pair for pair in counts)
    return run


def _read_sorted(run):
    run.seek(0)
    for line in run:
        word, _, count = line.rpartition(b"\t")
        yield word, int(count)


def _add_characters(counts, words):
    for word, count in words:
        for char in word:
            counts[char] += count
