"""`show_attention.py` from the command line."""

import json

import numpy as np
import pytest
import tiny_model
from script_runs import assert_refused, run_many

MODEL = ["--model_dir=model"]
TEXT = "--text=the light of water"
GOOD = {
    "all": [*MODEL, TEXT, "--output=all.png", "--numbers=all.npz"],
    "last": [*MODEL, TEXT, "--layer=-1", "--output=last.pdf", "--numbers=last.json"],
    "pair": ["--init_checkpoint=model", TEXT, "--text_b=she", "--numbers=pair.json"],
}
BAD = {
    "no model": ([TEXT, "--output=x.png"], ["Give --model:"]),
    "no text": ([*MODEL, "--output=x.png"], ["Give --text:"]),
    "nothing to write": ([*MODEL, TEXT], ["--output=FILE.png", "--numbers"]),
    "no picture": ([*MODEL, TEXT, "--output=x.txt"], ["x.txt must end with .png"]),
    "no numbers": ([*MODEL, TEXT, "--numbers=x.png"], ["x.png must end with .npz"]),
    "no folder": ([*MODEL, TEXT, "--output=gone/x.png"], ["mkdir -p"]),
    "no layer": (
        [*MODEL, TEXT, "--layer=9", "--output=x.png"],
        ["--layer=9 does not exist", "0 to 1"],
    ),
    "missing": (["--model_dir=gone", TEXT, "--output=x.png"], ["gone"]),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attention")
    tiny_model.write(folder / "model", num_hidden_layers=2)
    return folder


@pytest.fixture(scope="module")
def results(folder):
    pytest.importorskip("matplotlib")
    runs = {name: flags for name, (flags, _) in BAD.items()} | GOOD
    arguments = {name: {"arguments": flags} for name, flags in runs.items()}
    return run_many("show_attention", arguments, folder)


@pytest.mark.parametrize("name", list(BAD))
def test_refused(results, folder, name):
    assert_refused(results[name], BAD[name][1])
    assert not list(folder.glob("x.*"))


def test_pictures_and_numbers(results, folder):
    for name in GOOD:
        assert (results[name]["status"], results[name]["stderr"]) == (0, "")
    assert results["all"]["stdout"] == (
        "Wrote the attention probabilities to all.npz.\nWrote the figure to all.png.\n"
    )
    assert (folder / "all.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "last.pdf").read_bytes().startswith(b"%PDF")
    with np.load(folder / "all.npz") as saved:
        probs = saved["attention_probs"]
    last = json.loads((folder / "last.json").read_text())
    assert last["layers"] == [len(probs) - 1]
    np.testing.assert_allclose(last["attention_probs"], probs[-1:], atol=1e-6)


def test_a_pair(results, folder):
    pair = json.loads((folder / "pair.json").read_text())
    assert pair["tokens"][-2:] == ["she", "[SEP]"]
    assert pair["segment_ids"] == [0] * 6 + [1] * 2
