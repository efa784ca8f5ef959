"""Text to words, rule by rule and for every code point."""

import unicodedata

import original_rules
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from official_bert.tokenization import BasicTokenizer

LOWER = BasicTokenizer(do_lower_case=True)
CASED = BasicTokenizer(do_lower_case=False)

# Made by `python3.11 tests/tokenization/original_rules.py`.
DIGESTS = {
    "uncased": "d1d2ac0f0d9795411a67f83d9b935765ab33f6fd7250a181bf578b1f9730e3dc",
    "cased": "f15ecd1a695c0bccfadfda3b4d4c6c2f099375402a0d15d2e6c667872ece3066",
    "sigma": "96bb6e3ff285285dfe0df4f2665858b239f56e423ae32f00f8810a30e13da70a",
    "marks": "9032d62a972ccace966f15318b704be8461429b94117a93549d35f0cfe5662e7",
}


@pytest.fixture
def unicode_14():
    if unicodedata.unidata_version != original_rules.UNICODE_VERSION:
        pytest.skip(
            f"Python's own Unicode is {unicodedata.unidata_version}, not the "
            "original's 14.0.0; another test compares digests of the same texts"
        )


@pytest.mark.slow
@pytest.mark.comparison
@pytest.mark.parametrize(
    ("name", "tokenizer", "code_points", "forms"),
    [
        ("uncased", LOWER, range(0x110000), original_rules.FORMS),
        ("cased", CASED, range(0x110000), original_rules.FORMS),
        ("sigma", LOWER, original_rules.VARIED, original_rules.SIGMA_FORMS),
        ("marks", LOWER, original_rules.VARIED, original_rules.MARK_FORMS),
    ],
)
def test_every_code_point_as_the_original(name, tokenizer, code_points, forms):
    digest = original_rules.digest(tokenizer.tokenize, code_points, forms)
    assert digest == DIGESTS[name]


@pytest.mark.comparison
@pytest.mark.parametrize("tokenizer", [LOWER, CASED])
def test_varied_code_points_beside_the_original_rules(tokenizer, unicode_14):
    forms = original_rules.FORMS + original_rules.SIGMA_FORMS
    for text in original_rules.texts(original_rules.VARIED[::3], forms):
        expected = original_rules.tokenize(text, tokenizer.do_lower_case)
        assert tokenizer.tokenize(text) == expected


# Characters whose neighbors matter, and one example of each rule.
TELLING = "aAbΣσς'.:·\u00ad\u200d\u0301\u0323\u302e\u1b44\U00016ff0\U0001d165Åé한İ"
TELLING += " \t\n\v\x1c\x85\u00a0\u2028\ufffd\0-,。王ﬁǅⅣ①\ue000\u0378\ud800\U0001d15e"


@settings(deadline=None)
@given(st.text(alphabet=TELLING, max_size=12))
def test_rules_in_combination(text):
    for tokenizer in (LOWER, CASED):
        words = tokenizer.tokenize(text)
        aligned = tokenizer.tokenize_with_offsets(text)
        assert [word for word, _ in aligned] == words
        if unicodedata.unidata_version == original_rules.UNICODE_VERSION:
            assert words == original_rules.tokenize(text, tokenizer.do_lower_case)


@pytest.mark.parametrize(
    ("text", "lower", "cased"),
    [
        ("Hello, World!", "hello , world !", "Hello , World !"),
        (
            "\tHeLLo!how  \n Are yoU?  ",
            "hello ! how are you ?",
            "HeLLo ! how Are yoU ?",
        ),
        ("ah\u535a\u63a8zz", "ah 博 推 zz", "ah 博 推 zz"),
        ("Ünïted", "united", "Ünïted"),
        ("ΟΔΟΣ ΟΔΟΣ'Σ Σ ΑΣ.", "οδος οδοσ ' ς σ ας .", "ΟΔΟΣ ΟΔΟΣ ' Σ Σ ΑΣ ."),
        ("ΑΣ\u200dΑ ΑΣ\vΑ ΑΣ\u2028Α ΑΣ王Α", "ασα ασα ας α ας 王 α", None),
        ("", "", ""),
        (" \u2029\u200b ", "", ""),
        ("[MASK] [CLS]", "[ mask ] [ cls ]", "[ MASK ] [ CLS ]"),
        ("한국어", unicodedata.normalize("NFD", "한국어"), "한국어"),
        ("a\u037eb", "a ; b", "a \u037e b"),
    ],
)
def test_words(text, lower, cased):
    assert " ".join(LOWER.tokenize(text)) == lower
    if cased is not None:
        assert " ".join(CASED.tokenize(text)) == cased


def test_bytes_are_utf8_and_bad_ones_are_left_out():
    assert LOWER.tokenize("Été ".encode() + b"\xff\xc3b") == ["ete", "b"]


def test_what_is_no_text_is_refused():
    with pytest.raises(TypeError, match="not int"):
        LOWER.tokenize(5)


def test_offsets_point_into_the_original_text():
    text = "  E\u0301t\u00e9\u200d, ﬁ王İ한"
    words = dict(LOWER.tokenize_with_offsets(text))
    assert words["ete"] == [(2, 4), (4, 5), (5, 6)]
    assert words[","] == [(7, 8)]
    assert words["ﬁ"] == [(9, 10)]
    assert words["王"] == [(10, 11)]
    # Three jamo of one syllable, after a dotted I whose dot is removed.
    assert words["i\u1112\u1161\u11ab"] == [(11, 12), (12, 13), (12, 13), (12, 13)]


def test_offsets_of_marks_that_change_places():
    # The virama (class 9) moves before the tone mark (class 224), and the tone mark
    # before the accent (class 230), which is removed.
    [(word, spans)] = LOWER.tokenize_with_offsets("a\u0301\u302e\u1b44b")
    assert word == "a\u1b44\u302eb"
    assert spans == [(0, 1), (3, 4), (2, 3), (4, 5)]


def test_a_long_text_of_sigmas_takes_no_time():
    words = LOWER.tokenize("Σα" * 100_000)
    assert words == ["σα" * 100_000]


def test_both_casings_keep_apart():
    words = [tokenizer.tokenize("Été") for tokenizer in (LOWER, CASED, LOWER)]
    assert words == [["ete"], ["Été"], ["ete"]]
