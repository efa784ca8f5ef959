"""A test server for Hugging Face, Kaggle and Google's store, and empty caches."""

import pathlib

import hub_server
import huggingface_files
import pytest

TINY = "google-bert/bert-base-uncased"
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdef"]


@pytest.fixture(scope="session")
def tiny_files(tmp_path_factory):
    """Return a tiny BERT's files in Hugging Face's format: name -> bytes."""
    folder = tmp_path_factory.mktemp("tiny")
    huggingface_files.write_config(folder)
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in WORDS))
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    for kind in ("safetensors", "h5", "bin"):
        huggingface_files.FILES[kind](folder, "BertForPreTraining")
    (folder / "README.md").write_text("# A model\n")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def server(tiny_files):
    """Run a server that offers the tiny BERT as a Hugging Face model."""
    with hub_server.running() as running:
        revisions = {hub_server.COMMIT: dict(tiny_files)}
        running.repositories[TINY] = revisions
        running.redirects["bert-base-uncased"] = TINY
        yield running


@pytest.fixture
def cache(server, tmp_path, monkeypatch):
    """Return the folder of empty caches; requests go to the test server."""
    from huggingface_hub import constants
    from kagglesdk import kaggle_env

    home = tmp_path / "home"
    home.mkdir()
    values = {
        "ENDPOINT": server.url,
        "HUGGINGFACE_CO_URL_TEMPLATE": (
            server.url + "/{repo_id}/resolve/{revision}/{filename}"
        ),
        "HF_HUB_CACHE": str(home / "huggingface"),
        "HF_HUB_OFFLINE": False,
        "HF_TOKEN_PATH": str(home / "token"),
    }
    for name, value in values.items():
        monkeypatch.setattr(constants, name, value)
    endpoints = kaggle_env._env_to_endpoint
    monkeypatch.setitem(endpoints, kaggle_env.KaggleEnv.PROD, server.url)
    # It inspects every frame of the stack, which takes seconds under pytest.
    monkeypatch.setattr("kagglehub.clients.get_user_agent", lambda: "tests")
    monkeypatch.setenv("KAGGLEHUB_CACHE", str(home / "kaggle"))
    monkeypatch.setenv("KERAS_HOME", str(home / "keras"))
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "KAGGLE_API_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return pathlib.Path(home)


@pytest.fixture
def no_waiting(monkeypatch):
    """Remove the pauses between retries."""
    import time

    monkeypatch.setattr(time, "sleep", lambda seconds: None)
