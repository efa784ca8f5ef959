"""The simple characters keep the rules of `BasicTokenizer`, one by one."""

import re

import graph_checks
import numpy as np
import pytest

from official_bert.tokenization import simple_characters
from official_bert.tokenization.basic import BasicTokenizer
from official_bert.tokenization.simple_characters import (
    ALONE,
    LETTER,
    NOT_SIMPLE,
    SPACE,
)


def kinds_of(text, do_lower_case):
    kinds = simple_characters.simple_characters(do_lower_case).kinds
    return [int(kinds[ord(char)]) for char in text]


def test_some_uncased_characters():
    assert kinds_of("aÉ九!“ \n\u3000", True) == [LETTER] * 2 + [ALONE] * 3 + [SPACE] * 3
    # An accent, a capital sigma, a removed character, two letters, a symbol whose NFD
    # is punctuation, and a mark that stays and that NFD may reorder.
    assert kinds_of("\u0301Σ\0각", True) == [NOT_SIMPLE] * 4
    assert kinds_of("\u1fef\u1b44", True) == [ALONE, NOT_SIMPLE]


def test_some_cased_characters():
    assert kinds_of("aÉ\u0301Σ각", False) == [LETTER] * 5
    assert kinds_of("\0\ufffd", False) == [NOT_SIMPLE] * 2


@pytest.mark.parametrize("do_lower_case", [True, False])
def test_words_of_each_character_between_letters(do_lower_case):
    simple = simple_characters.simple_characters(do_lower_case)
    tokenize = BasicTokenizer(do_lower_case).tokenize
    seen = set()
    for code in graph_checks.special_code_points():
        kind, letter = simple.kinds[code], chr(simple.folded[code])
        seen.add(int(kind))
        expected = {
            LETTER: [f"x{letter}y"],
            ALONE: ["x", letter, "y"],
            SPACE: ["x", "y"],
        }
        if kind != NOT_SIMPLE:
            assert tokenize(f"x{chr(code)}y") == expected[kind], hex(code)
    assert seen == {NOT_SIMPLE, LETTER, ALONE, SPACE}


def test_pattern_of_a_set():
    mask = np.zeros(0x110000, bool)
    mask[[0, 0x41, 0x42, 0x10FFFF]] = True
    pattern = simple_characters.pattern(mask)
    assert pattern == r"[\x{0}-\x{0}\x{41}-\x{42}\x{10FFFF}-\x{10FFFF}]"
    # Python's syntax of a code point is another one than RE2's.
    python = re.sub(r"\\x{(\w+)}", lambda hit: rf"\U{int(hit[1], 16):08x}", pattern)
    found = [c for c in "\0\1@ABC\U0010ffff" if re.fullmatch(python, c)]
    assert found == ["\0", "A", "B", "\U0010ffff"]


# Their NFD begins with a mark that is removed and belongs to the token before it.
@pytest.mark.parametrize("code", [0xCC0, 0xCC7, 0xCCA, 0x1B3B, 0x1B43])
def test_a_removed_mark_in_front_of_a_letter(code, tmp_path):
    assert simple_characters.simple_characters(True).kinds[code] == NOT_SIMPLE
    assert simple_characters.simple_characters(False).kinds[code] == LETTER
    pieces = graph_checks.telling_pieces([code])
    path = graph_checks.write_vocab(tmp_path / "vocab.txt", pieces)
    texts = [f"a{chr(code)}", f"a{chr(code)}b", f"!{chr(code)}?", chr(code)]
    assert graph_checks.Both(path, True).differences(texts) == []
