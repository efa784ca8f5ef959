"""The golden vectors are complete, deterministic, and cover typical tokenizer bugs."""

import hashlib
import json

import pytest
from places import MINI

from official_bert.export.tflite import golden_tokens
from official_bert.tokenization import FullTokenizer

VOCAB = MINI / "vocab.txt"


@pytest.fixture(scope="module")
def tokenizer():
    return FullTokenizer(VOCAB)


@pytest.fixture(scope="module")
def golden(tokenizer, tmp_path_factory):
    """Return the file as a port reads it."""
    path = tmp_path_factory.mktemp("golden") / golden_tokens.FILE_NAME
    golden_tokens.write(path, tokenizer)
    return json.loads(path.read_text(encoding="utf-8"))


def words_of(golden, text):
    return next(one["words"] for one in golden["texts"] if one["text"] == text)


def test_the_file_is_the_same_each_time_and_ascii(tokenizer, tmp_path):
    for name in ("one", "other"):
        golden_tokens.write(tmp_path / name, tokenizer)
    data = (tmp_path / "one").read_bytes()
    assert data == (tmp_path / "other").read_bytes()
    assert data.isascii() and data.endswith(b"}\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "other"]


def test_it_names_its_vocabulary(golden):
    assert golden["vocab_size"] == 125
    assert golden["vocab_sha256"] == hashlib.sha256(VOCAB.read_bytes()).hexdigest()
    assert golden["do_lower_case"] is True
    cased = golden_tokens.make(FullTokenizer(VOCAB, do_lower_case=False))
    assert cased["do_lower_case"] is False


def test_each_text_is_there_once(golden):
    texts = [vector["text"] for vector in golden["texts"]]
    assert len(set(texts)) == len(texts)
    assert set(golden_tokens.TEXTS) <= set(texts)
    # The project's texts alone would leave most of a vocabulary untested.
    assert len(texts) >= len(golden_tokens.TEXTS) + 20


def test_pieces_of_a_vocabulary_make_texts_apart_and_in_one_word():
    texts = golden_tokens.vocabulary_texts({"[UNK]": 0, "un": 1, "##able": 2})
    assert texts == ["[UNK] un able", "[UNK]unable"]
    many = golden_tokens.vocabulary_texts(map(str, range(30000)))
    assert len(many) == 2 * 20
    assert int(many[-2].split()[-1]) > 29000


def test_texts_are_those_of_the_tokenizer(golden, tokenizer):
    for vector in golden["texts"]:
        pieces, offsets = tokenizer.tokenize_with_offsets(vector["text"])
        assert vector["tokens"] == pieces == tokenizer.tokenize(vector["text"])
        assert vector["ids"] == tokenizer.convert_tokens_to_ids(pieces)
        assert vector["offsets"] == [list(pair) for pair in offsets]
        words = tokenizer.basic_tokenizer.tokenize_with_offsets(vector["text"])
        assert vector["words"] == [word for word, _ in words]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("groß GROẞ ẞ straße STRASSE", "groß groß ß straße strasse"),
        ("1Σ Σ1 Α Σ ΑΣ Α Α.Σ Α:Σ Α王Σ ΑΣ王Α aΣb σς",
         "1σ σ1 α σ ας α α . ς α : ς α 王 σ ας 王 α aσb σς"),
        ("a\vb a\fb a\x1cb a\x1db a\x1eb a\x1fb a\x85b", "ab ab ab ab ab ab ab"),
        ("a\u2028b a\u2029b", "a b a b"),
        ("a\ufffdb \ufffd", "ab"),
        ("\u00a0\u3000", ""),
    ],
)  # fmt: skip
def test_words_that_are_known(golden, text, words):
    assert words_of(golden, text) == words.split()


def test_the_limit_of_a_word_is_tried_from_both_sides(golden):
    text = "a" * 199 + " " + "a" * 200 + " " + "a" * 201
    tokens = next(one["tokens"] for one in golden["texts"] if one["text"] == text)
    assert tokens == ["a", *["##a"] * 198, "a", *["##a"] * 199, "[UNK]"]


def test_rows_of_pairs(golden):
    rows = {
        (one["text"], one["text_b"], one["max_seq_length"]): one
        for one in golden["pairs"]
    }
    assert len(rows) == len(golden["pairs"]) == len(golden_tokens.PAIRS)
    cls, sep = 7, 8
    empty = rows["", None, 8]
    assert empty["input_ids"] == [cls, sep, 0, 0, 0, 0, 0, 0]
    assert empty["input_mask"] == [1, 1, 0, 0, 0, 0, 0, 0]
    cut = rows[golden_tokens.LONG, golden_tokens.LONG, 17]
    assert [cut["input_ids"].index(sep), cut["segment_ids"].index(1)] == [8, 9]
    assert sum(cut["input_mask"]) == 17
    short, long = golden_tokens.SHORT, golden_tokens.LONG
    padded = rows[short, long, 128]
    number = sum(padded["input_mask"])
    rest = [0] * (128 - number)
    assert 0 < len(rest) < 128 - 20
    assert padded["input_ids"][number:] == padded["segment_ids"][number:] == rest
    assert rows[long, long, 4]["input_ids"].count(sep) == 1
