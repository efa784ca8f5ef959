"""The table of characters, the only source of Unicode rules in this project.

Unicode versions differ in what counts as whitespace, punctuation or an accent, and in
lower case. Python versions have different Unicode versions. All rules here use one
shipped table (Unicode 14; see `make_character_table`), so that a text has the same ids
everywhere.
"""

import dataclasses
import functools
import importlib.resources
import pathlib
import re

import numpy as np

CODE_POINTS = 0x110000
TABLE_PATH = pathlib.Path(__file__).with_name("character_table.npz")

# Category classes. Each character has exactly one.
OTHER = 0
CONTROL = 1  # Cc and Cf without \t \n \r: removed.
REPLACEMENT = 2  # U+FFFD: removed, although it is not a control character.
WHITESPACE = 3  # \t \n \r and Zs: becomes a space.
LINE_SEPARATOR = 4  # U+2028 and U+2029: `str.split()` splits there.
PUNCTUATION = 5  # P* and all ASCII symbols: each is a token.
CJK = 6  # Chinese characters: each is a token.
MARK = 7  # Mn: an accent, removed when text is lower-cased.

REMOVED = (CONTROL, REPLACEMENT)
SEPARATING = (WHITESPACE, LINE_SEPARATOR)

# The role of a character next to a capital sigma.
UNCASED = 0
CASED = 1
IGNORABLE = 2

# Whitespace of `str.strip()` and `str.split()`. The original uses `str.strip()` for the
# lines of its vocabulary.
SPACES = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005"
    "\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)


@dataclasses.dataclass(frozen=True, eq=False)
class CharacterTable:
    """Unicode 14, as far as tokenization needs it.

    Attributes:
      category: 0x110000 bytes, each a category class of this module.
      combining_class: 0x110000 bytes, the canonical combining classes, which define
        the order of marks in NFD.
      sigma_context: 0x110000 bytes, each UNCASED, CASED or IGNORABLE.
      folded: code point -> lower case in NFD, including marks, for each character that
        changes. Capital sigma becomes `σ` here.
    """

    category: bytes
    combining_class: bytes
    sigma_context: bytes
    folded: dict[int, str]


@functools.cache
def load_table() -> CharacterTable:
    """Read the shipped table, once per process."""
    # Do not open its path: a cluster's workers may have this package as a zip file.
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
    """Return whether a character is punctuation.

    Follows `_is_punctuation` in google-research/bert tokenization.py.
    """
    return category(char) == PUNCTUATION


def lower_sigma(text: str, position: int) -> str:
    """Return the lower case of the capital sigma at `position` of `text`.

    A sigma at the end of a word is `ς`, any other is `σ`. It ends a word if a cased
    letter precedes it and none follows it. Ignorable characters (apostrophes, accents
    and removed ones) do not count. Spaces and Chinese characters are neither cased nor
    ignorable, so the search stays within the word.
    """
    table = load_table().sigma_context

    def meets_cased_letter(positions):
        contexts = (table[ord(text[each])] for each in positions)
        return next((one for one in contexts if one != IGNORABLE), UNCASED) == CASED

    before = meets_cased_letter(range(position - 1, -1, -1))
    after = meets_cased_letter(range(position + 1, len(text)))
    return "ς" if before and not after else "σ"


def strip_marks(text: str) -> str:
    """Remove the nonspacing marks (Mn) of a text in NFD."""
    return "".join(char for char in text if category(char) != MARK)


@functools.cache
def reordered_marks() -> re.Pattern[str]:
    """Return a pattern of the characters whose order NFD may change.

    Canonical reordering changes the order of combining characters. Almost all of them
    are removed afterward, so their order has no effect. These few (25 in Unicode 14,
    mostly virama signs and musical stems) are kept.
    """
    table = load_table()
    kept = {
        chr(code_point)
        for code_point, combining in enumerate(table.combining_class)
        if combining and table.category[code_point] != MARK
    }
    composed = [chr(c) for c, text in table.folded.items() if kept & set(text)]
    return re.compile("[" + "".join(sorted(kept.union(composed))) + "]")
