"""`predict.py` with classifiers: one line of JSON per text."""

import dataclasses
import gzip
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
import tiny_model
from places import ROOT
from script_runs import assert_refused, run_many
from untrained_models import with_outputs, write_model

from official_bert.checkpoints import google, model_directory
from official_bert.tables.columns import Columns
from official_bert.tasks.classifier.task import ClassifierTask

LENGTH = 16
TASK = ClassifierTask(
    "single_label",
    ("bad", "good", "so-so"),
    ("accuracy", "macro_f1"),
    LENGTH,
    columns=Columns("text", None, "label", True),
)
LONG = "the horse is on water " * 8
LINES = ["The horse is on water.", "", "light ||| a grand logbook", "老师", LONG, "an"]
STDIN = "\n".join(LINES) + "\n"
FIRST = ["the horse", "", "water, light", "5"]
JSONL = """{"text": "the horse", "label": "good"}
{"text": null}
{"text": "water, light", "label": "never seen before"}
{"text": 5, "more": [1]}
"""
MODEL = ["--model_dir=model"]
GOOD = {
    "file": {"arguments": [*MODEL, "--input_file=texts.txt"]},
    "to file": {
        "arguments": [*MODEL, "--input_file=texts.txt", "--output_file=new.jsonl"]
    },
    "gzip": {"arguments": [*MODEL, "--input_file=texts.txt.gz"]},
    "pipe": {"arguments": MODEL, "stdin": STDIN},
    "one by one": {"arguments": [*MODEL, "--batch_size=1"], "stdin": STDIN},
    "three": {"arguments": [*MODEL, "--batch_size=3"], "stdin": STDIN},
    "bytes": {"arguments": MODEL, "stdin": "the \udcffhorse\r\non\u2028water\n"},
    "numbers": {"arguments": [*MODEL, "--input_file=numbers.csv"]},
    "csv": {"arguments": [*MODEL, "--input_file=texts.csv"]},
    "upper case": {"arguments": [*MODEL, "--input_file=TEXTS.CSV"]},
    "tsv": {"arguments": [*MODEL, "--input_file=texts.tsv"]},
    "jsonl": {"arguments": [*MODEL, "--input_file=texts.jsonl"]},
    "csv.gz": {"arguments": [*MODEL, "--input_file=texts.csv.gz"]},
    "other column": {
        "arguments": [*MODEL, "--input_file=other.csv", "--text_column=body"]
    },
    "numbered column": {
        "arguments": [*MODEL, "--input_file=other.csv", "--text_column=1"]
    },
    "pair columns": {
        "arguments": [
            *MODEL,
            "--input_file=other.csv",
            "--text_column=body",
            "--text_b_column=id",
        ]
    },
    "pairs": {"arguments": ["--model_dir=pairs", "--input_file=pairs.csv"]},
    "flags": {"arguments": [*MODEL, *(f"--text={line}" for line in LINES)]},
    "pairs in a pipe": {
        "arguments": ["--model_dir=pairs"],
        "stdin": "the horse ||| water, light\non ||| is\n",
    },
    "multi": {"arguments": ["--model_dir=multi"], "stdin": STDIN},
    "regression": {"arguments": ["--model_dir=number"], "stdin": STDIN},
    "window": {"arguments": ["--model_dir=window"], "stdin": LONG + "\nan\n"},
    "no lines": {"arguments": MODEL},
    "empty file": {
        "arguments": [*MODEL, "--input_file=empty", "--output_file=none.jsonl"]
    },
}
TO_FILE = ["--output_file=out.jsonl"]
READ = ["--input_file=texts.csv", *TO_FILE]
# Content of a damaged task.json, and the subject of the error.
DAMAGED = {
    "cut": ('{"task": "classifier", "kin', ["cut/task.json", "line 1"]),
    "a list": ("[]", ["a list/task.json"]),
    "bytes": (b"\xff\xfe\0", ["bytes/task.json", "UTF-8"]),
    "unknown task": ({"task": "ranking"}, ["task.json", "classifier", "'ranking'"]),
    "another task": ({"task": "squad"}, ["another task/task.json is damaged"]),
    "kind": ({"kind": "ranking"}, ["damaged"]),
    "more labels": (
        {"labels": ["a", "b", "c", "d"]},
        ["more labels", "3 outputs", "needs 4"],
    ),
    "no labels": ({"labels": []}, ["no labels"]),
    "labels in one": ({"labels": "abc"}, ["damaged"]),
    "labels twice": ({"labels": ["bad", "bad", "good"]}, ["damaged"]),
    "metrics": ({"metrics": ["taste"]}, ["damaged"]),
    "metrics in one": ({"metrics": "accuracy"}, ["damaged"]),
    "word of a length": ({"max_seq_length": "16"}, ["damaged"]),
    "half a token": ({"max_seq_length": 16.5}, ["damaged"]),
    "too long": ({"max_seq_length": 33}, ["max_seq_length is 33", "32"]),
    "too short": ({"max_seq_length": 2}, ["damaged"]),
    "threshold": ({"threshold": 2}, ["damaged"]),
    "word of a threshold": ({"threshold": "half"}, ["damaged"]),
    "no column": ({"columns": {"text": "text"}}, ["damaged"]),
    "columns in a list": ({"columns": ["text", "label"]}, ["damaged"]),
    "null column": (
        {"columns": {"text": None, "text_b": None, "label": None, "has_header": True}},
        ["damaged"],
    ),
    "step": ({"global_step": None}, ["damaged"]),
    "separator": ({"kind": "multi_label", "label_separator": 5}, ["damaged"]),
}
BAD = {
    "no model": (TO_FILE, ["Give --model:"]),
    "missing model": (["--model_dir=gone", *READ], ["gone"]),
    "model is a file": (["--model_dir=texts.txt", *READ], ["texts.txt"]),
    "model is empty": (["--model_dir=folder", *READ], ["folder"]),
    "pre-trained": (
        ["--model_dir=bare", *READ],
        ["bare is not fine-tuned for 'classifier'"],
    ),
    "classifier without task": (["--model_dir=taskless", *READ], ["task.json"]),
    "no weights": (["--model_dir=weightless", *READ], ["weightless", "checkpoint"]),
    "cut weights": (["--model_dir=half", *READ], ["half", "truncated"]),
    "no vocabulary": (["--model_dir=wordless", *READ], ["wordless", "vocab.txt"]),
    "text and file": ([*MODEL, "--text=on", *READ], ["--text or --input_file"]),
    "missing input": ([*MODEL, "--input_file=gone.txt", *TO_FILE], ["gone.txt"]),
    "missing table": ([*MODEL, "--input_file=gone.csv", *TO_FILE], ["gone.csv"]),
    "input is a folder": ([*MODEL, "--input_file=folder", *TO_FILE], ["directory"]),
    "cut gzip": ([*MODEL, "--input_file=cut.gz", *TO_FILE], ["complete gzip"]),
    "cut table": ([*MODEL, "--input_file=cut.csv.gz", *TO_FILE], ["cut.csv.gz"]),
    "empty table": ([*MODEL, "--input_file=empty.csv", *TO_FILE], ["is empty"]),
    "not UTF-8": ([*MODEL, "--input_file=latin.csv", *TO_FILE], ["UTF-8", "line 2"]),
    "open quote": ([*MODEL, "--input_file=quote.csv", *TO_FILE], ["line 2"]),
    "ragged": ([*MODEL, "--input_file=ragged.csv", *TO_FILE], ["line 3", "1 cell"]),
    "no JSON": ([*MODEL, "--input_file=bad.jsonl", *TO_FILE], ["line 2"]),
    "JSON list": ([*MODEL, "--input_file=list.json", *TO_FILE], ["one JSON list"]),
    "list of texts": ([*MODEL, "--input_file=lists.jsonl", *TO_FILE], ["line 1"]),
    "other columns": ([*MODEL, "--input_file=other.csv", *TO_FILE], ["'text'", "body"]),
    "no such column": ([*MODEL, *READ, "--text_column=body"], ["no column 'body'"]),
    "no such second column": (
        [*MODEL, *READ, "--text_b_column=body"],
        ["--text_b_column", "body"],
    ),
    "columns of lines": (
        [*MODEL, "--input_file=texts.txt", "--text_column=body", *TO_FILE],
        ["--text_column"],
    ),
    "no pairs in it": (["--model_dir=pairs", *READ], ["no column 'other'"]),
    "unknown columns": (["--model_dir=glue", *READ], ["--text_column"]),
    "output in no folder": ([*MODEL, "--output_file=gone/out"], ["gone", "mkdir"]),
    "output under a file": ([*MODEL, "--output_file=empty/out"], ["--output_file"]),
    "output is a folder": ([*MODEL, "--output_file=folder"], ["directory"]),
    "no batch": ([*MODEL, *READ, "--batch_size=0"], ["batch_size", "positive"]),
    "unknown flag": ([*MODEL, *READ, "--threshold=0.3"], ["threshold"]),
    "text as argument": ([*MODEL, "the horse"], ["'the horse' is not a flag"]),
    **{
        f"task.json: {name}": ([f"--model_dir={name}", *READ], words)
        for name, (_, words) in DAMAGED.items()
    },
}


def write_models(folder):
    write_model(folder / "model", TASK)
    chinese = dataclasses.replace(TASK, labels=("坏", "好", "?"))
    write_model(folder / "chinese", chinese)
    multi = dataclasses.replace(TASK, kind="multi_label", threshold=0.4)
    write_model(folder / "multi", multi)
    window = dataclasses.replace(TASK, long_text="window")
    write_model(folder / "window", window)
    pairs = dataclasses.replace(TASK, columns=Columns("text", "other", "label", True))
    write_model(folder / "pairs", pairs)
    write_model(folder / "glue", dataclasses.replace(TASK, name="mnli", columns=None))
    number = dataclasses.replace(TASK, kind="regression", labels=())
    write_model(folder / "number", number, with_outputs(1))
    for name in ("weightless", "half", "wordless"):
        write_model(folder / name, TASK)
    google.delete_checkpoint(str(folder / "weightless" / "bert_model.ckpt"))
    data = folder / "half" / "bert_model.ckpt.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:1000])
    (folder / "wordless" / "vocab.txt").unlink()
    write_model(folder / "taskless", None)
    heads = ("output_", "cls/squad/")
    without = {n: v for n, v in tiny_model.tensors().items() if not n.startswith(heads)}
    write_model(folder / "bare", None, without)
    for name, (content, _) in DAMAGED.items():
        write_model(folder / name, TASK)
        path = folder / name / "task.json"
        if isinstance(content, dict):
            content = json.dumps(json.loads(path.read_text()) | content)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def write_texts(folder):
    (folder / "folder").mkdir()
    (folder / "texts.txt").write_text(STDIN, encoding="utf-8")
    (folder / "texts.txt.gz").write_bytes(gzip.compress(STDIN.encode()))
    table = 'label,text\ngood,the horse\nbad,\n,"water, light"\nwhat,5\n'
    for name in ("texts.csv", "TEXTS.CSV"):
        (folder / name).write_text(table)
    (folder / "texts.csv.gz").write_bytes(gzip.compress(table.encode()))
    (folder / "texts.tsv").write_text("text\n" + "\n".join(FIRST[:1] + FIRST[2:]))
    (folder / "texts.jsonl").write_text(JSONL)
    (folder / "other.csv").write_text('id,body\n1,the horse\n2,"water, light"\n')
    (folder / "pairs.csv").write_text('text,other\nthe horse,"water, light"\non,is\n')
    texts = [" ".join(["horse"] * number) for number in range(12)]
    numbers = "text\n" + "".join(f"the {text}\n" for text in texts)
    (folder / "numbers.csv").write_text(numbers)
    for name in ("empty", "empty.csv"):
        (folder / name).touch()
    (folder / "cut.gz").write_bytes(gzip.compress(STDIN.encode() * 300)[:-20])
    (folder / "cut.csv.gz").write_bytes(gzip.compress(table.encode())[:-9])
    (folder / "latin.csv").write_bytes(b"text\nthe \xff horse\n")
    (folder / "quote.csv").write_text('text\n"the horse\non\n')
    (folder / "ragged.csv").write_text("text,label\non,bad\non\n")
    (folder / "bad.jsonl").write_text('{"text": "on"}\nthe horse\n')
    (folder / "list.json").write_text('[{"text": "on"}]')
    (folder / "lists.jsonl").write_text('{"text": ["on", "is"]}\n')


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("predict")
    write_models(folder)
    write_texts(folder)
    return folder


def out_of(folder, name):
    """Return the output file of a bad command; each command has its own."""
    return folder / f"out-{list(BAD).index(name)}.jsonl"


@pytest.fixture(scope="module")
def results(folder):
    runs = {}
    for name, (arguments, _) in BAD.items():
        out = out_of(folder, name)
        out.write_text("an older answer\n")
        changed = {TO_FILE[0]: f"--output_file={out.name}"}
        runs[name] = {"arguments": [changed.get(each, each) for each in arguments]}
    return run_many("predict", {**runs, **GOOD}, folder)


@pytest.mark.parametrize("name", list(BAD))
def test_refused(results, folder, name):
    assert_refused(results[name], BAD[name][1])
    assert results[name]["stdout"] == ""
    assert out_of(folder, name).read_text() == "an older answer\n"
    assert not list(folder.glob("*.tmp.*")) and not (folder / "gone").exists()


def answers(results, name):
    """Return the printed prediction for each text."""
    assert results[name]["status"] == 0, results[name]["stderr"]
    return [json.loads(line) for line in results[name]["stdout"].splitlines()]


def probabilities(results, name):
    return [list(each["probabilities"].values()) for each in answers(results, name)]


@pytest.fixture(scope="module")
def logits(folder):
    """Return a function from texts and pairs to logits, each text alone."""
    bert = model_directory.load_encoder(str(folder / "model"))
    vocab, tensors = bert.tokenizer.vocab, tiny_model.tensors()

    def of(text_a, text_b=None):
        ids = [vocab["[CLS]"], *bert.tokenizer.encode(text_a)[: LENGTH - 2]]
        ids.append(vocab["[SEP]"])
        segments = [0] * len(ids)
        if text_b:
            ids += [*bert.tokenizer.encode(text_b), vocab["[SEP]"]]
            segments += [1] * (len(ids) - len(segments))
        features = {"input_ids": [ids], "segment_ids": [segments]}
        features = {name: tf.constant(value) for name, value in features.items()}
        pooled = bert.model(features)["pooled_output"].numpy()[0]
        return tensors["output_weights"] @ pooled + tensors["output_bias"]

    return of


def assert_told(found, logits):
    wanted = np.array([tf.nn.softmax(row).numpy() for row in logits])
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_lines_and_pairs(results, logits):
    """Predictions keep the order of the texts, which are cut to the model's length."""
    found = answers(results, "file")
    rows = [logits(line) for line in LINES]
    rows[2] = logits("light", "a grand logbook")
    assert_told(probabilities(results, "file"), rows)
    for answer, row in zip(found, rows, strict=True):
        assert list(answer) == ["label", "probabilities"]
        assert answer["label"] == TASK.labels[row.argmax()]
        assert list(answer["probabilities"]) == list(TASK.labels)


@pytest.mark.parametrize("name", ["gzip", "pipe", "one by one", "three", "flags"])
def test_the_same_whatever_the_way_and_the_batch(results, name):
    found, wanted = probabilities(results, name), probabilities(results, "file")
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_to_a_file(results, folder):
    assert answers(results, "to file") == []
    wanted = answers(results, "file")
    assert [json.loads(line) for line in (folder / "new.jsonl").open()] == wanted


def test_what_is_not_utf8_is_left_out(results, logits):
    rows = [logits("the horse"), logits("on water")]
    assert_told(probabilities(results, "bytes"), rows)


@pytest.mark.parametrize("name", ["csv", "upper case", "jsonl", "csv.gz"])
def test_tables(results, logits, name):
    """Every row gets a prediction, with any label and even without a text."""
    assert_told(probabilities(results, name), map(logits, FIRST))


def test_tables_of_texts_alone(results, logits):
    rows = [logits(text) for text in FIRST if text]
    assert_told(probabilities(results, "tsv"), rows)


@pytest.mark.parametrize("name", ["other column", "numbered column"])
def test_other_columns(results, logits, name):
    assert_told(probabilities(results, name), map(logits, ["the horse", FIRST[2]]))


def test_pairs_of_columns(results, logits):
    rows = [logits("the horse", "1"), logits("water, light", "2")]
    assert_told(probabilities(results, "pair columns"), rows)
    rows = [logits("the horse", "water, light"), logits("on", "is")]
    assert_told(probabilities(results, "pairs"), rows)
    assert answers(results, "pairs in a pipe") == answers(results, "pairs")


def test_several_labels(results, logits):
    found, sizes = answers(results, "multi"), set()
    rows = [logits(line) for line in LINES]
    rows[2] = logits("light", "a grand logbook")
    for answer, row in zip(found, rows, strict=True):
        wanted = 1 / (1 + np.exp(-row))
        named = answer["probabilities"]
        np.testing.assert_allclose(list(named.values()), wanted, atol=1e-5)
        assert answer["label"] == [n for n, p in named.items() if p >= 0.4]
        sizes.add(len(answer["label"]))
    assert len(sizes) > 1


def test_numbers(results, logits):
    found = answers(results, "regression")
    assert all(list(answer) == ["label"] for answer in found)
    wanted = [logits(line)[0] for line in LINES[:2]]
    np.testing.assert_allclose([a["label"] for a in found[:2]], wanted, atol=2e-5)


def test_windows(results, logits):
    found = probabilities(results, "window")
    assert_told(found[1:], [logits("an")])
    cut = tf.nn.softmax(logits(LONG)).numpy()
    assert np.abs(found[0] - cut).max() > 1e-4


@pytest.mark.parametrize("name", ["no lines", "empty file"])
def test_no_texts_no_answers(results, folder, name):
    assert answers(results, name) == []
    if name == "empty file":
        assert (folder / "none.jsonl").read_text() == ""


def test_same_as_run_classifier(results, folder):
    command = "--do_predict --init_checkpoint=model --test_file=numbers.csv"
    arguments = [*command.split(), "--output_dir=asked"]
    done = run_many("run_classifier", {"ask": {"arguments": arguments}}, folder)
    assert done["ask"]["status"] == 0, done["ask"]["stderr"]
    wanted = [
        json.loads(row) for row in (folder / "asked/test_predictions.jsonl").open()
    ]
    found = answers(results, "numbers")
    assert [each["label"] for each in found] == [each["label"] for each in wanted]
    np.testing.assert_allclose(
        probabilities(results, "numbers"),
        [list(each["probabilities"].values()) for each in wanted],
        atol=1e-5,
    )
    assert len(found) == 12


def test_labels_of_any_script_in_any_locale(folder):
    """A server's stdout may have an encoding without these characters."""
    script = str(ROOT / "run_scripts" / "predict.py")
    done = subprocess.run(
        [sys.executable, script, "--model_dir=chinese", "--input_file=texts.csv"],
        cwd=folder,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0, done.stderr.decode()[-600:]
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == 4 and all("好" in row["probabilities"] for row in rows)
