"""The simple characters: those whose tokens do not depend on their neighbors.

A text of simple characters needs no decoding. Each of its characters is whitespace, a
token, or exactly one letter of a word. Accents, a capital sigma, removed characters and
letters that become several letters are not simple.
"""

import dataclasses
import functools

import numpy as np

from official_bert.tokenization import characters

# The kinds of characters.
NOT_SIMPLE = 0
LETTER = 1
ALONE = 2  # Punctuation and Chinese characters: each is a token.
SPACE = 3

CAPITAL_SIGMA = ord("Σ")
# UTF-8 has no surrogates, and ICU does not encode noncharacters.
SURROGATES = slice(0xD800, 0xE000)
NONCHARACTERS = np.array(
    [
        *range(0xFDD0, 0xFDF0),
        *(
            plane + last
            for plane in range(0, 0x110000, 0x10000)
            for last in (0xFFFE, 0xFFFF)
        ),
    ]
)


@dataclasses.dataclass(frozen=True, eq=False)
class SimpleCharacters:
    """The simple characters of a casing.

    Attributes:
      kinds: uint8 [0x110000], the kind of each code point.
      folded: int32 [0x110000], the letter that each simple character becomes. A
        character that does not change, or is not simple, has its own code point.
    """

    kinds: np.ndarray
    folded: np.ndarray

    def are_final(self, text: str) -> bool:
        """Return whether all characters of a text are simple and do not change."""
        return all(
            self.kinds[code] != NOT_SIMPLE and self.folded[code] == code
            for code in map(ord, text)
        )


@functools.cache
def simple_characters(do_lower_case: bool) -> SimpleCharacters:
    """Return the simple characters; computed once per process and casing.

    Args:
      do_lower_case: as in `BasicTokenizer`.
    """
    table = characters.load_table()
    category = np.frombuffer(table.category, np.uint8)
    kinds = np.full(characters.CODE_POINTS, LETTER, np.uint8)
    kinds[np.isin(category, (characters.PUNCTUATION, characters.CJK))] = ALONE
    kinds[np.isin(category, characters.SEPARATING)] = SPACE
    folded = np.arange(characters.CODE_POINTS, dtype=np.int32)
    if do_lower_case:
        _fold(table, kinds, folded)
    kinds[np.isin(category, characters.REMOVED)] = NOT_SIMPLE
    kinds[SURROGATES] = NOT_SIMPLE
    kinds[NONCHARACTERS] = NOT_SIMPLE
    return SimpleCharacters(kinds, folded)


def _fold(table, kinds, folded):
    """Change the arrays of `SimpleCharacters` to those of lower-cased text."""
    combining = np.frombuffer(table.combining_class, np.uint8) > 0
    marks = np.frombuffer(table.category, np.uint8) == characters.MARK
    for code, decomposed in table.folded.items():
        letters = characters.strip_marks(decomposed)
        # A removed mark in front of the letter belongs to the token before it, as in
        # U+0CCA: the character is then a part of two tokens.
        is_first = decomposed[:1] == letters
        if len(letters) != 1 or combining[ord(letters)] or not is_first:
            kinds[code] = NOT_SIMPLE
            continue
        folded[code] = ord(letters)
        # For example, U+1FEF is a symbol, but its NFD is a grave accent of ASCII.
        if characters.is_punctuation(letters) and kinds[code] == LETTER:
            kinds[code] = ALONE
    kinds[combining | marks] = NOT_SIMPLE
    kinds[CAPITAL_SIGMA] = NOT_SIMPLE


def pattern(mask: np.ndarray) -> str:
    """Return a regular expression (RE2) of one character of a set.

    Args:
      mask: bool [0x110000], whether each code point belongs to the set.
    """
    edges = np.flatnonzero(np.diff(mask, prepend=False, append=False))
    ranges = (
        f"\\x{{{first:X}}}-\\x{{{behind - 1:X}}}"
        for first, behind in edges.reshape(-1, 2).tolist()
    )
    return f"[{''.join(ranges)}]"
