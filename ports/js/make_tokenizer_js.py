"""Write the table of characters into `tokenizer.js`.

  python ports/js/make_tokenizer_js.py

The table equals that of `official_bert.tokenization.characters`. Its format is short,
plain ASCII and easy to read in any language (docs/reference/tokenizer.md).
"""

import itertools
import pathlib
import sys
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from official_bert import files  # noqa: E402
from official_bert.tokenization import characters  # noqa: E402

SOURCE = pathlib.Path(__file__).with_name("tokenizer.js")
BEGIN = "  // BEGIN TABLE (written by make_tokenizer_js.py; do not edit)\n"
END = "  // END TABLE\n"
WIDTH = 88

FIRST_HANGUL = 0xAC00
LAST_HANGUL = 0xD7A3


def main():
    """Write the table into the JavaScript file."""
    files.write_text(SOURCE, with_table(SOURCE.read_text(encoding="utf-8")))
    print(f"wrote {SOURCE}")


def with_table(source):
    """Return the text of `tokenizer.js` with the shipped table."""
    before, rest = source.split(BEGIN)
    _, after = rest.split(END)
    return before + BEGIN + table_section() + END + after


def table_section():
    """Return the JavaScript lines that define the table."""
    table = characters.load_table()
    constants = {
        "CATEGORY": runs(table.category),
        "COMBINING_CLASS": runs(table.combining_class),
        "SIGMA_CONTEXT": runs(table.sigma_context),
        "FOLDED": folded_entries(table.folded),
    }
    return "".join(
        f"  const {name} = `\n{textwrap.fill(' '.join(entries), WIDTH)}\n`;\n"
        for name, entries in constants.items()
    )


def runs(values):
    """Return `value*count` for each run of equal bytes, in hexadecimal.

    A count of 1 is omitted: the bytes 0, 0, 0, 7 become ["0*3", "7"].
    """
    entries = []
    for value, run in itertools.groupby(values):
        count = sum(1 for _ in run)
        entries.append(f"{value:x}*{count:x}" if count > 1 else f"{value:x}")
    return entries


def folded_entries(folded):
    """Return the entries of lower case in NFD, in hexadecimal.

    Neighbors with the same distance to their lower case share an entry: "41-5a=61". A
    character that becomes several has a separate entry: "c0=61+300". Korean syllables
    are omitted, because they are computed.

    Args:
      folded: dict of code point -> str, as in `CharacterTable`.

    Raises:
      ValueError: a Korean syllable does not decompose as computed.
    """
    ranges = []
    for code_point in sorted(folded):
        text = folded[code_point]
        if FIRST_HANGUL <= code_point <= LAST_HANGUL:
            if text != decompose_hangul(code_point):
                raise ValueError(f"U+{code_point:04X} does not decompose by rule.")
        elif ranges and _continues(ranges[-1], code_point, text):
            ranges[-1][1] = code_point
        else:
            ranges.append([code_point, code_point, text])
    return [_entry(*one) for one in ranges]


def decompose_hangul(code_point):
    """Return a Korean syllable in NFD (Unicode 14, section 3.12)."""
    index = code_point - FIRST_HANGUL
    letters = [0x1100 + index // (21 * 28), 0x1161 + index // 28 % 21]
    if index % 28:
        letters.append(0x11A7 + index % 28)
    return "".join(map(chr, letters))


def _continues(one, code_point, text):
    first, last, first_text = one
    return (
        code_point == last + 1
        and len(text) == len(first_text) == 1
        and ord(text) - code_point == ord(first_text) - first
    )


def _entry(first, last, text):
    code_points = f"{first:x}-{last:x}" if last > first else f"{first:x}"
    return f"{code_points}={'+'.join(f'{ord(char):x}' for char in text)}"


if __name__ == "__main__":
    main()
