"""Text to ids: the original's recordings, offsets, the cache."""

import gzip
import json
import pathlib
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from official_bert.tokenization import FullTokenizer, full

LETTERS = "abßςσΣａ￥éİǆ\ue000\u0378😀+王\U0002b820"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def check_recording(tokenizer, text, ids):
    """Compare all functions that return ids of a text with the original's ids."""
    assert tokenizer.encode(text) == ids
    tokens = tokenizer.tokenize(text)
    assert tokenizer.convert_tokens_to_ids(tokens) == ids
    assert tokenizer.convert_ids_to_tokens(ids) == tokens
    pieces, offsets = tokenizer.tokenize_with_offsets(text)
    assert pieces == tokens
    assert len(offsets) == len(pieces)
    assert all(0 <= start < end <= len(text) for start, end in offsets)


@pytest.mark.comparison
@pytest.mark.parametrize("casing", ["uncased", "cased"])
def test_mini_recordings(mini, casing):
    tokenizer = FullTokenizer(mini / "vocab.txt", do_lower_case=casing == "uncased")
    lines = (mini / "tokenization.jsonl").read_text(encoding="utf-8").split("\n")
    for line in filter(None, lines):
        recorded = json.loads(line)
        check_recording(tokenizer, recorded["text"], recorded[casing])


@pytest.mark.comparison
@pytest.mark.parametrize(
    ("recording", "vocabulary", "do_lower_case"),
    [
        ("uncased", "bert-base-uncased", True),
        ("cased", "bert-base-cased", False),
        ("chinese", "bert-base-chinese", True),
        ("multilingual_cased", "bert-base-multilingual-cased", False),
    ],
)
def test_large_recordings(shared, recording, vocabulary, do_lower_case):
    tokenizer = FullTokenizer(
        shared / "data/vocab" / vocabulary / "vocab.txt", do_lower_case
    )
    name = shared / "golden/tokenization" / f"{recording}.jsonl.gz"
    with gzip.open(name, "rt", encoding="utf-8") as lines:
        recorded = [json.loads(line) for line in lines]
    assert len(recorded) > 3000
    for row in recorded:
        check_recording(tokenizer, row["text"], row["ids"])


@pytest.fixture
def letters(tmp_path):
    """Both tokenizers of a vocabulary of single characters."""
    pieces = ["a", "b", "##a", "##b", "i", "##i", "e", "##e", "+", "[", "]", "mask"]
    pieces += [form for char in LETTERS[2:] for form in (char, "##" + char)]
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(dict.fromkeys(SPECIAL + pieces)), encoding="utf-8")
    return FullTokenizer(path), FullTokenizer(path, do_lower_case=False)


@pytest.mark.parametrize(
    ("between", "lower", "cased"),
    [
        # Characters with which other tokenizers differ from the original.
        ("\x01", "a ##b", None),
        ("\u200d", "a ##b", None),
        ("\u00ad", "a ##b", None),
        ("\ufffd", "a ##b", None),
        ("\v", "a ##b", None),
        ("\u2028", "a b", None),
        ("\u00a0", "a b", None),
        ("ß", "a ##ß ##b", None),
        ("ς", "a ##ς ##b", None),
        ("Σ", "a ##σ ##b", "a ##Σ ##b"),
        ("ａ", "a ##ａ ##b", None),
        ("Ａ", "a ##ａ ##b", "[UNK]"),
        ("￥", "a ##￥ ##b", None),
        ("é", "a ##e ##b", "a ##é ##b"),
        ("İ", "a ##i ##b", "a ##İ ##b"),
        ("\ue000", "a ##\ue000 ##b", None),
        ("\u0378", "a ##\u0378 ##b", None),
        ("😀", "a ##😀 ##b", None),
        ("+", "a + b", None),
        ("王", "a 王 b", None),
        ("\U0002b820", "a \U0002b820 b", None),
        ("[MASK]", "a [ mask ] b", "a [ [UNK] ] b"),
    ],
)
def test_where_other_tokenizers_differ(letters, between, lower, cased):
    text = f"a{between}b"
    assert " ".join(letters[0].tokenize(text)) == lower
    assert " ".join(letters[1].tokenize(text)) == (cased or lower)


def test_a_word_of_150_letters(letters):
    assert letters[0].tokenize("a" * 150) == ["a"] + ["##a"] * 149


def test_offsets(letters):
    text = "  A\u0301\u200db\u00e9 xyz!\n王[MASK]"
    pieces, offsets = letters[0].tokenize_with_offsets(text)
    assert pieces == ["a", "##b", "##e", "[UNK]", "[UNK]", "王", "[", "mask", "]"]
    assert [text[start:end] for start, end in offsets] == [
        "A\u0301", "b", "\u00e9", "xyz", "!", "王", "[", "MASK", "]",
    ]  # fmt: skip


def test_bytes(letters):
    data = "aé".encode() + b"\xff b"
    assert letters[0].tokenize(data) == ["a", "##e", "b"]
    pieces, offsets = letters[0].tokenize_with_offsets(data)
    assert offsets == [(0, 1), (1, 2), (3, 4)]


@settings(deadline=None)
@given(st.text(alphabet="abéΣ\u0301 \n\v\u2028\u00a0!王", max_size=20))
def test_memory_changes_nothing(text):
    tokenizer = MEMORY_TESTED
    words = tokenizer.basic_tokenizer.tokenize(text)
    pieces = tokenizer.wordpiece_tokenizer.tokenize(" ".join(words))
    assert tokenizer.tokenize(text) == pieces
    assert tokenizer.tokenize(text) == pieces
    assert tokenizer.tokenize_with_offsets(text)[0] == pieces


MEMORY_TESTED = FullTokenizer(
    pathlib.Path(__file__).parent.parent / "fixtures" / "mini" / "vocab.txt"
)


def test_memory_is_bounded(letters, monkeypatch):
    monkeypatch.setattr(full, "REMEMBERED", 10)
    for number in range(100):
        assert letters[0].encode("b" * number + " ab") == letters[0].encode(
            "b" * number
        ) + letters[0].encode("ab")
        assert len(letters[0]._chunk_ids) <= 10
        assert len(letters[0]._word_ids) <= 10
    letters[0].encode("a" * 1000)
    assert "a" * 1000 not in letters[0]._chunk_ids


def test_what_encode_returns_may_be_changed(letters):
    letters[0].encode("ab").append(0)
    assert letters[0].tokenize("ab") == ["a", "##b"]


def test_a_tokenizer_goes_to_another_process(letters):
    letters[0].encode("ab ba")
    copy = pickle.loads(pickle.dumps(letters[0]))
    assert copy.encode("abé aΣ") == letters[0].encode("abé aΣ")
    assert copy.vocab == letters[0].vocab


def test_vocab_and_inv_vocab(letters):
    vocab = letters[0].vocab
    assert list(vocab)[:5] == SPECIAL
    assert list(vocab.values()) == list(range(len(vocab)))
    assert letters[0].inv_vocab == {index: token for token, index in vocab.items()}
    with pytest.raises(KeyError):
        letters[0].convert_tokens_to_ids(["no such piece"])
