"""WordPieces of texts of simple characters, with ops for strings.

Words stay strings, and one hash table contains the vocabulary. Most words are in it, so
they need one lookup. Only the other words are split into pieces. No op depends on the
locale of the process or on the Unicode version of a library.
"""

from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from official_bert.tokenization.graph_words import BLOCK_BITS, in_blocks, table, take, while_loop
from official_bert.tokenization.simple_characters import (
    ALONE,
    NOT_SIMPLE,
    SPACE,
    pattern,
    simple_characters,
)
from official_bert.tokenization.wordpiece import (
    CONTINUATION,
    MAX_INPUT_CHARS_PER_WORD,
    UNKNOWN,
)

# A value of the vocabulary's table is the number of characters * 2**ID_BITS + id.
ID_BITS = 32
MISSING = -1
WHITESPACE = -2
LONGEST = 2**30


class SimpleTexts(tf.Module):
    """Splits texts of simple characters into WordPieces."""

    def __init__(self, vocab: Mapping[str, int], do_lower_case: bool):
        """Create the tables; the arguments are those of `GraphTokenizer`."""
        super().__init__()
        self._do_lower_case = do_lower_case
        self._unknown = vocab[UNKNOWN]
        simple = simple_characters(do_lower_case)
        kinds = simple.kinds
        self._simple_text = pattern(kinds != NOT_SIMPLE) + "*"
        alone = (kinds == ALONE) | (kinds == SPACE)
        alone[ord(" ")] = False
        self._alone = pattern(alone)
        values = _values(vocab, simple)
        self._longest = max(value >> ID_BITS for value in values.values())
        self._vocab = _string_table(values)
        if do_lower_case:
            # Most blocks of characters have no change.
            changes = simple.folded - np.arange(len(simple.folded), dtype=np.int32)
            blocks, changes = in_blocks(changes)
            self._blocks, self._changes = table(blocks), table(changes)

    def are_simple(self, texts: tf.Tensor) -> tf.Tensor:
        """Return whether each text contains only simple characters, bool [texts]."""
        return tf.strings.regex_full_match(texts, self._simple_text)

    def __call__(self, texts: tf.Tensor) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Return the pieces of texts of simple characters, string [texts].

        Returns:
          (number of pieces of each text, int32 [texts]; dict of the values of the
          columns of `Pieces`, int32 [pieces]).
        """
        if self._do_lower_case:
            # Without an encoding, this op changes only ASCII letters.
            texts = tf.strings.lower(texts)
        apart = tf.strings.regex_replace(texts, self._alone, r" \0 ")
        split = tf.raw_ops.StringSplitV2(input=apart, sep=" ")
        tokens, rows = split.values, tf.cast(split.indices[:, 0], tf.int32)
        values = self._vocab.lookup(tokens)
        starts, ends = self._spans(tokens, rows)
        tokens, rows, values, starts, ends = take(
            values != WHITESPACE, tokens, rows, values, starts, ends
        )
        (missing,) = take(values == MISSING, tf.range(tf.size(values)))
        counts, word, step, pieces, behind = self._split(tf.gather(tokens, missing))
        counts = tf.tensor_scatter_nd_update(
            tf.ones_like(rows), missing[:, None], counts
        )
        lengths = tf.math.unsorted_segment_sum(counts, rows, tf.size(texts))
        first = tf.cumsum(counts, exclusive=True)
        # A word that is missing gets one unknown piece. If it could be split, its
        # pieces replace that.
        token = tf.gather(missing, word)
        at = [first, tf.gather(first, token) + step]
        unknown = tf.constant(self._unknown, tf.int32)
        ids = tf.where(values == MISSING, unknown, _id(values))
        last = tf.gather(starts, token) + behind
        columns = {
            "ids": (ids, _id(pieces)),
            "starts": (starts, last - _length(pieces)),
            "ends": (ends, last),
        }
        return lengths, {
            name: tf.dynamic_stitch(at, both) for name, both in columns.items()
        }

    def _spans(self, tokens, rows):
        """Return the range (starts, ends) of each token in its text, in characters.

        A separator is a space of the text, unless it is next to a character that is
        alone. `tokens` and `rows`: string and int32 [tokens].
        """
        alone = tf.strings.regex_full_match(tokens, self._alone)
        is_first = rows != tf.concat([[-1], rows], 0)[:-1]
        inserted = is_first | alone | tf.concat([[False], alone], 0)[:-1]
        lengths = tf.strings.length(tokens, "UTF8_CHAR")
        starts = tf.cumsum(lengths, exclusive=True)
        starts += tf.cumsum(tf.cast(~inserted, tf.int32))
        (first,) = take(is_first, starts)
        starts -= tf.gather(first, tf.cumsum(tf.cast(is_first, tf.int32)) - 1)
        return starts, starts + lengths

    def _split(self, words):
        """Split words that are not in the vocabulary.

        The longest piece at the beginning of each word is looked up for all words at
        once, then the next one of the words that have not ended.

        Args:
          words: string [words] of simple characters, without capitals of ASCII.

        Returns:
          counts: int32 [words], the number of pieces. 1 for a word that cannot be split.
          word, step: int32 [pieces]; piece number `step` of the word with this number.
            Words that cannot be split have no pieces here.
          values: int64 [pieces], from the table of the vocabulary.
          behind: int32 [pieces], the end of each piece in its word, in characters.
        """
        lengths = tf.strings.length(words, "UTF8_CHAR")
        if self._do_lower_case:
            words = tf.cond(
                tf.reduce_any(tf.strings.length(words) > lengths),
                lambda: self._folded(words),
                lambda: words,
            )
        word, step, values, behind = self._walk(words, lengths)
        number = tf.size(words)
        covered = tf.math.unsorted_segment_max(behind, word, number)
        is_split = covered == lengths
        word, step, values, behind = take(
            tf.gather(is_split, word), word, step, values, behind
        )
        counts = tf.math.unsorted_segment_sum(tf.ones_like(word), word, number)
        return tf.maximum(counts, 1), word, step, values, behind

    def _walk(self, words, lengths):
        """Return word, step, value and end of each piece; see `_split`.

        A word that cannot be split has pieces up to the character without a piece.
        """

        def any_left(_step, word, *_):
            return tf.size(word) > 0

        def advance(step, word, rest, at, *found):
            # `rest` begins with "##" after the first step.
            skipped = tf.where(step > 0, len(CONTINUATION), 0)
            longest = tf.reduce_max(tf.gather(lengths, word) - at)
            longest = tf.minimum(longest, self._longest)
            ends = tf.range(skipped + 1, skipped + longest + 1)
            shape = tf.stack([tf.size(word), longest])
            prefixes = tf.strings.substr(
                tf.broadcast_to(rest[:, None], shape),
                tf.zeros(shape, tf.int32),
                tf.broadcast_to(ends, shape),
                unit="UTF8_CHAR",
            )
            # The value of the longest piece is the largest.
            values = tf.reduce_max(self._vocab.lookup(prefixes), axis=1)
            word, rest, at, values = take(values >= 0, word, rest, at, values)
            at += _length(values)
            news = (word, tf.fill(tf.shape(word), step), values, at)
            found = [
                tf.concat([old, new], 0) for old, new in zip(found, news, strict=True)
            ]
            is_left = at < tf.gather(lengths, word)
            word, rest, at, begins = take(
                is_left, word, rest, at, skipped + _length(values)
            )
            rest = CONTINUATION + tf.strings.substr(
                rest, begins, tf.fill(tf.shape(begins), LONGEST), unit="UTF8_CHAR"
            )
            return step + 1, word, rest, at, *found

        (word,) = take(
            lengths <= MAX_INPUT_CHARS_PER_WORD, tf.range(tf.size(words))
        )
        rest = tf.gather(words, word)
        none = tf.zeros([0], tf.int32)
        state = (0, word, rest, tf.zeros_like(word), none, none)
        state += (tf.zeros([0], tf.int64), none)
        return while_loop(any_left, advance, state)[4:]

    def _folded(self, words):
        """Return words in lower case without accents; each letter stays one letter."""
        decoded = tf.raw_ops.UnicodeDecode(
            input=words, input_encoding="UTF-8", errors="ignore", Tsplits=tf.int32
        )
        code = decoded.char_values
        size = 2**BLOCK_BITS
        block = tf.gather(self._blocks, code // size)
        code += tf.gather(self._changes, block * size + code % size)
        return tf.raw_ops.UnicodeEncode(
            input_values=code,
            input_splits=decoded.row_splits,
            output_encoding="UTF-8",
        )


def _id(values):
    """Return the ids of values of the vocabulary's table, int32."""
    return tf.cast(values % 2**ID_BITS, tf.int32)


def _length(values):
    """Return the numbers of characters of values of the vocabulary's table, int32."""
    return tf.cast(values // 2**ID_BITS, tf.int32)


def _values(vocab, simple):
    """Return the dict of the vocabulary's table.

    It contains whitespace, and the pieces that a word can have.

    Args:
      vocab: dict of piece -> id.
      simple: the `SimpleCharacters`.
    """
    values = {}
    for piece, index in vocab.items():
        length = len(piece.removeprefix(CONTINUATION))
        if 0 < length <= MAX_INPUT_CHARS_PER_WORD and simple.are_final(piece):
            values[piece] = (length << ID_BITS) + index
    spaces = np.flatnonzero(simple.kinds == SPACE)
    return values | dict.fromkeys(["", *map(chr, spaces)], WHITESPACE)


def _string_table(values):
    """Return a hash table for ops, of a dict of str -> int."""
    with tf.device("CPU:0"):
        keys = tf.constant(list(values), tf.string)
        numbers = tf.constant(list(values.values()), tf.int64)
        initializer = tf.lookup.KeyValueTensorInitializer(keys, numbers)
        return tf.lookup.StaticHashTable(initializer, MISSING)
