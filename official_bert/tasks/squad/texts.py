"""From tokens of a window back to the text of the context.

Follows `get_final_text` in google-research/bert `run_squad.py`.
"""

import functools
import itertools

import numpy as np

from official_bert.tasks.squad.features import SquadFeatures
from official_bert.tasks.squad.files import SquadExample
from official_bert.tokenization.full import FullTokenizer


class WindowTexts:
    """Turns tokens of a window back into the text of the context."""

    def __init__(self, tokenizer: FullTokenizer):
        self.tokenizer = tokenizer
        self._tokenized = functools.cache(self._tokenize)
        self._piece_offsets = functools.cache(self._find_piece_offsets)
        self._word_starts = functools.cache(self._count_word_starts)

    def text(
        self, example: SquadExample, feature: SquadFeatures, start: int, end: int
    ) -> str:
        """Return the original's text of the tokens start … end of a window.

        The tokens are lower-cased and have lost accents, so they are searched
        in the tokenized words they come from, and the characters counted: if
        these are as many as the words have, the n-th is taken for the n-th.
        Otherwise, or if nothing is found ([UNK]), it is the whole words.
        Follows `get_final_text`.

        Args:
          example: `SquadExample`.
          feature: `SquadFeatures` of it.
          start: the first token.
          end: the last token.
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
        """Return where in the context the tokens start … end of a window are.

        The arguments are those of `text`.

        Returns:
          (start, end), so that context[start:end] is all they were made from.
        """
        # Of position 0 in the row, counted in the context's tokens.
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
        """Return the basic tokens of a word with a space between each two.

        Word by word is as good as all at once: no rule of the basic tokenizer looks
        across a space.
        """
        return " ".join(self.tokenizer.basic_tokenizer.tokenize(word))

    def _count_word_starts(self, words):
        """Return how many tokens of the context are before each word."""
        lengths = map(len, map(self.tokenizer.encode, words))
        return list(itertools.accumulate(lengths, initial=0))

    def _find_piece_offsets(self, word):
        """Return int32 [P, 2], start and end in the word of its pieces."""
        _, spans = self.tokenizer.tokenize_with_offsets(word)
        offsets = np.array(spans, np.int32)
        # Marks may have changed places: what a piece begins is not to leave
        # out what follows it, nor what it ends what comes before.
        offsets[:, 0] = np.minimum.accumulate(offsets[::-1, 0])[::-1]
        offsets[:, 1] = np.maximum.accumulate(offsets[:, 1])
        return offsets

    def _bounds(self, text, words):
        """Return where a text of tokens begins and ends in the words it comes from.

        That is two pairs of (number of the word, number of the character in it).
        """
        whole = (0, 0), (len(words) - 1, len(words[-1]) - 1)
        tokenized = " ".join(filter(None, map(self._tokenized, words)))
        if text == tokenized:  # By far the commonest, and quickly seen.
            return whole
        position = tokenized.find(text)
        if position < 0 or len(tokenized.replace(" ", "")) != sum(map(len, words)):
            return whole
        first = len(tokenized[:position].replace(" ", ""))
        last = first + len(text.replace(" ", "")) - 1
        return _locate(first, words), _locate(last, words)


def _locate(number, words):
    """Return (word, character in it) of a character, counted through all words."""
    for index, word in enumerate(words):
        if number < len(word):
            return index, number
        number -= len(word)
    raise IndexError(f"{sum(map(len, words)) + number} in {words}")
