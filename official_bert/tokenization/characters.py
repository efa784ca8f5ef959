"""The table of characters: the one truth about Unicode in this project.

What is whitespace, punctuation or an accent, and how a letter is written in
lower case, changes between versions of Unicode and so between versions of
Python. Every rule here is read from one shipped table instead (Unicode 14; see
`make_character_table`), so that a text has the same ids everywhere.
"""

import dataclasses
import functools
import importlib.resources
import pathlib
import re

import numpy as np

CODE_POINTS = 0x110000
TABLE_PATH = pathlib.Path(__file__).with_name("character_table.npz")

# Category classes. They exclude each other: a character has exactly one.
OTHER = 0
CONTROL = 1  # Cc and Cf without \t \n \r: removed.
REPLACEMENT = 2  # U+FFFD: removed, though it is no control character.
WHITESPACE = 3  # \t \n \r and Zs: becomes a space.
LINE_SEPARATOR = 4  # U+2028 and U+2029: `str.split()` splits there.
PUNCTUATION = 5  # P* and all ASCII symbols: a token of its own.
CJK = 6  # Chinese characters: a token of their own.
MARK = 7  # Mn: an accent, dropped when text is lower-cased.

REMOVED = (CONTROL, REPLACEMENT)
SEPARATING = (WHITESPACE, LINE_SEPARATOR)

# How a character counts as a neighbour of a capital sigma.
UNCASED = 0
CASED = 1
IGNORABLE = 2

# What `str.strip()` and `str.split()` call whitespace. The original strips the
# lines of its vocabulary with the former.
SPACES = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005"
    "\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)


@dataclasses.dataclass(frozen=True, eq=False)
class CharacterTable:
    """Unicode 14 as far as tokenization is concerned.

    Attributes:
      category: 0x110000 bytes, each a category class of this module.
      combining_class: 0x110000 bytes, the canonical combining classes, by
        which NFD reorders marks.
      sigma_context: 0x110000 bytes, each UNCASED, CASED or IGNORABLE.
      folded: code point -> its lower case in NFD, marks included, for each
        character that this changes. Capital sigma is `σ` here.
    """

    category: bytes
    combining_class: bytes
    sigma_context: bytes
    folded: dict[int, str]


@functools.cache
def load_table() -> CharacterTable:
    """Read the shipped table; once per process."""
    # Not by its path: a cluster's workers may have this package as a zip file.
    table = importlib.resources.files(__package__) / TABLE_PATH.name
    with table.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        values = "".join(map(chr, arrays["folded_values"].tolist()))
        ends = np.cumsum(arrays["folded_lengths"], dtype=np.int64).tolist()
        starts = [0, *ends[:-1]]
        code_points = arrays["folded_code_points"].tolist()
        folded = {
            code_point: values[start:end]
            for code_point, start, end in zip(code_points, starts, ends, strict=True)
        }
        return CharacterTable(
            category=arrays["category"].tobytes(),
            combining_class=arrays["combining_class"].tobytes(),
            sigma_context=arrays["sigma_context"].tobytes(),
            folded=folded,
        )


def category(char: str) -> int:
    """Return the category class of a one-character string."""
    return load_table().category[ord(char)]


def is_punctuation(char: str) -> bool:
    """Follows `_is_punctuation` in google-research/bert tokenization.py."""
    return category(char) == PUNCTUATION


def lower_sigma(text: str, position: int) -> str:
    """Return the lower case of the capital sigma at `position` of `text`.

    A sigma that ends a word is `ς`, any other `σ`. It ends a word when a cased
    letter stands before it and none after it, with ignorable characters
    (apostrophes, accents, and those that are removed) looked through. Spaces
    and Chinese characters are neither, so the search never leaves the word.
    """
    table = load_table().sigma_context

    def meets_cased_letter(positions):
        contexts = (table[ord(text[each])] for each in positions)
        return next((one for one in contexts if one != IGNORABLE), UNCASED) == CASED

    before = meets_cased_letter(range(position - 1, -1, -1))
    after = meets_cased_letter(range(position + 1, len(text)))
    return "ς" if before and not after else "σ"


def strip_marks(text: str) -> str:
    """Drop the nonspacing marks (Mn) of a text in NFD."""
    return "".join(char for char in text if category(char) != MARK)


@functools.cache
def reordered_marks() -> re.Pattern[str]:
    """Return a pattern of the characters whose order NFD may change.

    Canonical reordering moves combining characters past each other. Almost all
    of them are dropped right after, so their order shows nowhere. These few
    (25 in Unicode 14, mostly virama signs and musical stems) are kept.
    """
    table = load_table()
    kept = {
        chr(code_point)
        for code_point, combining in enumerate(table.combining_class)
        if combining and table.category[code_point] != MARK
    }
    composed = [chr(c) for c, text in table.folded.items() if kept & set(text)]
    return re.compile("[" + "".join(sorted(kept.union(composed))) + "]")
