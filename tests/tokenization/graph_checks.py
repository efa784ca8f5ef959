"""Comparisons of the tokenizer of TensorFlow ops with the one of Python, on any texts.

The module also makes their inputs: vocabularies that distinguish all characters, the
characters with special rules, and bytes that are not UTF-8.
"""

import random

import tensorflow as tf

from official_bert.tokenization import FullTokenizer, characters
from official_bert.tokenization.graph import GraphTokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
# Contexts of a character `{}`: alone, in a word, next to an accent, next to a capital
# sigma, and between marks that NFD may reorder and that are kept. It starts the first
# text and ends the last one.
FORMS = (
    "{}Σ", "a{}", "{}b", "a{}b", "{}", "a{}\u0301", "\u0301{}b", "a{}Σ", "aΣ{}b",
    "a\u302e{}\u1b44b", "aΣ{}",
)  # fmt: skip
# Cased text has no rules for accents and sigmas.
CASED_FORMS = ("{}b", "a{}b", "{}", "\u0301{}\u0301", "a{}")
# For characters that TensorFlow Text's kernels split like the original.
EXACT_FORMS = ("{}", "a{}", "{}b", "a{}b", "{}{}", "!{}", "{}?", "王{}王")
HANGUL = range(0xAC00, 0xD7A4)


class Both:
    """The two tokenizers of a vocabulary, with the same casing."""

    def __init__(self, vocab_file, do_lower_case, graph=GraphTokenizer):
        """Create both; the graph is traced once, for any number of texts."""
        self.python = FullTokenizer(vocab_file, do_lower_case)
        self.graph = graph(self.python.vocab, do_lower_case)
        self.function = tf.function(
            lambda texts: vars(self.graph(texts)) | {"only": self.graph.ids(texts)},
            input_signature=[tf.TensorSpec([None], tf.string)],
        )

    def pieces(self, texts):
        """Return [(id, start, end), ...] of each text from the graph."""
        found = self.function(tf.constant(texts, tf.string))
        columns = [found[name].to_list() for name in ("ids", "starts", "ends")]
        assert found["only"].to_list() == columns[0]
        return [list(zip(*row, strict=True)) for row in zip(*columns, strict=True)]

    def differences(self, texts):
        """Return (text, the graph's pieces, Python's pieces) of texts that differ.

        Args:
          texts: list of str or UTF-8 bytes.
        """
        expected = [expected_pieces(self.python, text) for text in texts]
        rows = zip(texts, self.pieces(texts), expected, strict=True)
        return [row for row in rows if row[1] != row[2]]


def expected_pieces(tokenizer, text):
    """Return [(id, start, end), ...] of a text from a `FullTokenizer`."""
    pieces, offsets = tokenizer.tokenize_with_offsets(text)
    ids = tokenizer.convert_tokens_to_ids(pieces)
    assert ids == tokenizer.encode(text)
    return [(one, *offset) for one, offset in zip(ids, offsets, strict=True)]


def write_vocab(path, pieces):
    """Write a vocabulary of the special tokens and of pieces, each once."""
    lines = dict.fromkeys([*SPECIAL, *pieces])
    path.write_text("\n".join(lines), encoding="utf-8", newline="\n")
    return path


def telling_pieces(code_points):
    """Return pieces that give all words of characters different ids, in both casings.

    Args:
      code_points: iterable of int; their lower case is added.
    """
    folded = characters.load_table().folded
    chars = [chr(code) for code in code_points if not 0xD800 <= code < 0xE000]
    chars += sorted({one for char in chars for one in folded.get(ord(char), "")})
    chars += "abΣσς\u0301\u0323\u302e\u1b44"
    left_out = {*characters.REMOVED, *characters.SEPARATING}
    kept = [
        char
        for char in chars
        if characters.category(char) not in left_out and char not in characters.SPACES
    ]
    return [form for char in kept for form in (char, "##" + char)]


def special_code_points():
    """Return the characters with special rules in the table, and range borders.

    Hangul and Chinese have many characters with the same rules, so only the borders
    and some others are returned.
    """
    table = characters.load_table()
    facts = list(
        zip(table.category, table.combining_class, table.sigma_context, strict=True)
    )
    plain = (characters.OTHER, 0, characters.UNCASED)
    alike = (characters.CJK, 0, characters.UNCASED)
    found = {0, 0x7F, 0x80, 0x7FF, 0x800, 0xFFFF, 0x10000, 0x10FFFF}
    found |= {code for code, one in enumerate(facts) if one not in (plain, alike)}
    found |= {code for code in table.folded if code not in HANGUL}
    borders = [code for code in range(1, len(facts)) if facts[code] != facts[code - 1]]
    found |= {code - 1 for code in borders} | set(borders)
    found |= {HANGUL[0] - 1, HANGUL[-1] + 1, *HANGUL[::199], HANGUL[-1]}
    found |= set(range(0x4E00, 0xA000, 997))
    return sorted(found)


def in_forms(code_points, forms):
    """Return one text per code point with the code point in all forms, as bytes.

    It includes surrogates, which are as invalid in UTF-8 as other bad bytes.
    """
    template = " ".join(forms)
    return [
        template.replace("{}", chr(code)).encode("utf-8", "surrogatepass")
        for code in code_points
    ]


# One byte of each kind that UTF-8 distinguishes, with the borders of second bytes.
TELLING_BYTES = (
    b"\x00\x20a\x7f\x80\x81\x8f\x90\x9f\xa0\xbf\xc0\xc1\xc2\xc3\xcc\xdf\xe0\xe1"
    b"\xe2\xec\xed\xee\xef\xf0\xf1\xf3\xf4\xf5\xf7\xf8\xfc\xfe\xff"
)


def random_bytes(number, seed):
    """Return strings of bytes that are not UTF-8, except for parts of them."""
    draw = random.Random(seed)
    strings = []
    for _ in range(number):
        parts = [
            draw.choice(
                (
                    bytes([draw.choice(TELLING_BYTES)]),
                    bytes([draw.randrange(256)]),
                    chr(draw.randrange(0x110000)).encode("utf-8", "surrogatepass"),
                    chr(draw.randrange(0x3000)).encode("utf-8")[:-1],
                )
            )
            for _ in range(draw.randrange(16))
        ]
        strings.append(b"".join(parts))
    return strings


def random_texts(code_points, number, seed, longest=40):
    """Return texts of characters drawn from `code_points`, as UTF-8 bytes."""
    draw = random.Random(seed)
    return [
        "".join(
            chr(draw.choice(code_points)) for _ in range(draw.randrange(longest + 1))
        ).encode("utf-8", "surrogatepass")
        for _ in range(number)
    ]


CORNERS = [
    "", " ", " \t\n\r\u00a0\u3000 ", "\u0301", "\u0301\u0323 \u0301", "\u200d",
    "\ufffd", "\0", "\0a\0b\0", "a\0 \0b", "\v", "\u2028", "a\u2028b\u2029\u2028",
    "a\x85b\x1cc",
    "[MASK]", "[UNK][CLS] [SEP]", "##a", "a##b ## # a", "!", "a!!b.\u0301c", "...",
    # Capital sigmas: alone, and next to ignorable, removed and other characters.
    "Σ", "ΣΣ", "ΟΔΟΣ", "ΟΔΟΣ.", "ΟΔΟΣα", "ΟΔΟΣ'", "ΟΔΟΣ'α", "ΟΔΟΣ 'α", "'Σ", "α'Σ",
    "αΣ\u200d\u00ad", "αΣ\u200dα", "αΣ\u0301", "αΣ\u0301α", "α\u0301Σ", "α1Σ", "αΣ1α",
    "αΣ\vα", "α\vΣ", "αΣ王", "王Σ", "αΣ\u2028α", "αΣ\nα", "α Σ", "αΣΣ", "ʰΣ", "ªΣ",
    "αΣ\ufffdα", "αΣ\0α", "αΣ\u0345", "αΣ" * 50 + "α.Σ", ".Σ.α", "ΣʹΣ", "ΑΣ\U0001d165Α",
    # Letters whose lower case or NFD has several letters.
    "İ", "aİb", "İ\u0301", "I\u0307", "ıIİi", "ßẞﬁǅⅣ①Å\u212b", "각한국어", "한\u0301국",
    "\u1112\u1161\u11ab\u0301", "\u0344\u0345", "\u1fb3\u1fbcΑ\u0345", "\u037ea\u0387",
    # Chinese characters next to accents; the first accent belongs to no letter.
    "王\u0301", "\u0301王\u0301\u0323a", "a王b\u0301", "王\u200d\u0301", "\uf900\u0301",
    "\U0002f800\u0301\u4e00", "か\u3099ガ", "王 \u0301a", "a\u302e王\u1b44",
    # Marks in an order that NFD changes, also across removed characters.
    "a\u0301\u0323b", "a\u0301\u302e\u1b44b", "\u1b44\u302e", "\u302e\u1b44a",
    "a\u302e\u200d\u1b44b", "a\u302e \u1b44b", "a\u302e\ufffd\u0301\u1b44\u0323\u302fb",
    "\U0001d15e\U0001d165\u0301", "\U0001d160\u302e",
    "a\u200d\u0301b\u00ad\0\u0323 \u0301",
    "é\u200d\u0301", "a \u200d\u0301b", "a\v\u0301", "!\u0301!", "a\u0301" * 90,
    "\ue000\u0378\U0010ffff\ufdd0", "😀👍🏽", "\ufeffa\ufeff", "\U000e0001a",
    *("x" * (length - 1) + end for length in (199, 200, 201, 202) for end in "aéΣ"),
    "a" * 200 + "!" + "b" * 201 + " ab", "각" * 66 + "가", "각" * 66 + "각", "İ" * 201,
    "\u0301" * 300, "a" + "\u0301" * 300 + "b", "王" * 300, "!" * 300, "a\u200d" * 201,
]  # fmt: skip

BAD_BYTES = {
    "truncated": [
        b"a\xc3",
        b"a\xe2\x82",
        b"a\xf0\x9f\x98",
        b"\xe2\x82a",
        b"\xf0\x9f b",
    ],
    "surrogates": [b"a\xed\xa0\x80b", b"\xed\xbf\xbf", b"\xed\xa0\xbd\xed\xb8\x80 a"],
    "overlong": [b"a\xc0\x80b", b"\xc1\xa1", b"\xe0\x80\xa1a", b"\xf0\x80\x80\xa1 a"],
    "too large": [b"a\xf4\x90\x80\x80b", b"\xf7\xbf\xbf\xbf", b"\xfc\x84\x80\x80\x80a"],
    "byte order marks": [
        b"\xef\xbb\xbfab",
        b"a\xef\xbb\xbfb",
        b"\xff\xfea",
        b"\xef\xbb",
    ],
    "single": [
        b"\x80",
        b"\xbf\xbfa",
        b"\xfe\xff",
        b"a\xffb \xff",
        b"\xcc a\xcc\x81\x81",
    ],
    "a word made by it": [
        b"a\xff\xcc\x81b",
        b"\xce\xb1\xff\xce\xa3\xed\xa0\x80",
        b"\xff",
    ],
}
