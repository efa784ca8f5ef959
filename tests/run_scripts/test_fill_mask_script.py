"""`fill_mask.py` as people call it."""

import json

import pytest
from record_files import MINI, MINI_CONFIG
from script_runs import assert_refused, run_many

from official_bert.checkpoints import google, model_directory

MODEL = ["--model_dir=model"]
GOOD = {
    "one": {"arguments": [*MODEL, "--text=the [MASK] of water"]},
    "two": {"arguments": [*MODEL, "--text=[MASK] is [MASK]", "--top_k=2"]},
    "texts": {"arguments": [*MODEL, "--text=a [MASK]", "--text=b [MASK]", "--json"]},
    "stdin": {
        "arguments": [*MODEL, "--json", "--top_k=3"],
        "stdin": "the [MASK]\n\n  [MASK] 师 [MASK]  \r\nbad \udcff [MASK]\n",
    },
    "nothing": {"arguments": MODEL, "stdin": ""},
}
BAD = {
    "no model": ({"arguments": ["--text=[MASK]"]}, ["--model_dir"]),
    "missing": ({"arguments": ["--model_dir=none", "--text=[MASK]"]}, ["none"]),
    "no mask": ({"arguments": [*MODEL, "--text=water"]}, ["no [MASK]", "water"]),
    "empty text": ({"arguments": [*MODEL, "--text="]}, ["no [MASK]"]),
    "too long": (
        {"arguments": [*MODEL, "--text=[MASK] " + "of " * 40]},
        ["43 tokens", "32"],
    ),
    "top_k": ({"arguments": [*MODEL, "--text=[MASK]", "--top_k=0"]}, ["top_k", "0"]),
    "no vocabulary": (
        {"arguments": ["--model_dir=bare", "--text=[MASK]"]},
        ["bare/vocab.txt"],
    ),
    "half a model": (
        {"arguments": ["--model_dir=half", "--text=[MASK]"]},
        ["half holds no checkpoint"],
    ),
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    from official_bert.modeling.pretraining import PretrainingModel

    folder = tmp_path_factory.mktemp("models")
    model = PretrainingModel(MINI_CONFIG)
    for name, vocab_file in {"model": 1, "bare": 0, "half": 1}.items():
        (folder / name).mkdir()
        vocab = MINI / "vocab.txt" if vocab_file else None
        model_directory.save(str(folder / name), model, vocab, True)
    google.delete_checkpoint(str(folder / "half" / "bert_model.ckpt"))
    runs = {**{name: run for name, (run, _) in BAD.items()}, **GOOD}
    return run_many("fill_mask", runs, folder)


@pytest.mark.parametrize("name", list(BAD))
def test_refused(results, name):
    assert_refused(results[name], BAD[name][1])
    assert results[name]["stdout"] == ""


def good(results, name):
    assert results[name]["status"] == 0, results[name]["stderr"]
    assert results[name]["stderr"] == ""
    return results[name]["stdout"].splitlines()


def test_one_mask(results):
    text, answers = good(results, "one")
    assert text == "the [MASK] of water"
    assert answers.startswith("  [MASK]: ")
    assert answers.count("%") == 5


def test_two_masks(results):
    lines = good(results, "two")
    assert [line.split(":")[0] for line in lines[1:]] == ["  [MASK] 1", "  [MASK] 2"]
    assert [line.count("%") for line in lines[1:]] == [2, 2]


def test_json_for_each_text(results):
    first, second = map(json.loads, good(results, "texts"))
    assert (first["text"], second["text"]) == ("a [MASK]", "b [MASK]")
    ((*candidates,),) = first["masks"]
    assert len(candidates) == 5
    assert set(candidates[0]) == {"token", "probability"}
    assert 0 < sum(c["probability"] for c in candidates) <= 1


def test_lines_of_standard_input(results):
    """Empty lines are passed over, and bytes that are no text replaced."""
    rows = list(map(json.loads, good(results, "stdin")))
    assert [row["text"] for row in rows] == [
        "the [MASK]",
        "[MASK] 师 [MASK]",
        "bad \ufffd [MASK]",
    ]
    assert [len(row["masks"]) for row in rows] == [1, 2, 1]


def test_no_lines_no_answers(results):
    assert good(results, "nothing") == []
