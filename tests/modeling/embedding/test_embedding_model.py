"""The sentence embedding model: pooling, sizes, normalization."""

import dataclasses

import keras
import numpy as np
import pytest
from record_files import MINI_CONFIG

from official_bert.constants import INPUTS
from official_bert.modeling.embedding.model import (
    EmbeddingModel,
    finished,
    normalized,
    pool,
)

H = MINI_CONFIG.hidden_size
CONFIG = dataclasses.replace(MINI_CONFIG, initializer_range=0.2)
RNG = np.random.default_rng(0)
LENGTHS = np.array([[3, 7], [9, 2], [5, 5]])
IDS = RNG.integers(5, 100, (3, 2, 12)).astype(np.int32)
MASK = (np.arange(12) < LENGTHS[..., np.newaxis]).astype(np.int32)
BATCH = {"input_ids": IDS * MASK, "input_mask": MASK, "segment_ids": 0 * MASK}


def model_of(pooling):
    keras.utils.set_random_seed(1)
    return EmbeddingModel(CONFIG, pooling)


@pytest.mark.parametrize("pooling", ["mean", "cls", "pooler"])
def test_pooling_equals_numpy(pooling):
    model = model_of(pooling)
    found = model(BATCH)["vectors"].numpy()
    assert found.shape == (3, 2, H)
    for i in range(3):
        for k in range(2):
            row = {name: BATCH[name][i : i + 1, k] for name in INPUTS}
            encoded = model.bert(row)
            sequence = encoded["sequence_output"].numpy()[0]
            expected = {
                "mean": sequence[: LENGTHS[i, k]].mean(0),
                "cls": sequence[0],
                "pooler": encoded["pooled_output"].numpy()[0],
            }[pooling]
            np.testing.assert_allclose(found[i, k], expected, atol=1e-5)


def test_padding_does_not_change_a_vector():
    model = model_of("mean")
    longer = {name: np.pad(v, ((0, 0), (0, 0), (0, 9))) for name, v in BATCH.items()}
    np.testing.assert_allclose(
        model(longer)["vectors"], model(BATCH)["vectors"], atol=1e-5
    )


def test_rows_of_one_text():
    model = model_of("cls")
    rows = {name: value.reshape(6, 12) for name, value in BATCH.items()}
    expected = model(BATCH)["vectors"].numpy().reshape(6, H)
    np.testing.assert_allclose(model(rows)["vectors"], expected, atol=1e-6)


def test_only_pooler_pooling_trains_the_pooler():
    for pooling, trains in (("mean", False), ("cls", False), ("pooler", True)):
        paths = [v.path for v in model_of(pooling).trainable_variables]
        assert any("/pooler/" in path for path in paths) == trains


def test_a_row_without_tokens_has_a_vector_of_zeros():
    encoded = {"sequence_output": RNG.normal(size=(1, 4, 3))}
    found = pool(encoded, np.zeros((1, 4), np.int32), "mean").numpy()
    assert (found == 0).all()
    assert (normalized(found).numpy() == 0).all()
    with pytest.raises(ValueError, match="pooling is 'max'"):
        pool(encoded, np.zeros((1, 4), np.int32), "max")


def test_size_and_normalization():
    vectors = RNG.normal(size=(5, 8)).astype(np.float32)
    cut = vectors[:, :3]
    np.testing.assert_array_equal(finished(vectors, None, False), vectors)
    np.testing.assert_array_equal(finished(vectors, 3, False), cut)
    expected = cut / np.linalg.norm(cut, axis=1, keepdims=True)
    np.testing.assert_allclose(finished(vectors, 3, True), expected, rtol=1e-6)


def test_the_model_comes_back_from_its_config():
    model = EmbeddingModel.from_config(model_of("cls").get_config())
    assert model.pooling == "cls"
