"""Models from Hugging Face, with a local server."""

import errno
import os
import pathlib
import re
import shutil

import huggingface_files
import pytest
from hub_server import COMMIT, LATER_COMMIT

from official_bert.checkpoints.hub.find import find_model
from official_bert.errors import UserError

TINY = "google-bert/bert-base-uncased"
SIDE_FILES = {"config.json", "tokenizer_config.json", "vocab.txt"}
RESOLVE = f"/{TINY}/resolve/{COMMIT}"
WEIGHTS = f"/cdn/{TINY}/{COMMIT}/model.safetensors"

pytestmark = pytest.mark.usefixtures("cache")


def refused(name, *parts):
    """Assert that a name is rejected with one line that contains these parts."""
    with pytest.raises(UserError) as caught:
        find_model(name)
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message
    return message


@pytest.mark.parametrize(
    "name", [TINY, "bert-base-uncased", f"hf://{TINY}", f"{TINY}@main"]
)
def test_a_model_by_its_name(server, cache, tiny_files, name):
    model = find_model(name)
    folder = pathlib.Path(model.path)
    assert cache in folder.parents
    assert {p.name for p in folder.iterdir()} == {*SIDE_FILES, "model.safetensors"}
    for path in folder.iterdir():
        assert path.read_bytes() == tiny_files[path.name]
    assert (model.name, model.revision) == (name, COMMIT)
    assert model.source == f"{server.url}/{TINY}"
    assert {*model.files} == {*SIDE_FILES, "model.safetensors"}


def test_only_necessary_files_are_requested(server):
    find_model(TINY)
    fetched = {
        path.rpartition("/")[2] for path in server.paths() if "/api/" not in path
    }
    assert fetched == {*SIDE_FILES, "model.safetensors"}
    # The weights come last, so a model with weights is complete.
    assert server.paths()[-1] == WEIGHTS


def test_the_second_call_makes_no_request(server):
    first = find_model(TINY)
    server.requests.clear()
    assert find_model(TINY) == first
    assert server.requests == []


def test_without_network_the_cache_is_used(server, monkeypatch):
    from huggingface_hub import constants

    first = find_model(TINY)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert find_model(TINY) == first
    server.requests.clear()
    refused("google-bert/bert-base-cased", "HF_HUB_OFFLINE", "not in the cache")
    assert server.requests == []


def test_a_revision(server, tiny_files):
    later = {**tiny_files, "vocab.txt": tiny_files["vocab.txt"] + b"g\n"}
    server.repositories[TINY][LATER_COMMIT] = later
    model = find_model(f"hf://{TINY}@v2")
    assert model.revision == LATER_COMMIT
    assert pathlib.Path(model.path, "vocab.txt").read_bytes() == later["vocab.txt"]
    assert find_model(f"{TINY}@{LATER_COMMIT}").path == model.path
    assert find_model(TINY).revision == COMMIT
    refused(f"{TINY}@v3", "no revision 'v3'")


def test_a_file_that_is_gone_is_downloaded_again(server):
    folder = pathlib.Path(find_model(TINY).path)
    (folder / "vocab.txt").unlink()
    find_model(TINY)
    assert (folder / "vocab.txt").exists()


def test_a_connection_that_breaks(server, tiny_files, no_waiting, monkeypatch):
    # The library stores only complete chunks.
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 10)
    size = len(tiny_files["model.safetensors"])
    server.faults[WEIGHTS] = [("cut", size // 2)]
    path = pathlib.Path(find_model(TINY).path, "model.safetensors")
    assert path.read_bytes() == tiny_files["model.safetensors"]
    ranges = [bytes_ for _, name, bytes_ in server.requests if name == WEIGHTS]
    assert ranges[-2:] == [None, f"bytes={size // 20 * 10}-"]


def test_a_connection_that_breaks_each_time(server, no_waiting):
    server.faults[WEIGHTS] = [("cut", 0)] * 20
    refused(TINY, f"The download of {TINY} was interrupted", "Repeat the command")
    server.faults.clear()
    assert find_model(TINY).files


def test_no_model_of_that_name():
    message = refused("google-bert/bert-base-uncasd", "neither a path nor")
    assert "Did you mean bert-base-uncased or " in message
    assert "HF_TOKEN" in message


def test_a_gated_model(server, cache):
    server.gated.add(TINY)
    refused(TINY, "is a gated model", f"{server.url}/{TINY}", "HF_TOKEN")
    (cache / "token").write_text("hf_secret")
    assert find_model(TINY).files


@pytest.mark.parametrize(
    ("status", "part"),
    [
        (403, "denies the download (403)"),
        (429, "too many requests (429)"),
        (500, "returned status 500. Repeat the command later"),
        (503, "returned status 503"),
    ],
)
def test_a_server_that_refuses(server, status, part):
    server.faults[f"/api/models/{TINY}/revision/main"] = [status]
    refused(TINY, part)
    assert len(server.requests) == 1


def test_no_network(server, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    refused(TINY, "http://127.0.0.1:9 cannot be reached", "HTTPS_PROXY")


def test_a_server_that_is_no_hub(server, tiny_files, monkeypatch):
    """A server that is not a hub, such as a proxy, is reported."""
    path = f"/{TINY}/resolve/main/config.json"
    monkeypatch.setattr("hub_server._Handler._answer_hugging_face", _without_commit)
    refused(TINY, "does not respond like a Hugging Face hub", "HF_ENDPOINT")
    assert path in server.paths("HEAD")


def _without_commit(handler, path, cut):
    if path.startswith("/api/"):
        return handler._send_info(TINY, COMMIT, {"config.json": b"{}"})
    return handler._send_file(b"{}")


@pytest.mark.parametrize(
    ("config", "parts"),
    [
        (
            {"model_type": "roberta"},
            ["is a RoBERTa model; this package reads only BERT"],
        ),
        ({"model_type": "electra"}, ["is an ELECTRA model"]),
        ({"model_type": "other"}, ["is an other model"]),
        ({"is_decoder": True}, ["is_decoder is true"]),
        ({"position_embedding_type": "relative_key"}, ["position_embedding_type"]),
    ],
)
def test_another_architecture(server, tmp_path, tiny_files, config, parts):
    path = huggingface_files.write_config(tmp_path, **config)
    files = {**tiny_files, "config.json": path.read_bytes()}
    server.repositories["FacebookAI/roberta-base"] = {COMMIT: files}
    server.redirects["roberta-base"] = "FacebookAI/roberta-base"
    refused("roberta-base", *parts)
    assert not any("model.safetensors" in path for path in server.paths())


def test_weights_of_pytorch_alone(server, tiny_files):
    from official_bert.checkpoints import any_format

    files = server.repositories[TINY][COMMIT]
    del files["model.safetensors"], files["tf_model.h5"]
    model = find_model(TINY)
    assert "pytorch_model.bin" in model.files
    with any_format.opened(model.path) as checkpoint:
        name = "bert/embeddings/word_embeddings"
        expected = huggingface_files.torch_tensors("BertForPreTraining")
        wanted = expected["bert.embeddings.word_embeddings.weight"]
        assert checkpoint.read(name).tobytes() == wanted.tobytes()


def test_weights_in_several_files(server, tmp_path, tiny_files):
    huggingface_files.FILES["sharded safetensors"](tmp_path, "BertForPreTraining")
    files = server.repositories[TINY][COMMIT]
    del files["model.safetensors"]
    files |= {path.name: path.read_bytes() for path in tmp_path.glob("model*")}
    model = find_model(TINY)
    shards = {f"model-0000{number}-of-00002.safetensors" for number in (1, 2)}
    assert {*model.files} == SIDE_FILES | shards | {"model.safetensors.index.json"}
    os.remove(os.path.join(model.path, min(shards)))
    find_model(TINY)
    assert os.path.exists(os.path.join(model.path, min(shards)))


@pytest.mark.parametrize(
    ("lost", "part"),
    [
        (["config.json"], "no config.json"),
        (["model.safetensors", "tf_model.h5", "pytorch_model.bin"], "no weights"),
        (["vocab.txt"], "no vocabulary"),
    ],
)
def test_a_repository_without_a_model(server, lost, part):
    for name in lost:
        del server.repositories[TINY][COMMIT][name]
    refused(TINY, part)
    assert not any("model.safetensors" in path for path in server.paths())


def test_an_index_of_weights_that_are_not_there(server, tiny_files):
    files = server.repositories[TINY][COMMIT]
    del files["model.safetensors"]
    index = b'{"weight_map": {"a": "model-00001-of-00001.safetensors"}}'
    files["model.safetensors.index.json"] = index
    refused(TINY, "is incomplete")


def test_a_full_disk(server, monkeypatch):
    usage = shutil.disk_usage("/")._replace(free=10)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    message = refused(TINY, "0.00 GB free", "HF_HOME")
    assert re.search(r"needs \d\.\d\d GB on the disk of", message)
    assert not any("model.safetensors" in path for path in server.paths())


def test_a_cache_that_cannot_be_written(monkeypatch):
    def fail(*args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "makedirs", fail)
    refused(TINY, "is not writable", "HF_HOME")


def test_an_invalid_name():
    refused("a--b/c..d", "is neither a path nor a valid model name")
