"""Text to words: cleaning, lower case, accents, punctuation, Chinese characters."""

import functools
import itertools
import re

from official_bert.tokenization import characters


class BasicTokenizer:
    """Splits text into words and punctuation, like the original.

    Follows `BasicTokenizer` in google-research/bert tokenization.py. Special tokens are
    ordinary text here: "[MASK]" becomes "[", "mask", "]".
    """

    def __init__(self, do_lower_case: bool = True):
        """Set the casing.

        Args:
          do_lower_case: lower-case the text and remove accents. This must match the
            vocabulary.
        """
        self.do_lower_case = do_lower_case
        self._rewrite = _rewrites(do_lower_case)

    def tokenize(self, text: str | bytes) -> list[str]:
        """Return the words of a str (or of UTF-8 bytes) as a list of str."""
        text = to_unicode(text)
        if self.do_lower_case and not text.isascii():
            # These two rules depend on more than one character.
            if characters.reordered_marks().search(text):
                return [word for word, _ in self.tokenize_with_offsets(text)]
            text = re.sub(
                "Σ", lambda match: characters.lower_sigma(text, match.start()), text
            )
        return [word for word in text.translate(self._rewrite).split(" ") if word]

    def tokenize_with_offsets(
        self, text: str | bytes
    ) -> list[tuple[str, list[tuple[int, int]]]]:
        """Return the words of a text and the spans of their characters.

        Args:
          text: str, or UTF-8 bytes; the offsets then count decoded characters.

        Returns:
          list of (word, spans): spans[i] is the range [start, end) of the original text
          that became character i of the word. A removed accent belongs to the span of
          the letter before it. If one character becomes several, all have its span.
        """
        text = to_unicode(text)
        words = []
        for chunk in _split_chunks(text):
            if self.do_lower_case:
                chunk = _fold(text, chunk)
            words += _split_punctuation(chunk)
        return words


def to_unicode(text: str | bytes) -> str:
    """Return `text` as str; bytes are decoded as UTF-8, invalid ones skipped.

    Follows `convert_to_unicode` in google-research/bert tokenization.py.
    """
    if isinstance(text, str):
        return text
    if isinstance(text, bytes):
        return text.decode("utf-8", "ignore")
    raise TypeError(f"A text must be str or bytes, not {type(text).__name__}.")


class _Rewrites(dict):
    """Code point -> replacement of a character, filled in when characters occur.

    It applies all rules of the original with one `str.translate`. Removed characters
    become "", separators become a space, and characters that are words get spaces on
    both sides.
    """

    def __init__(self, do_lower_case):
        super().__init__()
        self.do_lower_case = do_lower_case

    def __missing__(self, code_point):
        table = characters.load_table()
        category = table.category[code_point]
        text = chr(code_point)
        if category in characters.REMOVED:
            text = ""
        elif category in characters.SEPARATING:
            text = " "
        elif self.do_lower_case:
            text = characters.strip_marks(table.folded.get(code_point, text))
        if category == characters.CJK:
            text = f" {text} "
        # Decompose first: U+037E is not ASCII, but its NFD is a semicolon.
        apart = (f" {c} " if characters.is_punctuation(c) else c for c in text)
        self[code_point] = "".join(apart)
        return self[code_point]


# One table per casing, shared by all tokenizers.
_rewrites = functools.cache(_Rewrites)


def _split_chunks(text):
    """Yield the parts between whitespace, as lists of (char, start, end).

    Removed characters are omitted, and each Chinese character is a separate part.
    """
    chunk: list[tuple[str, int, int]] = []
    for start, char in enumerate(text):
        category = characters.category(char)
        if category in characters.REMOVED:
            continue
        if category in characters.SEPARATING or category == characters.CJK:
            yield chunk
            chunk = []
        if category == characters.CJK:
            yield [(char, start, start + 1)]
        elif category not in characters.SEPARATING:
            chunk.append((char, start, start + 1))
    yield chunk


def _fold(text, chunk):
    """Lower-case a chunk, decompose it (NFD) and remove its accents."""
    folded = characters.load_table().folded
    decomposed = []
    for char, start, end in chunk:
        lower = folded.get(ord(char), char)
        if char == "Σ":
            lower = characters.lower_sigma(text, start)
        decomposed += [(c, start, end) for c in lower]
    kept = []
    for char, start, end in _reorder(decomposed):
        if characters.category(char) != characters.MARK:
            kept.append((char, start, end))
        elif kept:
            letter, letter_start, letter_end = kept[-1]
            kept[-1] = (letter, letter_start, max(letter_end, end))
    return kept


def _reorder(chunk):
    """Sort each run of combining characters by class (Unicode 14, D109)."""
    classes = characters.load_table().combining_class
    ordered = []
    for _, run in itertools.groupby(chunk, lambda item: classes[ord(item[0])] > 0):
        ordered += sorted(run, key=lambda item: classes[ord(item[0])])
    return ordered


def _split_punctuation(chunk):
    """Return the (word, spans) of a chunk; each punctuation mark is a word."""
    words: list[tuple[list[str], list[tuple[int, int]]]] = []
    starts_word = True
    for char, start, end in chunk:
        alone = characters.is_punctuation(char)
        if alone or starts_word:
            words.append(([], []))
        letters, spans = words[-1]
        letters.append(char)
        spans.append((start, end))
        starts_word = alone
    return [("".join(letters), spans) for letters, spans in words]
