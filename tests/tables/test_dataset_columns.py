"""Texts and labels are chosen from the features of real and made-up datasets."""

import types

import numpy as np
import pytest
from named_datasets import opened, tfds

from official_bert.errors import UserError
from official_bert.tables.dataset_columns import (
    DatasetColumns,
    choose_columns,
    kinds_of,
)
from official_bert.tables.datasets import Dataset

KINDS = {
    "text": tfds.features.Text(),
    "class": tfds.features.ClassLabel(names=["a", "b"]),
    "classes": tfds.features.Sequence(tfds.features.ClassLabel(names=["a", "b"])),
    "texts": tfds.features.Sequence(tfds.features.Text()),
    "boolean": np.bool_,
    "integer": np.int32,
    "number": np.float32,
    "string": np.str_,
    "tensor": tfds.features.Tensor(shape=(2,), dtype=np.float32),
    "answers": tfds.features.Sequence({"text": tfds.features.Text()}),
}


def made_up(kinds, supervised_keys=None):
    """Return a `Dataset` with these features: name -> key of `KINDS`."""
    features = tfds.features.FeaturesDict({n: KINDS[kind] for n, kind in kinds.items()})
    info = types.SimpleNamespace(features=features, supervised_keys=supervised_keys)
    return Dataset("made_up", types.SimpleNamespace(info=info))


def test_kinds():
    assert kinds_of(made_up({name: name for name in KINDS})) == {
        "text": "text",
        "class": "class",
        "classes": "sequence of class",
        "texts": "sequence of text",
        "boolean": "boolean",
        "integer": "integer",
        "number": "number",
        "string": "text",
        "tensor": "other",
        "answers": "sequence of other",
    }


@pytest.mark.parametrize(
    ("name", "text", "text_b", "label"),
    [
        ("imdb_reviews", "text", None, ("label",)),
        # `supervised_keys` names the class and the text.
        ("ag_news_subset", "description", None, ("label",)),
        ("sentiment140", "text", None, ("polarity",)),
        ("scicite", "string", None, ("label",)),
        ("civil_comments", "text", None, ("toxicity",)),
        ("snli", "premise", "hypothesis", ("label",)),
        ("xnli/de", "premise", "hypothesis", ("label",)),
        ("paws_x_wiki/de", "sentence1", "sentence2", ("label",)),
        ("bool_q", "question", "passage", ("answer",)),
        # The third text is a row number.
        ("anli/r1", "context", "hypothesis", ("label",)),
    ],
)
def test_datasets_of_tfds(name, text, text_b, label):
    with tfds.testing.mock_data():
        assert choose_columns(opened(name, None)) == DatasetColumns(text, text_b, label)


def test_booleans_are_several_labels():
    with tfds.testing.mock_data():
        columns = choose_columns(opened("goemotions", None))
    assert (columns.text, columns.text_b) == ("comment_text", None)
    assert len(columns.label) == 28 and columns.label[:2] == ("admiration", "amusement")
    assert columns.label_column == "labels"


def test_an_unclear_label():
    with tfds.testing.mock_data():
        dataset = opened("trec", None)
    with pytest.raises(UserError) as caught:
        choose_columns(dataset)
    assert str(caught.value) == (
        "--dataset=trec: more than one feature may be the label. Choose with "
        "--label_column from label-coarse (class), label-fine (class), text (text)."
    )
    assert choose_columns(dataset, label_column="label-fine").label == ("label-fine",)


@pytest.mark.parametrize(
    ("kinds", "supervised_keys", "expected"),
    [
        ({"body": "text", "kind": "class"}, None, ("body", None, ("kind",))),
        ({"b": "text", "a": "text", "c": "class"}, None, ("a", "b", ("c",))),
        ({"text": "text", "note": "text", "c": "class"}, None, ("text", None, ("c",))),
        ({"id": "string", "a": "text", "c": "classes"}, None, ("a", None, ("c",))),
        ({"a": "text", "idx": "integer", "n": "number"}, None, ("a", None, ("n",))),
        (
            {"a": "text", "c": "class", "label": "integer"},
            None,
            ("a", None, ("label",)),
        ),
        (
            {"a": "text", "b": "text", "c": "text", "x": "class", "y": "class"},
            (("c", "a"), "y"),
            ("c", "a", ("y",)),
        ),
        (
            {"a": "text", "b": "text", "x": "class"},
            ({"one": "b"}, "x"),
            ("b", None, ("x",)),
        ),
    ],
)
def test_made_up_ones(kinds, supervised_keys, expected):
    dataset = made_up(kinds, supervised_keys)
    assert choose_columns(dataset) == DatasetColumns(*expected)


TEXTS = {"a": "text", "b": "text", "c": "text", "x": "integer", "y": "integer"}


def test_flags_come_first():
    dataset = made_up(TEXTS, ("a", "x"))
    assert choose_columns(dataset, "b", "c", "y") == DatasetColumns("b", "c", ("y",))
    assert choose_columns(dataset, "b") == DatasetColumns("b", None, ("x",))
    assert choose_columns(dataset, None, "b").text_b == "b"
    several = choose_columns(dataset, "a", None, "x,y")
    assert several.label == ("x", "y") and several.label_column == "labels"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({}, "more than two features may be the text. Choose with --text_column"),
        ({"text_column": "a"}, "more than one feature may be the label. .* x [(]int"),
        ({"text_column": "d"}, "has no feature d. Its features are a [(]text[)], b"),
        ({"text_column": "x", "label_column": "y"}, "x is not a text but integer"),
        ({"text_column": "a", "label_column": "a"}, "must be different features"),
        (
            {"text_column": "a", "label_column": "x,b"},
            "b [(]text[)] cannot be one of several labels",
        ),
    ],
)
def test_what_is_refused(flags, message):
    with pytest.raises(UserError, match=f"^--dataset=made_up.*{message}"):
        choose_columns(made_up(TEXTS), **flags)


def test_texts_without_labels():
    dataset = made_up({"a": "text"})
    assert choose_columns(dataset, needs_label=False) == DatasetColumns("a", None, ())
    with pytest.raises(UserError, match="no feature may be the label"):
        choose_columns(dataset)
    with pytest.raises(UserError, match="no feature may be the text"):
        choose_columns(made_up({"x": "class"}))
    with pytest.raises(UserError, match="t .sequence of text. cannot be a label"):
        choose_columns(made_up({"a": "text", "t": "texts"}), label_column="t")
