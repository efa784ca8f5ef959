"""The tokenizer with TensorFlow Text's kernels returns the same as Python's."""

import gzip
import itertools
import json
import random
import sys

import graph_checks
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import slow
from places import MINI

from official_bert import tf_text
from official_bert.errors import UserError
from official_bert.tokenization.graph_tf_text import (
    TfTextTokenizer,
    exact_characters,
)

SAMPLE = graph_checks.special_code_points()[::9] + list(range(0x500))


def are_exact(both, texts):
    return both.graph.are_exact(tf.constant(texts, tf.string)).numpy()


@pytest.fixture(scope="module")
def telling(tmp_path_factory):
    """Both tokenizers, uncased and cased, with all characters of the sample."""
    path = graph_checks.write_vocab(
        tmp_path_factory.mktemp("telling") / "vocab.txt",
        graph_checks.telling_pieces([*SAMPLE, ord("王"), ord("!"), ord("?")]),
    )
    return [graph_checks.Both(path, lower, TfTextTokenizer) for lower in (True, False)]


def check_recording(both, rows, name):
    texts, ids = [row["text"] for row in rows], [row[name] for row in rows]
    found = both.pieces(texts)
    assert [[one for one, _, _ in row] for row in found] == ids
    # The kernels and our operations must both have had texts.
    assert 0 < np.mean(are_exact(both, texts)) < 1


@pytest.mark.comparison
@pytest.mark.parametrize("casing", ["uncased", "cased"])
def test_mini_recordings(casing, mini):
    both = graph_checks.Both(mini / "vocab.txt", casing == "uncased", TfTextTokenizer)
    lines = (mini / "tokenization.jsonl").read_text(encoding="utf-8").split("\n")
    check_recording(both, [json.loads(line) for line in lines if line], casing)


@pytest.mark.comparison
@pytest.mark.parametrize(
    ("recording", "vocabulary", "do_lower_case"),
    [
        ("uncased", "bert-base-uncased", True),
        slow("cased", "bert-base-cased", False),
        slow("chinese", "bert-base-chinese", True),
        slow("multilingual_cased", "bert-base-multilingual-cased", False),
    ],
)
def test_large_recordings(shared, recording, vocabulary, do_lower_case):
    path = shared / "data/vocab" / vocabulary / "vocab.txt"
    both = graph_checks.Both(path, do_lower_case, TfTextTokenizer)
    name = shared / "golden/tokenization" / f"{recording}.jsonl.gz"
    with gzip.open(name, "rt", encoding="utf-8") as lines:
        check_recording(both, [json.loads(line) for line in lines], "ids")


@pytest.mark.parametrize("casing", [0, 1])
def test_corner_cases(casing, telling):
    both = telling[casing]
    assert both.differences(graph_checks.CORNERS) == []
    one_by_one = [both.pieces([text])[0] for text in graph_checks.CORNERS]
    assert one_by_one == both.pieces(graph_checks.CORNERS)
    for texts in graph_checks.BAD_BYTES.values():
        assert both.differences(texts) == []
    assert both.pieces([]) == []


@pytest.mark.parametrize("casing", [0, 1])
def test_code_points_that_the_kernels_split(casing, telling):
    both = telling[casing]
    exact = exact_characters(do_lower_case=not casing)
    texts = graph_checks.in_forms(
        [code for code in SAMPLE if exact[code]], graph_checks.EXACT_FORMS
    )
    assert len(texts) > 1000
    assert are_exact(both, texts).all()
    assert both.differences(texts) == []


@pytest.mark.parametrize("casing", [0, 1])
def test_all_other_code_points_go_to_our_operations(casing, telling):
    exact = exact_characters(do_lower_case=not casing)
    codes = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    found = are_exact(telling[casing], [chr(code) for code in codes])
    assert (found == exact[codes]).all()


def test_the_set():
    uncased, cased = (exact_characters(lower) for lower in (True, False))
    for text in ("azAZ09 \t\n\r!~'[]#", "éÅüñçø", "王國한글あア", "русский", "😀€…"):
        for char in text:
            assert cased[ord(char)], char
            assert uncased[ord(char)] or char in "한글…", char
    # Removed, changed otherwise, or dependent on neighbors.
    for char in "\0\v\x85\u00ad\u200d\ufffd\u0378\ue000\uffff":
        assert not uncased[ord(char)] and not cased[ord(char)]
    for char in "ßςΣﬁⅣ①Ａ½\u0301\u0323\u1b44한":
        assert not uncased[ord(char)]
    # Punctuation only in some versions of Unicode.
    assert not cased[0x1B4E] and not cased[0x2E53]


@pytest.mark.parametrize("letter", ["x", "é", "я", "😀"])
@pytest.mark.parametrize("length", [199, 200, 201, 202, 800, 801])
def test_long_words(telling, letter, length):
    """The kernel limits bytes, the original characters."""
    word = letter * length
    texts = [word, f"x {word}", f"{word} x", f"x!{word}!x", f"王{word}王"]
    assert telling[1].differences(texts) == []
    assert are_exact(telling[1], texts).all() == (length <= 200)


EXACT = "aAbé !?.王ж#[]1 \t\n-,。"
OTHER = "ßΣς\u0301\u0323\u1b44\u200d\u00adﬁ한İ\v\u2028\ufffd\0"


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.text(alphabet=EXACT, max_size=12)
        | st.text(alphabet=EXACT + OTHER, max_size=12),
        min_size=1,
        max_size=20,
    )
)
def test_batches_of_both_kinds(telling, texts):
    for both in telling:
        assert both.differences(texts) == []


@pytest.mark.comparison
def test_real_text_in_random_concatenations(shared):
    """Sentences in English and Chinese, joined with and without whitespace."""
    vocab = shared / "data/vocab/bert-base-uncased/vocab.txt"
    both = graph_checks.Both(vocab, True, TfTextTokenizer)
    draw, lines = random.Random(1), []
    for path in sorted((shared / "data/text").glob("[a-z]*.txt")):
        text = path.read_text(encoding="utf-8").split("\n")
        lines += draw.sample([line for line in text if line], 150)
    texts = lines + [
        draw.choice(["", " ", "\n", "!", "\u0301"]).join(draw.choices(lines, k=3))
        for _ in range(150)
    ]
    assert both.differences(texts) == []


def test_random_bytes(telling):
    pairs = itertools.product(graph_checks.TELLING_BYTES, repeat=2)
    texts = [b"a" + bytes(pair) + b"b" for pair in pairs]
    assert telling[0].differences(texts + graph_checks.random_bytes(500, 1)) == []


def test_pieces_that_a_kernel_would_treat_differently(tmp_path):
    """Pieces with spaces, punctuation, controls, "##" alone, and over 200 letters."""
    pieces = [
        "a b", "##a b", "a", "b", "##b", "##", "#", "a!", "##!", "!", "!a", "\x11",
        "a\x11", "c" * 201, "d" * 300, "##" + "e" * 300, "A", "é", "a\u0301", "[7]",
    ]  # fmt: skip
    path = graph_checks.write_vocab(tmp_path / "vocab.txt", pieces)
    both = graph_checks.Both(path, True, TfTextTokenizer)
    texts = [
        "a b ab",
        "ab b",
        "a!b",
        "##",
        "##b",
        "a##b",
        "# #",
        "A é á",
        "!a !",
        "[7]",
    ]
    assert are_exact(both, texts).all()
    assert both.differences(texts) == []


def test_a_piece_that_is_too_long_for_the_kernel(tmp_path):
    path = graph_checks.write_vocab(tmp_path / "vocab.txt", ["a", "王ж", "ж" * 199])
    with pytest.raises(UserError, match="cannot use this vocabulary.*core"):
        graph_checks.Both(path, True, TfTextTokenizer)


def test_without_tensorflow_text(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_text", None)
    with pytest.raises(UserError, match="pip install tensorflow-text") as caught:
        tf_text.import_tf_text("This model")
    assert str(caught.value).startswith("This model needs TensorFlow Text")


def test_the_mini_vocabulary_has_its_own_graph():
    both = graph_checks.Both(MINI / "vocab.txt", True, TfTextTokenizer)
    concrete = both.function.get_concrete_function()
    graph = concrete.graph.as_graph_def()
    nodes = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
    assert {*tf_text.OPS} <= {node.op for node in nodes}
