"""Counting the words of any amount of text in bounded memory."""

import collections

from official_bert.tokenization.basic import BasicTokenizer
from official_bert.tokenization.wordpiece import MAX_INPUT_CHARS_PER_WORD

# A million words with their counts are some 150 MB here and less than 1 GB in
# the trainer; English text has that many different ones in about 10 GB.
MOST_WORDS = 1_000_000
# Chunks (what stands between spaces) are counted before they are tokenized,
# because most have been seen before.
MOST_CHUNKS = 200_000


class WordCounter:
    """How often each word and each character occurs, as our tokenizer sees them.

    Attributes:
      pruned: words that occurred this often or less may have been forgotten to
        stay within `most_words`; 0 while nothing was.
    """

    def __init__(self, do_lower_case=True, most_words=MOST_WORDS):
        self.most_words = most_words
        self.pruned = 0
        self._num_too_long = 0
        self._tokenize = BasicTokenizer(do_lower_case).tokenize
        self._chunks = collections.Counter()
        self._words = collections.Counter()
        self._forgotten_characters = collections.Counter()

    def add(self, line):
        """Count the words of a str; line ends in it separate words."""
        # Only a space or line end is sure to separate: see FullTokenizer.encode.
        self._chunks.update(line.replace("\n", " ").split(" "))
        if len(self._chunks) >= MOST_CHUNKS:
            self._count_chunks()

    def words(self):
        """Return a Counter of word -> occurrences."""
        self._count_chunks()
        return self._words

    def num_too_long(self):
        """Return the occurrences of words too long for any WordPiece."""
        self._count_chunks()
        return self._num_too_long

    def characters(self):
        """Return a Counter of character -> occurrences, forgotten words' too."""
        counts = self._forgotten_characters.copy()
        _add_characters(counts, self.words())
        return counts

    def _count_chunks(self):
        for chunk, count in self._chunks.items():
            for word in self._tokenize(chunk):
                if len(word) <= MAX_INPUT_CHARS_PER_WORD:
                    self._words[word] += count
                else:
                    self._num_too_long += count
        self._chunks.clear()
        if len(self._words) > self.most_words:
            self._forget_rare_words()

    def _forget_rare_words(self):
        """Halve the words, the rarest first; their characters still count."""
        kept = self._words
        while len(kept) > self.most_words // 2:
            self.pruned += 1
            kept = {word: n for word, n in kept.items() if n > self.pruned}
        rare = {word: n for word, n in self._words.items() if word not in kept}
        _add_characters(self._forgotten_characters, rare)
        self._words = collections.Counter(kept)


def _add_characters(counts, words):
    for word, count in words.items():
        for char in word:
            counts[char] += count
