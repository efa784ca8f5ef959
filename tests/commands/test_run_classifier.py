"""`run_classifier.py` from the command line: good, resumed and bad runs."""

import json
import os
import re
import statistics
import subprocess
import sys
import zipfile

import filelock
import numpy as np
import pytest
import tensorflow as tf
import tiny_model
from classifier_runs import (
    BAD,
    FIRST,
    LATER,
    NLI,
    TRAIN,
    prepare_later,
    write_glue,
    write_own,
)
from places import ROOT
from script_runs import (
    assert_refused,
    contents,
    first_runs,
    json_lines,
    later_runs,
    new_of,
    said,
    scores,
)

from official_bert.checkpoints import google
from official_bert.tasks.glue.tasks import TASKS


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """Return (folder, name -> result) of the first runs."""
    folder = tmp_path_factory.mktemp("classifier")
    (folder / "model").mkdir()
    google.write_model(str(folder / "model"), tiny_model.checkpoint(heads=False))
    write_glue(folder)
    write_own(folder)
    (folder / "all").mkdir()
    for task in TASKS.values():
        if task.submission not in (None, "MRPC.tsv"):
            (folder / "all" / task.submission).write_text("index\tprediction\n")
    return folder, first_runs("run_classifier", FIRST, folder)


@pytest.fixture(scope="module")
def later(first):
    """Return (results of the later and bad runs, earlier contents of the folders)."""
    folder, _ = first
    prepare_later(folder)
    with filelock.FileLock(folder / "locked" / ".lock"):
        return later_runs("run_classifier", LATER, BAD, folder)


@pytest.mark.parametrize("flags", list(BAD), ids=range(len(BAD)))
def test_refused(first, later, flags):
    """A refused command creates nothing."""
    assert_refused(later[0][flags], BAD[flags].split(" … "))
    assert "held-out" not in later[0][flags]["stdout"]
    assert not new_of(first[0], BAD, flags).exists()


@pytest.mark.parametrize(
    "name", ["own", "begun", "other-sweep", "cut-sweep", "half-sweep", "model", "some"]
)
def test_refusals_harm_nothing(first, later, name):
    assert contents(first[0] / name) == later[1][name]
    if name in ("model", "some"):
        assert not (first[0] / name / ".lock").exists()


def weights(prefix):
    reader = tf.train.load_checkpoint(str(prefix))
    return {n: reader.get_tensor(n) for n in reader.get_variable_to_shape_map()}


def test_scores_of_glue(first):
    """The results have the original's keys and the task's score, of the best model."""
    out = first[0] / "mrpc"
    found = scores(out)
    wanted = {"eval_accuracy", "eval_f1", "eval_loss", "global_step", "loss"}
    assert set(found) == wanted
    step = json.loads((out / "best_checkpoint.json").read_text())["step"]
    assert found["global_step"] == step
    rows = [r for r in json_lines(out / "metrics.jsonl") if "eval_f1" in r]
    assert found["eval_f1"] == max(r["eval_f1"] for r in rows)
    row = next(r for r in rows if r["step"] == step)
    assert found["eval_f1"] == row["eval_f1"]
    assert found["eval_loss"] == pytest.approx(row["eval_loss"], abs=1e-6)
    best = weights(out / f"model.ckpt-{step}")
    for name, value in weights(out / "bert_model.ckpt").items():
        np.testing.assert_array_equal(value, best[name])


def test_a_tenth_of_the_updates_is_warm_up(first):
    settings = json.loads((first[0] / "own" / "training.json").read_text())["settings"]
    steps = settings["num_train_steps"]
    assert steps % 10 and settings["num_warmup_steps"] == steps // 10 > 0


def test_predictions_of_glue(first):
    out = first[0] / "mrpc"
    lines = (out / "test_results.tsv").read_text().splitlines()
    table = np.array([line.split("\t") for line in lines], np.float32)
    assert table.shape == (7, 2)
    np.testing.assert_allclose(table.sum(axis=1), 1, atol=1e-6)
    rows = json_lines(out / "test_predictions.jsonl")
    assert [row["guid"] for row in rows] == [f"test-{n}" for n in range(1, 8)]
    assert [row["label"] for row in rows] == [str(n) for n in table.argmax(axis=1)]
    named = [[row["probabilities"][name] for name in "01"] for row in rows]
    np.testing.assert_allclose(named, table, atol=1e-6)
    submitted = (first[0] / "all" / "MRPC.tsv").read_text().splitlines()
    labels = [f"{n}\t{row['label']}" for n, row in enumerate(rows)]
    assert submitted == ["index\tprediction", *labels]


def test_what_is_left(first):
    out = first[0] / "mrpc"
    task = json.loads((out / "task.json").read_text())
    assert (task["name"], task["labels"]) == ("mrpc", ["0", "1"])
    assert task["max_seq_length"] == 16 and task["metrics"] == ["f1", "accuracy"]
    run = json.loads((out / "run.json").read_text())
    assert (
        run["flags"]["task_name"] == "MRPC"
        and run["command"][2:-1] == FIRST["mrpc"].split()
    )
    assert {"glue/MRPC/train.tsv", "model/vocab.txt"} <= set(run["inputs"])
    for name in ("bert_config.json", "vocab.txt", "tokenizer_config.json"):
        assert (out / name).exists()
    assert not list(first[0].rglob("*.tmp.*"))


def test_the_card_of_a_model(first):
    """With several seeds, the card describes the run whose model was kept."""
    text = (first[0] / "mrpc" / "README.md").read_text()
    assert "fine-tuned: text classification (mrpc)" in text
    assert "| `--data_dir` | MRPC |" in text and "| eval_f1 | " in text
    rows = json.loads((first[0] / "seeds" / "runs.json").read_text())
    best = max(rows, key=lambda row: row["accuracy"])
    text = (first[0] / "seeds" / "README.md").read_text()
    assert f"| seed | {best['seed']} |" in text


def test_the_archive_for_the_server(first):
    """The archive is written when the files of all tasks exist."""
    wanted = {task.submission for task in TASKS.values() if task.submission}
    with zipfile.ZipFile(first[0] / "all" / "submission.zip") as archive:
        assert set(archive.namelist()) == wanted and len(wanted) == 11
    found = {path.name for path in (first[0] / "some").iterdir()}
    assert found == {"MNLI-m.tsv", "MNLI-mm.tsv", "AX.tsv"}


def test_the_same_command_again(first, later):
    assert "The run in mrpc is done at step 10" in said(later, "mrpc")
    assert contents(first[0] / "mrpc") == later[1]["mrpc"]


def test_asked_alone(first, later):
    """Separate evaluation and prediction repeat the earlier results."""
    folder = first[0]
    for name, file in (
        ("eval-alone", "eval_results.txt"),
        ("predict-alone", "test_results.tsv"),
        ("predict-alone", "test_predictions.jsonl"),
    ):
        said(later, name)
        assert (folder / name / file).read_text() == (
            folder / "mrpc" / file
        ).read_text()
    assert not (folder / "predict-alone" / "bert_model.ckpt.index").exists()
    assert (folder / "predict-alone" / "eval_run.json").exists()


def test_mnli_s_companions(first, later):
    folder = first[0]
    found = scores(folder / "mnli")
    assert {"eval_accuracy", "eval_accuracy_mnli-mm", "loss_mnli-mm"} <= set(found)
    for ending, name, count in (
        ("", "MNLI-m", 5),
        ("_mnli-mm", "MNLI-mm", 4),
        ("_ax", "AX", 3),
    ):
        rows = json_lines(folder / "mnli" / f"test_predictions{ending}.jsonl")
        lines = (folder / "some" / f"{name}.tsv").read_text().splitlines()
        labels = [f"{n}\t{row['label']}" for n, row in enumerate(rows)]
        assert lines == ["index\tprediction", *labels] and len(rows) == count
        assert {row["label"] for row in rows} <= set(NLI)
        assert (folder / "mnli" / f"test_results{ending}.tsv").exists()
    said(later, "mnli-mm-alone")
    alone = scores(folder / "mnli-mm-alone")
    assert alone["eval_loss"] == found["eval_loss_mnli-mm"]


def test_own_table(first):
    out = first[0] / "own"
    wanted = {"eval_accuracy", "eval_macro_f1", "eval_loss", "global_step", "loss"}
    assert set(scores(out)) == wanted
    task = json.loads((out / "task.json").read_text())
    assert task["labels"] == ["no", "yes"] and task["columns"]["text"] == "text"
    rows = json_lines(out / "test_predictions.jsonl")
    assert [row["guid"] for row in rows] == [2, 3, 4]


def test_several_labels(first):
    out = first[0] / "multi"
    assert set(scores(out)) == {
        *("eval_accuracy", "eval_f1", "eval_loss", "global_step", "loss")
    }
    task = json.loads((out / "task.json").read_text())
    assert (task["kind"], task["labels"]) == ("multi_label", ["horse", "third"])


def test_a_threshold_that_was_changed(first, later):
    """A changed threshold counts from then on, also for the training command."""
    said(later, "multi")
    said(later, "multi-eval")
    before = (first[0] / "at-a-half.txt").read_text()
    after = (first[0] / "multi" / "eval_results.txt").read_text()
    assert after == (first[0] / "multi-eval" / "eval_results.txt").read_text()
    assert after != before


def test_numbers_for_pairs(first):
    out = first[0] / "pairs"
    assert {"eval_pearson", "eval_spearman"} < set(scores(out))
    assert "eval_accuracy" not in scores(out)
    table = [float(line) for line in (out / "test_results.tsv").open()]
    rows = json_lines(out / "test_predictions.jsonl")
    np.testing.assert_allclose([row["label"] for row in rows], table, atol=1e-5)
    assert len(set(table)) > 30
    task = json.loads((out / "task.json").read_text())
    assert (task["kind"], task["columns"]["text_b"]) == ("regression", "1")


def test_windows(first):
    folder, results = first
    task = json.loads((folder / "window" / "task.json").read_text())
    assert (task["long_text"], task["max_seq_length"]) == ("window", 6)
    # More examples than texts, which give 13 training steps.
    assert (
        "/13 " in results["own"]["stdout"]
        and "/13 " not in (results["window"]["stdout"])
    )


def test_stopped_and_gone_on(first, later):
    folder, results = first
    assert "step 8/8" in results["stopped"]["stdout"]
    assert "resumes at step 8" in said(later, "stopped")
    for name in ("bert_model.ckpt.data-00000-of-00001", "eval_results.txt"):
        found, wanted = (folder / run / name for run in ("stopped", "own"))
        assert found.read_bytes() == wanted.read_bytes()
    found = [file for file in (folder / "own-eval").iterdir()]
    assert {"eval_results.txt", "eval_run.json"} == {path.name for path in found}


def models_in(directory):
    return [str(p.relative_to(directory)) for p in directory.rglob("*.data-*")]


def test_seeds(first):
    folder, results = first
    rows = json.loads((folder / "seeds" / "runs.json").read_text())
    assert [row["seed"] for row in rows] == [5, 6]
    values = [row["accuracy"] for row in rows]
    mean, deviation = statistics.fmean(values), statistics.stdev(values)
    said = results["seeds"]["stdout"]
    assert (
        f"2 seeds: accuracy {mean:.4f} ± {deviation:.4f} (best {max(values):.4f})"
        in (said)
    )
    assert (
        f"Best accuracy {max(values):.4f}: batch size 8, learning rate 0.003, 2 epochs"
        in said
    )
    assert scores(folder / "seeds")["eval_accuracy"] == max(values)
    assert models_in(folder / "seeds") == ["bert_model.ckpt.data-00000-of-00001"]


def test_seeds_again(first, later):
    assert said(later, "seeds").count("Already finished: ") == 2
    assert "held-out" not in said(later, "seeds")
    assert contents(first[0] / "seeds") == later[1]["seeds"]


@pytest.mark.parametrize("name", ["killed-seeds", "killed-late"])
def test_seeds_after_a_kill(first, later, name):
    said(later, name)
    folder, found = first[0], contents(first[0] / name)
    wanted = contents(folder / "seeds")
    assert found["runs.json"] == wanted["runs.json"]
    for file in ("bert_model.ckpt.data-00000-of-00001", "task.json"):
        assert found[file] == wanted[file]
    assert models_in(folder / name) == models_in(folder / "seeds")


def test_the_model_left_is_that_of_the_summary(first, later):
    """This holds even if an earlier command had a better model."""
    told = re.search(r"Best accuracy (\S+):", said(later, "more-seeds"))[1]
    assert told == f"{scores(first[0] / 'more-seeds')['eval_accuracy']:.4f}"


@pytest.fixture(scope="module")
def alone(first):
    """Return a run in a terminal whose encoding lacks a label's characters."""
    script = str(ROOT / "run_scripts" / "run_classifier.py")
    flags = f"{TRAIN} --train_file=chinese.csv --stop_at_step=2 --learning_rate=1e9"
    return subprocess.run(
        [sys.executable, script, *flags.split(), "--output_dir=alone"],
        cwd=first[0],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )


def test_what_is_said_of_the_data(alone):
    said = alone.stderr
    assert "column 'text' is used as the text" in said
    assert "the labels are read as single_label" in said
    assert "6 of 60 rows were split off as the dev set" in said
    assert "no     27  50.0 %  3  50.0 %" in said


def test_labels_of_any_script_in_any_locale(alone):
    assert alone.returncode == 0, alone.stderr[-500:]
