"""Split raw text into words as CoNLL columns do.

`BasicTokenizer` splits at each punctuation mark. In CoNLL columns, "U.S.", "J.",
"Chester-le-Street" and "2,250" are one word each, but "'s" and punctuation around a
word are separate. A model that was trained on columns needs such words in texts too.
The rules are one function of properties of `BasicTokenizer`'s words, so the same rules
run in Python (on NumPy arrays) and in a graph (on tensors).
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from official_bert.tokenization import characters

if TYPE_CHECKING:
    import tensorflow as tf

# Marks that may be inside a word; marks that may be between digits.
WITHIN_WORDS = "-.'’/&_@"
WITHIN_NUMBERS = ",:"
APOSTROPHES = "'’"
DIGITS = "0123456789"
# An apostrophe and one of these form a separate word.
CLITICS = ("s", "d", "m", "ll", "re", "ve", "S", "D", "M", "LL", "RE", "VE")


def joins(
    touches: "np.ndarray | tf.Tensor",
    category: "np.ndarray | tf.Tensor",
    first: "np.ndarray | tf.Tensor",
    last: "np.ndarray | tf.Tensor",
    length: "np.ndarray | tf.Tensor",
    is_clitic: "np.ndarray | tf.Tensor",
    is_any: Callable[[Any, str], Any],
    before: Callable[[Any], Any],
    after: Callable[[Any], Any],
) -> "np.ndarray | tf.Tensor":
    """Return whether each word is joined to the word before it, bool [W].

    Args:
      touches: whether a word of `BasicTokenizer` directly follows the word before
        it in the same text, bool [W].
      category: category of the first character, from `characters`, int [W].
      first: code point of the first character, int [W].
      last: code point of the last character, int [W].
      length: number of characters, int [W].
      is_clitic: whether the word is one of `CLITICS`, bool [W].
      is_any: function: (int [W], str) -> bool [W], whether a code point is one of
        these characters.
      before: function: bool [W] -> the value of the word before each word, False
        for the first.
      after: function: bool [W] -> the value of the word after each word, False for
        the last.
    """
    is_word = ~((category == characters.PUNCTUATION) | (category == characters.CJK))
    begins_with_digit = is_any(first, DIGITS)
    is_letter = is_word & (length == 1) & ~begins_with_digit
    is_apostrophe = is_any(first, APOSTROPHES)
    # "J.", "U.S.", but not "'s."
    is_initial = is_letter & ~(touches & before(is_apostrophe))
    ends_initial = touches & is_any(first, ".") & before(is_initial)
    is_between = touches & before(is_word | ends_initial) & after(touches & is_word)
    in_number = before(is_any(last, DIGITS)) & after(begins_with_digit)
    within = is_any(first, WITHIN_WORDS) | (is_any(first, WITHIN_NUMBERS) & in_number)
    within &= is_between
    # "'s" begins a word, unless more letters follow, as in "d'Italia".
    begins_clitic = is_apostrophe & after(touches & is_clitic & ~after(within))
    within &= ~begins_clitic
    goes_on = touches & is_word & before(within | begins_clitic)
    return within | ends_initial | goes_on


def joined(text: str, offsets: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the words of a text, joined as in CoNLL columns.

    Args:
      text: str.
      offsets: list of (start, end) of the words of `BasicTokenizer`.

    Returns:
      list of (start, end), at most as many as `offsets`.
    """
    if not offsets:
        return []
    starts, ends = np.array(offsets).T
    words = [text[start:end] for start, end in offsets]
    begins = ~joins(
        np.append(False, starts[1:] == ends[:-1]),
        np.array([characters.category(word[0]) for word in words]),
        np.array([ord(word[0]) for word in words]),
        np.array([ord(word[-1]) for word in words]),
        ends - starts,
        # A NumPy array of the words would pad each one to the longest.
        np.array([word in CLITICS for word in words]),
        lambda points, marks: np.isin(points, list(map(ord, marks))),
        lambda values: np.append(False, values[:-1]),
        lambda values: np.append(values[1:], False),
    )
    is_last = np.append(begins[1:], True)
    return list(zip(starts[begins].tolist(), ends[is_last].tolist(), strict=True))
