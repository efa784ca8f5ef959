"""The tokenizer of TensorFlow ops returns the same as Python's, text by text."""

import gzip
import itertools
import json
import random

import graph_checks
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import slow
from places import MINI

from official_bert.tokenization import characters

SPECIAL_CODE_POINTS = graph_checks.special_code_points()
# Texts that would show an influence of the other texts of a batch.
NEIGHBOURS = [
    text.encode() for text in ("aΣ", "b", "", "Σ", "\u0301a", "\u0301", "王", "a\u302e")
]
NEIGHBOURS += ["\u1b44".encode(), b"a\xe2\x82", b"\xac\x82", b"\xcc", b"\x81b"]


@pytest.fixture(scope="module")
def telling(tmp_path_factory):
    """Both tokenizers, uncased and cased, with all characters of special kinds."""
    path = graph_checks.write_vocab(
        tmp_path_factory.mktemp("telling") / "vocab.txt",
        graph_checks.telling_pieces(SPECIAL_CODE_POINTS),
    )
    return [graph_checks.Both(path, do_lower_case) for do_lower_case in (True, False)]


@pytest.fixture(scope="module")
def mini_uncased():
    return graph_checks.Both(MINI / "vocab.txt", do_lower_case=True)


def check_recording(both, texts, ids):
    """Compare ids with a recording of the original, and offsets with Python's."""
    found = both.pieces(texts)
    assert [[one for one, _, _ in row] for row in found] == ids
    # Python's offsets are slow, so every fourth text is enough.
    for row, text in list(zip(found, texts, strict=True))[::4]:
        offsets = both.python.tokenize_with_offsets(text)[1]
        assert [(start, end) for _, start, end in row] == offsets


@pytest.mark.comparison
@pytest.mark.parametrize("casing", ["uncased", "cased"])
def test_mini_recordings(casing, mini, mini_uncased):
    both = mini_uncased
    if casing == "cased":
        both = graph_checks.Both(mini / "vocab.txt", do_lower_case=False)
    lines = (mini / "tokenization.jsonl").read_text(encoding="utf-8").split("\n")
    rows = [json.loads(line) for line in lines if line]
    texts, ids = [row["text"] for row in rows], [row[casing] for row in rows]
    assert len(texts) > 20
    check_recording(both, texts, ids)


@pytest.mark.comparison
@pytest.mark.parametrize(
    ("recording", "vocabulary", "do_lower_case"),
    [
        ("uncased", "bert-base-uncased", True),
        slow("cased", "bert-base-cased", False),
        slow("chinese", "bert-base-chinese", True),
        ("multilingual_cased", "bert-base-multilingual-cased", False),
    ],
)
def test_large_recordings(shared, recording, vocabulary, do_lower_case):
    both = graph_checks.Both(
        shared / "data/vocab" / vocabulary / "vocab.txt", do_lower_case
    )
    name = shared / "golden/tokenization" / f"{recording}.jsonl.gz"
    with gzip.open(name, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    assert len(rows) > 3000
    texts, ids = [row["text"] for row in rows], [row["ids"] for row in rows]
    check_recording(both, texts, ids)


@pytest.mark.parametrize("casing", [0, 1])
def test_corner_cases(casing, telling, mini_uncased):
    assert telling[casing].differences(graph_checks.CORNERS) == []
    assert mini_uncased.differences(graph_checks.CORNERS) == []
    one_by_one = [telling[casing].pieces([text])[0] for text in graph_checks.CORNERS]
    assert one_by_one == telling[casing].pieces(graph_checks.CORNERS)


def test_no_text_has_no_rows(mini_uncased):
    assert mini_uncased.pieces([]) == []


def test_what_the_pieces_are(mini_uncased):
    """Pieces are not only equal, but also right and of the documented types."""
    vocab = mini_uncased.python.vocab
    found = mini_uncased.graph(tf.constant(["", "Thé of", "\u4e00."]))
    assert found.ids.to_list() == [
        [],
        [vocab["the"], vocab["of"]],
        [vocab["[UNK]"], vocab["."]],
    ]
    assert found.starts.to_list() == [[], [0, 4], [0, 1]]
    assert found.ends.to_list() == [[], [3, 6], [1, 2]]
    for column in (found.ids, found.starts, found.ends):
        assert column.dtype == tf.int32
        assert column.row_splits.dtype == tf.int32


@pytest.mark.parametrize("casing", [0, 1])
def test_special_code_points_in_all_forms(casing, telling):
    forms = graph_checks.FORMS if casing == 0 else graph_checks.CASED_FORMS
    texts = graph_checks.in_forms(SPECIAL_CODE_POINTS, forms)
    assert len(texts) > 10_000
    assert telling[casing].differences(texts) == []


def test_kept_marks_in_every_order(telling):
    """Tests the 25 marks that NFD reorders, and characters that decompose into them."""
    table = characters.load_table()
    moved = [
        code
        for code, combining in enumerate(table.combining_class)
        if combining and table.category[code] != characters.MARK
    ]
    assert len(moved) == 25
    composed = [code for code, text in table.folded.items() if chr(moved[-1]) in text]
    others = [0x301, 0x323, 0x334, 0x345, 0x200D, ord("a"), *composed]
    draw = random.Random(5)
    texts = [f"{chr(a)}{chr(b)}{chr(c)}" for a, b, c in itertools.product(
        moved[::3], moved + others, moved[1::3])]  # fmt: skip
    texts += [
        "".join(map(chr, draw.choices(moved + others, k=draw.randrange(2, 12))))
        for _ in range(1000)
    ]
    assert telling[0].differences(texts) == []


@pytest.mark.parametrize("casing", [0, 1])
def test_random_texts(casing, telling):
    everything = range(0x110000)
    early = range(0x600)
    texts = graph_checks.random_texts(SPECIAL_CODE_POINTS, 600, seed=1)
    texts += graph_checks.random_texts(everything, 300, seed=2)
    texts += graph_checks.random_texts(early, 600, seed=3)
    texts += graph_checks.random_texts(early, 3, seed=4, longest=20_000)
    assert telling[casing].differences(texts) == []


# Characters whose neighbors matter, and one example of each rule.
TELLING = "aAbΣσς'.:·\u00ad\u200d\u0301\u0323\u302e\u1b44\U00016ff0\U0001d165Åé한İ"
TELLING += " \t\n\v\x1c\x85\u00a0\u2028\ufffd\0-,。王ﬁǅⅣ①\ue000\u0378\U0001d15e\uf900"


@settings(deadline=None, max_examples=60)
@given(st.lists(st.text(alphabet=TELLING, max_size=12), min_size=1, max_size=20))
def test_rules_in_combination(telling, texts):
    for both in telling:
        assert both.differences(texts) == []


@pytest.mark.parametrize("kind", graph_checks.BAD_BYTES)
def test_bytes_that_are_not_utf_8(kind, telling):
    for both in telling:
        assert both.differences(graph_checks.BAD_BYTES[kind]) == []


def test_random_bytes(telling):
    pairs = itertools.product(graph_checks.TELLING_BYTES, repeat=2)
    texts = [b"a" + bytes(pair) + b"b" for pair in pairs]
    texts += graph_checks.random_bytes(4000, seed=1)
    assert telling[0].differences(texts) == []
    assert telling[1].differences(texts[::4]) == []


def test_texts_do_not_see_their_neighbours(telling):
    for both in telling:
        alone = {text: both.pieces([text])[0] for text in NEIGHBOURS}
        draw = random.Random(6)
        pairs = list(itertools.product(NEIGHBOURS, repeat=2))
        shuffled = draw.sample(NEIGHBOURS, len(NEIGHBOURS)) * 3
        for batch in (*pairs, shuffled):
            assert both.pieces(batch) == [alone[text] for text in batch]


def test_one_graph_for_batches_of_all_sizes(mini_uncased):
    traced = []

    @tf.function
    def tokenize(texts):
        traced.append(texts.shape)
        return mini_uncased.graph(texts).ids

    signature = tf.TensorSpec([None], tf.string)
    function = tokenize.get_concrete_function(signature)
    for texts in ([], ["a"], ["", "a b"], ["the cat"] * 50, ["a" * 5000]):
        expected = [mini_uncased.python.encode(text) for text in texts]
        assert function(tf.constant(texts, tf.string)).to_list() == expected
    assert len(traced) == 1
