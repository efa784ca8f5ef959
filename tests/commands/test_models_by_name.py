"""Commands with a model's name, and a server that replaces the hub."""

import json
import os

import hub_server
import pytest
import tiny_model
import warm_python
from script_runs import assert_refused, run_many

from official_bert.checkpoints.huggingface import transformers_model

NAME, FULL_NAME = "bert-base-uncased", "google-bert/bert-base-uncased"
TEXT = "--text=the [MASK] of water"
FILL_MASK = {
    "path": {"arguments": ["--model_dir=model", TEXT], "stdin": ""},
    "name": {"arguments": [f"--model_dir={NAME}", TEXT], "stdin": ""},
    "again": {"arguments": [f"--init_checkpoint=hf://{FULL_NAME}", TEXT], "stdin": ""},
    "similar": {"arguments": ["--model_dir=bert-base-uncase", TEXT], "stdin": ""},
}
PROGRAM = """
from official_bert.command_line.start import run_command

run_command("convert_checkpoint")
"""
CONVERT = {
    "name": {
        "arguments": [f"--from={NAME}", "--to=converted", "--format=google"],
        "stdin": "",
    }
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a working directory with the server's model."""
    folder = tmp_path_factory.mktemp("work")
    (folder / "model").mkdir()
    transformers_model.write_model(str(folder / "model"), tiny_model.checkpoint())
    return folder


@pytest.fixture(scope="module")
def results(folder):
    """Return results of both commands, the requested paths, and a refusal."""
    with hub_server.running() as server, pytest.MonkeyPatch.context() as patch:
        files = {path.name: path.read_bytes() for path in (folder / "model").iterdir()}
        server.repositories[FULL_NAME] = {hub_server.COMMIT: files}
        patch.setenv("HF_ENDPOINT", server.url)
        patch.setenv("HF_HOME", str(folder / "home"))
        patch.delenv("HF_HUB_CACHE", raising=False)
        patch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        filled = run_many("fill_mask", FILL_MASK, folder)
        converted = run_many("convert_checkpoint", CONVERT, folder)
        other = files | {"config.json": b'{"model_type": "roberta"}'}
        server.repositories["FacebookAI/roberta-base"] = {hub_server.COMMIT: other}
        refused = warm_python.run(["-c", PROGRAM, "--from=FacebookAI/roberta-base"])
        return filled, converted, server.paths("GET"), refused


def test_a_name_gives_what_its_path_gives(results):
    filled, *_ = results
    for run in ("path", "name", "again"):
        assert (filled[run]["status"], filled[run]["stderr"]) == (0, "")
    outputs = {filled[run]["stdout"] for run in ("path", "name", "again")}
    assert len(outputs) == 1
    assert "[MASK]: " in outputs.pop()


def test_the_model_is_downloaded_once(results):
    *_, paths, _ = results
    assert sum("model.safetensors" in path for path in paths) == 1


def test_a_name_that_does_not_exist(results):
    filled, *_ = results
    assert_refused(filled["similar"], ["Did you mean bert-base-uncased or"])


def test_a_refusal_is_the_only_line(results):
    *_, refused = results
    assert refused.returncode == 1
    assert refused.stdout == ""
    assert refused.stderr == (
        "error: FacebookAI/roberta-base is a RoBERTa model; this package reads only "
        "BERT. `official-bert models` lists the names.\n"
    )


def test_run_json_states_revision_and_hashes(results, folder):
    _, converted, *_ = results
    assert converted["name"]["status"] == 0, converted["name"]["stderr"]
    record = json.loads((folder / "converted" / "run.json").read_text())
    model = record["models"][NAME]
    assert model["revision"] == hub_server.COMMIT
    assert model["source"].endswith(FULL_NAME)
    from official_bert.files import sha256_of

    assert model["files"] == {
        name: sha256_of(folder / "model" / name)
        for name in os.listdir(folder / "model")
    }
    assert record["flags"]["model"] == NAME
    card = (folder / "converted" / "README.md").read_text()
    assert str(folder) not in card
