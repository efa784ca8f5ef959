"""Datasets by name become the same examples as files with these columns."""

import numpy as np
import pytest
from named_datasets import opened, prepare_glue, prepare_rows, tfds, write_glue

from official_bert.errors import UserError
from official_bert.tasks.embedding.datasets import read_dataset
from official_bert.tasks.embedding.files import ColumnNames, default_loss

TEXT = tfds.features.Text()
PAIR = {"first": TEXT, "second": TEXT, "idx": np.int32}


def classes(*names):
    return tfds.features.ClassLabel(names=list(names))


def texts_of(number):
    return {"first": f"light {number}", "second": f"water {number}", "idx": number}


def prepared(folder, name, label, values, features=PAIR):
    rows = [{**texts_of(number), "label": value} for number, value in enumerate(values)]
    prepare_rows(name, folder, {**features, "label": label}, {"train": rows})
    return opened(name, folder)


def scores(dataset, *columns, **settings):
    """Return text -> score of the split `train`."""
    found = read_dataset(dataset, "train", *columns, **settings)
    return {example.texts[0]: example.score for example in found}


@pytest.fixture(scope="module")
def glue(tmp_path_factory):
    folder = tmp_path_factory.mktemp("glue")
    write_glue(folder / "glue")
    for config in ("stsb", "qqp", "mnli", "rte"):
        prepare_glue(config, folder / "glue", folder / "tfds")
    return folder / "tfds"


def test_stsb(glue):
    found = read_dataset(opened("glue/stsb", glue), "validation")
    assert len(found) == 6 and default_loss(found) == "cosent"
    assert {0.0, 1.25, 2.615, 3.8, 4.75, 5.0} == {one.score for one in found}
    assert all(len(one.texts) == 2 for one in found)
    assert [one.guid for one in found] == list(range(1, 7))


def test_a_test_set_hides_its_scores(glue):
    dataset = opened("glue/stsb", glue)
    found = read_dataset(dataset, "test", with_scores=False)
    assert len(found) == 6 and all(one.score is None for one in found)


def test_the_class_of_duplicates_has_the_score_1(glue):
    found = read_dataset(opened("glue/qqp", glue), "train")
    rows = list(opened("glue/qqp", glue).rows("train"))
    assert [one.score for one in found] == [float(row["label"]) for row in rows]
    assert {one.score for one in found} == {0.0, 1.0}


def test_a_second_class_that_negates_the_first_has_the_score_0(glue):
    """RTE has `entailment` as class 0 and `not_entailment` as class 1."""
    found = read_dataset(opened("glue/rte", glue), "train")
    rows = list(opened("glue/rte", glue).rows("train"))
    assert [one.score for one in found] == [1.0 - row["label"] for row in rows]


def test_three_classes_are_not_a_score(glue):
    dataset = opened("glue/mnli", glue)
    with pytest.raises(UserError, match=r"--text_columns=premise,hypothesis"):
        read_dataset(dataset, "train")
    with pytest.raises(UserError, match="--score_column: label of glue/mnli"):
        read_dataset(dataset, "train", ColumnNames(score="label"))
    found = read_dataset(dataset, "train", ColumnNames(("premise", "hypothesis")))
    row = next(iter(dataset.rows("train")))
    assert found[0].texts == (row["premise"].strip(), row["hypothesis"].strip())
    assert found[0].score is None and default_loss(found) == "info_nce"


def test_the_only_two_texts(tmp_path):
    numbers = prepared(tmp_path, "numbers", np.float32, [0.25, 1])
    assert scores(numbers) == {"light 0": 0.25, "light 1": 1.0}
    swapped = read_dataset(numbers, "train", ColumnNames(("second", "first")))
    assert swapped[0].texts[0].startswith("water") and swapped[0].score is not None
    booleans = prepared(tmp_path, "booleans", np.bool_, [True, False])
    assert scores(booleans) == {"light 0": 1.0, "light 1": 0.0}


def test_a_hidden_class_is_refused_where_a_score_is_needed(tmp_path):
    dataset = prepared(tmp_path, "hidden", classes("no", "yes"), [0, -1])
    with pytest.raises(UserError, match="the score '', which is not a number"):
        read_dataset(dataset, "train")
    assert scores(dataset, with_scores=False) == {"light 0": None, "light 1": None}


def test_negatives_groups_and_single_texts(tmp_path):
    features = dict.fromkeys(("anchor", "positive", "negative"), TEXT)
    rows = [{"anchor": "light", "positive": "her light", "negative": "water"}]
    prepare_rows("triplets", tmp_path, features, {"train": rows})
    (only,) = read_dataset(opened("triplets", tmp_path), "train")
    assert only.texts == ("light", "her light", "water")

    rows = [{"texts": ["light", "her light"]}]
    features = {"texts": tfds.features.Sequence(TEXT)}
    prepare_rows("whole_groups", tmp_path, features, {"train": rows})
    (only,) = read_dataset(opened("whole_groups", tmp_path), "train")
    assert only.texts == ("light", "her light") and only.group == "1"

    rows = [{"body": text, "group_id": n // 2} for n, text in enumerate("abcd")]
    features = {"body": TEXT, "group_id": np.int32}
    prepare_rows("grouped", tmp_path, features, {"train": rows})
    found = read_dataset(opened("grouped", tmp_path), "train")
    assert {frozenset(one.texts) for one in found} == {
        frozenset("ab"),
        frozenset("cd"),
    }

    prepare_rows("single", tmp_path, {"body": TEXT}, {"train": [{"body": "light"}]})
    (only,) = read_dataset(opened("single", tmp_path), "train")
    assert only.texts == ("light",) and default_loss([only]) == "simcse"


def test_more_texts_need_a_choice(tmp_path):
    features = dict.fromkeys("abc", TEXT)
    row = dict.fromkeys("abc", "light")
    prepare_rows("three", tmp_path, features, {"train": [row]})
    dataset = opened("three", tmp_path)
    with pytest.raises(UserError, match="Choose --text_columns from .*'a'.*'b'.*'c'"):
        read_dataset(dataset, "train")
    (only,) = read_dataset(dataset, "train", ColumnNames(("a", "b", "c")))
    assert len(only.texts) == 3
    with pytest.raises(UserError, match="--text_columns: three .* no column 'd'"):
        read_dataset(dataset, "train", ColumnNames(("a", "d")))
