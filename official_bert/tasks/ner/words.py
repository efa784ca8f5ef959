"""Words of raw text as the columns of CoNLL have them.

`BasicTokenizer` ends a word at each punctuation mark; columns have "U.S.", "J.",
"Chester-le-Street" and "2,250" as one word, but "'s", and what stands around a word,
apart from it. A model that was trained on columns has to meet such words in texts, too.
The rules are one function of what is known of each word of `BasicTokenizer`, so that
they are the same in Python, on NumPy arrays, and in a graph, on tensors.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from official_bert.tokenization import characters

if TYPE_CHECKING:
    import tensorflow as tf

# Marks that may stand within a word, and those that do between digits.
WITHIN_WORDS = "-.'’/&_@"
WITHIN_NUMBERS = ",:"
APOSTROPHES = "'’"
DIGITS = "0123456789"
# After an apostrophe they are a word with it.
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
    """Return whether each word is one with the word before it, bool [W].

    Args:
      touches: whether nothing stands between a word of `BasicTokenizer` and the word
        before it, of the same text, bool [W].
      category: of the first character of each, of `characters`, int [W].
      first: the code point of that character, int [W].
      last: that of the last character, int [W].
      length: characters of each, int [W].
      is_clitic: whether it is one of `CLITICS`, bool [W].
      is_any: function: (int [W], str) -> bool [W], whether a code point is one of
        these characters.
      before: function: bool [W] -> that of the word before each, False for the
        first.
      after: likewise of the word after each.
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
    # "'s" begins a word, unless it goes on, as in "d'Italia".
    begins_clitic = is_apostrophe & after(touches & is_clitic & ~after(within))
    within &= ~begins_clitic
    goes_on = touches & is_word & before(within | begins_clitic)
    return within | ends_initial | goes_on


def joined(text: str, offsets: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return where the words of a text are, those of columns.

    Args:
      text: str.
      offsets: list of (start, end) of the words of `BasicTokenizer`.

    Returns:
      list of (start, end), as many or fewer.
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
        # A NumPy array of the words would give each the room of the longest.
        np.array([word in CLITICS for word in words]),
        lambda points, marks: np.isin(points, list(map(ord, marks))),
        lambda values: np.append(False, values[:-1]),
        lambda values: np.append(values[1:], False),
    )
    is_last = np.append(begins[1:], True)
    return list(zip(starts[begins].tolist(), ends[is_last].tolist(), strict=True))
