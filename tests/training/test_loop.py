"""Evaluation's means, shares of a batch, and which devices are used."""

import types

import pytest
import tensorflow as tf

from official_bert.errors import UserError
from official_bert.training import loop
from official_bert.training.step import Objective

# A "model" whose loss is its input: two losses, one with 1 added below.
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
    """Means over all rows; `loss` is the mean of the batches' losses."""
    data = {"x": [1.0, 2.0, 3.0, 4.0, 8.0], "w": [1.0, 1.0, 0.0, 1.0, 3.0]}
    batches = tf.data.Dataset.from_tensor_slices(data).batch(2)
    evaluate = loop.make_evaluate(
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


@pytest.mark.parametrize(("rows", "replicas"), [(7, 2), (8, 3), (5, 5), (4, 1)])
def test_shares_are_even_and_whole(rows, replicas):
    def distribute(share):
        contexts = [
            types.SimpleNamespace(replica_id_in_sync_group=index)
            for index in range(replicas)
        ]
        return [share(context) for context in contexts]

    strategy = types.SimpleNamespace(
        num_replicas_in_sync=replicas,
        experimental_distribute_values_from_function=distribute,
    )
    batch = {"x": tf.range(rows)}
    shares = loop.split(strategy, batch)
    if replicas == 1:
        shares = [shares]
    found = [share["x"].numpy().tolist() for share in shares]
    assert sum(found, []) == list(range(rows))
    sizes = [len(share) for share in found]
    assert max(sizes) - min(sizes) <= 1


def test_devices():
    cpus = len(tf.config.list_logical_devices("CPU"))
    if tf.config.list_logical_devices("GPU"):
        pytest.skip("this machine has GPUs")
    assert loop.one_or_all_devices(0).num_replicas_in_sync == 1
    assert loop.one_or_all_devices(1).num_replicas_in_sync == 1
    words = f"--num_devices is {cpus + 1}, but TensorFlow sees {cpus}"
    with pytest.raises(UserError, match=words):
        loop.one_or_all_devices(cpus + 1)
