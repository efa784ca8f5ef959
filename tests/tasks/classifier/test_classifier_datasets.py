"""A TFDS dataset is read like a user's files."""

import logging

import numpy as np
import pytest
from named_datasets import opened, prepare_rows, tfds

from official_bert.errors import UserError
from official_bert.tasks.classifier.data import OwnFiles, read_own, read_own_for
from official_bert.tasks.classifier.datasets import as_own_files
from official_bert.tasks.glue.tasks import TASKS

ALL = ("train", "dev", "test")
NAMES = ["positive", "negative"]


def rows_of(count, labels=NAMES, word="text"):
    return [
        {"text": f"{word} {number}", "label": labels[number % len(labels)]}
        for number in range(count)
    ]


def prepared(folder, splits, label=None, **more):
    features = {
        "text": tfds.features.Text(),
        "label": label or tfds.features.ClassLabel(names=NAMES),
        **more,
    }
    prepare_rows("reviews", folder, features, splits)
    return opened("reviews", folder)


def read(dataset, wanted=ALL, **flags):
    own = as_own_files(dataset, OwnFiles(None, None, None, **flags), wanted)
    return read_own(own, 32, "truncate", wanted)


def test_all_splits(tmp_path):
    test = [*rows_of(3, word="test"), {"text": "test 3", "label": -1}]
    splits = {"train": rows_of(6), "validation": rows_of(4, word="dev"), "test": test}
    data = read(prepared(tmp_path, splits))
    task = data.task
    # The labels have TFDS's order, not the natural one.
    assert (task.kind, task.labels) == ("single_label", ("positive", "negative"))
    assert task.metrics == ("accuracy", "macro_f1")
    assert (task.columns.text, task.columns.text_b) == ("text", None)
    assert (task.columns.label, task.columns.has_header) == ("label", True)
    found = {
        one.text_a: one.label
        for one in [*data.train, *data.dev["dev"], *data.test["test"]]
    }
    assert len(found) == 6 + 4 + 4
    assert found["text 0"] == found["dev 2"] == found["test 0"] == "positive"
    assert found["text 1"] == "negative" and found["test 3"] is None


def test_a_dev_set_is_split_off(tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="absl")
    splits = {"train": rows_of(20), "test": rows_of(4, word="test")}
    data = read(prepared(tmp_path, splits), dev_fraction=0.2)
    assert (len(data.train), len(data.dev["dev"])) == (16, 4)
    assert "reviews (train): 4 of 20 rows were split off as the dev set" in caplog.text
    assert "reviews: texts are text, labels are label" in caplog.text


def test_rows_without_a_label_are_left_out(tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="absl")
    rows = [*rows_of(4), {"text": "unknown", "label": -1}, {"text": " ", "label": 0}]
    data = read(prepared(tmp_path, {"train": rows}), ("train",))
    assert {one.text_a for one in data.train} == {f"text {n}" for n in range(4)}
    assert "1 row without a label was left out" in caplog.text
    assert "1 row without a text was left out" in caplog.text


@pytest.mark.parametrize(
    ("feature", "labels", "flags", "kind", "names"),
    [
        (np.int32, [0, 4], {}, "single_label", ("0", "4")),
        (np.float32, [0.5, 3.8, 1.25, 2.0, 4.5], {}, "regression", ()),
        (np.int32, [0, 4], {"label_kind": "regression"}, "regression", ()),
        (np.bool_, [True, False], {}, "single_label", ("false", "true")),
        (
            tfds.features.Sequence(tfds.features.ClassLabel(names=["z", "a"])),
            [["z"], ["a", "z"], []],
            {},
            "multi_label",
            ("z", "a"),
        ),
    ],
)
def test_kinds_of_labels(tmp_path, feature, labels, flags, kind, names):
    dataset = prepared(tmp_path, {"train": rows_of(5, labels)}, feature)
    data = read(dataset, ("train",), **flags)
    assert (data.task.kind, data.task.labels) == (kind, names)
    found = {one.text_a: one.label for one in data.train}
    if kind == "regression":
        assert found["text 1"] == labels[1] and type(found["text 1"]) is float
    if kind == "multi_label":
        assert found["text 1"] == ("a", "z") and found["text 2"] == ()


def test_several_features_are_labels(tmp_path):
    rows = [
        {"text": f"text {n}", "label": "positive", "rude": n % 2, "long": n % 3 == 0}
        for n in range(6)
    ]
    dataset = prepared(tmp_path, {"train": rows}, rude=np.int32, long=np.bool_)
    data = read(dataset, ("train",), label_column="rude,long")
    assert (data.task.kind, data.task.labels) == ("multi_label", ("rude", "long"))
    found = {one.text_a: one.label for one in data.train}
    assert found["text 3"] == ("rude", "long") and found["text 2"] == ()


def test_a_model_that_is_fine_tuned(tmp_path):
    splits = {"train": rows_of(6), "test": rows_of(4, word="test")}
    dataset = prepared(tmp_path, splits)
    task = read(dataset, ("train",)).task
    own = as_own_files(dataset, OwnFiles(None, None, None), ("test",))
    data = read_own_for(task, own, 16, "window", ("test",))
    assert (data.train, data.dev, len(data.test["test"])) == (None, {}, 4)
    assert data.task.max_seq_length == 16
    with pytest.raises(UserError) as caught:
        as_own_files(dataset, OwnFiles(None, None, None), ("dev",))
    assert str(caught.value) == (
        "--dataset=reviews has no validation split. --do_train with --do_eval splits "
        "one off the training set; --do_predict scores the test set."
    )
    other = prepared(
        tmp_path / "b", {"test": rows_of(4, ["yes"])}, tfds.features.Text()
    )
    own = as_own_files(other, OwnFiles(None, None, None), ("test",))
    with pytest.raises(UserError, match="unknown label 'yes'"):
        read_own_for(task, own, 16, "window", ("test",))


def test_a_missing_split(tmp_path):
    dataset = prepared(tmp_path, {"test": rows_of(4)})
    for part, name in (("train", "train"), ("dev", "validation")):
        with pytest.raises(UserError, match=f"has no {name} split, only test"):
            as_own_files(dataset, OwnFiles(None, None, None), (part,))


def test_mocked_data():
    """TFDS's mock data for tests have random rows, and accept any split name."""
    with tfds.testing.mock_data(num_examples=8):
        data = read(opened("imdb_reviews", None))
    assert data.task.labels == ("neg", "pos")
    assert len(data.train) == len(data.dev["dev"]) == len(data.test["test"]) == 8
    assert {one.label for one in data.train} <= {"neg", "pos"}


def test_a_language_of_xnli(tmp_path):
    """Its texts have translations, and a model of MNLI has its labels."""
    languages = ("de", "zh")
    features = {
        "premise": tfds.features.Translation(languages=languages),
        "hypothesis": tfds.features.TranslationVariableLanguages(languages=languages),
        "label": tfds.features.ClassLabel(
            names=["entailment", "neutral", "contradiction"]
        ),
    }
    rows = [
        {
            "premise": {"de": "eins", "zh": "一"},
            "hypothesis": {"de": "zwei", "zh": "二"},
            "label": "neutral",
        }
    ]
    prepare_rows("xnli", tmp_path, features, {"test": rows, "validation": rows})
    # TFDS's code has another version, so it is not used.
    for language, texts in {"de": ("eins", "zwei"), "zh": ("一", "二")}.items():
        dataset = opened(f"xnli/{language}:1.0.0", tmp_path)
        assert dataset.name == f"xnli/{language}"
        own = as_own_files(dataset, OwnFiles(None, None, None), ("dev", "test"))
        (row,) = own.test_file.rows
        assert row.cells == (*texts, "neutral")
        assert own.dev_file.rows == own.test_file.rows
        assert set(own.label_names) == set(TASKS["mnli"].labels)
    with pytest.raises(UserError, match="has no train split, only test, validation"):
        as_own_files(dataset, OwnFiles(None, None, None), ("train",))
