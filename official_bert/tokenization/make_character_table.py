"""Create the shipped table of characters from Python's Unicode database.

  python3.11 -m official_bert.tokenization.make_character_table

The recordings of the original were made with Unicode 14, the version in Python 3.11.
With any other version this command fails. The file is created once and shipped, so that
ids do not depend on the user's Python version.
"""

import sys
import unicodedata
from typing import Any

import numpy as np

from official_bert import files
from official_bert.errors import UserError
from official_bert.tokenization import characters

UNICODE_VERSION = "14.0.0"

# Follows `_is_chinese_char` in google-research/bert tokenization.py.
CJK_RANGES = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


def categorise(code_point: int) -> int:
    """Return the category class of a code point, one of `characters`."""
    char = chr(code_point)
    category = unicodedata.category(char)
    if char in "\t\n\r" or category == "Zs":
        return characters.WHITESPACE
    if category in ("Cc", "Cf"):
        return characters.CONTROL
    if char == "\ufffd":
        return characters.REPLACEMENT
    if category in ("Zl", "Zp"):
        return characters.LINE_SEPARATOR
    # $ + < = > ^ ` | ~ are symbols to Unicode.
    if category.startswith("P") or (33 <= code_point <= 126 and not char.isalnum()):
        return characters.PUNCTUATION
    if any(first <= code_point <= last for first, last in CJK_RANGES):
        return characters.CJK
    return characters.MARK if category == "Mn" else characters.OTHER


def sigma_context(code_point: int) -> int:
    """Return the role of a character next to a capital sigma.

    `unicodedata` does not have Unicode's properties Cased and Case_Ignorable. They are
    derived from `str.lower`, which uses them (rule Final_Sigma, Unicode 14, 3.13).
    """
    char = chr(code_point)
    if categorise(code_point) in characters.REMOVED:
        # It is removed before lower-casing, so the rule ignores it.
        return characters.IGNORABLE
    if (char + "Σ").lower().endswith("ς"):
        return characters.CASED
    if ("A" + char + "Σ").lower().endswith("ς"):
        return characters.IGNORABLE
    return characters.UNCASED


def make_table() -> dict[str, np.ndarray]:
    """Return the arrays of the table, by the names that `characters` reads."""
    if unicodedata.unidata_version != UNICODE_VERSION:
        raise UserError(
            f"This Python has Unicode {unicodedata.unidata_version}, but the table "
            f"needs Unicode {UNICODE_VERSION}. Use Python 3.11."
        )
    everything = range(characters.CODE_POINTS)
    # Each character's decomposed lower case (sigma: `σ`).
    folded = {c: unicodedata.normalize("NFD", chr(c).lower()) for c in everything}
    folded = {c: text for c, text in folded.items() if text != chr(c)}
    return {
        "category": np.array([categorise(c) for c in everything], np.uint8),
        "combining_class": np.array(
            [unicodedata.combining(chr(c)) for c in everything], np.uint8
        ),
        "sigma_context": np.array([sigma_context(c) for c in everything], np.uint8),
        "folded_code_points": np.array(list(folded), np.int32),
        "folded_lengths": np.array([len(t) for t in folded.values()], np.uint8),
        "folded_values": np.array([ord(c) for t in folded.values() for c in t], "i4"),
    }


def main() -> None:
    """Write the table to `characters.TABLE_PATH`."""
    try:
        table: dict[str, Any] = make_table()
    except UserError as error:
        sys.exit(f"error: {error}")
    # numpy adds a suffix to a file name, but not to an open file.
    with (
        files.atomic_path(characters.TABLE_PATH) as temporary,
        open(temporary, "wb") as output,
    ):
        np.savez_compressed(output, **table)
    print(f"wrote {characters.TABLE_PATH}")


if __name__ == "__main__":
    main()
