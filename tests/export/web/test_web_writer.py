"""The folder of a page has all files and a correct `model.json`, or is not written."""

import json
import os
import re
import tempfile

import numpy as np
import packed_runtime
import pytest
import tiny_exports
from places import ROOT

from official_bert.errors import UserError
from official_bert.export.tflite.model import open_device_model
from official_bert.export.web import card, writer
from official_bert.export.web.headers import HEADERS
from official_bert.fine_tuning.tflite_model import TfliteModel, read_files


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


def opened(place, kind):
    folder = tempfile.mkdtemp(dir=place)
    return open_device_model(tiny_exports.write_kind(place / folder, kind), (16,))


@pytest.fixture(scope="module")
def page(place):
    """Return the page of a classifier, and its `model.json`."""
    with pytest.MonkeyPatch.context() as patch:
        packed = packed_runtime.write(place / "packed", patch)
        model = opened(place, "label")
        settings = writer.Page("Reviews", packed_runtime=packed)
        writer.write(place / "page", model, settings, "int8")
    folder = place / "page"
    return folder, json.loads((folder / "model.json").read_text("utf-8"))


def test_all_files_that_the_page_loads_are_there(page):
    folder, _ = page
    for path in [
        folder / "index.html",
        *folder.glob("*.js"),
        *folder.glob("bert/*.js"),
    ]:
        text = path.read_text("utf-8")
        loaded = re.findall(r'(?:from|import) "(\.[^"]+)"', text)
        loaded += re.findall(r'(?:src|href)="([\w./]+)"', text)
        for name in loaded:
            assert (path.parent / name).exists(), (path, name)
        assert not re.findall(r"(?:src|href|url)\s*[=(]\s*[\"']?https?:", text), path


def test_nothing_else_is_there(page):
    folder, _ = page
    sources = {one.name for one in (ROOT / "ports/js/page").iterdir()}
    names = {"bert", "bert.js", "bert.d.ts", "litert", "model.json", "model.tflite"}
    names |= {"README.md", "golden_tokens.json", "labels.txt", "task.json"}
    names |= {"tokenizer.js", "tokenizer_config.json", "vocab.txt"}
    assert set(os.listdir(folder)) == names | sources


def test_the_model_is_described(page):
    folder, described = page
    assert (described["name"], described["kind"]) == ("Reviews", "classifier")
    assert described["labels"] == list(tiny_exports.LABELS)
    assert described["lengths"] == TfliteModel(folder / "model.tflite").lengths
    assert described["model_bytes"] == (folder / "model.tflite").stat().st_size
    assert described["task"]["max_seq_length"] == 24
    assert described["is_pair"] is False
    assert "vocab.txt" in read_files(folder / "model.tflite")


def test_the_row_to_check_a_gpu_with(page):
    folder, described = page
    ids = described["check"]["input_ids"]
    assert len(ids) <= described["lengths"][0]
    row = {"input_ids": [ids], "input_mask": [[1] * len(ids)]}
    row["segment_ids"] = [[0] * len(ids)]
    arrays = {name: np.array(v, "int32") for name, v in row.items()}
    outputs = TfliteModel(folder / "model.tflite")(arrays)
    assert set(described["check"]["outputs"]) == set(outputs)
    for name, values in described["check"]["outputs"].items():
        assert values == pytest.approx(outputs[name].ravel()[:16].tolist())


def test_the_readme_shows_the_headers(page):
    text = (page[0] / "README.md").read_text("utf-8")
    assert "\nCross-Origin-Opener-Policy: same-origin\n" in text
    assert "\nCross-Origin-Embedder-Policy: require-corp\n" in text
    assert "\n## model.tflite: single-label classifier, int8\n" in text


def test_nothing_is_written_without_the_runtime(place):
    model = opened(place, "encoder")
    settings = writer.Page("Page", packed_runtime=str(place))
    with pytest.raises(UserError, match="--web_runtime"):
        writer.write(place / "missing", model, settings, "int8")
    assert not [name for name in os.listdir(place) if name.startswith("missing")]


def test_kinds_of_pages(place):
    kinds = {
        "vectors": "embedding",
        "masks": "fill_mask",
        "encoder": "encoder",
        "squad 1.1": "squad",
    }
    for kind, name in kinds.items():
        assert card.kind_of(opened(place, kind)) == name
    with pytest.raises(UserError, match="no page for multiple choice"):
        card.kind_of(opened(place, "choice"))


def test_pairs(place):
    classifier, tagger = opened(place, "label"), opened(place, "tags")
    assert card.pairs_of(classifier, None) is False
    assert card.pairs_of(classifier, True) is True
    assert card.pairs_of(tagger, None) is False
    with pytest.raises(UserError, match="--pairs is only for classifiers"):
        card.pairs_of(tagger, False)


def test_the_service_worker_sends_the_same_headers():
    text = (ROOT / "ports/js/page/service_worker.js").read_text("utf-8")
    for name, value in HEADERS.items():
        assert f'"{name}": "{value}"' in text
