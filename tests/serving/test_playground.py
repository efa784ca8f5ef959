"""The page at `/` of a server: its files, its descriptions of models, its limits."""

import http.client
import json
import re
import urllib.parse

import pytest
from places import ROOT
from serving import saved_models
from serving.running import running

from official_bert.serving import model_versions, playground

PORT = ROOT / "ports/js"


def ask(url, method, path):
    """Return (status, headers, body)."""
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc)
    connection.request(method, path)
    answer = connection.getresponse()
    content = answer.status, answer.headers, answer.read()
    connection.close()
    return content


@pytest.mark.parametrize(
    ("path", "file", "content_type"),
    [
        ("/", "page/index.html", "text/html"),
        ("/index.html", "page/index.html", "text/html"),
        ("/app.js", "page/app.js", "text/javascript"),
        ("/backend.js", "playground/backend.js", "text/javascript"),
        ("/bert/search.js", "bert/search.js", "text/javascript"),
        ("/style.css", "page/style.css", "text/css"),
        ("/icon.svg", "page/icon.svg", "image/svg+xml"),
        ("/?model=answers", "page/index.html", "text/html"),
    ],
)
def test_files_of_the_page(own_url, path, file, content_type):
    status, headers, body = ask(own_url, "GET", path.partition("?")[0])
    assert (status, body) == (200, (PORT / file).read_bytes())
    assert headers["Content-Type"] == f"{content_type}; charset=utf-8"
    assert headers["Cache-Control"] == "no-cache"
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_the_address_may_have_a_query(own_url):
    status, _, body = ask(own_url, "GET", "/?model=answers")
    assert (status, body) == (200, (PORT / "page/index.html").read_bytes())


@pytest.mark.parametrize("path", ["/", "/app.js", "/playground.json"])
def test_head_has_the_headers_alone(own_url, path):
    _, wanted, content = ask(own_url, "GET", path)
    status, headers, body = ask(own_url, "HEAD", path)
    assert (status, body) == (200, b"")
    for name in ("Content-Type", "Content-Length"):
        assert headers[name] == wanted[name]
    assert int(headers["Content-Length"]) == len(content)


@pytest.mark.parametrize(
    "path",
    [
        "/none.js",
        "/page/app.js",
        "/../bert.js",
        "/bert/../bert.js",
        "/%2e%2e/pyproject.toml",
        "/..%2fpyproject.toml",
        "/bert/classifier.js",
        "/bert/",
        "/service_worker.js",
        "//etc/passwd",
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_other_paths_are_not_found(own_url, method, path):
    status, headers, body = ask(own_url, method, path)
    assert status == 404
    assert headers["Content-Type"].startswith("application/json")
    assert method == "HEAD" or "Not found" in json.loads(body)["error"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_the_page_only_answers_get_and_head(own_url, method):
    status, _, body = ask(own_url, method, "/")
    assert (status, "Not found" in json.loads(body)["error"]) == (404, True)


def test_all_files_that_the_page_loads_are_served(own_url):
    waiting, seen = ["/"], set()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        status, _, body = ask(own_url, "GET", path)
        assert status == 200, path
        text = body.decode()
        assert not re.findall(r"(?:src|href|url)\s*[=(]\s*[\"']?https?:", text), path
        loaded = re.findall(r'(?:from|import) "(\.[^"]+)"', text)
        loaded += re.findall(r'(?:src|href)="([\w./]+)"', text)
        waiting += [urllib.parse.urljoin(path, one) for one in loaded]
    assert {"/app.js", "/backend.js", "/attention.js", "/bert/search.js"} <= seen


def test_both_places_of_predictions_have_the_same_exports():
    names = [
        set(re.findall(r"export (?:const|async function|function) (\w+)", text))
        for text in (
            (PORT / folder / "backend.js").read_text("utf-8")
            for folder in ("page", "playground")
        )
    ]
    assert names[0] == names[1] == {"PRIVACY", "LINKS", "WORKS_OFFLINE", "openModel"}


def test_a_model_of_unknown_signatures_has_no_form(own_url):
    status, headers, body = ask(own_url, "GET", "/playground.json")
    assert (status, headers["Content-Type"]) == (200, "application/json")
    (card,) = json.loads(body)
    assert (card["name"], card["version"]) == (saved_models.NAME, 1)
    assert card["kind"] is None and card["labels"] == []
    assert card["config"] is None and card["has_attention"] is False


def signature(inputs, outputs):
    """Return a stand-in for a `SignatureDef`."""
    return type("Signature", (), {"inputs": inputs, "outputs": outputs})


@pytest.mark.parametrize(
    ("inputs", "outputs", "others", "kind", "is_pair"),
    [
        (["text"], ["label", "probabilities"], [], "classifier", False),
        (["text", "text_b"], ["labels", "probabilities"], [], "classifier", True),
        (["text"], ["value"], [], "classifier", False),
        (["question", "context"], ["answer", "start"], [], "squad", False),
        (["text"], ["entities", "labels", "tags"], [], "ner", False),
        (["text"], ["embedding"], [], "embedding", False),
        (["prompt", "choices"], ["choice", "index"], [], "multiple_choice", False),
        (["text"], ["sequence_output"], [], "encoder", False),
        (["text"], ["sequence_output"], ["fill_mask"], "fill_mask", False),
        (["text"], ["sequence_output"], ["attention"], "encoder", False),
    ],
)
def test_the_form_follows_the_signatures(
    tmp_path, inputs, outputs, others, kind, is_pair
):
    versions = model_versions.ModelVersions("name", tmp_path)
    assets = tmp_path / "3" / "assets"
    assets.mkdir(parents=True)
    (tmp_path / "3" / "saved_model.pb").write_bytes(b"")
    (assets / "labels.txt").write_text("gut\nschön\n", "utf-8")
    (assets / "vocab.txt").write_text("[PAD]\nthe\n", "utf-8")
    (assets / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    (assets / "bert_config.json").write_text('{"num_hidden_layers": 2}')
    signatures = {"serving_default": signature(inputs, outputs)}
    signatures |= dict.fromkeys(others)
    versions.current = model_versions.saved_model.SavedModel(3, None, signatures)
    card = playground.card(versions)
    assert (card["kind"], card["is_pair"]) == (kind, is_pair)
    assert card["has_attention"] == ("attention" in others)
    assert (card["version"], card["labels"]) == (3, ["gut", "schön"])
    assert (card["vocabulary"], card["do_lower_case"]) == (2, False)
    assert card["config"] == {"num_hidden_layers": 2}


def test_a_new_version_is_described(tmp_path):
    saved_models.write(tmp_path, 1)
    versions = model_versions.open_model("answers", tmp_path)
    with running(versions, poll_s=60) as url:
        saved_models.write(tmp_path, 2)
        versions.refresh()
        (card,) = json.loads(ask(url, "GET", "/playground.json")[2])
    assert card["version"] == 2
