"""`task.json` and a config's labels are written, read, and checked for damage."""

import dataclasses
import json

import pytest
import tiny_model

from official_bert.errors import UserError
from official_bert.fine_tuning.config_labels import labels_of
from official_bert.fine_tuning.task_file import has_task, read_task, write_task
from official_bert.tables.columns import Columns
from official_bert.tasks.classifier.task import (
    ClassifierTask,
    task_of,
    written_config,
)

SINGLE = ClassifierTask("single_label", ("no", "yes"), ("accuracy",), 128)
MULTI = ClassifierTask(
    "multi_label",
    ("a", "ö 老", "\u2028"),
    ("f1", "accuracy"),
    64,
    long_text="window",
    threshold=0.3,
    label_separator=";",
    columns=Columns("title", "body", None, False),
)
NUMBER = ClassifierTask(
    "regression",
    (),
    ("pearson", "spearman"),
    256,
    "sts-b",
    columns=Columns("0", None, "1", True),
)
CONFIG = tiny_model.MINI_CONFIG


@pytest.mark.parametrize("task", [SINGLE, MULTI, NUMBER])
def test_there_and_back(tmp_path, task):
    values = json.loads(json.dumps(task.to_dict()))
    assert ClassifierTask.from_dict(values) == task
    assert not has_task(str(tmp_path))
    write_task(str(tmp_path), task, 1234)
    assert has_task(str(tmp_path))
    assert read_task(str(tmp_path), ClassifierTask) == (task, 1234)
    written = json.loads((tmp_path / "task.json").read_text("utf-8"))
    assert written == {"task": "classifier", **values, "global_step": 1234}
    found = read_task(str(tmp_path), ClassifierTask)[0]
    # A frozen dataclass is hashable only if its attributes are.
    assert hash(found) == hash(task)


def test_scores_of_the_model():
    assert SINGLE.num_outputs == 2 and MULTI.num_outputs == 3
    assert NUMBER.num_outputs == 1


def test_what_a_later_version_adds_is_left_aside():
    assert ClassifierTask.from_dict(SINGLE.to_dict() | {"new": 1}) == SINGLE


def message_of(directory):
    with pytest.raises(UserError) as caught:
        read_task(str(directory), ClassifierTask)
    message = str(caught.value)
    assert message.endswith(".") and "\n" not in message
    return message


def test_no_task(tmp_path):
    assert message_of(tmp_path) == (
        f"{tmp_path} has no task.json, so it is not the output directory of a "
        "finished fine-tuning. Train first."
    )


@pytest.mark.parametrize("text", ["", "{", '{"task": "classifier", "kind'])
def test_a_torn_file(tmp_path, text):
    (tmp_path / "task.json").write_text(text)
    assert "task.json" in message_of(tmp_path)


@pytest.mark.parametrize("text", ["{}", '{"task": null}', '{"task": "ner"}'])
def test_another_task(tmp_path, text):
    (tmp_path / "task.json").write_text(text)
    assert "task.json does not describe a classifier: its task is " in message_of(
        tmp_path
    )


@pytest.mark.parametrize("text", ["[]", "null", '"classifier"', "7"])
def test_another_file(tmp_path, text):
    (tmp_path / "task.json").write_text(text)
    assert "it is not a JSON object." in message_of(tmp_path)


@pytest.mark.parametrize("name", [*SINGLE.to_dict(), "global_step"])
def test_a_value_that_is_missing(tmp_path, name):
    write_task(str(tmp_path), SINGLE, 7)
    values = json.loads((tmp_path / "task.json").read_text())
    del values[name]
    (tmp_path / "task.json").write_text(json.dumps(values))
    assert f"is damaged (KeyError: '{name}')" in message_of(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "binary"},
        {"kind": None},
        {"labels": None},
        {"labels": 2},
        # Neither the letters of one label, nor a classifier without labels.
        {"labels": "yes"},
        {"labels": []},
        {"metrics": "accuracy"},
        {"metrics": None},
        {"max_seq_length": 2},
        {"max_seq_length": "128"},
        {"max_seq_length": None},
        {"long_text": "cut"},
        {"threshold": 0},
        {"threshold": 1},
        {"threshold": "0.5"},
        {"threshold": None},
        {"threshold": float("nan")},
        {"columns": "text"},
        {"columns": {"text": "a"}},
        {"columns": {"text": "a", "other": 1}},
        {"global_step": None},
        {"global_step": "seven"},
    ],
)
def test_a_damaged_value(tmp_path, change):
    values = {"task": "classifier", **SINGLE.to_dict(), "global_step": 7}
    (tmp_path / "task.json").write_text(json.dumps(values | change))
    message = message_of(tmp_path)
    assert "task.json is damaged" in message and "train again." in message


def test_the_labels_go_with_the_config():
    config = written_config(CONFIG, SINGLE)
    assert config.extra["id2label"] == {"0": "no", "1": "yes"}
    assert config.extra["label2id"] == {"no": 0, "yes": 1}
    assert config.extra["problem_type"] == "single_label_classification"
    assert dataclasses.replace(config, extra=CONFIG.extra) == CONFIG
    again = type(config).from_dict(json.loads(json.dumps(config.to_dict())))
    assert labels_of(again) == ("no", "yes")


def test_labels_of_another_task_do_not_stay():
    config = written_config(CONFIG, MULTI)
    config = dataclasses.replace(config, extra=config.extra | {"mine": 1})
    number = written_config(config, NUMBER)
    assert number.extra == {**CONFIG.extra, "mine": 1, "problem_type": "regression"}
    assert labels_of(number) == ()


def test_more_than_ten_labels_are_in_the_order_of_their_numbers():
    task = dataclasses.replace(SINGLE, labels=tuple(f"label {i}" for i in range(12)))
    numbered = written_config(CONFIG, task).extra["id2label"]
    # As written by a tool that sorts the keys.
    as_text = dict(sorted(numbered.items()))
    assert list(as_text)[:3] == ["0", "1", "10"]
    config = dataclasses.replace(CONFIG, extra={"id2label": as_text})
    assert labels_of(config) == task.labels


def test_a_number_needs_no_label():
    task = task_of(written_config(CONFIG, NUMBER))
    assert (task.kind, task.labels, task.num_outputs) == ("regression", (), 1)


def test_a_config_without_labels():
    assert labels_of(CONFIG) == () and task_of(CONFIG) is None
    for value in (None, [], {}):
        config = dataclasses.replace(CONFIG, extra={"id2label": value})
        assert task_of(config) is None


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        (None, "single_label"),
        ("single_label_classification", "single_label"),
        ("multi_label_classification", "multi_label"),
    ],
)
def test_a_task_from_a_config(problem, kind):
    extra = {"id2label": {"0": "no", "1": "yes"}, "problem_type": problem}
    task = task_of(dataclasses.replace(CONFIG, extra=extra))
    assert (task.kind, task.labels) == (kind, ("no", "yes"))
    assert task.max_seq_length == CONFIG.max_position_embeddings


@pytest.mark.parametrize("extra", [{}, {"problem_type": None}])
def test_one_label_alone_is_a_number(extra):
    """As in Hugging Face: a model with one output is a regression."""
    extra = {"id2label": {"0": "LABEL_0"}, **extra}
    task = task_of(dataclasses.replace(CONFIG, extra=extra))
    assert task.kind == "regression" and task.num_outputs == 1
