"""The tagging model: logits, scored tokens, and an unchanged pooler."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny_model
from record_files import MINI_CONFIG

from official_bert.checkpoints import initialize, names
from official_bert.constants import IGNORED
from official_bert.modeling import dropout
from official_bert.modeling.token_classification import (
    TokenClassificationModel,
    token_terms,
)
from official_bert.training.guard import Guard
from official_bert.training.optimizer import BertAdam
from official_bert.training.saving import State
from official_bert.training.step import Objective, StepSettings, make_train_step

IDS = np.array([[2, 6, 3, 5, 7, 3], [2, 9, 3, 8, 0, 0]], np.int32)
FEATURES = {
    "input_ids": IDS,
    "input_mask": (IDS > 0).astype(np.int32),
    "segment_ids": np.zeros_like(IDS),
}
LABELS = np.array([[-1, 2, 0, 1, -1, -1], [-1, 0, -1, -1, -1, -1]], np.int32)
POOLER = {"bert/pooler/dense/kernel", "bert/pooler/dense/bias"}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tiny_model.write(tmp_path_factory.mktemp("models") / "fine_tuned")
    model = TokenClassificationModel(MINI_CONFIG, 3)
    assert not initialize.load_weights(model, folder).new
    return model


def test_names(model):
    shapes = {names.google_name(v): tuple(v.shape) for v in model.weights}
    others = {n: shape for n, shape in shapes.items() if not n.startswith("bert/")}
    assert others == {"output_weights": (3, 16), "output_bias": (3,)}


def test_logits(model):
    """Padding has logits too."""
    tokens = model.bert(FEATURES)["sequence_output"].numpy()
    tensors = tiny_model.tensors()
    expected = tokens @ tensors["output_weights"].T + tensors["output_bias"]
    found = model({**FEATURES, "label_ids": LABELS})
    assert set(found) == {"logits"} and found["logits"].dtype == tf.float32
    assert found["logits"].shape == (2, 6, 3)
    np.testing.assert_allclose(found["logits"], expected, atol=1e-5)


def test_dropout_is_a_function_of_its_seed(model):
    def run(number):
        seed = tf.constant([1, number], tf.int64)
        return model(FEATURES, training=True, dropout_seed=seed)["logits"].numpy()

    np.testing.assert_array_equal(run(0), run(0))
    assert (run(0) != run(1024)).all()


def without_dropout(**changes):
    config = {**MINI_CONFIG.to_dict(), "hidden_dropout_prob": 0.0, **changes}
    return {**config, "attention_probs_dropout_prob": 0.0}


def test_dropout_before_the_scores():
    """Without the encoder's dropout, a tenth of each token's vector is dropped."""
    seen = []
    model = TokenClassificationModel(without_dropout(), 3)
    model.classifier.call = lambda x: seen.append(x.numpy()) or x[:, :3]
    many = {name: np.tile(value, (100, 1)) for name, value in FEATURES.items()}
    model(many, training=True, dropout_seed=tf.constant([1, 0], tf.int64))
    tokens = model.bert(many)["sequence_output"].numpy().reshape(-1, 16)
    kept = seen[0] != 0
    assert abs(kept.mean() - 0.9) < 0.01
    np.testing.assert_allclose(seen[0][kept], tokens[kept] / 0.9, rtol=1e-4)
    model(many, training=False)
    np.testing.assert_allclose(seen[1], tokens, atol=1e-6)


def test_dropout_before_the_scores_has_an_index_of_its_own(monkeypatch):
    """Two dropouts with the same index would drop the same elements."""
    indices, index_seed = [], dropout.index_seed

    def noted(seed, dropout_index):
        indices.append(dropout_index)
        return index_seed(seed, dropout_index)

    monkeypatch.setattr(dropout, "index_seed", noted)
    config = {**MINI_CONFIG.to_dict(), "num_hidden_layers": 3}
    model = TokenClassificationModel(config, 3)
    model(FEATURES, training=True, dropout_seed=tf.constant([1, 0], tf.int64))
    assert len(indices) == 1 + 3 * 3 + 1
    assert len(set(indices)) == len(indices)


def test_loss_of_the_tokens_that_count():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(2, 6, 3)).astype(np.float32)
    logits[0, 1] = [0, 0, 5]  # Right.
    logits[0, 2] = [0, 4, 0]
    logits[0, 3] = [0, 3, 0]  # Right.
    logits[1, 1] = [-1, 0, 1]
    found = token_terms({"logits": tf.constant(logits)}, {"label_ids": LABELS})
    expected = 0.0
    for row, place, label in ((0, 1, 2), (0, 2, 0), (0, 3, 1), (1, 1, 0)):
        scores = logits[row, place].astype(np.float64)
        expected += np.log(np.exp(scores).sum()) - scores[label]
    assert [float(v) for v in found["token_loss"]] == pytest.approx([expected, 4])
    assert [float(v) for v in found["token_accuracy"]] == [2, 4]


def test_what_is_ignored_changes_nothing():
    """Predictions for ignored tokens affect neither the sums nor the gradient."""
    rng = np.random.default_rng(1)
    logits = tf.constant(rng.normal(size=(2, 6, 3)).astype(np.float32))
    ignored = LABELS == IGNORED
    other = np.where(ignored[..., None], 100 * rng.normal(size=(2, 6, 3)), logits)
    other = tf.constant(other.astype(np.float32))
    results = []
    for each in (logits, other):
        with tf.GradientTape() as tape:
            tape.watch(each)
            terms = token_terms({"logits": each}, {"label_ids": LABELS})
            loss, _ = terms["token_loss"]
        results.append((tf.nest.map_structure(float, terms), tape.gradient(loss, each)))
    assert results[0][0] == results[1][0]
    for _, gradient in results:
        assert not gradient.numpy()[ignored].any()
        assert gradient.numpy()[~ignored].all()


def test_a_batch_without_a_token_that_counts():
    labels = {"label_ids": np.full((2, 6), IGNORED, np.int32)}
    terms = token_terms({"logits": tf.random.normal((2, 6, 3))}, labels)
    assert tf.nest.map_structure(float, terms) == {
        "token_loss": (0, 0),
        "token_accuracy": (0, 0),
    }


def weights(features):
    scored = tf.cast(features["label_ids"] != IGNORED, tf.float32)
    return {"token_loss": tf.reduce_sum(scored)}


def test_updates_leave_the_pooler_bit_for_bit():
    keras.utils.set_random_seed(0)
    model = TokenClassificationModel(without_dropout(initializer_range=0.1), 3)
    optimizer = BertAdam(0.1)
    optimizer.build(model.trainable_variables)
    state = State(model, optimizer, Guard(scaled=False))
    step = make_train_step(
        tf.distribute.get_strategy(),
        model,
        optimizer,
        state.guard,
        Objective({"token_loss": 0.0}, weights, token_terms),
        StepSettings(seed=1),
    )
    before = {v.path: v.numpy() for v in model.weights}
    features = {k: tf.constant(v) for k, v in FEATURES.items()}
    for _ in range(3):
        step({**features, "label_ids": tf.constant(LABELS)})
    changed = {
        v.path for v in model.weights if v.numpy().tobytes() != before[v.path].tobytes()
    }
    assert not changed & POOLER
    # A key's bias has no effect, so only rounding decides whether it changes.
    assert {name for name in before if "bias" not in name} - POOLER <= changed
    written = state.weights_and_slots()
    assert set(written) >= POOLER
    assert not any("pooler" in name and "adam" in name for name in written)


def test_there_and_back_as_a_keras_model(model, tmp_path):
    config = model.get_config()
    assert config["num_outputs"] == 3 and config["recompute"] is False
    again = TokenClassificationModel.from_config(config)
    assert again.get_config() == config and again.config == model.config
    assert [v.path for v in again.weights] == [v.path for v in model.weights]
    path = tmp_path / "model.keras"
    model.save(path)
    loaded = keras.models.load_model(path)
    np.testing.assert_array_equal(loaded(FEATURES)["logits"], model(FEATURES)["logits"])
