"""Words to pieces."""

import pytest

from official_bert.tokenization import WordpieceTokenizer

PIECES = {
    "un",
    "runn",
    "##aff",
    "##able",
    "##ing",
    "want",
    "##want",
    "##ed",
    "a",
    "##a",
}
TOKENIZER = WordpieceTokenizer(PIECES)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", ""),
        ("unwanted running", "un ##want ##ed runn ##ing"),
        ("unaffable", "un ##aff ##able"),
        # One missing piece makes the whole word unknown.
        ("unwantedX running", "[UNK] runn ##ing"),
        ("able", "[UNK]"),
        # Longest match first, without backtracking: "un" + "##wanted" is not tried.
        (" a\u2028aa\u00a0\x1ca\v", "a a ##a a"),
    ],
)
def test_pieces(text, pieces):
    assert " ".join(TOKENIZER.tokenize(text)) == pieces


def test_greedy_even_where_it_fails():
    tokenizer = WordpieceTokenizer({"ab", "a", "##bc"})
    assert tokenizer.tokenize("abc") == ["[UNK]"]


def test_words_of_up_to_200_characters():
    assert TOKENIZER.tokenize("a" * 200) == ["a"] + ["##a"] * 199
    assert TOKENIZER.tokenize("a" * 201) == ["[UNK]"]


def test_length_is_counted_in_characters_not_bytes():
    tokenizer = WordpieceTokenizer({"한", "##한"})
    assert tokenizer.tokenize("한" * 200) == ["한"] + ["##한"] * 199


def test_own_unknown_token_and_length():
    tokenizer = WordpieceTokenizer({"a"}, unk_token="?", max_input_chars_per_word=1)
    assert tokenizer.tokenize("a aa b") == ["a", "?", "?"]
