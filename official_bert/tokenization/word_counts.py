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

# A million words with their counts take about 150 MB here and less than 1 GB in the
# trainer. About 10 GB of English text contain a million different words.
MOST_WORDS = 1_000_000
# Chunks (texts between spaces) are counted before tokenization, because most occur
# several times.
MOST_CHUNKS = 200_000
# Maximum number of temporary files, which all stay open.
MOST_RUNS = 64


class WordCounter:
    """Counts each word and each character, as our tokenizer sees them.

    If there are more than `most_words` different words, counts are kept in temporary
    files, and only the most frequent words are returned. The result depends only on
    the text: not on its order, and not on the processes that counted its parts.

    Attributes:
      most_words: maximum number of different words to hold in memory and to return.
      pruned: words with this number of occurrences or fewer are not returned; 0 if all
        are returned.
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
        """Count the words of a str. Line ends in it separate words."""
        # Only spaces and line ends always separate words: see FullTokenizer.encode.
        self._chunks.update(line.replace("\n", " ").split(" "))
        if len(self._chunks) >= MOST_CHUNKS:
            self._count_chunks()

    def add_counts(self, words: Mapping[str, int], num_too_long: int = 0) -> None:
        """Add counts of other processes: a dict of word -> occurrences."""
        self._words.update(words)
        self._num_too_long += num_too_long
        self._bound_memory()

    def words(self) -> collections.Counter[str]:
        """Return a Counter of word -> occurrences of the most frequent words."""
        return self._merge()[0]

    def characters(self) -> collections.Counter[str]:
        """Return a Counter of character -> occurrences over all words."""
        words, rare_characters, _ = self._merge()
        counts = rare_characters.copy()
        _add_characters(counts, words.items())
        return counts

    def num_too_long(self) -> int:
        """Return the number of occurrences of words too long for any WordPiece."""
        self._count_chunks()
        return self._num_too_long

    @property
    def pruned(self) -> int:
        """Occurrences of the most frequent word that is not returned."""
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
            # JSON text can contain half a surrogate pair.
            (word.encode("utf-8", "surrogatepass"), count)
            for word, count in self._words.items()
        )
        self._runs.append(_write_sorted(sorted(encoded)))
        self._words.clear()
        self._merged = None

    def _merge(self):
        """Return (words, characters of omitted words, their highest count)."""
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
            # Keep or omit all words with the same count.
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
    """Write pairs (word as bytes, occurrences) to an unnamed temporary file."""
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
