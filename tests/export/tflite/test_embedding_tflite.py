"""Sentence embeddings of a `.tflite` equal Python's."""

import numpy as np
import pytest
import tiny_exports
from device_exports import directory_of, exported

from official_bert.export.tflite import labeled_sets
from official_bert.tasks.predictor import Predictor, load

# Some texts exceed the model's length and get windows.
TEXTS = [text for text in tiny_exports.random_texts(12, 4) if text]


@pytest.fixture(scope="module")
def wanted():
    return Predictor(directory_of("vectors")).vectors(TEXTS)


def test_float_vectors(wanted):
    folder, report = exported("vectors")
    assert report.difference < 1e-5
    found = Predictor(folder)
    assert found.task.size == 9
    np.testing.assert_allclose(found.vectors(TEXTS), wanted, atol=1e-5)
    assert found.vectors([]).shape == (0, 9)
    np.testing.assert_allclose(
        found.similarity(TEXTS[:2], TEXTS), wanted[:2] @ wanted.T, atol=1e-5
    )


def test_int8_vectors(wanted):
    folder, _ = exported("vectors", "int8")
    cosines = (Predictor(folder).vectors(TEXTS) * wanted).sum(-1)
    assert cosines.min() >= 0.98  # A narrow model loses more accuracy than a real one.
    assert cosines.mean() >= 0.995


def test_a_dev_set_scores_them(tmp_path):
    path = tmp_path / "dev.csv"
    rows = [f"{a},{b},{n}" for n, (a, b) in enumerate([("on", "in"), ("on", "on")])]
    path.write_text("\n".join(["sentence1,sentence2,score", *rows]))
    labeled_set = labeled_sets.read(load(directory_of("vectors")), path, "--dev_file")
    assert labeled_set.metric == "spearman"
    predictions, score = labeled_set.evaluate(load(exported("vectors")[0]))
    assert predictions is None and score == pytest.approx(100)
