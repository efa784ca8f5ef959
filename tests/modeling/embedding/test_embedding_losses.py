"""The losses of sentence embeddings compared with NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from official_bert.modeling.embedding.losses import LossSettings, make_terms

B, K, H = 6, 4, 8
RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(B, K, H)).astype(np.float32)
MASK = np.array([[1, 1, n % 2, n % 3 == 0] for n in range(B)], np.int32)
NUMBERS = np.arange(B * K).reshape(B, K).astype(np.int32)
# Examples 0 and 3 have the same positive. The hard negative of 1 is its own anchor.
NUMBERS[3, 1] = NUMBERS[0, 1]
NUMBERS[1, 2] = NUMBERS[1, 0]
SCORES = np.array([0, 5, 2.5, 2.5, 4, 1], np.float32)
FEATURES = {"text_mask": MASK, "text_numbers": NUMBERS, "scores": SCORES}


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def mean_of(settings, vectors=VECTORS):
    features = {name: tf.constant(value) for name, value in FEATURES.items()}
    terms = make_terms(settings)({"vectors": tf.constant(vectors)}, features)
    assert {float(weight) for _, weight in terms.values()} == {B}
    return {name: float(total) / B for name, (total, _) in terms.items()}


def shares_a_text(i, j):
    return bool(set(NUMBERS[i, :2]) & set(NUMBERS[j, :2]))


def expected_info_nce(vectors, temperature, symmetric):
    """Return (loss, accuracy), computed one example and one candidate at a time."""
    vectors, losses, hits = unit(vectors.astype(np.float64)), [], []
    for i in range(B):
        right = vectors[i, 0] @ vectors[i, 1] / temperature
        forward, backward = [right], [right]
        for j in range(B):
            if i != j and not shares_a_text(i, j):
                forward.append(vectors[i, 0] @ vectors[j, 1] / temperature)
                backward.append(vectors[j, 0] @ vectors[i, 1] / temperature)
            for k in range(2, K):
                if MASK[j, k] and NUMBERS[j, k] not in NUMBERS[i, :2]:
                    forward.append(vectors[i, 0] @ vectors[j, k] / temperature)
        loss = np.log(np.exp(forward).sum()) - right
        if symmetric:
            loss = (loss + np.log(np.exp(backward).sum()) - right) / 2
        losses.append(loss)
        hits.append(max(forward) == right)
    return np.mean(losses), np.mean(hits)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("name", ["info_nce", "simcse"])
def test_in_batch_negatives(name, symmetric):
    found = mean_of(LossSettings(name, 0.2, symmetric))
    loss, accuracy = expected_info_nce(VECTORS, 0.2, symmetric)
    assert found["embedding_loss"] == pytest.approx(loss, rel=1e-5)
    assert found["accuracy"] == pytest.approx(accuracy)


def test_texts_that_mean_the_same_are_not_negatives():
    """As negatives they would add candidates and increase the loss."""
    other = {**FEATURES, "text_numbers": np.arange(B * K).reshape(B, K)}
    features = {name: tf.constant(value) for name, value in other.items()}
    terms = make_terms(LossSettings("info_nce", 0.2))
    total, _ = terms({"vectors": tf.constant(VECTORS)}, features)["embedding_loss"]
    assert float(total) / B > mean_of(LossSettings("info_nce", 0.2))["embedding_loss"]


def cosines(vectors=VECTORS):
    vectors = unit(vectors.astype(np.float64))
    return (vectors[:, 0] * vectors[:, 1]).sum(-1)


def test_cosine_regression():
    found = mean_of(LossSettings("cosine", max_score=5.0))
    expected = np.mean((cosines() - SCORES / 5) ** 2)
    assert found == {"embedding_loss": pytest.approx(expected, rel=1e-5)}


def test_cosent():
    found = mean_of(LossSettings("cosent", 0.3))
    pairs = [
        np.exp((cosines()[j] - cosines()[i]) / 0.3)
        for i in range(B)
        for j in range(B)
        if SCORES[i] > SCORES[j]
    ]
    assert len(pairs) == 14  # One of the 15 pairs has equal scores.
    expected = np.log(1 + np.sum(pairs))
    assert found == {"embedding_loss": pytest.approx(expected, rel=1e-5)}


@pytest.mark.parametrize("name", ["info_nce", "cosine", "cosent"])
def test_matryoshka_is_the_mean_over_sizes(name):
    found = mean_of(LossSettings(name, 0.3, sizes=(H, 4, 2)))
    parts = [
        mean_of(LossSettings(name, 0.3), VECTORS[..., :size]) for size in (2, 4, H)
    ]
    expected = np.mean([part["embedding_loss"] for part in parts])
    assert found["embedding_loss"] == pytest.approx(expected, rel=1e-5)
    if name == "info_nce":  # The accuracy is that of complete vectors.
        assert found["accuracy"] == parts[-1]["accuracy"]


def test_equal_scores_have_no_loss():
    features = {**FEATURES, "scores": np.ones(B, np.float32)}
    features = {name: tf.constant(value) for name, value in features.items()}
    terms = make_terms(LossSettings("cosent"))
    total, _ = terms({"vectors": tf.constant(VECTORS)}, features)["embedding_loss"]
    assert float(total) == 0.0
