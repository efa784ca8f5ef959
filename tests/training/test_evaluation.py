"""The means that an evaluation returns."""

import pytest
import tensorflow as tf

from official_bert.training.evaluation import make_loss_evaluate
from official_bert.training.step import Objective

# A "model" whose loss is its input. One of its two losses has 1 added to its weight.
OBJECTIVE = Objective(
    losses={"a_loss": 1.0, "b_loss": 0.0},
    weights=lambda features: {},
    terms=lambda outputs, features: {
        "a_loss": (tf.reduce_sum(outputs), tf.reduce_sum(features["w"])),
        "b_loss": (tf.reduce_sum(outputs) * 10, tf.cast(tf.size(outputs), tf.float32)),
        "a_accuracy": (tf.reduce_sum(features["w"]), tf.constant(4.0)),
    },
)


def test_evaluation_by_hand():
    """Means are over all rows; `loss` is the mean of the batches' losses."""
    data = {"x": [1.0, 2.0, 3.0, 4.0, 8.0], "w": [1.0, 1.0, 0.0, 1.0, 3.0]}
    batches = tf.data.Dataset.from_tensor_slices(data).batch(2)
    evaluate = make_loss_evaluate(
        tf.distribute.get_strategy(),
        lambda features, training: features["x"],
        OBJECTIVE,
        batches,
    )
    row = evaluate()
    assert row["a_loss"] == pytest.approx(18 / 6)
    assert row["b_loss"] == pytest.approx(180 / 5)
    assert row["a_accuracy"] == pytest.approx(6 / 12)
    losses = [3 / 3 + 30 / 2, 7 / 2 + 70 / 2, 8 / 4 + 80 / 1]
    assert row["loss"] == pytest.approx(sum(losses) / 3)
    assert evaluate() == row


def test_an_evaluation_breaks_off_when_asked_to():
    data = {"x": [1.0, 2.0, 3.0], "w": [1.0, 1.0, 1.0]}
    batches = tf.data.Dataset.from_tensor_slices(data).batch(1)
    seen = []

    def model(features, training):
        seen.append(1)
        return features["x"]

    evaluate = make_loss_evaluate(
        tf.distribute.get_strategy(), model, OBJECTIVE, batches
    )
    assert evaluate(lambda: bool(seen)) is None
    assert evaluate() is not None
