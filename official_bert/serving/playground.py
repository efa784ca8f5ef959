"""The page at `/` of a server: a form for its models, see `ports/js/page`.

It is the page of `export_model.py --format=web`. Its predictions come from the server
instead of a model in the browser: `ports/js/playground/backend.js` replaces one file.
"""

import asyncio
import json
import os
import pathlib
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from aiohttp import web

from official_bert import files
from official_bert.constants import (
    CLASSIFIER,
    EMBEDDING,
    MULTIPLE_CHOICE,
    NER,
    SQUAD,
)
from official_bert.serving import model_versions, saved_model
from official_bert.serving.model_versions import ModelVersions

CARDS = "/playground.json"
# Signatures of exports. The server imports nothing that needs Keras.
_ATTENTION, _FILL_MASK = "attention", "fill_mask"
_PORT = files.shipped("ports/js")
_CONTENT_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
# For offline use of a page with a model in it.
_LEFT_OUT = "service_worker.js"
# Name of an output of `serving_default` -> kind of the page, and its description.
_KINDS = {
    "choice": (MULTIPLE_CHOICE, "multiple choice"),
    "label": (CLASSIFIER, "classifier of one label"),
    "labels": (CLASSIFIER, "classifier of several labels"),
    "value": (CLASSIFIER, "regression"),
    "answer": (SQUAD, "question answering"),
    "entities": (NER, "entity tagger"),
    "embedding": (EMBEDDING, "sentence embeddings"),
    "sequence_output": ("encoder", "pre-trained encoder"),
}

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def middleware(models: Iterable[ModelVersions]) -> Any:
    """Return a middleware of aiohttp that responds to GET and HEAD of the page's files.

    The files are read here, and no path of a request is ever opened. All other requests
    go to the next handler.
    """
    models, contents = list(models), _contents()

    @web.middleware
    async def answer(request: web.Request, handler: _Handler) -> web.StreamResponse:
        path = request.rel_url.raw_path
        if request.method not in ("GET", "HEAD"):
            return await handler(request)
        if path == CARDS:
            cards = await asyncio.to_thread(lambda: [card(one) for one in models])
            body, kind = json.dumps(cards).encode(), "application/json"
        elif path in contents:
            body, kind = contents[path]
        else:
            return await handler(request)
        headers = {"Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff"}
        charset = None if kind == "application/json" else "utf-8"
        return web.Response(
            body=body, content_type=kind, charset=charset, headers=headers
        )

    return answer


def _contents():
    """Return URL path -> (bytes, content type) of the page's files."""
    paths = [*(_PORT / "page").iterdir(), *(_PORT / "playground").iterdir()]
    found = {f"/{path.name}": path for path in paths if path.name != _LEFT_OUT}
    found["/bert/search.js"] = _PORT / "bert" / "search.js"
    found["/"] = found["/index.html"]
    return {
        name: (path.read_bytes(), _CONTENT_TYPES[path.suffix])
        for name, path in found.items()
    }


def card(versions: ModelVersions) -> dict[str, Any]:
    """Return the description of a served model for the page.

    Args:
      versions: `ModelVersions` with a version loaded.

    Returns:
      dict: `name`, `version`; `kind`, None if the page has no form for this model's
      signatures; `what`; `is_pair`; `has_attention`; `labels`; and what `assets/`
      describes: `do_lower_case`, `vocabulary`, `config` (`bert_config.json`) or None.
    """
    model = versions.current
    assert model is not None, versions.name
    default = model.signatures.get(saved_model.DEFAULT_SIGNATURE)
    outputs = set(default.outputs if default else ())
    # A tagger also has an output `labels`.
    if "entities" in outputs:
        outputs.discard("labels")
    names = [name for name in _KINDS if name in outputs]
    kind, what = _KINDS[names[0]] if names else (None, "SavedModel")
    if kind == "encoder" and _FILL_MASK in model.signatures:
        kind, what = _FILL_MASK, "masked language model"
    folder = dict(model_versions.find_versions(versions.directory)).get(model.version)
    assets = pathlib.Path(folder or "", "assets")
    vocabulary = _read(assets / "vocab.txt")
    labels = _read(assets / "labels.txt")
    tokenizer = json.loads(_read(assets / "tokenizer_config.json") or "{}")
    return {
        "name": versions.name,
        "version": model.version,
        "kind": kind,
        "what": what,
        "is_pair": default is not None and "text_b" in default.inputs,
        "has_attention": _ATTENTION in model.signatures,
        "labels": labels.splitlines() if labels else [],
        "do_lower_case": tokenizer.get("do_lower_case"),
        "vocabulary": vocabulary.count("\n") if vocabulary else None,
        "config": json.loads(_read(assets / "bert_config.json") or "null"),
    }


def _read(path: os.PathLike[str]) -> str | None:
    """Return the text of a file, or None if it does not exist."""
    try:
        return pathlib.Path(path).read_text("utf-8")
    except OSError:
        return None
