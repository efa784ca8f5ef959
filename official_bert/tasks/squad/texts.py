"""Convert tokens of a window back to the text of the context.

Follows `get_final_text` in google-research/bert `run_squad.py`.
"""

import functools
import itertools

import numpy as np

from official_bert.tasks.squad.features import SquadFeatures
from official_bert.tasks.squad.files import SquadExample
from official_bert.tokenization.full import FullTokenizer


class WindowTexts:
    """Converts tokens of a window back to the text of the context."""

    def __init__(self, tokenizer: FullTokenizer):
        self.tokenizer = tokenizer
        self._tokenized = functools.cache(self._tokenize)
        self._piece_offsets = functools.cache(self._find_piece_offsets)
        self._word_starts = functools.cache(self._count_word_starts)

    def text(
        self, example: SquadExample, feature: SquadFeatures, start: int, end: int
    ) -> str:
        """Return the text that the original writes for the tokens start … end.

        Tokens are lower-cased and without accents. They are searched in the tokenized
        words that they come from. If both have the same number of characters without
        spaces, the position in one gives the position in the other. If not, or if the
        search fails ([UNK]), the result is the complete words. Follows
        `get_final_text`.

        Args:
          example: `SquadExample`.
          feature: `SquadFeatures` of the example.
          start: position of the first token in the window.
          end: position of the last token in the window.
        """
        first = feature.token_to_orig_map[start]
        last = feature.token_to_orig_map[end]
        words = example.doc_tokens[first : last + 1]
        ids = feature.input_ids[start : end + 1].tolist()
        pieces = " ".join(map(self.tokenizer.inv_vocab.__getitem__, ids))
        pieces = " ".join(pieces.replace(" ##", "").replace("##", "").split())
        (first_word, left), (last_word, right) = self._bounds(pieces, words)
        shown = list(words[first_word : last_word + 1])
        shown[-1] = shown[-1][: right + 1]
        shown[0] = shown[0][left:]
        return " ".join(shown)

    def span(
        self, example: SquadExample, feature: SquadFeatures, start: int, end: int
    ) -> tuple[int, int]:
        """Return the character offsets of the tokens start … end in the context.

        The arguments are those of `text`.

        Returns:
          (start, end): context[start:end] is the text that the tokens come from.
        """
        # Position 0 of the row, as an index into the context's tokens.
        origin = feature.doc_start - int(np.argmax(feature.segment_ids))
        word_starts = self._word_starts(example.doc_tokens)
        bounds = []
        for side, position in enumerate((start, end)):
            word = feature.token_to_orig_map[position]
            offsets = self._piece_offsets(example.doc_tokens[word])
            offset = offsets[origin + position - word_starts[word], side]
            bounds.append(example.doc_offsets[word] + int(offset))
        return bounds[0], bounds[1]

    def _tokenize(self, word):
        """Return the basic tokens of a word, joined by spaces.

        Tokenizing single words is sufficient, because no rule of the basic tokenizer
        looks across a space.
        """
        return " ".join(self.tokenizer.basic_tokenizer.tokenize(word))

    def _count_word_starts(self, words):
        """Return, for each word, the number of context tokens before it."""
        lengths = map(len, map(self.tokenizer.encode, words))
        return list(itertools.accumulate(lengths, initial=0))

    def _find_piece_offsets(self, word):
        """Return the (start, end) of a word's pieces in the word, int32 [P, 2]."""
        _, spans = self.tokenizer.tokenize_with_offsets(word)
        offsets = np.array(spans, np.int32)
        # Normalization may reorder marks. Extend each piece, so its span leaves out
        # nothing that belongs to the pieces after or before it.
        offsets[:, 0] = np.minimum.accumulate(offsets[::-1, 0])[::-1]
        offsets[:, 1] = np.maximum.accumulate(offsets[:, 1])
        return offsets

    def _bounds(self, text, words):
        """Return the first and last character of a text of tokens in its words.

        Both are a pair (number of the word, number of the character in it).
        """
        whole = (0, 0), (len(words) - 1, len(words[-1]) - 1)
        tokenized = " ".join(filter(None, map(self._tokenized, words)))
        if text == tokenized:  # The most frequent case, and cheap.
            return whole
        position = tokenized.find(text)
        if position < 0 or len(tokenized.replace(" ", "")) != sum(map(len, words)):
            return whole
        first = len(tokenized[:position].replace(" ", ""))
        last = first + len(text.replace(" ", "")) - 1
        return _locate(first, words), _locate(last, words)


def _locate(number, words):
    """Convert a character number, counted over all words, to (word, character)."""
    for index, word in enumerate(words):
        if number < len(word):
            return index, number
        number -= len(word)
    raise IndexError(f"{sum(map(len, words)) + number} in {words}")
