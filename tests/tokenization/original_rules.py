"""A second, slow implementation of the original's rules with Python's own Unicode.

It equals the original if `unicodedata` has version 14 (Python 3.11), like the version
that made the recordings. A digest of its results for every code point is committed, so
that other Python versions are tested against it too:

  python3.11 tests/tokenization/original_rules.py
"""

import functools
import hashlib
import unicodedata

UNICODE_VERSION = "14.0.0"

PLACES = ("{}", "a{}", "{}b", "a{}b")
FORMS = tuple(
    place.format(form) for place in PLACES for form in ("{}", "{}\u0301", "\u0301{}")
)
# Contexts of a capital sigma, and marks that are kept and change their order.
SIGMA_FORMS = ("a{}Σ", "{}Σ", "aΣ{}", "aΣ{}b", "Σ{}")
MARK_FORMS = ("a\u302e{}\u1b44", "a\U00016ff0{}b")

# Omits large blocks in which all characters have the same rules: Chinese, Hangul
# syllables, surrogates, private use. `digest` covers all of them.
VARIED = [*range(0x3400), *range(0xA000, 0xAC00), *range(0xF900, 0x20000)]


def texts(code_points, forms):
    """Yield texts of 256 code points each, with every form of each between bars."""
    template = " | ".join(forms)
    for first in range(0, len(code_points), 256):
        chars = map(chr, code_points[first : first + 256])
        yield " | ".join([template.replace("{}", char) for char in chars])


def digest(tokenize, code_points, forms):
    """Return a hash of the results of `tokenize` for code points in all `forms`."""
    result = hashlib.sha256()
    for text in texts(code_points, forms):
        words = "\n".join(tokenize(text))
        result.update(words.encode("utf-8", "surrogatepass"))
    return result.hexdigest()


def tokenize(text, do_lower_case):
    """Return the words of the original's `BasicTokenizer`."""
    words = []
    for chunk in "".join(map(_clean, text)).split():
        if do_lower_case:
            chunk = unicodedata.normalize("NFD", chunk.lower())
            chunk = "".join(c for c in chunk if _category(c) != "Mn")
        words += "".join(map(_space_punctuation, chunk)).split()
    return words


_category = functools.cache(unicodedata.category)


@functools.cache
def _clean(char):
    code_point = ord(char)
    category = _category(char)
    if char in " \t\n\r" or category == "Zs":
        return " "
    if code_point in (0, 0xFFFD) or category in ("Cc", "Cf"):
        return ""
    if (
        0x4E00 <= code_point <= 0x9FFF
        or 0x3400 <= code_point <= 0x4DBF
        or 0x20000 <= code_point <= 0x2A6DF
        or 0x2A700 <= code_point <= 0x2B73F
        or 0x2B740 <= code_point <= 0x2B81F
        or 0x2B820 <= code_point <= 0x2CEAF
        or 0xF900 <= code_point <= 0xFAFF
        or 0x2F800 <= code_point <= 0x2FA1F
    ):
        return f" {char} "
    return char


@functools.cache
def _space_punctuation(char):
    code_point = ord(char)
    if (
        33 <= code_point <= 47
        or 58 <= code_point <= 64
        or 91 <= code_point <= 96
        or 123 <= code_point <= 126
        or _category(char).startswith("P")
    ):
        return f" {char} "
    return char


if __name__ == "__main__":
    lower = functools.partial(tokenize, do_lower_case=True)
    cased = functools.partial(tokenize, do_lower_case=False)
    print("uncased", digest(lower, range(0x110000), FORMS))
    print("cased", digest(cased, range(0x110000), FORMS))
    print("sigma", digest(lower, VARIED, SIGMA_FORMS))
    print("marks", digest(lower, VARIED, MARK_FORMS))
