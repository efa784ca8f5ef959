"""The tokenizer in a graph, with TensorFlow Text's kernels where they are exact.

`FastBertNormalizer` and `FastWordpieceTokenizer` are faster than our operations, but
they treat some characters differently from the original. A text goes to them only if it
consists of `exact_characters` and has no very long word. All other texts go to
`GraphTokenizer`. The ids and offsets are therefore those of `FullTokenizer` for every
string.
"""

import functools
import unicodedata
from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from official_bert.errors import UserError
from official_bert.tf_text import import_tf_text
from official_bert.tokenization.graph import (
    COLUMNS,
    GraphTokenizer,
    Pieces,
    two_ways,
)
from official_bert.tokenization.graph_words import table
from official_bert.tokenization.simple_characters import (
    ALONE,
    LETTER,
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

# The kernel limits words in bytes. No character has more than four.
MAX_BYTES_PER_WORD = 4 * MAX_INPUT_CHARS_PER_WORD
# Some characters that end a word: ASCII whitespace and punctuation, and most of
# Chinese. A short list keeps the regular expression small.
BREAKS = r"\x{0}-/:-@\[-`{-\x{7F}\x{3000}-\x{3003}\x{3400}-\x{4DBF}\x{4E00}-\x{9FFF}"
WORD = f"[^{BREAKS}]{{0,{MAX_INPUT_CHARS_PER_WORD}}}"
SHORT_WORDS = f"(?:{WORD}[{BREAKS}])*{WORD}"
# The pieces of "a{}a" in the vocabulary of `_behavior_of_kernels`, by the kind of `{}`.
_SHAPES = {
    (0, -1, -1, -1): LETTER,
    (1, 2, 2, -1): LETTER,  # The letter is itself an "a".
    (1, 0, 1, -1): ALONE,
    (1, 1, -1, -1): SPACE,
}


class TfTextTokenizer(tf.Module):
    """Converts texts to WordPieces, equal to `GraphTokenizer` for every string."""

    def __init__(self, vocab: Mapping[str, int], do_lower_case: bool):
        """Create the models of the kernels; the arguments are as in `GraphTokenizer`.

        Raises:
          UserError: TensorFlow Text is not installed, or cannot use the vocabulary.
        """
        super().__init__()
        self._text = import_tf_text("--tokenizer_ops=tf_text")
        self._others = GraphTokenizer(vocab, do_lower_case)
        self._normalizer = _model_variable(_normalizer_model(do_lower_case))
        self._wordpieces = _model_variable(_wordpiece_model(vocab, do_lower_case))
        self._exact_text = pattern(exact_characters(do_lower_case)) + "*"

    def __call__(self, texts: tf.Tensor) -> Pieces:
        """Return the `Pieces` of texts, string [texts] in UTF-8."""
        return Pieces(**self._columns(texts, COLUMNS))

    def ids(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Return only the ids of `Pieces`; this is faster."""
        return self._columns(texts, COLUMNS[:1])["ids"]

    def are_exact(self, texts: tf.Tensor) -> tf.Tensor:
        """Return whether the kernels split each text, bool [texts]."""
        is_exact, has_short_words = (
            tf.strings.regex_full_match(texts, one)
            for one in (self._exact_text, SHORT_WORDS)
        )
        return is_exact & has_short_words

    def _columns(self, texts, names):
        with tf.device("CPU:0"):
            is_exact = self.are_exact(texts)
            return two_ways(texts, is_exact, names, self._split, self._others.columns)

    def _split(self, texts, offsets):
        """Split exact texts with the kernels; see `graph.two_ways`."""
        normalizer = self._text.FastBertNormalizer(
            model_buffer=self._normalizer.read_value()
        )
        tokenizer = self._text.FastWordpieceTokenizer(
            model_buffer=self._wordpieces.read_value(), token_out_type=tf.int32
        )
        normal = normalizer.normalize(texts)
        ids, starts, ends = tokenizer.tokenize_with_offsets(normal)
        lengths = tf.cast(ids.row_lengths(), tf.int32)
        if not offsets:
            return lengths, [ids.values]
        places = (_in_characters(normal, one) for one in (starts, ends))
        return lengths, [ids.values, *places]


def _in_characters(texts, places):
    """Return positions in texts in characters.

    Each character of a text becomes one character of the normalized text, so these are
    also the positions in the text before normalization.

    Args:
      texts: string [texts], normalized.
      places: positions in bytes, ragged int64 [texts, (pieces)].

    Returns:
      int32 [pieces].
    """
    decoded = tf.raw_ops.UnicodeDecodeWithOffsets(
        input=texts, input_encoding="UTF-8", errors="ignore", Tsplits=tf.int64
    )
    lengths = decoded.row_splits[1:] - decoded.row_splits[:-1]
    text_of_character = tf.repeat(tf.range(tf.size(texts, tf.int64)), lengths)
    # A key contains the text and the byte. The end of a text is not a character, but
    # the first character with a key that is not smaller begins the next text.
    characters = text_of_character * 2**32 + decoded.char_to_byte_starts
    text_of_place = places.value_rowids()
    index = tf.searchsorted(
        characters, text_of_place * 2**32 + places.values, out_type=tf.int64
    )
    return tf.cast(index - tf.gather(decoded.row_splits, text_of_place), tf.int32)


@functools.cache
def exact_characters(do_lower_case: bool) -> np.ndarray:
    """Return the characters that the kernels treat like `FullTokenizer`.

    They are the simple characters, whose tokens do not depend on their neighbors, with
    these conditions for the kernels:

    - The normalizer changes the character to the same letter as our table.
    - The tokenizer treats it as the same kind: letter, separate token, or whitespace.
    - Every version of the kernels does so. A server has another Unicode version than
      this process, so the character is assigned, and punctuation was already
      punctuation in Unicode 3.2. (The normalizer's data is part of the graph.)

    Returns:
      bool [0x110000].
    """
    simple = simple_characters(do_lower_case)
    codes = np.flatnonzero(simple.kinds != NOT_SIMPLE)
    # Cn and Co: not assigned, and for private use.
    is_assigned = [unicodedata.category(chr(c)) not in ("Cn", "Co") for c in codes]
    codes = codes[is_assigned]
    kinds, letters = _behavior_of_kernels(do_lower_case, codes)
    agrees = kinds == simple.kinds[codes]
    is_space = simple.kinds[codes] == SPACE
    agrees &= is_space | (letters == simple.folded[codes])
    agrees &= _are_stable(codes, simple.kinds[codes])
    exact = np.zeros(len(simple.kinds), bool)
    exact[codes[agrees]] = True
    return exact


def _behavior_of_kernels(do_lower_case, codes):
    """Return the kinds of characters, and the letters that they become (or -1)."""
    text = import_tf_text("--tokenizer_ops=tf_text")
    normalizer = text.FastBertNormalizer(do_lower_case)
    tokenizer = text.FastWordpieceTokenizer(
        [UNKNOWN, "a", CONTINUATION + "a"], token_out_type=tf.int32
    )
    with tf.device("CPU:0"):
        chars = [chr(code) for code in codes.tolist()]
        words = tf.constant([f"a{char}a" for char in chars])
        shapes = tokenizer.tokenize(normalizer.normalize(words))
        normal = normalizer.normalize(tf.constant(chars)).numpy()
    rows = shapes.to_tensor(-1, shape=[None, 4]).numpy().tolist()
    # A removed character has another shape, and so no kind.
    kinds = np.array([_SHAPES.get(tuple(row), NOT_SIMPLE) for row in rows])
    decoded = [one.decode("utf-8", "replace") for one in normal]
    letters = [ord(one) if len(one) == 1 else -1 for one in decoded]
    return kinds, np.array(letters)


def _are_stable(codes, kinds):
    """Return whether characters have their kind in all versions of the kernels."""
    chars = [chr(code) for code in codes.tolist()]
    # Python has the data of Unicode 3.2 (2002) in all versions.
    old = unicodedata.ucd_3_2_0
    was_punctuation = np.array([old.category(one)[0] == "P" for one in chars])
    # The kernels have the ranges of Chinese characters and of ASCII in their code.
    is_fixed = np.array(
        [one.isascii() or unicodedata.category(one) == "Lo" for one in chars]
    )
    is_stable = np.where(kinds == ALONE, was_punctuation | is_fixed, ~was_punctuation)
    return is_stable | (kinds == SPACE)


def _normalizer_model(do_lower_case):
    """Return the serialized model of `FastBertNormalizer`, bytes."""
    text = import_tf_text("--tokenizer_ops=tf_text")
    return text.build_fast_bert_normalizer_model(do_lower_case)


def _wordpiece_model(vocab, do_lower_case):
    """Return the serialized model of `FastWordpieceTokenizer`, bytes.

    The kernel cannot have pieces of several words, such as "a b". Pieces that no exact
    text can have become names that the kernel ignores, because ids are positions.
    """
    text = import_tf_text("--tokenizer_ops=tf_text")
    simple = simple_characters(do_lower_case)
    pieces = [f"[{number}]" for number in range(max(vocab.values()) + 1)]
    for piece, index in vocab.items():
        if piece == UNKNOWN or _is_possible(piece, simple):
            pieces[index] = piece
    # The builder needs at least one piece. No exact text has this noncharacter.
    pieces.append("\ufdd0")
    try:
        return text.build_fast_wordpiece_model(
            pieces, MAX_BYTES_PER_WORD, CONTINUATION, UNKNOWN, False, False
        )
    except Exception as error:
        raise UserError(
            "--tokenizer_ops=tf_text: TensorFlow Text cannot use this vocabulary "
            f"({error}). Use --tokenizer_ops=core."
        ) from error


def _is_possible(piece, simple):
    """Return whether a word can have the piece: letters, or one separate character."""
    letters = piece.removeprefix(CONTINUATION)
    if not 0 < len(letters) <= MAX_INPUT_CHARS_PER_WORD or not simple.are_final(piece):
        return False
    kinds = {int(simple.kinds[ord(char)]) for char in letters}
    return kinds == {LETTER} or (kinds == {ALONE} and len(piece) == 1)


def _model_variable(model):
    """Return a serialized model as a variable, which an export stores only once."""
    return table(np.frombuffer(model, np.uint8))
