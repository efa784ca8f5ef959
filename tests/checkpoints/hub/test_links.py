"""Models in zip files, with a local server."""

import io
import json
import pathlib
import shutil
import zipfile

import pytest

from official_bert.checkpoints.hub import links, names
from official_bert.checkpoints.hub.find import find_model
from official_bert.errors import UserError

NAME = "uncased_L-2_H-128_A-2"
FILES = ("bert_config.json", "vocab.txt", "bert_model.ckpt.index")
DATA = "bert_model.ckpt.data-00000-of-00001"


@pytest.fixture
def url(server, cache, monkeypatch):
    """Return the link of a release, and make its name stand for that link."""
    server.archives[f"{NAME}.zip"] = packed(f"{NAME}/")
    url = f"{server.url}/files/{NAME}.zip"
    model = names.KnownModel(NAME, names.GOOGLE, url, 2, 128, 30522, "uncased", "")
    monkeypatch.setitem(names.BY_NAME, NAME, model)
    monkeypatch.setitem(names.BY_LOCATION, url, model)
    monkeypatch.setattr(links, "CHUNK_BYTES", 100)
    monkeypatch.setattr(links, "SECONDS_BETWEEN", 0)
    return url


def packed(folder="", text="first"):
    """Return the bytes of a zip file with the files of a release."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name in FILES:
            archive.writestr(folder + name, f"{text} {name}")
        archive.writestr(folder + DATA, text * 1000)
    return data.getvalue()


def refused(name, *parts):
    with pytest.raises(UserError) as caught:
        find_model(name)
    for part in parts:
        assert part in str(caught.value)


def ranges(server):
    return [value for _, _, value in server.requests]


@pytest.mark.parametrize("folder", ["", f"{NAME}/", "a/b/"])
def test_a_release_by_its_name(server, cache, url, folder):
    server.archives[f"{NAME}.zip"] = packed(folder)
    model = find_model(NAME)
    assert pathlib.Path(model.path) == cache / "keras" / "models" / NAME
    assert {*model.files} == {*FILES, DATA, "download.json"}
    assert pathlib.Path(model.path, DATA).read_text() == "first" * 1000
    assert (model.name, model.source) == (NAME, url)
    source = json.loads(pathlib.Path(model.path, "download.json").read_text())
    assert source["url"] == url and source["etag"] == model.revision
    assert len(source["sha256"]) == 64
    # The zip file and temporary files are gone.
    left = {path.name for path in (cache / "keras" / "models").iterdir()}
    assert left - {f"{NAME}.lock"} == {NAME}


def test_the_second_call_makes_no_request(server, url):
    first = find_model(NAME)
    assert find_model(NAME) == first
    assert find_model(url).path == first.path
    assert len(server.requests) == 1


def test_a_folder_that_somebody_has_unpacked_there(server, cache, url):
    folder = cache / "keras" / "models" / NAME
    folder.mkdir(parents=True)
    (folder / DATA).write_text("own")
    model = find_model(NAME)
    assert (model.path, model.revision, model.files) == (str(folder), None, (DATA,))
    assert server.requests == []


def test_links_with_the_same_last_part(server, url):
    server.archives["other/model.zip"] = packed(text="other")
    server.archives["model.tar.gz/model.zip"] = packed(text="third")
    other = find_model(f"{server.url}/files/other/model.zip")
    third = find_model(f"{server.url}/files/model.tar.gz/model.zip?download=1")
    assert pathlib.Path(other.path, DATA).read_text().startswith("other")
    assert pathlib.Path(third.path, DATA).read_text().startswith("third")


def test_a_connection_that_breaks(server, url):
    server.faults[f"/files/{NAME}.zip"] = [("cut", 2000), ("cut", 1000)]
    model = find_model(NAME)
    assert pathlib.Path(model.path, DATA).read_text() == "first" * 1000
    assert ranges(server) == [None, "bytes=2000-", "bytes=3000-"]


def test_the_next_command_continues(server, cache, url):
    server.faults[f"/files/{NAME}.zip"] = [("cut", 2000)] + [("cut", 0)] * 5
    refused(NAME, "was interrupted", "continues where the download stopped")
    server.requests.clear()
    server.faults.clear()
    assert find_model(NAME).files
    assert ranges(server) == ["bytes=2000-"]


def test_a_file_that_changed_since(server, cache, url):
    """Halves of two different files are never joined."""
    server.faults[f"/files/{NAME}.zip"] = [("cut", 2000)] + [("cut", 0)] * 5
    refused(NAME, "was interrupted")
    server.archives[f"{NAME}.zip"] = packed(text="second")
    server.faults.clear()
    model = find_model(NAME)
    assert pathlib.Path(model.path, DATA).read_text() == "second" * 1000


def test_all_bytes_were_there_already(server, cache, url):
    """A complete download is unpacked, even if the process ended before that."""
    folder = cache / "keras" / "models"
    folder.mkdir(parents=True)
    data = server.archives[f"{NAME}.zip"]
    (folder / f"{NAME}.partial.zip").write_bytes(data)
    (folder / f"{NAME}.partial.json").write_text('{"etag": "\\"old\\""}')
    assert pathlib.Path(find_model(NAME).path, DATA).exists()


@pytest.mark.parametrize("status", [404, 403, 500])
def test_a_server_that_refuses(server, cache, url, status):
    server.faults[f"/files/{NAME}.zip"] = [status]
    refused(NAME, f"status {status}", url)
    assert not (cache / "keras" / "models" / NAME).exists()


def test_no_network(server, cache, url):
    refused("http://127.0.0.1:9/a.zip", "http://127.0.0.1:9 cannot be reached")


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (b"no zip file at all", "Cannot unpack"),
        (packed("a/") + b"", None),
    ],
)
def test_a_damaged_file(server, cache, url, data, part):
    server.archives[f"{NAME}.zip"] = data
    if part is None:
        assert find_model(NAME).files
        return
    refused(NAME, part, url)
    # The damaged file does not block the next download.
    server.archives[f"{NAME}.zip"] = packed()
    assert find_model(NAME).files


def test_a_zip_file_without_a_model(server, cache, url):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("README.txt", "nothing else")
    server.archives[f"{NAME}.zip"] = data.getvalue()
    refused(NAME, "contains no checkpoint")
    assert not (cache / "keras" / "models" / NAME).exists()


def test_a_full_disk(server, cache, url, monkeypatch):
    usage = shutil.disk_usage("/")._replace(free=10)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    refused(NAME, "0.00 GB free", "KERAS_HOME")
    assert not list((cache / "keras" / "models").glob("*.partial.zip"))


def test_a_folder_that_cannot_be_made(server, cache, url):
    (cache / "keras").write_text("a file")
    refused(NAME, "Cannot create", "KERAS_HOME")


def test_another_process_has_downloaded_it_meanwhile(server, cache, url, monkeypatch):
    import filelock

    class Lock(filelock.FileLock):
        def __enter__(self):
            entered = super().__enter__()
            folder = cache / "keras" / "models" / NAME
            folder.mkdir()
            (folder / "download.json").write_text('{"etag": "of the other"}')
            return entered

    monkeypatch.setattr(filelock, "FileLock", Lock)
    assert find_model(NAME).revision == "of the other"
    assert server.requests == []
