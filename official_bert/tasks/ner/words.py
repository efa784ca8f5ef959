"""Words of raw text as the columns of CoNLL have them.

`BasicTokenizer` ends a word at each punctuation mark; columns have "U.S.", "J.",
"Chester-le-Street" and "2,250" as one word, but "'s", and what stands around a word,
apart from it. A model that was trained on columns has to meet such words in texts, too.
The rules are one function of what is known of each word of `BasicTokenizer`, so that
they are the same in Python, on NumPy arrays, and in a graph, on tensors.
"""

from typing import Any, NamedTuple

import numpy as np

from official_bert.tokenization import characters

# Marks that may stand within a word, and those that do between digits.
WITHIN_WORDS = "-.'’/&_@"
WITHIN_NUMBERS = ",:"
APOSTROPHES = "'’"
# Behind an apostrophe they are a word with it.
CLITICS = ("s", "d", "m", "ll", "re", "ve", "S", "D", "M", "LL", "RE", "VE")


class Facts(NamedTuple):
    """What `joins` asks of W words of `BasicTokenizer`; each is bool [W].

    Attributes:
      touches: nothing stands between it and the word before, of the same text.
      is_word: it is no punctuation and no Chinese character.
      is_letter: besides, it is of one character and no digit.
      is_clitic: it is one of `CLITICS`.
      begins_with_digit, ends_with_digit: its first or last character is 0 to 9.
      is_within_words, is_within_numbers: it is such a mark.
      is_period, is_apostrophe: likewise.
    """

    touches: Any
    is_word: Any
    is_letter: Any
    is_clitic: Any
    begins_with_digit: Any
    ends_with_digit: Any
    is_within_words: Any
    is_within_numbers: Any
    is_period: Any
    is_apostrophe: Any


def make_facts(touches, category, first, last, length, is_clitic, is_any):
    """Return the `Facts` of words.

    Args:
      touches: see `Facts`.
      category: of the first character of each, of `characters`, int [W].
      first: the code point of that character, int [W].
      last: that of the last character, int [W].
      length: characters of each, int [W].
      is_clitic: see `Facts`.
      is_any: function: (int [W], str) -> bool [W], whether a code point is one of
        these characters.
    """
    is_mark = category == characters.PUNCTUATION
    is_word = ~(is_mark | (category == characters.CJK))
    begins_with_digit = is_any(first, "0123456789")
    return Facts(
        touches,
        is_word,
        is_word & (length == 1) & ~begins_with_digit,
        is_clitic,
        begins_with_digit,
        is_any(last, "0123456789"),
        is_any(first, WITHIN_WORDS),
        is_any(first, WITHIN_NUMBERS),
        is_any(first, "."),
        is_any(first, APOSTROPHES),
    )


def joins(facts, before, after):
    """Return whether each word is one with the word before it, bool [W].

    Args:
      facts: `Facts`.
      before: function: bool [W] -> that of the word before each, False for the
        first.
      after: likewise of the word behind each.
    """
    touches = facts.touches
    # "J.", "U.S.", but not "'s."
    is_initial = facts.is_letter & ~(touches & before(facts.is_apostrophe))
    ends_initial = touches & facts.is_period & before(is_initial)
    is_between = touches & before(facts.is_word | ends_initial)
    is_between &= after(touches & facts.is_word)
    in_number = before(facts.ends_with_digit) & after(facts.begins_with_digit)
    within = facts.is_within_words | (facts.is_within_numbers & in_number)
    within &= is_between
    # "'s" begins a word, unless it goes on, as in "d'Italia".
    begins_clitic = facts.is_apostrophe & after(
        touches & facts.is_clitic & ~after(within)
    )
    within &= ~begins_clitic
    goes_on = touches & facts.is_word & before(within | begins_clitic)
    return within | ends_initial | goes_on


def joined(text, offsets):
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
    facts = make_facts(
        np.append(False, starts[1:] == ends[:-1]),
        np.array([characters.category(word[0]) for word in words]),
        np.array([ord(word[0]) for word in words]),
        np.array([ord(word[-1]) for word in words]),
        ends - starts,
        # A NumPy array of the words would give each the room of the longest.
        np.array([word in CLITICS for word in words]),
        lambda points, marks: np.isin(points, list(map(ord, marks))),
    )
    begins = ~joins(
        facts,
        lambda values: np.append(False, values[:-1]),
        lambda values: np.append(values[1:], False),
    )
    number = np.cumsum(begins) - 1
    last = np.searchsorted(number, np.unique(number), side="right") - 1
    return list(zip(starts[begins].tolist(), ends[last].tolist(), strict=True))
