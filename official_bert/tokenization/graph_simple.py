"""WordPieces of texts of simple characters, with ops for strings.

Words stay strings, and one hash table contains the vocabulary. Most words are in it, so
they need one lookup. Only the other words are split into pieces. No op depends on the
locale of the process or on the Unicode version of a library.
"""

import typing
from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from official_bert.tokenization.graph_words import (
    BLOCK_BITS,
    in_blocks,
    table,
    take,
    while_loop,
)
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

# A value of the vocabulary's table is the number of characters * 2**ID_BITS + id. For a
# missing word, the number is -1 and the id that of the unknown piece.
ID_BITS = 32
# More than the number of steps of any word; see `_walk`.
PLACES = 2**8
WHITESPACE = -2 << ID_BITS


class _Parts(typing.NamedTuple):
    """The pieces of words that are not in the vocabulary.

    Attributes:
      counts: int32 [words], the number of pieces of each word. 1 for an unknown word.
      words, steps: int32 [pieces]; each is piece number `steps` of word number `words`.
        A piece may occur several times.
      ids, starts, ends: int32 [pieces], as in `Pieces`, but relative to the word.
    """

    counts: tf.Tensor
    words: tf.Tensor
    steps: tf.Tensor
    ids: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor


class SimpleTexts(tf.Module):
    """Splits texts of simple characters into WordPieces."""

    def __init__(self, vocab: Mapping[str, int], do_lower_case: bool):
        """Create the tables; the arguments are those of `GraphTokenizer`."""
        super().__init__()
        self._do_lower_case = do_lower_case
        self._unknown = vocab[UNKNOWN]
        self._missing = (-1 << ID_BITS) + self._unknown
        simple = simple_characters(do_lower_case)
        kinds = simple.kinds
        self._simple_text = pattern(kinds != NOT_SIMPLE) + "*"
        alone = (kinds == ALONE) | (kinds == SPACE)
        alone[ord(" ")] = False
        self._alone = pattern(alone)
        values = _values(vocab, simple)
        self._longest = max(0, *(value >> ID_BITS for value in values.values()))
        self._vocab = _string_table(values, self._missing)
        if do_lower_case:
            # Most blocks of characters have no change.
            changes = simple.folded - np.arange(len(simple.folded), dtype=np.int32)
            blocks, changes = in_blocks(changes)
            self._blocks, self._changes = table(blocks), table(changes)

    def are_simple(self, texts: tf.Tensor) -> tf.Tensor:
        """Return whether each text contains only simple characters, bool [texts]."""
        return tf.strings.regex_full_match(texts, self._simple_text)

    def __call__(
        self, texts: tf.Tensor, offsets: bool
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Return the pieces of texts of simple characters.

        Args:
          texts: string [texts].
          offsets: whether to return starts and ends.

        Returns:
          (number of pieces of each text, int32 [texts]; list of the values of the
          columns of `Pieces`, int32 [pieces]: ids, or ids, starts and ends).
        """
        if self._do_lower_case:
            # Without an encoding, this op changes only ASCII letters.
            texts = tf.strings.lower(texts)
        apart = tf.strings.regex_replace(texts, self._alone, r" \0 ")
        split = tf.raw_ops.StringSplitV2(input=apart, sep=" ")
        tokens, rows = split.values, split.indices[:, 0]
        values = self._vocab.lookup(tokens)
        missing = tf.where(values == self._missing)
        found = self._split(tf.gather_nd(tokens, missing))
        counts = tf.tensor_scatter_nd_update(
            tf.cast(values != WHITESPACE, tf.int32), missing, found.counts
        )
        first = tf.cumsum(counts, exclusive=True)
        token = tf.gather(tf.reshape(missing, [-1]), found.words)
        # Whitespace has the same index as the next token, which replaces it.
        index = [first, tf.gather(first, token) + found.steps]
        columns = [(_id(values), found.ids)]
        if offsets:
            starts, ends = self._spans(tokens, rows)
            first_of_token = tf.gather(starts, token)
            columns.append((starts, first_of_token + found.starts))
            columns.append((ends, first_of_token + found.ends))
        number = tf.reduce_sum(counts)
        lengths = tf.math.unsorted_segment_sum(counts, rows, tf.size(texts))
        return lengths, [tf.dynamic_stitch(index, both)[:number] for both in columns]

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
        """Return the `_Parts` of words that are not in the vocabulary.

        Args:
          words: string [words] of simple characters, without capitals of ASCII if the
            text is lower-cased.
        """
        lengths = tf.strings.length(words, "UTF8_CHAR")
        if self._do_lower_case:
            words = self._folded(words)
        places, values, left = tf.unstack(self._walk(words, lengths), num=3)
        word, step = places // PLACES, tf.cast(places % PLACES, tf.int32)
        number = tf.size(words)
        was_split = tf.math.unsorted_segment_min(left, word, number) == 0
        fits = tf.gather(was_split, word)
        counts = tf.math.unsorted_segment_sum(tf.cast(fits, tf.int32), word, number)
        length = tf.gather(lengths, word)
        left = tf.where(fits, tf.cast(left, tf.int32), 0)
        size = tf.where(fits, tf.cast(_size(values), tf.int32), length)
        return _Parts(
            counts=tf.maximum(counts, 1),
            words=word,
            steps=tf.where(fits, step, 0),
            ids=tf.where(fits, _id(values), self._unknown),
            starts=length - left - size,
            ends=length - left,
        )

    def _walk(self, words, lengths):
        """Look up pieces, step by step through all words at once.

        Each step looks up all beginnings of the rest of each word, and advances to the
        end of the longest piece.

        Returns:
          int64 [3, steps]. Row 0: number of the word * PLACES + number of the step.
          Row 1: value of the piece in the table of the vocabulary. Row 2: length of the
          rest. If no piece fits, the word has no more steps, and this length is not 0.
        """

        def any_left(_skipped, place, *_):
            return tf.size(place) > 0

        def advance(skipped, place, rest, left, steps):
            longest = tf.minimum(tf.reduce_max(left), self._longest)
            ends = tf.expand_dims(tf.range(skipped + 1, skipped + longest + 1), 0)
            beginnings = tf.strings.substr(
                tf.expand_dims(rest, 1), tf.zeros_like(ends), ends, unit="UTF8_CHAR"
            )
            # The value of the longest piece is the largest.
            values = tf.reduce_max(self._vocab.lookup(beginnings), axis=1)
            size = _size(values)
            left -= size
            steps = tf.concat([steps, tf.stack([place, values, left])], 1)
            place, rest, left, begin = take(
                (size > 0) & (left > 0), place + 1, rest, left, skipped + size
            )
            rest = CONTINUATION + tf.strings.substr(rest, begin, left, unit="UTF8_CHAR")
            return after_first, place, rest, left, steps

        # The number of characters before the rest: after the first step it has "##".
        after_first = tf.constant(len(CONTINUATION), tf.int64)
        word = tf.range(tf.size(words, tf.int64)) * PLACES
        # A word that is too long ends after one step, because its rest is not positive.
        # No piece has 0 characters, so the length of its rest does not stay 0.
        fits = lengths <= MAX_INPUT_CHARS_PER_WORD
        left = tf.cast(tf.where(fits, lengths, 0), tf.int64)
        before_first, steps = tf.zeros_like(after_first), tf.zeros([3, 0], tf.int64)
        state = (before_first, word, words, left, steps)
        return while_loop(any_left, advance, state)[4]

    def _folded(self, words):
        """Return words in lower case without accents; each letter stays one letter."""
        decoded = tf.raw_ops.UnicodeDecode(
            input=words, input_encoding="UTF-8", errors="ignore", Tsplits=tf.int32
        )
        code = decoded.char_values
        block = tf.gather(self._blocks, tf.bitwise.right_shift(code, BLOCK_BITS))
        inside = tf.bitwise.bitwise_and(code, 2**BLOCK_BITS - 1)
        code += tf.gather(self._changes, block * 2**BLOCK_BITS + inside)
        return tf.raw_ops.UnicodeEncode(
            input_values=code,
            input_splits=decoded.row_splits,
            output_encoding="UTF-8",
        )


def _id(values):
    """Return the low half of values of the vocabulary's table, the ids, int32."""
    return tf.cast(tf.bitwise.bitwise_and(values, 2**ID_BITS - 1), tf.int32)


def _size(values):
    """Return the numbers of characters of values of the vocabulary's table, int64."""
    return tf.bitwise.right_shift(values, ID_BITS)


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


def _string_table(values, missing):
    """Return a hash table for ops, of a dict of str -> int with a default value."""
    with tf.device("CPU:0"):
        keys = tf.constant(list(values), tf.string)
        numbers = tf.constant(list(values.values()), tf.int64)
        initializer = tf.lookup.KeyValueTensorInitializer(keys, numbers)
        return tf.lookup.StaticHashTable(initializer, missing)
