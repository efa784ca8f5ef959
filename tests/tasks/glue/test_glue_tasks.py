"""The table of GLUE's tasks matches its specification."""

import pytest

from official_bert.errors import UserError
from official_bert.metrics import glue
from official_bert.tasks.glue.tasks import TASKS, find_task

# Columns of train and dev (text_a, text_b, label) and of test (text_a, text_b).
COLUMNS = {
    "cola": ((3, None, 1), (1, None)),
    "sst-2": ((0, None, 1), (1, None)),
    "mrpc": ((3, 4, 0), (3, 4)),
    "qqp": ((3, 4, 5), (1, 2)),
    "sts-b": ((-3, -2, -1), (-2, -1)),
    "mnli": ((8, 9, -1), (8, 9)),
    "mnli-mm": ((8, 9, -1), (8, 9)),
    "qnli": ((1, 2, 3), (1, 2)),
    "rte": ((1, 2, 3), (1, 2)),
    "wnli": ((1, 2, 3), (1, 2)),
}

FIRST_METRICS = {
    "cola": "matthews_correlation",
    "ax": "matthews_correlation",
    "mrpc": "f1",
    "qqp": "f1",
    "sts-b": "pearson",
}

SUBMISSIONS = {
    "cola": "CoLA.tsv",
    "sst-2": "SST-2.tsv",
    "mrpc": "MRPC.tsv",
    "sts-b": "STS-B.tsv",
    "qqp": "QQP.tsv",
    "mnli": "MNLI-m.tsv",
    "mnli-mm": "MNLI-mm.tsv",
    "ax": "AX.tsv",
    "qnli": "QNLI.tsv",
    "rte": "RTE.tsv",
    "wnli": "WNLI.tsv",
    "xnli": None,
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns(name):
    labelled, unlabelled = COLUMNS[name]
    layouts = TASKS[name].layouts
    for split in ("train", "dev"):
        layout = layouts[split]
        assert (layout.text_a, layout.text_b, layout.label) == labelled
        assert layout.num_columns == (4 if name == "cola" else None)
    assert (layouts["test"].text_a, layouts["test"].text_b) == unlabelled
    assert layouts["test"].label is None
    assert layouts["test"].num_columns is None


def test_labels_in_order():
    three = ("contradiction", "entailment", "neutral")
    for name in ("mnli", "mnli-mm", "ax", "xnli"):
        assert TASKS[name].labels == three
    for name in ("qnli", "rte"):
        assert TASKS[name].labels == ("entailment", "not_entailment")
    for name in ("cola", "sst-2", "mrpc", "qqp", "wnli"):
        assert TASKS[name].labels == ("0", "1")
    assert TASKS["sts-b"].labels == ()
    assert TASKS["sts-b"].label_range == (0, 5)


def test_metrics():
    for name, task in TASKS.items():
        assert task.metrics[0] == FIRST_METRICS.get(name, "accuracy")
        assert set(task.metrics) <= set(glue.METRICS)
    assert TASKS["mrpc"].metrics == TASKS["qqp"].metrics == ("f1", "accuracy")
    assert TASKS["sts-b"].metrics == ("pearson", "spearman")


def test_the_server_takes_11_files():
    found = {name: task.submission for name, task in TASKS.items()}
    assert found == SUBMISSIONS


@pytest.mark.parametrize(
    ("written", "name"),
    [("MRPC", "mrpc"), ("SST-2", "sst-2"), ("sst2", "sst-2"), ("mnli_mm", "mnli-mm")],
)
def test_names_as_people_write_them(written, name):
    assert find_task(written) is TASKS[name]


def test_a_task_there_is_not():
    with pytest.raises(
        UserError, match="--task_name=boolq does not exist. Choose one of cola, sst-2"
    ):
        find_task("boolq")
