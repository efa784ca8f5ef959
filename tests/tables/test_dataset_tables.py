"""Rows of a dataset become a `Table` with the right kind of labels."""

import types

import numpy as np
import pytest
from named_datasets import tfds

from official_bert.errors import UserError
from official_bert.tables.dataset_columns import DatasetColumns
from official_bert.tables.dataset_tables import label_kind, label_names, read_table
from official_bert.tables.datasets import Dataset

FEATURES = tfds.features.FeaturesDict(
    {
        "text": tfds.features.Text(),
        "second": tfds.features.Text(),
        "grade": tfds.features.ClassLabel(names=["low", "high"]),
        "topics": tfds.features.Sequence(tfds.features.ClassLabel(names=["x", "y"])),
        "yes": np.bool_,
        "no": np.bool_,
        "stars": np.int64,
        "score": np.float32,
        "name": tfds.features.Text(),
    }
)
ROWS = [
    {
        **{"text": "one", "second": "two", "grade": 1, "topics": [1, 0], "yes": True},
        **{"no": False, "stars": 4, "score": 3.8, "name": "Ada"},
    },
    {
        **{"text": "", "second": "b", "grade": -1, "topics": [], "yes": False},
        **{"no": False, "stars": 0, "score": 2.0, "name": "好"},
    },
]


class Rows(Dataset):
    """A `Dataset` with these rows instead of TFDS's."""

    def rows(self, split):
        assert split == "train"
        return iter(ROWS)


@pytest.fixture
def dataset():
    info = types.SimpleNamespace(features=FEATURES)
    return Rows("made_up", types.SimpleNamespace(info=info))


@pytest.mark.parametrize(
    ("label", "cells", "kind", "names"),
    [
        (("grade",), ["high", ""], "single_label", ("low", "high")),
        (("topics",), [["y", "x"], []], "multi_label", ("x", "y")),
        (("yes",), ["true", "false"], "single_label", ("false", "true")),
        (("yes", "no"), [["yes"], []], "multi_label", ("yes", "no")),
        (("stars",), ["4", "0"], None, ()),
        (("score",), ["3.8", "2"], None, ()),
        (("name",), ["Ada", "好"], None, ()),
    ],
)
def test_labels(dataset, label, cells, kind, names):
    table = read_table(dataset, "train", DatasetColumns("text", None, label))
    column = label[0] if len(label) == 1 else "labels"
    assert (table.columns, table.has_header) == (("text", column), True)
    assert [row.cells for row in table.rows] == [("one", cells[0]), ("", cells[1])]
    assert [row.line for row in table.rows] == [1, 2]
    assert table.path == "made_up (train)"
    assert label_kind(dataset, label) == kind
    assert label_names(dataset, label) == names


def test_pairs_and_no_labels(dataset):
    table = read_table(dataset, "train", DatasetColumns("text", "second", ()))
    assert table.columns == ("text", "second")
    assert [row.cells for row in table.rows] == [("one", "two"), ("", "b")]


def test_one_of_several_labels_is_0_or_1(dataset):
    columns = DatasetColumns("text", None, ("yes", "stars"))
    with pytest.raises(UserError, match=r"made_up \(train\): row 1: stars is 4, but"):
        read_table(dataset, "train", columns)


def test_no_rows(dataset, monkeypatch):
    monkeypatch.setattr(Rows, "rows", lambda self, split: iter(()))
    with pytest.raises(UserError, match=r"made_up \(train\) has no rows"):
        read_table(dataset, "train", DatasetColumns("text", None, ()))
