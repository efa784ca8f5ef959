"""The playground's requests to a server, and its results and errors."""

import json
import pathlib
import shutil
import subprocess

import pytest
from places import ROOT

NODE = shutil.which("node")
RUNNER = pathlib.Path(__file__).with_name("playground_runner.mjs")
CARD = {"name": "my model", "version": 3, "labels": ["bad", "good"]}
TEXT = "a \U0001f600 Zürich, \U0001f44d\U0001f3fd Bern"


@pytest.fixture(scope="module")
def call(tmp_path_factory):
    """Return a function that calls a method, given a server's response."""
    if NODE is None:
        pytest.skip("Node.js is not installed (no `node` on the PATH)")
    folder = tmp_path_factory.mktemp("page")
    shutil.copytree(ROOT / "ports/js/bert", folder / "bert")
    shutil.copy(ROOT / "ports/js/playground/backend.js", folder)
    # A page imports them as modules; Node needs a package.json for this.
    (folder / "package.json").write_text('{"type": "module"}')
    process = subprocess.Popen(
        [NODE, str(RUNNER), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )

    def ask(method, arguments, row=None, **response):
        answer = {"status": 200, "json": {"predictions": [row]}} | response
        question = [CARD, method, arguments, answer if answer["status"] else None]
        process.stdin.write(json.dumps(question) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    yield ask
    process.stdin.close()
    assert process.wait(timeout=20) == 0
    process.stdout.close()


def test_the_request(call):
    row = {"label": "good", "probabilities": [0.25, 0.75]}
    said = call("classify", ["one", "two"], row)
    instance = {"text": "one", "text_b": "two"}
    request = {"signature_name": "serving_default", "instances": [instance]}
    url = "http://server/v1/models/my%20model:predict"
    assert said["requests"] == [[url, request]]
    said = call("attention", ["one", 1, 2], {"tokens": [], "attention_probs": []})
    instance = {"text": "one", "layer": 1, "head": 2}
    request = {"signature_name": "attention", "instances": [instance]}
    assert said["requests"] == [[url, request]]


def test_labels(call):
    scores = [
        {"label": "bad", "probability": 0.25},
        {"label": "good", "probability": 0.75},
    ]
    row = {"label": "good", "probabilities": [0.25, 0.75]}
    found = call("classify", ["text"], row)["result"]
    assert found == {"labels": ["good"], "scores": scores}
    row = {"labels": ["", "good"], "probabilities": [0.25, 0.75]}
    assert call("classify", ["text"], row)["result"]["labels"] == ["good"]
    assert call("classify", ["text"], 1.5)["result"] == {"value": 1.5}
    row = {"choice": "y", "index": 1, "probabilities": [0.25, 0.75]}
    found = call("choose", ["text", ["x", "y"]], row)["result"]
    assert found["labels"] == ["y"]
    assert [one["label"] for one in found["scores"]] == ["x", "y"]


@pytest.mark.parametrize("part", ["\U0001f600", "Zürich", "\U0001f3fd", "Bern", "a"])
def test_offsets_are_those_of_javascript(call, part):
    start = TEXT.index(part)
    end = start + len(part)
    row = {"answer": part, "start": start, "end": end, "score": 2.0}
    found = call("answer", ["Where?", TEXT], row)["result"]
    units = TEXT.encode("utf-16-le")[2 * found["start"] : 2 * found["end"]]
    assert units.decode("utf-16-le") == found["text"] == part
    assert (found["nullScore"], found["candidates"]) == (None, [])
    # A server that batches requests pads the rows.
    row = {"entities": [part, ""], "labels": ["X", ""]}
    row |= {"starts": [start, -1], "ends": [end, -1]}
    (entity,) = call("tag", [TEXT], row)["result"]
    units = TEXT.encode("utf-16-le")[2 * entity["start"] : 2 * entity["end"]]
    assert units.decode("utf-16-le") == part
    assert (entity["text"], entity["label"]) == (part, "X")


def test_masks(call):
    # A server that batches requests pads the rows.
    row = {"tokens": [["on", "in"], ["a", "b"], ["", ""]]}
    row["probabilities"] = [[0.5, 0.25], [0.75, 0.125], [0, 0]]
    found = call("fillMask", ["[MASK] and [MASK]", 1], row)["result"]
    assert found == [
        [{"token": "on", "probability": 0.5}],
        [{"token": "a", "probability": 0.75}],
    ]
    said = call("fillMask", ["nothing"], row)
    assert said["requests"] == [] and "has no [MASK]" in said["error"]
    said = call("fillMask", ["[MASK] " * 3], row)
    assert said["error"] == "The text is too long for the model. Shorten the text."


def test_vectors(call):
    assert call("encode", ["text"], [1.0, 2.0])["result"] == [1.0, 2.0]
    row = {"sequence_output": [[1, 3], [5, 5], [9, 9]], "input_mask": [1, 1, 0]}
    assert call("encode", ["text"], row)["result"] == pytest.approx([0.6, 0.8])
    assert call("similarity", ["a", "b"], row)["result"] == pytest.approx(1)
    found = call("search", ["a", ["b", "c"]], row)["result"]
    assert [one["index"] for one in found] == [0, 1]


def test_attention_has_no_padding(call):
    row = {"tokens": ["[CLS]", "[SEP]", ""]}
    row["attention_probs"] = [[0.25, 0.75, 0], [1, 0, 0], [0, 0, 0]]
    found = call("attention", ["", 0, 0], row)["result"]
    assert found == {"tokens": ["[CLS]", "[SEP]"], "probs": [[0.25, 0.75], [1, 0]]}


def test_errors(call):
    said = call("tag", ["text"], status=504, json={"error": "It took too long."})
    assert said["error"] == (
        "The server returned an error (status 504): It took too long."
    )
    said = call("tag", ["text"], status=502, text="<html>")
    assert said["error"].startswith("The server returned an error (status 502)")
    said = call("tag", ["text"], status=0)
    assert said["error"].startswith("The server does not respond.")
