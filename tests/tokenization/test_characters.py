"""The shipped table of characters and its categories."""

import subprocess
import sys
import unicodedata

import numpy as np
import pytest

from official_bert.errors import UserError
from official_bert.tokenization import characters, make_character_table

UNICODE_14 = unicodedata.unidata_version == "14.0.0"


def test_the_shipped_table_is_what_its_script_makes():
    if not UNICODE_14:
        pytest.skip("only Python 3.11 (Unicode 14) can create the table again")
    made = make_character_table.make_table()
    with np.load(characters.TABLE_PATH) as shipped:
        assert set(shipped) == set(made)
        for name, array in made.items():
            np.testing.assert_array_equal(shipped[name], array)
            assert shipped[name].dtype == array.dtype


def test_the_script_refuses_another_unicode(monkeypatch):
    monkeypatch.setattr(unicodedata, "unidata_version", "15.0.0")
    with pytest.raises(UserError, match=r"Unicode 15\.0\.0.*Python 3\.11"):
        make_character_table.make_table()


def test_nothing_reads_unicodedata_at_run_time(mini):
    program = (
        "import sys; sys.modules['unicodedata'] = None\n"
        "from official_bert.tokenization import FullTokenizer\n"
        f"tokenizer = FullTokenizer({str(mini / 'vocab.txt')!r})\n"
        "text = 'ÉTÉ ΟΔΟΣ 한국 王\\u302e\\u1b44 a\\u2028b'\n"
        "print(tokenizer.basic_tokenizer.tokenize(text))\n"
        "print(tokenizer.tokenize_with_offsets(text))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", program],
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("['ete', 'οδος', '")


@pytest.mark.parametrize(
    ("category", "true", "false"),
    [
        (
            characters.WHITESPACE,
            " \t\n\r\u00a0\u3000\u2009",
            "a\v\f\x1c\x85\u2028\u200b-",
        ),
        (
            characters.CONTROL,
            "\0\v\x05\x7f\x85\u200d\u00ad\ufeff\U000e0001",
            "\t\n\r a\ufffd\ue000\u0378\ud800",
        ),
        (
            characters.PUNCTUATION,
            "!/:@[`{~$+<=>^|-.、。»\u2014",
            "aA0 €£×÷°\u00a0\u0301",
        ),
        (
            characters.CJK,
            "一王\u3400\u4dbf\u9fff\uf900\ufaff\U00020000\U0002a6df\U0002a700"
            "\U0002b73f\U0002b740\U0002b81f\U0002b820\U0002ceaf\U0002f800\U0002fa1f",
            "aひカ한\u33ff\u4dc0\ua000\ufb00\U0002a6e0\U0002ceb0\U0002fa20\U00030000",
        ),
    ],
)
def test_categories(category, true, false):
    """Categories equal the original's `_is_whitespace`, `_is_control` and so on."""
    assert [char for char in true if characters.category(char) != category] == []
    assert [char for char in false if characters.category(char) == category] == []


def test_spaces_are_those_of_str_split():
    if not UNICODE_14:
        pytest.skip("`str.isspace` follows Unicode 14 only in Python 3.11")
    everything = map(chr, range(characters.CODE_POINTS))
    assert "".join(char for char in everything if char.isspace()) == characters.SPACES


def test_the_table_covers_every_code_point():
    table = characters.load_table()
    for column in (table.category, table.combining_class, table.sigma_context):
        assert len(column) == 0x110000
    assert table.folded[ord("Å")] == "a\u030a"
    assert table.folded[ord("각")] == "\u1100\u1161\u11a8"
    assert table.folded[ord("Σ")] == "σ"


def test_reordered_marks():
    pattern = characters.reordered_marks()
    for char in "\u1b44\u302e\U00016ff0\U0001d165\U0001d15e":
        assert pattern.search(char)
    assert not pattern.search("a王é\u0301\u0323\u0903한")
