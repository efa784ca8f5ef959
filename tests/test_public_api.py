"""The public names of `official_bert`, and training with Keras."""

import ast
import contextlib
import io
import json
import subprocess
import sys

import keras
import numpy as np
import pytest
import tiny_model
from code_blocks import blocks_of
from places import ROOT
from record_files import MINI_CONFIG

import official_bert
from official_bert.checkpoints import model_directory
from official_bert.errors import UserError

PAGE = ROOT / "docs/reference/python_api.md"


def keras_lines():
    """Return the program for Keras users on the page of the Python API."""
    (block,) = [
        block.text
        for block in blocks_of(PAGE)
        if block.language == "python" and "model.compile" in block.text
    ]
    return block


def test_names_are_declared_once_for_people_and_once_for_type_checkers():
    tree = ast.parse((ROOT / "official_bert/__init__.py").read_text("utf-8"))
    declared = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and "official_bert" in str(node.module)
        for alias in node.names
    }
    assert declared == official_bert._HOME
    assert sorted(declared) == sorted(official_bert.__all__)


def test_every_name_exists_and_says_what_it_is():
    for name in official_bert.__all__:
        assert getattr(official_bert, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'Bart'"):
        official_bert.Bart  # noqa: B018


def test_importing_is_cheap():
    code = (
        "import json, sys, official_bert; official_bert.BertConfig;"
        "print(json.dumps([m for m in ('tensorflow', 'keras') if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert json.loads(done.stdout) == []


def test_the_package_says_that_it_is_typed():
    assert (ROOT / "official_bert" / "py.typed").exists()


def run_printed(text, folder, monkeypatch):
    """Run a program of a page in a folder; return (its variables, its output)."""
    monkeypatch.chdir(folder)
    printed, names = io.StringIO(), {}
    with contextlib.redirect_stdout(printed):
        exec(compile(text, "page.md", "exec"), names)
    return names, printed.getvalue()


def test_five_lines_of_python(tmp_path, monkeypatch):
    """The README's first program runs; a folder has the released model's name."""
    readme = (ROOT / "README.md").read_text("utf-8")
    block = blocks_of(ROOT / "README.md")[0]
    assert block.language == "python" and block.text in readme
    assert readme[: readme.index(block.text)].count("\n") + 6 <= 30
    assert len([line for line in block.text.splitlines() if line.strip()]) == 5
    tiny_model.write(tmp_path / "bert-base-uncased")
    names, printed = run_printed(block.text, tmp_path, monkeypatch)
    bert, inputs = names["bert"], names["inputs"]
    assert isinstance(bert, official_bert.Bert)
    assert list(inputs) == ["input_ids", "input_mask", "segment_ids"]
    assert names["vectors"].shape == (2, MINI_CONFIG.hidden_size)
    assert printed.startswith("[[Candidate(token=") and printed.count("Candidate") == 5


def test_a_dozen_lines_of_keras(tmp_path, monkeypatch):
    """Build, compile, fit, save and reload a classifier, as the page prints it."""
    lines = [line for line in keras_lines().splitlines() if line.strip()]
    assert len(lines) <= 15
    (tmp_path / "output").mkdir()
    # Initial weights of a training; arbitrary random weights learn badly.
    keras.utils.set_random_seed(1)
    (tmp_path / "output/first").mkdir()
    model_directory.save(
        tmp_path / "output/first",
        official_bert.BertEncoder(MINI_CONFIG),
        str(tiny_model.VOCAB),
        True,
    )
    names, printed = run_printed(keras_lines(), tmp_path, monkeypatch)
    wanted = names["model"].predict(names["inputs"], verbose=0)
    again = keras.models.load_model(tmp_path / "films.keras")
    found = again.predict(names["inputs"], verbose=0)
    np.testing.assert_array_equal(found, wanted)
    assert printed.splitlines()[-1] == str(wanted.argmax(-1))
    # The model has learned the two texts.
    assert wanted.argmax(-1).tolist() == names["labels"].tolist()


def test_dropout_of_the_head_is_active_in_fit():
    """With all of the encoder's dropout off, only the head's dropout is left."""
    off = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = {**MINI_CONFIG.to_dict(), **off}
    model = official_bert.ClassificationModel(config, num_outputs=3)
    inputs = {"input_ids": np.ones((4, 5), np.int32)}
    inputs |= {"input_mask": inputs["input_ids"], "segment_ids": inputs["input_ids"]}
    first, second = (model(inputs, training=True)["logits"] for _ in range(2))
    assert np.abs(first - second).max() > 1e-4
    np.testing.assert_array_equal(model(inputs)["logits"], model(inputs)["logits"])


def test_encode_batch():
    tokenizer = official_bert.FullTokenizer(str(tiny_model.VOCAB))
    ids = tokenizer.encode("the water")
    cls, sep = (tokenizer.vocab[token] for token in ("[CLS]", "[SEP]"))
    batch = tokenizer.encode_batch(["the water", ("the", "water"), ""])
    the, water = ids
    assert {name: array.tolist() for name, array in batch.items()} == {
        "input_ids": [[cls, the, water, sep, 0], [cls, the, sep, water, sep]]
        + [[cls, sep, 0, 0, 0]],
        "input_mask": [[1, 1, 1, 1, 0], [1] * 5, [1, 1, 0, 0, 0]],
        "segment_ids": [[0] * 5, [0, 0, 0, 1, 1], [0] * 5],
    }
    cut = tokenizer.encode_batch(["the water", ("the", "water")], max_seq_length=4)
    assert cut["input_ids"].tolist() == [[cls, the, water, sep], [cls, the, sep, 0]]
    with pytest.raises(UserError, match="max_seq_length is 2"):
        tokenizer.encode_batch(["the"], max_seq_length=2)
