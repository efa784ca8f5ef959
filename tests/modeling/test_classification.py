"""The classifier: names, dropout, and the three losses computed by hand."""

import numpy as np
import pytest
import tensorflow as tf
import tiny_model
from record_files import MINI_CONFIG

from official_bert.checkpoints import google, initialize, names
from official_bert.modeling import classification
from official_bert.modeling.classification import ClassificationModel

IDS = np.array([[5, 6, 7, 0], [8, 9, 0, 0]], np.int32)
FEATURES = {"input_ids": IDS, "input_mask": (IDS > 0).astype(np.int32)}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tiny_model.write(tmp_path_factory.mktemp("models") / "fine_tuned")
    model = ClassificationModel(MINI_CONFIG, 3)
    report = initialize.load_weights(model, folder)
    assert not report.new
    return model


def test_the_head_has_the_original_s_names(model):
    own = {names.google_name(v): tuple(v.shape) for v in model.trainable_variables}
    assert own["output_weights"] == (3, MINI_CONFIG.hidden_size)
    assert own["output_bias"] == (3,)
    assert all(name.startswith(("bert/", "output_")) for name in own)


def test_scores(model):
    pooled = model.bert(FEATURES)["pooled_output"].numpy()
    tensors = tiny_model.tensors()
    expected = pooled @ tensors["output_weights"].T + tensors["output_bias"]
    np.testing.assert_allclose(model(FEATURES)["logits"], expected, atol=1e-5)


def test_what_was_trained_is_read_back(model, tmp_path):
    values = {names.google_name(v): v.numpy() for v in model.trainable_variables}
    google.write_checkpoint(str(tmp_path / "bert_model.ckpt"), values)
    other = ClassificationModel(MINI_CONFIG, 3)
    initialize.load_weights(other, tmp_path)
    np.testing.assert_array_equal(other(FEATURES)["logits"], model(FEATURES)["logits"])


def test_dropout_is_a_function_of_its_seed(model):
    def run(number):
        seed = tf.constant([1, number], tf.int64)
        return model(FEATURES, training=True, dropout_seed=seed)["logits"].numpy()

    np.testing.assert_array_equal(run(0), run(0))
    assert (run(0) != run(1024)).all()


def test_dropout_of_the_pooled_output_has_a_site_of_its_own(model):
    """Without the encoder's dropout, a tenth of the pooled output is dropped."""
    seen = []
    config = {**MINI_CONFIG.to_dict(), "hidden_dropout_prob": 0.0}
    config["attention_probs_dropout_prob"] = 0.0
    other = ClassificationModel(config, 3)
    other.classifier.call = lambda x: seen.append(x.numpy()) or x
    many = {"input_ids": np.tile(IDS, (500, 1))}
    other(many, training=True, dropout_seed=tf.constant([1, 0], tf.int64))
    pooled = other.bert(many)["pooled_output"].numpy()
    kept = seen[0] != 0
    assert abs(kept.mean() - 0.9) < 0.01
    np.testing.assert_allclose(seen[0][kept], pooled[kept] / 0.9, rtol=1e-4)


def values_of(terms):
    return {
        name: (float(total), float(weight)) for name, (total, weight) in terms.items()
    }


LOGITS = np.array([[2.0, 0.0, -1.0], [0.5, 1.0, 0.0]], np.float32)


def test_single_label():
    features = {"label_ids": np.array([0, 2], np.int32)}
    terms = classification.single_label_terms({"logits": tf.constant(LOGITS)}, features)
    probabilities = np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True)
    loss = -np.log(probabilities[0, 0]) - np.log(probabilities[1, 2])
    found = values_of(terms)
    assert found["classification_loss"] == pytest.approx((loss, 2.0))
    assert found["accuracy"] == (1.0, 2.0)


def test_multi_label():
    labels = np.array([[1, 0, 0], [1, 0, 0]], np.int32)
    terms = classification.multi_label_terms(
        {"logits": tf.constant(LOGITS)}, {"label_ids": labels}
    )
    probabilities = 1 / (1 + np.exp(-LOGITS))
    right = np.where(labels == 1, probabilities, 1 - probabilities)
    found = values_of(terms)
    assert found["classification_loss"] == pytest.approx(
        (-np.log(right).mean(1).sum(), 2.0)
    )
    assert found["accuracy"] == (1.0, 2.0)


def test_regression():
    logits = tf.constant([[1.5], [-2.0]])
    features = {"label_ids": np.array([1.0, 1.0], np.float32)}
    found = values_of(classification.regression_terms({"logits": logits}, features))
    assert found == {"regression_loss": (0.25 + 9.0, 2.0)}
