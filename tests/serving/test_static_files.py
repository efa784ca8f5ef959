"""A page's folder over HTTP: headers for threads, types, and no listings."""

import http.client
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from places import ROOT

from official_bert.serving import static_files


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("page")
    (place / "index.html").write_text("<p>page")
    (place / "model.json").write_text("{}")
    (place / "bert").mkdir()
    for name in ("bert/runtime.js", "bert/litert.wasm"):
        (place / name).write_text("")
    (place.parent / "secret.txt").write_text("secret")
    return place


@pytest.fixture(scope="module")
def address(folder):
    """Return the address where serve.py serves the folder; SIGTERM ends it with 0."""
    command = [sys.executable, "run_scripts/serve.py", f"--model_dir={folder}"]
    with subprocess.Popen(
        [*command, "--port=0"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("Serving the page at http://127.0.0.1:")
        yield line.split(" ")[4].rstrip("/")
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == "Stopped.\n"
        assert process.wait(timeout=10) == 0


@pytest.mark.parametrize(
    ("path", "content_type"),
    [
        ("/", "text/html"),
        ("/bert/runtime.js", "text/javascript"),
        ("/bert/litert.wasm", "application/wasm"),
        ("/model.json?threads=0", "application/json"),
    ],
)
def test_files_have_their_type_and_headers(address, path, content_type):
    with urllib.request.urlopen(address + path) as response:
        headers = response.headers
    assert headers["Content-Type"] == content_type
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert headers["Cross-Origin-Embedder-Policy"] == "require-corp"
    assert headers["Cache-Control"] == "no-cache"


@pytest.mark.parametrize("path", ["/bert/", "/none", "/../secret.txt"])
def test_what_is_not_served(address, path):
    connection = http.client.HTTPConnection(address.removeprefix("http://"))
    connection.request("GET", path)
    assert connection.getresponse().status == 404
    connection.close()


def test_unchanged_files_are_not_sent_again(address):
    with urllib.request.urlopen(address) as response:
        since = response.headers["Last-Modified"]
    request = urllib.request.Request(address, headers={"If-Modified-Since": since})
    with pytest.raises(urllib.error.HTTPError, match="304"):
        urllib.request.urlopen(request)


def test_what_a_page_is(folder, tmp_path):
    assert static_files.is_page(folder)
    assert not static_files.is_page(tmp_path)
    (tmp_path / "index.html").write_text("")
    assert not static_files.is_page(tmp_path)
