"""Text is split into words as in CoNLL columns, in Python and in a graph."""

import json
import tracemalloc

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from official_bert.export.saved_model import ner as ner_model
from official_bert.export.saved_model.texts import parts_of
from official_bert.tasks.ner import files as ner_files
from official_bert.tasks.ner.sentences import (
    MANY,
    has_joined_words,
    split_words,
    text_sentence,
    word_sentence,
)
from official_bert.tasks.ner.training import NerTask
from official_bert.tokenization.graph_words import BasicWords


def words_of(text):
    return list(text_sentence(text, as_columns=True).words)


@pytest.mark.parametrize(
    "columns",
    [
        "J. Adams met T.O'Gorman , S. Watkin and W.C. Fields .",
        'U.S. ( U.S. ) U.S.-based " U.S. " the a.m. Chester-le-Street - ex-England',
        "2,250 3:45 1996-08-30 1,2 6-4 1/8 .",
        "AT&T S&P and/or a@b.com",
        "don't d'Italia l'Homme rock'n'roll",
        "Israel 's I 'll we 've . He 'd say 's .",
    ],
)
def test_words_of_columns(columns):
    """Also if the text has no space before the surrounding punctuation."""
    assert words_of(columns) == columns.split(" ")
    text = columns
    for mark in (" 's", " 'll", " 've", " 'd", " ,", " )"):
        text = text.replace(mark, mark[1:])
    assert words_of(text.replace("( ", "(")) == columns.split(" ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("in Rome.", "in Rome ."),
        ("Rome,Paris: Oslo; 1996.", "Rome , Paris : Oslo ; 1996 ."),
        ("Israel's. 's.", "Israel 's . 's ."),
        ("(Anna)/'Bo'", "( Anna ) / ' Bo '"),
        ("-5 5- a- -a", "- 5 5 - a - - a"),
        ("中国-x 中.国", "中 国 - x 中 . 国"),
        ("U.S.中", "U.S. 中"),
        ("", ""),
        ("'", "'"),
    ],
)
def test_what_stays_apart(text, words):
    assert words_of(text) == words.split()


def test_one_long_word_takes_its_own_room_alone():
    text = "a b " * 1000 + "c" * 20_000
    tracemalloc.start()
    assert len(words_of(text)) == 2001
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()


TEXTS = st.lists(
    st.sampled_from(["a", "B", "s", "ll", "S", "1", "22", *".-'’,:/& (", "中", "é"]),
    max_size=14,
).map("".join)


@settings(deadline=None)
@given(TEXTS)
def test_only_what_touches_is_joined(text):
    parts, offsets = split_words(text), text_sentence(text, as_columns=True).offsets
    assert [text[start:end] for start, end in offsets] == words_of(text)
    assert {start for start, _ in offsets} <= {start for start, _ in parts}
    assert {end for _, end in offsets} <= {end for _, end in parts}
    assert "".join(words_of(text)) == "".join(text[i:j] for i, j in parts)
    assert not any(" " in word for word in words_of(text))


class Finder(ner_model.ServedTagger):
    """A tagger that only splits words."""

    def __init__(self):
        tf.Module.__init__(self)
        self.task = NerTask(("O", "B-X", "I-X"), words_as_columns=True)
        self._words = BasicWords(do_lower_case=False)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def words(self, text):
        """Return (text of each word, its start, its end, the word)."""
        places = self._find_words(text)
        return *places, parts_of(text, *places)


FINDER = Finder()


@settings(deadline=None)
@given(st.lists(TEXTS, max_size=4))
def test_in_a_graph(texts):
    found = [
        array.numpy().tolist() for array in FINDER.words(tf.constant(texts, tf.string))
    ]
    expected = [
        (number, start, end, text[start:end].encode())
        for number, text in enumerate(texts)
        for start, end in text_sentence(text, as_columns=True).offsets
    ]
    assert list(zip(*found, strict=True)) == expected


def test_columns_that_have_such_words():
    def documents(*words):
        return [[word_sentence(words)]]

    assert has_joined_words(documents("U.S.", "a", "b"))
    assert not has_joined_words(documents("U", ".", "S", "."))
    assert not has_joined_words(documents(*["a"] * 200, "www.x.org"))
    assert not has_joined_words([])


def test_task_json_says_it_only_then():
    plain, other = (NerTask(("O", "B-X"), words_as_columns=it) for it in (False, True))
    assert "words_as_columns" not in plain.to_dict()
    for task in (plain, other):
        assert NerTask.from_dict(json.loads(json.dumps(task.to_dict()))) == task
    with pytest.raises(ValueError, match="words_as_columns"):
        NerTask.from_dict(other.to_dict() | {"words_as_columns": 1})


def test_nearly_all_words_of_conll(shared):
    """The exceptions are "--", "1." and abbreviations such as "Inc."."""
    path = shared / "data/conll2003/valid.txt"
    documents = ner_files.read_ner_file(path).documents
    assert has_joined_words(documents)
    sentences = [sentence for document in documents for sentence in document]
    kept = []
    for one in sentences:
        found = set(text_sentence(one.text, as_columns=True).offsets)
        kept += [place in found for place in one.offsets]
    assert np.mean(kept) > 0.99
    assert MANY < 0.05
