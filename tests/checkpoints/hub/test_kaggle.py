"""KerasHub presets from Kaggle, with a local server."""

import json
import pathlib
import shutil

import pytest

from official_bert.checkpoints.hub.find import find_model
from official_bert.errors import UserError

NAME, HANDLE, VERSION = (
    "bert_base_en_uncased",
    "keras/bert/keras/bert_base_en_uncased",
    3,
)
CONFIG = {"registered_name": "keras_hub>BertBackbone", "class_name": "BertBackbone"}
VOCAB = "assets/tokenizer/vocabulary.txt"
WANTED = {"config.json", "tokenizer.json", VOCAB, "model.weights.h5"}


@pytest.fixture(autouse=True)
def preset(server, cache):
    """Put the files of a preset on the server; they cannot be loaded."""
    files = {
        "config.json": json.dumps(CONFIG).encode(),
        "tokenizer.json": b"{}",
        "metadata.json": b"{}",
        "preprocessor.json": b"{}",
        VOCAB: b"[PAD]\n",
        "model.weights.h5": b"weights " * 1000,
    }
    server.presets[HANDLE] = (VERSION, files)
    return files


def refused(name, *parts):
    with pytest.raises(UserError) as caught:
        find_model(name)
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    "name", [NAME, f"kaggle://{HANDLE}", f"kaggle://{HANDLE}/{VERSION}"]
)
def test_a_preset_by_its_name(server, cache, preset, name):
    model = find_model(name)
    folder = cache / "kaggle" / "models" / HANDLE / str(VERSION)
    assert pathlib.Path(model.path) == folder
    assert {*model.files} == WANTED
    for each in WANTED:
        assert (folder / each).read_bytes() == preset[each]
    assert (model.name, model.revision) == (name, str(VERSION))
    server.requests.clear()
    assert find_model(name).path == model.path
    assert server.requests == []


def test_nothing_is_printed_on_standard_output(capfd):
    """Standard output stays empty, although the library logs there."""
    find_model(NAME)
    output, errors = capfd.readouterr()
    assert output == ""
    assert "Downloading" in errors


def test_the_head_of_a_task_comes_along(server, preset):
    preset |= {"task.json": b"{}", "task.weights.h5": b"head"}
    assert {*find_model(NAME).files} == WANTED | {"task.json", "task.weights.h5"}


def test_an_older_version_that_is_there_is_used(server, preset):
    find_model(NAME)
    server.presets[HANDLE] = (VERSION + 1, preset)
    server.requests.clear()
    assert find_model(f"kaggle://{HANDLE}").revision == str(VERSION)
    assert server.requests == []


def test_the_next_command_continues(server, preset, monkeypatch):
    # The library stores only complete chunks.
    monkeypatch.setattr("kagglehub.clients.CHUNK_SIZE", 100)
    path = f"/kaggle/{HANDLE}/{VERSION}//model.weights.h5"
    server.faults[path] = [("cut", 3000)]
    refused(NAME, "was interrupted", "continues where the download stopped")
    server.requests.clear()
    folder = pathlib.Path(find_model(NAME).path)
    assert (folder / "model.weights.h5").read_bytes() == preset["model.weights.h5"]
    assert "bytes=3000-" in [value for _, _, value in server.requests]


@pytest.mark.parametrize(
    ("status", "part"),
    [
        (401, "denies the download (401)"),
        (403, "denies the download (403)"),
        (429, "too many requests"),
        (500, "returned status 500"),
    ],
)
def test_a_server_that_refuses(server, status, part):
    request = "/v1/models.ModelApiService/DownloadModelInstanceVersion"
    server.faults[request] = [status]
    refused(NAME, part)


def test_no_such_model(server):
    refused("kaggle://keras/bert/keras/none", "Kaggle does not have this model")
    refused("bert_base_en", "Kaggle does not have this model", "config.json is missing")


def test_no_network(monkeypatch):
    from kagglesdk import kaggle_env

    endpoints = kaggle_env._env_to_endpoint
    nowhere = "http://127.0.0.1:9"
    monkeypatch.setitem(endpoints, kaggle_env.KaggleEnv.PROD, nowhere)
    refused(NAME, "Kaggle cannot be reached", "HTTPS_PROXY")


def test_another_architecture(server, preset):
    other = CONFIG | {"class_name": "RobertaBackbone"}
    preset["config.json"] = json.dumps(other).encode()
    refused(NAME, "is a RobertaBackbone model; this package reads only BERT")
    assert not any("model.weights.h5" in path for path in server.paths("GET"))


def test_a_full_disk(server, monkeypatch):
    usage = shutil.disk_usage("/")._replace(free=10**8)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    refused(NAME, "needs 0.44 GB", "0.10 GB free", "KAGGLEHUB_CACHE")
