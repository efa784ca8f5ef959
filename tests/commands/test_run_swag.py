"""`run_swag.py` from the command line: good, resumed and bad runs."""

import csv
import dataclasses
import gzip
import json
import random

import numpy as np
import pytest
import tiny_model
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

WORDS = "the of in is and on water her years found light".split()  # noqa: SIM905
COLUMNS = ["", "video-id", "fold-ind", "startphrase", "sent1", "sent2", "gold-source"]
COLUMNS += ["ending0", "ending1", "ending2", "ending3", "label"]
BRIEF = (
    "--init_checkpoint=model --max_seq_length=16 --train_batch_size=8 "
    "--num_train_epochs=2 --learning_rate=3e-3 --save_checkpoints_steps=4 --do_train"
)
TRAIN = f"{BRIEF} --do_eval"
SWAG = f"{TRAIN} --train_file=swag.csv --dev_file=dev.csv"
TEST = "--do_predict --test_file=test.csv"
EVAL = "--do_eval --dev_file=dev.csv"
JSON = "--train_file=own.jsonl --dev_file=own.jsonl"

FIRST = {
    "swag": f"{SWAG} {TEST}",
    "paper": "--flagfile=configs/swag.flags --train_file=swag.csv --dev_file=dev.csv "
    "--init_checkpoint=model --max_seq_length=32 --do_predict --test_file=dev.csv",
    "own": f"{TRAIN} {JSON} --do_predict --test_file=texts.jsonl.gz",
    "stopped": f"{SWAG} --stop_at_step=4",
    "no-dev": f"{BRIEF} --train_file=swag.csv --leave_out_generated",
    "so-named": f"{TRAIN} --train_file=own.csv --dev_file=swag-dev.jsonl.gz "
    "--do_predict --test_file=test.jsonl --num_train_epochs=1",
    "damaged-rows": f"{BRIEF} --train_file=half.jsonl --leave_out_damaged "
    "--num_train_epochs=4",
}
LATER = {
    "swag": FIRST["swag"],
    "stopped": SWAG,
    "asked": f"{EVAL} {TEST} --init_checkpoint=swag",
}
# Complete commands -> words of the error.
BAD = {
    SWAG.replace("--do_train --do_eval ", ""): "--do_train … --do_eval … --do_predict",
    f"{SWAG} --output_dir=": "--output_dir",
    f"{TRAIN} --dev_file=dev.csv": "--train_file",
    f"{TRAIN} --train_file=swag.csv": "--dev_file",
    f"{SWAG} --do_predict": "--test_file",
    f"{SWAG} --train_file=gone.csv": "--train_file … gone.csv",
    f"{SWAG} --dev_file=model": "--dev_file … model is a directory",
    f"{SWAG} --dev_file=test.csv": "test.csv … label",
    f"{SWAG} {TEST} --test_file=columns.csv": "columns.csv has no column sent2",
    f"{SWAG} --train_file=labels.csv": "labels.csv … line 3 … '4'",
    f"{SWAG} --train_file=half.jsonl": "half.jsonl … line 2",
    f"{SWAG} --train_file=neither.csv": "neither.csv is neither SWAG's … JSON lines",
    f"{SWAG} --dev_file=neither.jsonl": "neither.jsonl is neither SWAG's … JSON lines",
    f"{SWAG} --train_file=own.csv --leave_out_generated": "--leave_out_generated",
    f"{SWAG} --leave_out_damaged": "--leave_out_damaged … JSON lines",
    f"{SWAG} {JSON} --leave_out_generated": "--leave_out_generated … SWAG",
    f"{EVAL} --init_checkpoint=swag --leave_out_generated": "--leave_out_generated",
    f"{SWAG} --max_seq_length=2": "max_seq_length … 3",
    f"{SWAG} --max_seq_length=33": "33 … 32 tokens",
    f"{SWAG} --train_batch_size=999": "999 … training step",
    f"{SWAG} --output_dir=swag --seed=1": "seed 12345",
    f"{SWAG} --output_dir=swag --train_file=dev.csv": "examples_crc32",
    f"{SWAG} --output_dir=own": "own holds a run with",
    f"{BRIEF} --train_file=swag.csv --num_seeds=2": "--num_seeds … --do_eval",
    EVAL: "checkpoint",
    f"{EVAL} --init_checkpoint=model": "model is not fine-tuned for 'multiple_choice'",
    f"{EVAL} --init_checkpoint=other": "'squad'",
    f"{EVAL} --init_checkpoint=swag --max_seq_length=33": "33 … 32 tokens",
}


def small_weights():
    """Return a `Checkpoint` of an encoder that learns within a few steps."""
    found = tiny_model.checkpoint(heads=False)

    def read(name):
        value = tiny_model.tensors()[name]
        return np.ones_like(value) if name.endswith("gamma") else 0.2 * value

    return dataclasses.replace(found, read=read)


def examples(count, seed):
    """Return (first sentence, start, endings, label); the correct one has a horse."""
    rng, found = random.Random(seed), []
    for number in range(count):
        texts = [" ".join(rng.choices(WORDS, k=rng.randint(1, 4))) for _ in range(6)]
        label = number % 4
        texts[2 + label] = f"horse {texts[2 + label]}"
        found.append((texts[0], texts[1], texts[2:], label))
    return found


def write_swag(path, rows, columns=COLUMNS, generated=0):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        for number, (sentence, start, endings, label) in enumerate(rows):
            cells = {"": number, "sent1": sentence, "sent2": start, "label": label}
            cells |= {f"ending{n}": text for n, text in enumerate(endings)}
            source = "gen-orig" if number < generated else "gold"
            writer.writerow({**cells, "gold-source": source})


def own_line(row, **changes):
    """Return a line of JSON, whose number of choices can differ."""
    sentence, start, endings, label = row
    size = max(2, label + 1)
    answer = {"question": sentence, "choices": [f"{start} {e}" for e in endings[:size]]}
    return json.dumps({**answer, "answerKey": "ABCD"[label], **changes})


def write_files(folder):
    rows, dev = examples(40, 1), examples(13, 2)
    write_swag(folder / "swag.csv", rows, generated=8)
    write_swag(folder / "dev.csv", dev)
    write_swag(folder / "test.csv", dev, COLUMNS[:-1])
    write_swag(folder / "columns.csv", dev, [c for c in COLUMNS if c != "sent2"])
    write_swag(folder / "labels.csv", [rows[0], (*rows[1][:3], 4)])
    lines = [own_line(row) for row in rows]
    (folder / "own.jsonl").write_text("\n".join(lines))
    (folder / "half.jsonl").write_text("\n".join([lines[0], "{}", *lines[1:9]]))
    # The contents do not match the file names.
    (folder / "own.csv").write_text("\ufeff\n \n" + "\n".join(lines))
    content = b"\n\n" + (folder / "dev.csv").read_bytes()
    (folder / "swag-dev.jsonl.gz").write_bytes(gzip.compress(content))
    (folder / "test.jsonl").write_bytes((folder / "test.csv").read_bytes())
    for name in ("neither.csv", "neither.jsonl"):
        (folder / name).write_text("Which?,a,b,A\n")
    texts = [own_line(row, answerKey="", id=f"q{n}") for n, row in enumerate(rows[:5])]
    (folder / "texts.jsonl.gz").write_bytes(gzip.compress("\n".join(texts).encode()))


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """Return (folder, name -> result) of the first runs."""
    folder = tmp_path_factory.mktemp("swag")
    for name in ("model", "other"):
        (folder / name).mkdir()
        google.write_model(str(folder / name), small_weights())
    (folder / "other" / "task.json").write_text('{"task": "squad", "global_step": 1}')
    write_files(folder)
    return folder, first_runs("run_swag", FIRST, folder)


@pytest.fixture(scope="module")
def later(first):
    """Return (results of the later and bad runs, earlier contents of the folders)."""
    folder, _ = first
    return later_runs("run_swag", LATER, BAD, folder)


@pytest.mark.parametrize("flags", list(BAD), ids=range(len(BAD)))
def test_refused(first, later, flags):
    """A refused command creates nothing."""
    assert_refused(later[0][flags], BAD[flags].split(" … "))
    assert "held-out" not in later[0][flags]["stdout"]
    assert not new_of(first[0], BAD, flags).exists()


@pytest.mark.parametrize("name", ["swag", "own", "model", "other"])
def test_refusals_harm_nothing(first, later, name):
    assert contents(first[0] / name) == later[1][name]


def test_scores(first):
    """The scores are those of the best model in the training log."""
    out = first[0] / "swag"
    found = scores(out)
    assert set(found) == {"eval_accuracy", "eval_loss", "global_step", "loss"}
    assert (
        found["global_step"]
        == json.loads((out / "task.json").read_text())["global_step"]
    )
    rows = [r for r in json_lines(out / "metrics.jsonl") if "eval_accuracy" in r]
    assert found["eval_accuracy"] == max(r["eval_accuracy"] for r in rows)
    row = next(r for r in rows if r["step"] == found["global_step"])
    assert found["eval_loss"] == pytest.approx(row["eval_loss"], abs=1e-6)
    # The second batch of 5 examples counts as much as the first one of 8.
    assert found["loss"] != found["eval_loss"]
    assert found["loss"] == pytest.approx(found["eval_loss"], rel=0.2)


def test_predictions(first):
    """The dev set without labels is predicted, so its accuracy is known."""
    out = first[0] / "swag"
    rows, gold = json_lines(out / "test_predictions.jsonl"), examples(13, 2)
    keys = {"guid", "index", "choice", "probabilities"}
    assert len(rows) == 13 and all(set(row) == keys for row in rows)
    table = np.array([row["probabilities"] for row in rows])
    assert table.shape == (13, 4)
    np.testing.assert_allclose(table.sum(axis=1), 1, atol=1e-5)
    for row, (_, start, endings, _) in zip(rows, gold, strict=True):
        assert row["choice"] == f"{start} {endings[row['index']]}"
        assert row["probabilities"][row["index"]] == max(row["probabilities"])
    hits = [row["index"] == each[3] for row, each in zip(rows, gold, strict=True)]
    assert scores(out)["eval_accuracy"] == pytest.approx(np.mean(hits))
    assert [row["guid"] for row in rows] == list(range(2, 15))
    # Without labels there are no scores.
    assert "Test set" not in first[1]["swag"]["stdout"]


def test_what_is_left(first):
    out = first[0] / "swag"
    task = json.loads((out / "task.json").read_text())
    assert (task["task"], task["max_seq_length"]) == ("multiple_choice", 16)
    run = json.loads((out / "run.json").read_text())
    assert run["command"][2:-1] == FIRST["swag"].split()
    files = {"swag.csv", "dev.csv", "test.csv", "model/vocab.txt"}
    assert files <= set(run["inputs"])
    for name in ("bert_config.json", "vocab.txt", "tokenizer_config.json"):
        assert (out / name).exists()
    assert not list(first[0].rglob("*.tmp.*"))


def test_the_paper_s_settings(first):
    """Sec. 4.4: 3 epochs, learning rate 2e-5, batch size 16."""
    folder, results = first
    flags = json.loads((folder / "paper" / "run.json").read_text())["flags"]
    assert flags["do_train"] and flags["do_eval"] and not flags["grid"]
    assert (flags["train_batch_size"], flags["num_train_epochs"]) == (16, 3)
    assert (flags["learning_rate"], flags["warmup_proportion"]) == (2e-5, 0.1)
    assert (flags["optimizer"], flags["bias_correction"]) == ("adam", False)
    # int(40 / 16 · 3), and the scores of a labeled test set.
    assert "step 7/7" in results["paper"]["stdout"]
    # Each epoch is evaluated by default.
    rows = json_lines(folder / "paper" / "metrics.jsonl")
    assert [row["step"] for row in rows if "eval_accuracy" in row] == [3, 6, 7]
    accuracy = scores(folder / "paper")["eval_accuracy"]
    assert f"accuracy {accuracy:.4f}" in results["paper"]["stdout"].split("Test set")[1]


def test_json_lines_with_any_number_of_choices(first):
    out = first[0] / "own"
    rows = json_lines(out / "test_predictions.jsonl")
    assert [row["guid"] for row in rows] == [f"q{n}" for n in range(5)]
    assert [len(row["probabilities"]) for row in rows] == [2, 2, 3, 4, 2]
    for row in rows:
        assert sum(row["probabilities"]) == pytest.approx(1, abs=1e-5)
    assert set(scores(out)) == {"eval_accuracy", "eval_loss", "global_step", "loss"}


def test_files_are_what_they_hold(first):
    """The content decides: JSON lines in .csv files, SWAG's table in .json files."""
    out = first[0] / "so-named"
    assert "step 5/5" in first[1]["so-named"]["stdout"]
    rows = json_lines(out / "test_predictions.jsonl")
    wanted = [f"{start} {e}" for _, start, ends, _ in examples(13, 2) for e in ends]
    assert len(rows) == 13 and {row["choice"] for row in rows} <= set(wanted)


def test_what_is_left_out_is_told(first):
    folder, results = first
    said = results["no-dev"]["stdout"]
    assert "swag.csv: 8 of 40 rows were left out" in said and "step 8/8" in said
    assert not (folder / "no-dev" / "eval_results.txt").exists()
    said = results["damaged-rows"]["stdout"]
    assert (
        "half.jsonl: 1 of 10 rows cannot be used and were left out" in said
        and "line 2" in said
    )
    assert "step 4/4" in said


def test_the_same_command_again(first, later):
    assert "The run in swag is done at step 10" in said(later, "swag")
    assert contents(first[0] / "swag") == later[1]["swag"]


def test_stopped_and_gone_on(first, later):
    folder, results = first
    assert "step 4/4" in results["stopped"]["stdout"]
    assert "resumes at step 4" in said(later, "stopped")
    for name in ("bert_model.ckpt.data-00000-of-00001", "eval_results.txt"):
        found, wanted = (folder / run / name for run in ("stopped", "swag"))
        assert found.read_bytes() == wanted.read_bytes()


def test_asked_alone(first, later):
    """Separate evaluation and prediction repeat the earlier results."""
    folder = first[0]
    said(later, "asked")
    for name in ("eval_results.txt", "test_predictions.jsonl"):
        found, wanted = folder / "asked" / name, folder / "swag" / name
        assert found.read_text() == wanted.read_text()
    names = {path.name for path in (folder / "asked").iterdir()}
    assert names == {"eval_results.txt", "test_predictions.jsonl", "eval_run.json"}
