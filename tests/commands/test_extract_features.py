"""`extract_features.py` from the command line, including the original's commands."""

import contextlib
import dataclasses
import gzip
import io
import json
import os
import shutil

import keras
import numpy as np
import pytest
import warm_python
from places import ROOT
from record_files import MINI, MINI_CONFIG
from script_runs import assert_refused, run_many

from official_bert.checkpoints import google, model_directory
from official_bert.pretrained.feature_extraction import (
    Reading,
    sentence_vectors,
    token_features,
)
from official_bert.pretrained.feature_files import (
    write_json_lines,
)
from official_bert.tables.text_pairs import split_line

CONFIG = dataclasses.replace(MINI_CONFIG, num_hidden_layers=5, initializer_range=0.3)
LINES = [
    "She found that the light over the water was one of years.",
    "The horse is on water ||| a grand logbook",
    "",
    "老师",
    "the " * 60,
    "a ||| b ||| c",
]
MODEL = ["--init_checkpoint=model", "--max_seq_length=32"]
READ = [*MODEL, "--input_file=input.txt"]
# The command of google-research/bert's README, with every flag.
ORIGINAL = [
    "--input_file=input.txt",
    "--vocab_file=elsewhere/vocab.txt",
    "--bert_config_file=elsewhere/bert_config.json",
    "--init_checkpoint=weights/bert_model.ckpt",
    "--layers=-1,-2,-3,-4",
    "--max_seq_length=32",
    "--batch_size=8",
    "--do_lower_case=True",
    "--use_tpu=False",
    "--master=",
    "--num_tpu_cores=8",
    "--use_one_hot_embeddings=False",
]
TO_FILE = ["--output_file=out.jsonl"]
TO_NPY = ["--sentence_vectors=out.npy"]
STDIN = "\n".join(LINES) + "\n"
GOOD = {
    "original": {"arguments": [*ORIGINAL, "--output_file=original.jsonl"]},
    "short": {"arguments": [*READ, "--output_file=short.jsonl"]},
    "gzip": {
        "arguments": [*MODEL, "--input_file=input.txt.gz", "--output_file=gz.jsonl"]
    },
    "pipe": {
        "arguments": [*MODEL, "--input_file=-", "--output_file=-"],
        "stdin": STDIN,
    },
    "layers": {
        "arguments": [*READ, "--layers=0,-5", "--batch_size=1", "--output_file=-"]
    },
    "window": {
        "arguments": [*READ, "--long_text=window", "--doc_stride=7", "--output_file=-"]
    },
    "mean": {"arguments": [*READ, "--sentence_vectors=mean.npy"]},
    "cls": {
        "arguments": [
            *READ,
            "--sentence_vectors=cls.npy",
            "--pooling=cls",
            "--layers=-1,-2",
        ]
    },
    "pooler": {
        "arguments": [
            *MODEL,
            "--input_file=-",
            "--sentence_vectors=pooler.npy",
            "--pooling=pooler",
            "--long_text=window",
        ],
        "stdin": STDIN,
    },
    "both": {
        "arguments": [
            *MODEL,
            "--input_file=-",
            "--output_file=both.jsonl",
            "--sentence_vectors=both.npy",
            "--pooling=pooler",
            "--layers=0,-5",
        ],
        "stdin": STDIN,
    },
    "both by default": {
        "arguments": [*READ, "--output_file=-", "--sentence_vectors=default.npy"]
    },
    "bytes": {
        "arguments": [*MODEL, "--input_file=bytes.txt", "--sentence_vectors=bytes.npy"]
    },
    "bytes in a pipe": {
        "arguments": [*MODEL, "--input_file=-", "--sentence_vectors=piped.npy"],
        "stdin": "the \udcfflight\r\non\u2028\rwater\n",
    },
    "empty": {"arguments": [*MODEL, "--input_file=empty.txt", "--output_file=-"]},
    "no lines": {
        "arguments": [*MODEL, "--input_file=-", "--sentence_vectors=none.npy"],
        "stdin": "",
    },
}
BAD = {
    "no input": ([*MODEL, *TO_FILE], ["--input_file"]),
    "no checkpoint": (["--input_file=input.txt", *TO_FILE], ["Give --model:"]),
    "no output": (READ, ["Give --output_file", "--sentence_vectors"]),
    "one file for both": (
        [*READ, *TO_FILE, "--sentence_vectors=out.jsonl"],
        ["both name out.jsonl"],
    ),
    "printed rows": ([*READ, "--sentence_vectors=-"], ["cannot be printed"]),
    "rows through a pipe": (
        [*READ, "--sentence_vectors=pipe"],
        ["cannot be printed"],
    ),
    "missing input": ([*MODEL, "--input_file=gone.txt", *TO_FILE], ["gone.txt"]),
    "input is a folder": ([*MODEL, "--input_file=model", *TO_FILE], ["directory"]),
    "cut gzip": ([*MODEL, "--input_file=cut.gz", *TO_FILE], ["complete gzip"]),
    "missing checkpoint": (
        ["--init_checkpoint=gone", "--input_file=input.txt", *TO_FILE],
        ["gone"],
    ),
    "half a model": (
        ["--init_checkpoint=half", "--input_file=input.txt", *TO_FILE],
        ["half contains no checkpoint"],
    ),
    "missing vocabulary": ([*READ, *TO_FILE, "--vocab_file=gone.txt"], ["gone.txt"]),
    "missing config": (
        [*READ, *TO_FILE, "--bert_config_file=gone.json"],
        ["gone.json"],
    ),
    "another config": (
        [*READ, *TO_FILE, "--bert_config_file=small.json"],
        ["num_hidden_layers is 5", "1 in the model"],
    ),
    "output is the input": (
        [*READ, "--output_file=input.txt"],
        ["input.txt is also an input"],
    ),
    "output in no folder": ([*READ, "--output_file=gone/out"], ["gone", "mkdir"]),
    "rows in no folder": ([*READ, "--sentence_vectors=gone/out"], ["gone", "mkdir"]),
    "output is a folder": ([*READ, "--output_file=model"], ["directory"]),
    "layers are words": (
        [*READ, *TO_FILE, "--layers=last"],
        ["--layers='last' is invalid"],
    ),
    "layers are nothing": ([*READ, *TO_FILE, "--layers="], ["--layers='' is invalid"]),
    "layer too low": (
        [*READ, *TO_FILE, "--layers=-1,-6"],
        ["Layer -6 does not exist", "-5 to 4"],
    ),
    "layer too high": (
        [*READ, *TO_NPY, "--layers=5"],
        ["Layer 5 does not exist", "-5 to 4"],
    ),
    "layers of the pooler": (
        [*READ, *TO_NPY, "--pooling=pooler", "--layers=-2"],
        ["--layers has no effect"],
    ),
    "too long": (
        [*READ, *TO_FILE, "--max_seq_length=33"],
        ["33", "max_position_embeddings=32"],
    ),
    "too short": ([*READ, *TO_FILE, "--max_seq_length=2"], ["max_seq_length", "3"]),
    "no batch": ([*READ, *TO_FILE, "--batch_size=0"], ["batch_size", "positive"]),
    "no stride": ([*READ, *TO_FILE, "--doc_stride=0"], ["doc_stride", "positive"]),
    "unknown pooling": ([*READ, *TO_NPY, "--pooling=max"], ["pooling", "mean|cls"]),
    "unknown long_text": ([*READ, *TO_FILE, "--long_text=cut"], ["long_text"]),
    "no room for windows": (
        [*MODEL, "--input_file=pairs.txt", *TO_FILE, "--long_text=window"],
        ["Text 0", "40 tokens", "no room"],
    ),
    "random pooler": (
        [*READ, *TO_NPY, "--init_checkpoint=bare", "--pooling=pooler"],
        ["bare has no pooler"],
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from official_bert.modeling.pretraining import PretrainingModel

    folder = tmp_path_factory.mktemp("features")
    keras.utils.set_random_seed(1)
    model = PretrainingModel(CONFIG)
    for name in ("model", "half", "bare"):
        (folder / name).mkdir()
        place = str(folder / name)
        model_directory.save(place, model, MINI / "vocab.txt", True)
    for name, left_out in {
        "elsewhere": ["bert_model.*"],
        "weights": ["*.txt", "*.json"],
    }.items():
        ignored = shutil.ignore_patterns(*left_out)
        shutil.copytree(folder / "model", folder / name, ignore=ignored)
    google.delete_checkpoint(str(folder / "half" / "bert_model.ckpt"))
    without_pooler = {
        v.path: v.numpy()
        for v in model.bert.trainable_variables
        if "pooler" not in v.path
    }
    google.write_checkpoint(str(folder / "bare" / "bert_model.ckpt"), without_pooler)
    os.mkfifo(folder / "pipe")
    (folder / "small.json").write_text(MINI_CONFIG.to_json_string())
    (folder / "input.txt").write_text(STDIN, encoding="utf-8")
    (folder / "input.txt.gz").write_bytes(gzip.compress(STDIN.encode()))
    (folder / "cut.gz").write_bytes(gzip.compress(STDIN.encode() * 100)[:-20])
    (folder / "bytes.txt").write_bytes(b"the \xfflight\r\non\xe2\x80\xa8\rwater")
    (folder / "empty.txt").write_text("")
    (folder / "pairs.txt").write_text("the " * 40 + "||| of\n")
    return folder


@pytest.fixture(scope="module")
def results(folder):
    runs = {name: {"arguments": arguments} for name, (arguments, _) in BAD.items()}
    return run_many("extract_features", {**runs, **GOOD}, folder)


@pytest.fixture(scope="module")
def bert(folder):
    return model_directory.load_encoder(str(folder / "model"))


@pytest.mark.parametrize("name", list(BAD))
def test_refused(results, folder, name):
    assert_refused(results[name], BAD[name][1])
    assert results[name]["stdout"] == ""
    assert not list(folder.glob("out.*"))


def good(results, name):
    assert results[name]["status"] == 0, results[name]["stderr"]
    return results[name]["stdout"]


def as_json(bert, lines, layers, reading):
    out = io.StringIO()
    features = token_features(bert, map(split_line, lines), layers, reading)
    write_json_lines(out, features, layers)
    return out.getvalue()


def test_the_original_s_command(results, folder, bert):
    good(results, "original")
    written = (folder / "original.jsonl").read_text()
    wanted = as_json(bert, map(str.strip, LINES), (-1, -2, -3, -4), Reading(32, 8))
    assert written == wanted
    rows = [json.loads(line) for line in written.splitlines()]
    assert [row["linex_index"] for row in rows] == list(range(6))
    tokens = [[f["token"] for f in row["features"]] for row in rows]
    assert tokens[1].count("[SEP]") == tokens[5].count("[SEP]") == 2
    assert tokens[2] == ["[CLS]", "[SEP]"]
    assert tokens[3] == ["[CLS]", "老", "师", "[SEP]"]
    assert tokens[4] == ["[CLS]", *["the"] * 30, "[SEP]"]
    for feature in rows[0]["features"]:
        assert list(feature) == ["token", "layers"]
        assert [layer["index"] for layer in feature["layers"]] == [-1, -2, -3, -4]
        assert all(len(layer["values"]) == 16 for layer in feature["layers"])


def values_of(text):
    """Return the numbers of JSON lines as one list."""
    return np.concatenate(
        [
            layer["values"]
            for line in text.splitlines()
            for feature in json.loads(line)["features"]
            for layer in feature["layers"]
        ]
    )


@pytest.mark.parametrize("name", ["short", "gz"])
def test_what_the_checkpoint_s_files_state_need_not_be_given(results, folder, name):
    """The same with gzipped text; another batch size changes only rounding."""
    good(results, {"short": "short", "gz": "gzip"}[name])
    wanted = (folder / "original.jsonl").read_text()
    written = (folder / f"{name}.jsonl").read_text()
    np.testing.assert_allclose(values_of(written), values_of(wanted), atol=1e-5)
    assert len(written.splitlines()) == 6


def test_through_pipes(results, folder):
    """Standard output contains only the JSON lines."""
    assert good(results, "pipe") == (folder / "short.jsonl").read_text()


def test_a_pipe_stays_a_pipe(folder):
    """Replacing a pipe or /dev/null by a file would be harmful."""
    reader = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    done = run_alone(folder, *READ, "--output_file=pipe", "--layers=-1")
    with open(reader) as pipe:
        printed = pipe.read()
    assert done.returncode == 0, done.stderr
    assert len(printed.splitlines()) == 6
    assert (folder / "pipe").is_fifo()
    assert not list(folder.glob("pipe.*"))


def test_layers(results, bert):
    printed = good(results, "layers")
    wanted = as_json(bert, map(str.strip, LINES), (0, -5), Reading(32, 1))
    assert printed == wanted
    (first, second) = json.loads(printed.splitlines()[0])["features"][0]["layers"]
    assert (first["index"], second["index"]) == (0, -5)
    assert first["values"] == second["values"]


def test_windows(results):
    row = json.loads(good(results, "window").splitlines()[4])
    tokens = [feature["token"] for feature in row["features"]]
    assert tokens == ["[CLS]", *["the"] * 60, "[SEP]"]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("mean", {}),
        ("cls", {"pooling": "cls", "layers": (-1, -2)}),
        ("pooler", {"pooling": "pooler", "reading": Reading(32, 32, "window")}),
    ],
)
def test_sentence_vectors(results, folder, bert, name, settings):
    assert good(results, name) == ""
    found = np.load(folder / f"{name}.npy")
    texts = [split_line(line.strip()) for line in LINES]
    wanted = sentence_vectors(bert, texts, **{"reading": Reading(32), **settings})
    assert (found.dtype, found.shape) == (np.float32, (6, 16))
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_tokens_and_sentences_in_one_run(results, folder, bert):
    """It also works with a pipe, which can be read only once."""
    assert good(results, "both") == ""
    written = (folder / "both.jsonl").read_text()
    wanted = as_json(bert, map(str.strip, LINES), (0, -5), Reading(32))
    np.testing.assert_allclose(values_of(written), values_of(wanted), atol=2e-6)
    texts = [split_line(line.strip()) for line in LINES]
    wanted = sentence_vectors(bert, texts, "pooler", reading=Reading(32))
    np.testing.assert_allclose(np.load(folder / "both.npy"), wanted, atol=1e-6)
    for name in ("both.jsonl", "both.npy"):
        assert (folder / f"{name}.run.json").exists()


def test_each_output_has_its_default_layers(results, folder):
    printed = good(results, "both by default")
    assert printed == (folder / "short.jsonl").read_text()
    wanted = np.load(folder / "mean.npy")
    np.testing.assert_allclose(np.load(folder / "default.npy"), wanted, atol=1e-6)


def test_how_to_repeat_it(results, folder):
    good(results, "mean")
    run = json.loads((folder / "mean.npy.run.json").read_text())
    assert {"input.txt", "model/vocab.txt"} <= set(run["inputs"])
    good(results, "pooler")
    run = json.loads((folder / "pooler.npy.run.json").read_text())
    assert "input.txt" not in run["inputs"] and "-" not in run["inputs"]


@pytest.mark.parametrize(
    ("name", "file"), [("bytes", "bytes"), ("bytes in a pipe", "piped")]
)
def test_what_is_not_utf8_is_left_out(results, folder, bert, name, file):
    """Only line feeds end lines."""
    good(results, name)
    wanted = sentence_vectors(bert, ["the light", "on water"], reading=Reading(32))
    np.testing.assert_allclose(np.load(folder / f"{file}.npy"), wanted, atol=1e-5)


def test_no_lines_no_features(results, folder):
    assert good(results, "empty") == ""
    good(results, "no lines")
    assert np.load(folder / "none.npy").shape == (0, 16)


def run_alone(folder, *arguments, stdin=""):
    script = ROOT / "run_scripts" / "extract_features.py"
    return warm_python.run([script, *arguments], cwd=folder, stdin=stdin)


def test_what_is_said_meanwhile(folder):
    """The log says which weights were loaded, and warns about odd texts."""
    stdin = "the \udcff\n\n" + "the " * 40 + "\n"
    arguments = [*MODEL, "--input_file=-", "--output_file=-", "--use_tpu"]
    done = run_alone(folder, *arguments, stdin=stdin)
    said = done.stderr
    assert done.returncode == 0, said
    assert "Initialized 87 variables from model" in said
    assert "Unused weights of the checkpoint: cls/predictions/output_bias" in said
    assert "Standard input: 1 of 3 lines have bytes that are not UTF-8" in said
    assert "1 of 3 texts are longer than max_seq_length=32: 10 tokens were cut" in said
    assert "1 of 3 texts have no tokens" in said
    assert "--use_tpu has no effect" in said
    assert [json.loads(line)["linex_index"] for line in done.stdout.splitlines()] == [
        0,
        1,
        2,
    ]


def test_a_bad_end_leaves_nothing(folder, results):
    """The gzip file of "cut gzip" ends in the middle of its lines."""
    with contextlib.suppress(FileNotFoundError):
        (folder / "later.npy").unlink()
    done = run_alone(
        folder, *MODEL, "--input_file=cut.gz", "--sentence_vectors=later.npy"
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: cut.gz is not a")
    assert not list(folder.glob("later.npy*"))
