"""A classifier's reports on complete sets are correct, in files and on the terminal."""

import dataclasses
import json
import math
import types
import zipfile

import numpy as np
import pytest

from official_bert.tables.examples import Example
from official_bert.tasks.classifier import reports as classifier_reports
from official_bert.tasks.classifier import training as classifier
from official_bert.tasks.classifier.data import glue_classifier_task
from official_bert.tasks.classifier.features import Features
from official_bert.tasks.classifier.predictor import ClassifierPredictor
from official_bert.tasks.classifier.task import ClassifierTask
from official_bert.tasks.glue.tasks import TASKS

SINGLE = ClassifierTask("single_label", ("no", "yes"), ("f1", "accuracy"), 16)
MULTI = ClassifierTask("multi_label", ("a", "ö", "c"), ("f1", "accuracy"), 16)
NUMBER = ClassifierTask("regression", (), ("pearson", "spearman"), 16)


class FakePredictor:
    """Its logits are the numbers in the text."""

    features, results = ClassifierPredictor.features, ClassifierPredictor.results

    def __init__(self, task, global_step=7):
        self.task, self.global_step = task, global_step
        self.tokenizer = types.SimpleNamespace(
            vocab={"[CLS]": 0, "[SEP]": 0},
            encode=lambda text: [int(float(part) * 100) for part in text.split()],
        )

    def outputs(self, examples, features, batch_size=None):
        rows = [each[0].input_ids[1:-1] / 100 for each in features]
        return np.array(rows, np.float32)


def examples(*rows):
    """Return examples of (logits, label)."""
    return [Example(f"dev-{n}", text, None, y) for n, (text, y) in enumerate(rows)]


# Predictions: no, yes, yes, no, yes.
DEV = examples(
    ("2 0", "no"), ("0 1", "yes"), ("-1 1", "no"), ("3 0", "yes"), ("0 4", "yes")
)


def cross_entropy(margin):
    """Return -log of the probability of a class whose logit is larger by `margin`."""
    return math.log(1 + math.exp(-margin))


LOSSES = [cross_entropy(margin) for margin in (2, 1, -2, -3, 4)]


def windows(rows):
    return [[Features(np.array([0]), np.array([0]), label, 0)] for label in rows]


def evaluated(predictor, sets, directory, batch_size=8):
    classifier_reports.evaluate(predictor, sets, str(directory), batch_size)
    text = (directory / "eval_results.txt").read_text()
    assert text.endswith("\n")
    return dict(line.split(" = ") for line in text.splitlines())


def test_loss_is_the_mean_over_batches_and_eval_loss_that_over_texts():
    logits = np.array([[2, 0], [0, 1], [-1, 1], [3, 0], [0, 4]], np.float32)
    found = classifier.results(SINGLE, logits, windows([0, 1, 0, 1, 1]), 2)
    batches = [sum(LOSSES[:2]) / 2, sum(LOSSES[2:4]) / 2, LOSSES[4]]
    assert found == {
        "eval_loss": pytest.approx(sum(LOSSES) / 5, rel=1e-5),
        "loss": pytest.approx(sum(batches) / 3, rel=1e-5),
        "eval_accuracy": pytest.approx(3 / 5),
        # Two true positives, one false positive, one false negative.
        "eval_f1": pytest.approx(2 * 2 / (3 + 3)),
    }
    whole = classifier.results(SINGLE, logits, windows([0, 1, 0, 1, 1]), 5)
    assert whole["loss"] == pytest.approx(whole["eval_loss"])
    assert abs(found["loss"] - found["eval_loss"]) > 0.1


def test_results_of_a_number():
    """Squared errors are 1, 0, 4; batches of two have the means 0.5 and 4."""
    logits = np.array([[1], [2], [5]], np.float32)
    found = classifier.results(NUMBER, logits, windows([2.0, 2.0, 3.0]), 2)
    assert set(found) == {"eval_loss", "loss", "eval_pearson", "eval_spearman"}
    assert found["eval_loss"] == pytest.approx(5 / 3)
    assert found["loss"] == pytest.approx((0.5 + 4) / 2)


def test_results_of_several_labels():
    """The threshold applies to the scores; the loss is also a mean over labels."""
    logits = np.array([[2, -2], [-1, 3], [0.5, 0.5]], np.float32)
    task = dataclasses.replace(MULTI, labels=("a", "b"), threshold=0.7)
    found = classifier.results(task, logits, windows([(1, 0), (0, 1), (1, 0)]), 2)
    # Logit 0.5 is a probability of 0.62, below the threshold.
    assert found["eval_accuracy"] == pytest.approx(2 / 3)
    assert found["eval_f1"] == pytest.approx(2 * 2 / (2 + 3))
    losses = [
        cross_entropy(2),
        (cross_entropy(1) + cross_entropy(3)) / 2,
        (cross_entropy(0.5) + cross_entropy(-0.5)) / 2,
    ]
    assert found["eval_loss"] == pytest.approx(sum(losses) / 3, rel=1e-5)
    expected = (sum(losses[:2]) / 2 + losses[2]) / 2
    assert found["loss"] == pytest.approx(expected, rel=1e-5)


def test_eval_results(tmp_path, capsys):
    found = evaluated(FakePredictor(SINGLE), {"dev": DEV}, tmp_path, 2)
    # The original's scores, and the task's additional ones.
    assert list(found) == [
        "eval_accuracy",
        "eval_f1",
        "eval_loss",
        "global_step",
        "loss",
    ]
    assert found["global_step"] == "7"
    assert float(found["eval_accuracy"]) == pytest.approx(0.6)
    assert float(found["eval_loss"]) == pytest.approx(sum(LOSSES) / 5, rel=1e-5)
    out = capsys.readouterr().out
    assert out.startswith("***** Eval results *****\n  eval_accuracy = 0.6")
    assert f"\n  loss = {found['loss']}\n" in out


def test_accuracy_is_told_whatever_the_task_is_scored_by(tmp_path):
    task = dataclasses.replace(SINGLE, metrics=("matthews_correlation",))
    found = evaluated(FakePredictor(task, None), {"dev": DEV}, tmp_path)
    assert list(found) == [
        "eval_accuracy",
        "eval_loss",
        "eval_matthews_correlation",
        "loss",
    ]


def test_further_sets_end_with_their_names(tmp_path):
    sets = {"mnli": DEV, "mnli-mm": DEV[:2]}
    found = evaluated(FakePredictor(SINGLE), sets, tmp_path)
    first = {"eval_accuracy", "eval_f1", "eval_loss", "loss"}
    assert set(found) == {"global_step"} | first | {f"{n}_mnli-mm" for n in first}
    assert float(found["eval_accuracy_mnli-mm"]) == 1
    assert float(found["eval_accuracy"]) == pytest.approx(0.6)


def test_one_class_only_is_called_out(tmp_path, capsys):
    always = examples(("2 0", "no"), ("3 0", "yes"))
    evaluated(FakePredictor(SINGLE), {"dev": always}, tmp_path)
    assert "All 2 dev examples are predicted as 'no'" in capsys.readouterr().out
    evaluated(FakePredictor(SINGLE), {"dev": DEV}, tmp_path)
    assert "are predicted as" not in capsys.readouterr().out


def lines(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def predicted(task, sets, directory):
    return classifier_reports.predict(FakePredictor(task), sets, str(directory))


def test_predictions(tmp_path, capsys):
    found = predicted(SINGLE, {"test": DEV}, tmp_path)
    np.testing.assert_array_equal(found["test"][0], [2, 0])
    rows = (tmp_path / "test_results.tsv").read_text().splitlines()
    table = np.array([row.split("\t") for row in rows], float)
    expected = [[1 / (1 + math.exp(b - a)) for a, b in ((2, 0), (0, 1))]]
    np.testing.assert_allclose(table[:2, :1].T, expected, rtol=1e-5)
    np.testing.assert_allclose(table.sum(axis=1), 1, rtol=1e-5)
    named = lines(tmp_path / "test_predictions.jsonl")
    assert [row["label"] for row in named] == ["no", "yes", "yes", "no", "yes"]
    assert [row["guid"] for row in named] == [f"dev-{n}" for n in range(5)]
    assert named[0]["probabilities"] == {"no": 0.880797, "yes": 0.119203}
    out = capsys.readouterr().out
    assert f"Predictions of 5 texts: {tmp_path}/test_results.tsv, " in out
    assert "Test set test: loss " in out and "accuracy 0.6000" in out


def test_without_all_labels_there_is_no_score(tmp_path, capsys):
    half = [DEV[0], dataclasses.replace(DEV[1], label=None)]
    predicted(SINGLE, {"test": half}, tmp_path)
    assert "Test set" not in capsys.readouterr().out
    assert len(lines(tmp_path / "test_predictions.jsonl")) == 2


def test_predictions_of_several_labels(tmp_path):
    rows = examples(("2 3 -1", ("a",)), ("-1 -2 -3", ()))
    predicted(MULTI, {"test": rows}, tmp_path)
    text = (tmp_path / "test_predictions.jsonl").read_text("utf-8")
    assert '"ö"' in text
    first, second = lines(tmp_path / "test_predictions.jsonl")
    assert first["label"] == ["a", "ö"] and second["label"] == []
    assert first["probabilities"]["c"] == pytest.approx(1 / (1 + math.e), abs=1e-6)


def test_predictions_of_a_number(tmp_path):
    predicted(NUMBER, {"test": examples(("2.5", 2.0), ("-3", 1.0))}, tmp_path)
    assert (tmp_path / "test_results.tsv").read_text() == "2.5\n-3.0\n"
    assert lines(tmp_path / "test_predictions.jsonl") == [
        {"guid": "dev-0", "label": 2.5},
        {"guid": "dev-1", "label": -3.0},
    ]


def test_further_sets_have_files_of_their_own(tmp_path):
    sets = {"mnli": DEV, "mnli-mm": DEV[:2], "ax": DEV[:1]}
    found = predicted(SINGLE, sets, tmp_path)
    assert {name: len(rows) for name, rows in found.items()} == {
        "mnli": 5,
        "mnli-mm": 2,
        "ax": 1,
    }
    for ending, count in (("", 5), ("_mnli-mm", 2), ("_ax", 1)):
        path = tmp_path / f"test_predictions{ending}.jsonl"
        assert len(lines(path)) == count
        path = tmp_path / f"test_results{ending}.tsv"
        assert len(path.read_text().splitlines()) == count


def submit(name, logits, directory, labels=None):
    task = glue_classifier_task(TASKS[name], 128, "truncate")
    if labels:
        task = dataclasses.replace(task, labels=labels)
    classifier_reports.submit(logits, task, str(directory))


def test_submissions(tmp_path, capsys):
    logits = np.array([[0, 1, 2], [5, 1, 2], [0, 3, 2]], np.float32)
    submit("mnli", {"mnli": logits, "ax": logits[:2]}, tmp_path)
    assert (tmp_path / "MNLI-m.tsv").read_text() == (
        "index\tprediction\n0\tneutral\n1\tcontradiction\n2\tentailment\n"
    )
    assert (tmp_path / "AX.tsv").read_text() == (
        "index\tprediction\n0\tneutral\n1\tcontradiction\n"
    )
    submit("sts-b", {"sts-b": np.array([[1.25], [7.0]], np.float32)}, tmp_path)
    assert (tmp_path / "STS-B.tsv").read_text() == (
        "index\tprediction\n0\t1.250\n1\t5.000\n"
    )
    assert f"For the GLUE server: {tmp_path}/STS-B.tsv" in capsys.readouterr().out
    assert not (tmp_path / "submission.zip").exists()


def test_answers_go_by_the_model_s_order_of_labels(tmp_path):
    order = ("entailment", "neutral", "contradiction")
    logits = np.array([[9, 1, 2], [0, 1, 2]], np.float32)
    submit("mnli", {"mnli": logits, "mnli-mm": logits}, tmp_path, order)
    for name in ("MNLI-m.tsv", "MNLI-mm.tsv"):
        assert (tmp_path / name).read_text() == (
            "index\tprediction\n0\tentailment\n1\tcontradiction\n"
        )


def test_all_submissions_are_zipped_once_none_is_missing(tmp_path, capsys):
    names = [name for name, task in TASKS.items() if task.submission]
    for name in names:
        assert not (tmp_path / "submission.zip").exists()
        width = len(TASKS[name].labels) or 1
        submit(name, {name: np.ones((2, width), np.float32)}, tmp_path)
    with zipfile.ZipFile(tmp_path / "submission.zip") as archive:
        assert len(archive.namelist()) == len(names) == 11
    assert (
        f"Archive for the server: {tmp_path}/submission.zip" in capsys.readouterr().out
    )
