"""Reading and checking vocabularies."""

import pytest

from official_bert.config import BertConfig
from official_bert.errors import UserError
from official_bert.tokenization import load_vocab, vocabulary

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_ids_are_line_numbers(tmp_path):
    path = write(tmp_path / "v", [*SPECIAL, " the\t", "##e\u0301\r", "王"])
    assert list(load_vocab(path).items())[5:] == [
        ("the", 5),
        ("##e\u0301", 6),
        ("王", 7),
    ]


def test_an_empty_line_keeps_its_id_as_in_the_original(tmp_path):
    # Line 344 of the released Chinese vocabulary contains only U+2028.
    vocab = load_vocab(write(tmp_path / "v", [*SPECIAL, "\u2028", "a"]))
    assert vocab[""] == 5
    assert vocab["a"] == 6


def test_only_line_feeds_end_lines(tmp_path):
    path = write(tmp_path / "v", [*SPECIAL, "a\u2028b", "c\x85d", "e\rf"])
    assert list(load_vocab(path))[5:] == ["a\u2028b", "c\x85d", "e\rf"]


def test_the_last_line_may_lack_its_end(tmp_path):
    path = tmp_path / "v"
    path.write_text("\n".join([*SPECIAL, "a"]))
    assert load_vocab(path)["a"] == 5


def test_a_byte_order_mark_is_no_part_of_the_first_token(tmp_path):
    path = tmp_path / "v"
    path.write_text("\n".join([*SPECIAL, "\ufeffa"]), encoding="utf-8-sig")
    assert list(load_vocab(path)) == [*SPECIAL, "\ufeffa"]


def test_duplicates_name_both_lines(tmp_path):
    path = write(tmp_path / "v", [*SPECIAL, "a", "b", "a "])
    with pytest.raises(UserError, match="lines 6 and 8 are both 'a'") as error:
        load_vocab(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("token", SPECIAL)
def test_missing_special_tokens(tmp_path, token):
    path = write(tmp_path / "v", [t for t in SPECIAL if t != token])
    with pytest.raises(UserError) as error:
        load_vocab(path)
    assert f"has no {token} in its 4 lines." in str(error.value)


def test_a_text_is_no_vocabulary_rather_than_one_with_duplicates(tmp_path):
    path = write(tmp_path / "v", ["A line.", "", "Another.", ""])
    with pytest.raises(UserError, match=r"has no \[PAD\] or .* in its 4 lines"):
        load_vocab(path)


def test_what_is_no_vocabulary(tmp_path):
    with pytest.raises(UserError, match="train_vocab.py"):
        load_vocab(tmp_path / "none")
    with pytest.raises(UserError, match="is a directory"):
        load_vocab(tmp_path)
    path = tmp_path / "v"
    path.write_bytes(b"[PAD]\n\xff\xfe\n")
    with pytest.raises(UserError, match="line 2 is not UTF-8"):
        load_vocab(path)
    path.write_bytes(b"")
    with pytest.raises(UserError, match="in its 0 lines"):
        load_vocab(path)


@pytest.mark.parametrize("vocab_size", [100, 104, 224])
def test_sizes_that_agree(vocab_size):
    vocab = {str(index): index for index in range(100)}
    vocabulary.check_vocab_size(vocab, BertConfig(vocab_size), "v")


@pytest.mark.parametrize(
    ("vocab_size", "message"),
    [
        (99, r"v: line 100 \('99'\) has no emb.* vocab_size is 99, .* 100 lines"),
        (101, "v ends at line 100, but the model's vocab_size is 101"),
        (228, "v ends at line 100, but the model's vocab_size is 228"),
        (232, "v ends at line 100, but the model's vocab_size is 232"),
    ],
)
def test_sizes_that_disagree(vocab_size, message):
    vocab = {str(index): index for index in range(100)}
    with pytest.raises(UserError, match=message) as raised:
        vocabulary.check_vocab_size(vocab, BertConfig(vocab_size), "v")
    assert "For a new model, set vocab_size to 100" in str(raised.value)


@pytest.mark.parametrize(
    ("tokens", "lower"),
    [
        (["a", "##b", "王", "<S>", "[unused1]", ""], True),
        (["a", "##B"], False),
        (["é"], False),
        (["Я"], False),
    ],
)
def test_the_casing_shows_in_a_vocabulary(tokens, lower):
    assert vocabulary.guess_do_lower_case([*SPECIAL, *tokens]) is lower


def test_the_casing_of_released_vocabularies(shared):
    for name, lower in [
        ("bert-base-uncased", True),
        ("bert-base-chinese", True),
        ("bert-base-cased", False),
        ("bert-base-multilingual-cased", False),
    ]:
        vocab = load_vocab(shared / "data/vocab" / name / "vocab.txt")
        assert vocabulary.guess_do_lower_case(vocab) is lower
