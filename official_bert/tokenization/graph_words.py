"""`BasicTokenizer` as TensorFlow ops: texts to words, for all characters at once.

The rules are those of `basic.py`, from the same table. No op depends on the locale of
the process or on the Unicode version of a library.
"""

import functools
import typing
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from official_bert.tokenization import characters

BLOCK_BITS = 8
# Bit fields of a character's packed properties: (lowest bit, number of bits).
CATEGORY = (0, 3)
SIGMA_CONTEXT = (3, 2)
COMBINING_CLASS = (5, 8)
FOLDING = (13, 18)

CAPITAL_SIGMA, SMALL_SIGMA, FINAL_SIGMA = map(ord, "Σσς")


class Characters(typing.NamedTuple):
    """The characters of some texts, concatenated; each field is [characters].

    Attributes:
      code_points: int32.
      facts: int32, properties from the table, packed as in `character_arrays`.
      texts: int32, the number of each character's text.
      starts, ends: int32, the range of the text that became the character, in decoded
        characters.
      chunks: int32, a number that changes at whitespace and around each Chinese
        character.
    """

    code_points: tf.Tensor
    facts: tf.Tensor
    texts: tf.Tensor
    starts: tf.Tensor
    ends: tf.Tensor
    chunks: tf.Tensor


@functools.cache
def character_arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the shipped table as arrays for ops; made once per process.

    A lookup has two steps: the block of 256 characters, then the character.

    Returns:
      blocks: int32 [4352], the number of each block of code points.
      facts: int32 [number of different blocks * 256], the properties of a character,
        packed in the fields `CATEGORY`, `SIGMA_CONTEXT`, `COMBINING_CLASS` and
        `FOLDING`. `FOLDING` is a row of the next two arrays, or 0 for a character that
        does not change.
      folded_splits: int32 [rows + 1], the start of each row in `folded_values`.
      folded_values: int32, the code points of each lower case in NFD.
    """
    table = characters.load_table()
    # Row 0 of the foldings is not used.
    folding = np.zeros(characters.CODE_POINTS, np.int32)
    folding[list(table.folded)] = np.arange(1, len(table.folded) + 1)
    facts: typing.Any = sum(
        np.asarray(values).astype(np.int32) << field[0]
        for field, values in (
            (CATEGORY, np.frombuffer(table.category, np.uint8)),
            (SIGMA_CONTEXT, np.frombuffer(table.sigma_context, np.uint8)),
            (COMBINING_CLASS, np.frombuffer(table.combining_class, np.uint8)),
            (FOLDING, folding),
        )
    )
    lengths = [0, 0, *map(len, table.folded.values())]
    values = [ord(char) for text in table.folded.values() for char in text]
    return (
        *in_blocks(facts),
        np.cumsum(lengths).astype(np.int32),
        np.array(values, np.int32),
    )


def in_blocks(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return an array over code points as two small ones, for lookups in two steps.

    Args:
      values: int32 [0x110000].

    Returns:
      (int32 [4352], the number of each block of 256 code points; int32 [number of
      different blocks * 256], their values).
    """
    numbers: dict[bytes, int] = {}
    rows = values.reshape(-1, 2**BLOCK_BITS)
    blocks = [numbers.setdefault(row.tobytes(), len(numbers)) for row in rows]
    return np.array(blocks, np.int32), np.frombuffer(b"".join(numbers), np.int32)


class BasicWords(tf.Module):
    """Splits texts into words and punctuation like `BasicTokenizer`."""

    def __init__(self, do_lower_case: bool):
        """Store the character table; `do_lower_case` as in `BasicTokenizer`."""
        super().__init__()
        self.do_lower_case = do_lower_case
        blocks, facts, folded_splits, folded_values = character_arrays()
        self._blocks = table(blocks)
        self._facts = table(facts)
        self._folded_splits = table(folded_splits)
        self._folded_values = table(folded_values)

    def __call__(self, texts: tf.Tensor) -> tuple[Characters, tf.Tensor]:
        """Return the words of texts.

        Args:
          texts: string [texts], UTF-8; invalid bytes are skipped.

        Returns:
          (`Characters` of all words; int32 [characters], the number of each
          character's word, counted over all texts).
        """
        found = self._chunked(texts)
        if self.do_lower_case:
            found = _canonical_order(self._folded(found))
            found = _without_marks(found)
        category = _field(found.facts, CATEGORY)
        alone = category == characters.PUNCTUATION
        begins = alone | _after(alone) | _is_new(found.chunks)
        return found, tf.cumsum(tf.cast(begins, tf.int32)) - 1

    def categories(self, facts: tf.Tensor) -> tf.Tensor:
        """Return the category classes (of `characters`) in `Characters.facts`."""
        return _field(facts, CATEGORY)

    def _chunked(self, texts):
        """Return the `Characters` of texts, without whitespace and removed ones."""
        decoded = tf.strings.unicode_decode(texts, "UTF-8", errors="ignore")
        text = tf.cast(decoded.value_rowids(), tf.int32)
        first = tf.gather(tf.cast(decoded.row_starts(), tf.int32), text)
        start = tf.range(tf.size(text)) - first
        code, facts = decoded.values, self._facts_of(decoded.values)
        if self.do_lower_case:
            code, facts = self._resolve_sigmas(code, facts, text)
        category = _field(facts, CATEGORY)
        stays = ~_is_any(category, characters.REMOVED)
        code, facts, text, start, category = take(
            stays, code, facts, text, start, category
        )
        separates = _is_any(category, characters.SEPARATING)
        apart = separates | (category == characters.CJK)
        chunk = tf.cumsum(tf.cast(apart | _after(apart) | _is_new(text), tf.int32))
        found = Characters(code, facts, text, start, start + 1, chunk)
        return Characters(*take(~separates, *found))

    def _facts_of(self, code_points):
        """Return the packed properties of characters, int32 [characters]."""
        size = 2**BLOCK_BITS
        blocks = tf.gather(self._blocks, code_points // size)
        return tf.gather(self._facts, blocks * size + code_points % size)

    def _resolve_sigmas(self, code, facts, text):
        """Lower-case capital sigmas; see `characters.lower_sigma`.

        Returns:
          (code points, their properties).
        """
        context = _field(facts, SIGMA_CONTEXT)
        counts = context != characters.IGNORABLE
        is_cased, of_text = take(counts, context == characters.CASED, text)
        # No letter precedes or follows the texts.
        is_cased = tf.concat([[False], is_cased, [False]], 0)
        of_text = tf.concat([[-1], of_text, [-1]], 0)
        # `before` counts the characters before each one that are not ignorable. Because
        # the lists start with an extra element, this is also the index in them of the
        # last such character.
        before = tf.cumsum(tf.cast(counts, tf.int32), exclusive=True)
        after = before + tf.cast(counts, tf.int32) + 1
        follows, precedes = (
            tf.gather(is_cased, at) & (tf.gather(of_text, at) == text)
            for at in (before, after)
        )
        small = tf.where(follows & ~precedes, FINAL_SIGMA, SMALL_SIGMA)
        code = tf.where(code == CAPITAL_SIGMA, small, code)
        return code, self._facts_of(code)

    def _folded(self, found):
        """Convert `Characters` to lower case and NFD."""
        folding = _field(found.facts, FOLDING)
        changes = folding > 0
        first = tf.gather(self._folded_splits, folding)
        last = tf.gather(self._folded_splits, folding + 1)
        parts = tf.ragged.range(first, tf.where(changes, last, first + 1))
        source = parts.value_rowids()
        folded = tf.gather(self._folded_values, parts.values)
        found = Characters(*(tf.gather(array, source) for array in found))
        code = tf.where(tf.gather(changes, source), folded, found.code_points)
        return found._replace(code_points=code, facts=self._facts_of(code))


def table(values: np.ndarray) -> tf.Variable:
    """Return an array for ops to read; as a variable, an export stores it only once."""
    with tf.device("CPU:0"):
        return tf.Variable(values, trainable=False)


def take(mask: tf.Tensor, *arrays: tf.Tensor) -> list[tf.Tensor]:
    """Return the elements of each array at which the mask is True."""
    where = tf.reshape(tf.where(mask), [-1])
    # `tf.gather` has an operation more, for the axis.
    return [tf.raw_ops.Gather(params=array, indices=where) for array in arrays]


def while_loop(
    condition: Callable[..., Any], body: Callable[..., Any], values: Sequence[Any]
) -> list[tf.Tensor]:
    """Return `values` after the loop; their lengths may change in the loop."""
    values = [tf.convert_to_tensor(value) for value in values]
    shapes = [tf.TensorShape([None] * value.shape.rank) for value in values]
    return tf.while_loop(condition, body, values, shape_invariants=shapes)


def _field(facts, field):
    """Return a field of the packed properties; int32 of the same shape."""
    lowest, bits = field
    return (facts // 2**lowest) % 2**bits


def _is_any(category, classes):
    return tf.reduce_any([category == one for one in classes], axis=0)


def _after(mask):
    """Return True at each index after an index at which the mask is True."""
    return tf.concat([[False], mask], 0)[:-1]


def _is_new(numbers):
    """Return True where a number (at least 0) differs from the previous one."""
    return numbers != tf.concat([[-1], numbers], 0)[:-1]


def _canonical_order(found):
    """Return decomposed `Characters` in canonical order (Unicode 14, D109).

    Almost all combining characters are removed afterward. Their order matters only for
    the few that stay, so sorting happens only if one of these occurs.
    """
    combining = _field(found.facts, COMBINING_CLASS)
    is_mark = _field(found.facts, CATEGORY) == characters.MARK
    run = tf.cumsum(tf.cast((combining == 0) | _is_new(found.chunks), tf.int64))
    keys = run * 2 ** COMBINING_CLASS[1] + tf.cast(combining, tf.int64)
    order = tf.cond(
        tf.reduce_any((combining > 0) & ~is_mark),
        lambda: tf.argsort(keys, stable=True),
        lambda: tf.range(tf.size(combining)),
    )
    return Characters(*(tf.gather(array, order) for array in found))


def _without_marks(found):
    """Remove accents; each extends the span of the letter before it in its chunk."""
    is_mark = _field(found.facts, CATEGORY) == characters.MARK
    (letters,) = take(~is_mark, tf.range(tf.size(is_mark)))
    # Start the list with an extra element, for an accent at the very beginning.
    letters = tf.concat([[0], letters], 0)
    letter = tf.gather(letters, tf.cumsum(tf.cast(~is_mark, tf.int32)))
    belongs = tf.gather(found.chunks, letter) == found.chunks
    letter = tf.where(belongs, letter, tf.range(tf.size(is_mark)))
    ends = tf.math.unsorted_segment_max(found.ends, letter, tf.size(is_mark))
    return Characters(*take(~is_mark, *found._replace(ends=ends)))
