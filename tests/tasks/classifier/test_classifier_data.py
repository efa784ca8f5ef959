"""Data for training, evaluation and prediction are read from GLUE and tables."""

import dataclasses
import json
import logging

import pytest

from official_bert.errors import UserError
from official_bert.metrics import glue
from official_bert.tables.columns import Columns
from official_bert.tables.examples import Example
from official_bert.tasks.classifier import data as classifier_data
from official_bert.tasks.classifier.data import (
    OwnFiles,
    check_same_answers,
    glue_classifier_task,
    in_order_of,
    read_glue,
    read_own,
    read_own_for,
    read_texts,
)
from official_bert.tasks.classifier.task import ClassifierTask
from official_bert.tasks.glue import files as glue_files
from official_bert.tasks.glue.tasks import TASKS

ALL = ("train", "dev", "test")
# Ten texts of each label, all different.
ROWS = [(f"text number {i}", "good" if i % 2 else "bad") for i in range(20)]


FOLDER = "glue_data"


def imitate_files(monkeypatch, missing=()):
    """Return a list that grows with each read; `missing`: (task, split)."""
    calls = []

    def read(task, data_dir, split):
        assert data_dir == FOLDER
        calls.append((task.name, split))
        if (task.name, split) in missing:
            raise UserError(f"no {split} of {task.name}.")
        return [Example(f"{split}-0", f"{task.name} {split}")]

    def has(task, data_dir, split):
        return data_dir == FOLDER and (task.name, split) not in missing

    monkeypatch.setattr(glue_files, "read_examples", read)
    monkeypatch.setattr(glue_files, "has_examples", has)
    return calls


def texts_of(sets):
    return {name: [each.text_a for each in found] for name, found in sets.items()}


def test_a_glue_task(monkeypatch):
    calls = imitate_files(monkeypatch)
    data = read_glue(TASKS["rte"], FOLDER, 99, "window", ALL)
    assert data.task == ClassifierTask(
        "single_label",
        ("entailment", "not_entailment"),
        ("accuracy",),
        99,
        "rte",
        "window",
    )
    assert [each.text_a for each in data.train] == ["rte train"]
    assert texts_of(data.dev) == {"rte": ["rte dev"]}
    assert texts_of(data.test) == {"rte": ["rte test"]}
    assert sorted(calls) == [("rte", "dev"), ("rte", "test"), ("rte", "train")]


def test_a_glue_task_of_numbers():
    task = glue_classifier_task(TASKS["sts-b"], 128, "truncate")
    assert (task.kind, task.labels) == ("regression", ())
    assert task.metrics == ("pearson", "spearman") and task.name == "sts-b"


@pytest.mark.parametrize("wanted", [(), ("train",), ("dev",), ("test",), ALL])
def test_nothing_is_read_that_is_not_wanted(wanted, monkeypatch):
    calls = imitate_files(monkeypatch)
    data = read_glue(TASKS["cola"], FOLDER, 128, "truncate", wanted)
    assert sorted(calls) == sorted(("cola", split) for split in wanted)
    assert (data.train is None) == ("train" not in wanted)
    assert bool(data.dev) == ("dev" in wanted)
    assert bool(data.test) == ("test" in wanted)


def test_mnli_with_its_companions(monkeypatch):
    calls = imitate_files(monkeypatch)
    data = read_glue(TASKS["mnli"], FOLDER, 128, "truncate", ALL)
    # In this order: the first set selects the best model, and has the plain names.
    assert list(data.dev) == ["mnli", "mnli-mm"]
    assert list(data.test) == ["mnli", "mnli-mm", "ax"]
    assert data.test["ax"][0].text_a == "ax test"
    assert ("ax", "dev") not in calls and ("mnli-mm", "train") not in calls


def test_companions_may_be_missing_but_not_the_task_itself(monkeypatch):
    imitate_files(monkeypatch, {("mnli-mm", "dev"), ("ax", "test")})
    data = read_glue(TASKS["mnli"], FOLDER, 128, "truncate", ALL)
    assert list(data.dev) == ["mnli"]
    assert list(data.test) == ["mnli", "mnli-mm"]
    imitate_files(monkeypatch, {("mnli", "dev")})
    with pytest.raises(UserError, match="no dev of mnli."):
        read_glue(TASKS["mnli"], FOLDER, 128, "truncate", ALL)


def write(folder, name, rows, header=("text", "label")):
    path = folder / name
    lines = ["\t".join(row) for row in (header, *rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def train_file(tmp_path):
    return write(tmp_path, "train.tsv", ROWS)


def test_own_files(tmp_path, train_file):
    dev = write(tmp_path, "dev.tsv", [("new", "good"), ("other", "bad")])
    test = write(tmp_path, "test.tsv", [("one", "1"), ("", "2")], ("text", "id"))
    own = OwnFiles(train_file, dev, test)
    data = read_own(own, 50, "window", ALL)
    assert data.task == ClassifierTask(
        "single_label",
        ("bad", "good"),
        ("accuracy", "macro_f1"),
        50,
        long_text="window",
        columns=Columns("text", None, "label", True),
    )
    assert [(each.text_a, each.label) for each in data.train] == ROWS
    assert [each.label for each in data.dev["dev"]] == ["good", "bad"]
    # Each row gets a prediction, also rows without a text.
    assert texts_of(data.test) == {"test": ["one", ""]}
    assert [each.label for each in data.test["test"]] == [None, None]


def test_a_dev_set_is_split_off(train_file, caplog):
    own = OwnFiles(train_file, None, None, dev_fraction=0.2)
    with caplog.at_level(logging.INFO, logger="absl"):
        data = read_own(own, 128, "truncate", ("train", "dev"))
    assert len(data.train) == 16 and data.test == {}
    assert sorted(each.label for each in data.dev["dev"]) == ["bad"] * 2 + ["good"] * 2
    both = {each.guid for each in data.train} & {each.guid for each in data.dev["dev"]}
    assert not both
    assert (
        f"{train_file}: 4 of 20 rows were split off as the dev set (--dev_file names "
        "another dev set)." in caplog.messages
    )
    assert "also in the training set" not in caplog.text
    # The split does not depend on the wanted sets, so a later evaluation has it too.
    later = read_own(own, 128, "truncate", ("dev",))
    assert later.dev == data.dev and later.train is None


def test_all_rows_train_where_no_dev_set_is_wanted(train_file):
    data = read_own(OwnFiles(train_file, None, None), 128, "truncate", ("train",))
    assert len(data.train) == 20 and data.dev == {} and data.test == {}


def test_guesses_and_balance_are_logged(train_file, caplog):
    with caplog.at_level(logging.INFO, logger="absl"):
        read_own(OwnFiles(train_file, None, None), 128, "truncate", ("train",))
    assert f"{train_file}: column 'text' is used as the text" in caplog.text
    assert f"{train_file}: the labels are read as single_label" in caplog.text
    assert "good   10  50.0 %" in caplog.messages


def test_texts_that_sets_share_are_warned_of(tmp_path, train_file, caplog):
    dev = write(tmp_path, "dev.tsv", [ROWS[0], ROWS[3], ("new", "good")])
    test = write(tmp_path, "test.tsv", [("text   number 5 ", "good")])
    with caplog.at_level(logging.WARNING):
        read_own(OwnFiles(train_file, dev, test), 128, "truncate", ALL)
    assert caplog.messages == [
        "2 of 3 dev texts are also in the training set, so their scores say little "
        "about new texts.",
        "1 of 1 test texts are also in the training set, so their scores say little "
        "about new texts.",
    ]


@pytest.mark.parametrize(
    ("cells", "named", "kind", "labels", "metrics"),
    [
        (["a;b", "a", "b;a"], {"label_separator": ";"}, "multi_label", "ab", "f1"),
        (["1.5", "2.25", "0.5"], {}, "regression", "", "pearson"),
        (["3", "1", "3"], {}, "single_label", "13", "accuracy"),
        (["3", "1", "3"], {"label_kind": "regression"}, "regression", "", "pearson"),
    ],
)
def test_kinds_of_labels(tmp_path, cells, named, kind, labels, metrics):
    rows = [(f"text {i}", cell) for i, cell in enumerate(cells)]
    path = write(tmp_path, "train.tsv", rows)
    data = read_own(OwnFiles(path, None, None, **named), 128, "truncate", ("train",))
    assert (data.task.kind, data.task.labels) == (kind, tuple(labels))
    assert data.task.metrics[0] == metrics
    assert data.task.label_separator == named.get("label_separator")


def test_a_dev_file_must_keep_to_the_labels(tmp_path, train_file):
    dev = write(tmp_path, "dev.tsv", [("new", "soso")])
    with pytest.raises(UserError, match="unknown label 'soso'"):
        read_own(OwnFiles(train_file, dev, None), 128, "truncate", ("train", "dev"))


TASK = ClassifierTask(
    "single_label",
    ("bad", "good"),
    ("accuracy", "macro_f1"),
    64,
    threshold=0.4,
    columns=Columns("text", None, "label", True),
)


def test_own_files_for_a_model_that_is_there(tmp_path):
    dev = write(tmp_path, "dev.tsv", [("new", "good"), ("", "bad"), ("x", "")])
    test = write(tmp_path, "test.tsv", [("one",)], ("text",))
    own = OwnFiles(None, dev, test)
    data = read_own_for(TASK, own, 32, "window", ("dev", "test"))
    assert (data.task.max_seq_length, data.task.long_text) == (32, "window")
    assert data.task.labels == TASK.labels and data.task.threshold == 0.4
    assert data.train is None
    assert [(each.text_a, each.label) for each in data.dev["dev"]] == [("new", "good")]
    assert texts_of(data.test) == {"test": ["one"]}
    assert read_own_for(TASK, own, 32, "window", ("test",)).dev == {}


def test_a_label_the_model_does_not_know(tmp_path):
    dev = write(tmp_path, "dev.tsv", [("new", "soso")])
    with pytest.raises(UserError, match="dev.tsv.*unknown label 'soso'"):
        read_own_for(TASK, OwnFiles(None, dev, None), 64, "truncate", ("dev",))


def test_labels_with_the_model_s_separator(tmp_path):
    task = ClassifierTask(
        "multi_label",
        ("a", "b"),
        ("f1", "accuracy"),
        64,
        label_separator=";",
        columns=Columns("text", None, "label", True),
    )
    dev = write(tmp_path, "dev.tsv", [("one", "a;b"), ("two", "b")])
    own = OwnFiles(None, dev, None)
    data = read_own_for(task, own, 64, "truncate", ("dev",))
    assert [each.label for each in data.dev["dev"]] == [("a", "b"), ("b",)]
    dev = write(tmp_path, "dev.tsv", [("one", "a|b"), ("two", "b")])
    own = OwnFiles(None, dev, None, label_separator="|")
    data = read_own_for(task, own, 64, "truncate", ("dev",))
    assert [each.label for each in data.dev["dev"]] == [("a", "b"), ("b",)]


def glue_task():
    """A model that was not fine-tuned on a table."""
    return glue_classifier_task(TASKS["sst-2"], 64, "truncate")


def test_a_model_of_no_table_needs_to_be_told_the_columns(tmp_path):
    dev = write(tmp_path, "dev.tsv", [("1", "new")], ("stars", "review"))
    with pytest.raises(
        UserError, match="not fine-tuned on a table. Add --text_column .*label_column"
    ):
        read_own_for(glue_task(), OwnFiles(None, dev, None), 64, "truncate", ("dev",))
    own = OwnFiles(None, dev, None, text_column="review", label_column="stars")
    data = read_own_for(glue_task(), own, 64, "truncate", ("dev",))
    (example,) = data.dev["dev"]
    assert (example.text_a, example.label) == ("new", "1")


def test_a_dev_file_needs_a_label_column(tmp_path):
    """One sentence names the flag and recommends adding it."""
    dev = write(tmp_path, "dev.tsv", [("1", "new")], ("stars", "review"))
    own = OwnFiles(None, dev, None, text_column="review")
    with pytest.raises(UserError, match="--label_column"):
        read_own_for(glue_task(), own, 64, "truncate", ("dev",))


def test_columns_that_are_given_come_before_those_of_the_training(tmp_path):
    rows = [("one", "new", "good"), ("two", "other", "bad")]
    dev = write(tmp_path, "dev.tsv", rows, ("text", "comment", "verdict"))
    own = OwnFiles(None, dev, None, text_column="comment", label_column="verdict")
    data = read_own_for(TASK, own, 64, "truncate", ("dev",))
    found = [(each.text_a, each.label) for each in data.dev["dev"]]
    assert found == [("new", "good"), ("other", "bad")]


def test_texts(tmp_path):
    rows = [("one", "nobody knows this label"), ("", "good"), ("two", "")]
    path = write(tmp_path, "new.tsv", rows)
    found = read_texts(TASK, OwnFiles(None, None, path), "--input_file")
    assert [each.text_a for each in found] == ["one", "", "two"]
    assert [each.label for each in found] == [None] * 3
    own = OwnFiles(None, None, path, text_column="label")
    found = read_texts(TASK, own, "--input_file")
    assert [each.text_a for each in found] == ["nobody knows this label", "good", ""]


@pytest.mark.parametrize("has_header", [True, False])
def test_a_column_by_its_number_tells_nothing_of_a_header(tmp_path, has_header, caplog):
    """The training file had a header. For this file its first row decides."""
    caplog.set_level("INFO", logger="absl")
    rows = [("A fine film.", "3"), ("I left early.", "1"), ("Not bad at all.", "2")]
    path = write(
        tmp_path, "new.tsv", rows[1:], ("text", "n") if has_header else rows[0]
    )
    own = OwnFiles(None, None, path, text_column="0")
    found = [each.text_a for each in read_texts(TASK, own, "--input_file")]
    assert found == [text for text, _ in rows[has_header:]]
    what = "is a header" if has_header else "is not a header"
    assert f"new.tsv: the first row probably {what}" in caplog.text
    own = dataclasses.replace(own, has_header=not has_header)
    assert len(read_texts(TASK, own, "--input_file")) == len(found) + (
        1 if has_header else -1
    )


def test_a_header_that_the_training_file_lacked(tmp_path, caplog):
    caplog.set_level("INFO", logger="absl")
    task = dataclasses.replace(TASK, columns=Columns("0", None, "1", False))
    path = write(tmp_path, "new.tsv", [("A fine film.", "3"), ("I left.", "1")])
    found = read_texts(task, OwnFiles(None, None, path), "--input_file")
    assert [each.text_a for each in found] == ["text", "A fine film.", "I left."]
    assert "the first row looks like a header but is read as data" in (caplog.text)
    caplog.clear()
    path = write(tmp_path, "b.tsv", [("A fine film.", "3")], ("I left.", "1"))
    assert len(read_texts(task, OwnFiles(None, None, path), "--input_file")) == 2
    assert not caplog.text


def test_pairs_of_texts(tmp_path):
    path = tmp_path / "new.jsonl"
    path.write_text(json.dumps({"q": "why", "a": "so"}) + "\n")
    own = OwnFiles(None, None, str(path), text_column="q", text_b_column="a")
    (example,) = read_texts(glue_task(), own, "--input_file")
    assert (example.text_a, example.text_b) == ("why", "so")


def test_texts_that_are_not_there(tmp_path):
    path = write(tmp_path, "new.tsv", [("one",)], ("other",))
    with pytest.raises(UserError, match="--text_column: .* has no column 'text'"):
        read_texts(TASK, OwnFiles(None, None, path), "--input_file")
    with pytest.raises(UserError, match="--input_file: .*nowhere.tsv"):
        own = OwnFiles(None, None, str(tmp_path / "nowhere.tsv"))
        read_texts(TASK, own, "--input_file")
    with pytest.raises(UserError, match="not fine-tuned on a table") as caught:
        read_texts(glue_task(), OwnFiles(None, None, path), "--input_file")
    assert "--text_b_column" in str(caught.value)
    # predict.py does not have this flag.
    assert "--label_column" not in str(caught.value)


def test_the_model_answers_what_is_asked():
    rte = glue_classifier_task(TASKS["rte"], 128, "truncate")
    qnli = glue_classifier_task(TASKS["qnli"], 64, "window")
    assert check_same_answers(qnli, rte, "model") is None
    sst = glue_task()
    with pytest.raises(UserError) as caught:
        check_same_answers(sst, rte, "output/sst")
    assert str(caught.value) == (
        "output/sst was fine-tuned for the labels 0, 1, but rte has the labels "
        "entailment, not_entailment. Choose another model, or train one (--do_train)."
    )
    number = glue_classifier_task(TASKS["sts-b"], 128, "truncate")
    with pytest.raises(UserError, match="was fine-tuned for numbers, but rte has"):
        check_same_answers(number, rte, "output/stsb")
    multi = ClassifierTask("multi_label", rte.labels, ("f1",), 128)
    with pytest.raises(UserError, match="Choose another model"):
        check_same_answers(multi, rte, "output/multi")


def test_labels_in_the_order_of_a_model_s():
    mnli = TASKS["mnli"]
    order = ("ENTAILMENT", "Neutral", "contradiction")
    found = in_order_of(mnli, order)
    assert found.labels == ("entailment", "neutral", "contradiction")
    assert found.companions == mnli.companions
    others = [(), ("LABEL_0", "LABEL_1", "LABEL_2"), order[:2], (*order, "neutral")]
    for labels in others:
        assert in_order_of(mnli, labels) is mnli


def test_own_metrics_are_known():
    names = {n for names in classifier_data.OWN_METRICS.values() for n in names}
    assert names <= set(glue.METRICS)
