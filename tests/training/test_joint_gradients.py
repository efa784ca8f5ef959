"""A contrastive step is the same on devices and processes, and in two passes."""

import dataclasses

import joint_table
import keras
import numpy as np
import processes
import pytest
import tensorflow as tf

from official_bert.modeling.embedding.losses import LossSettings, make_terms
from official_bert.modeling.embedding.model import EmbeddingModel
from official_bert.modeling.kernels.choose import WITH_GRADIENTS
from official_bert.training.gradients.joint import Replicas, make_gradients_of
from official_bert.training.step import MICRO_BATCH, step_seed

SCRIPT = "joint_table.py"
# Name of a way to make three training steps -> its options.
QUICK = {
    "one": "",
    "two_devices_cached": "replicas=2,micro_batch_size=2",
    "apart": "replicas=2,per_replica_update=1",
    "windows": "windows=2",
    "windows_two_devices_cached": "windows=2,replicas=2,micro_batch_size=2",
}
SLOW = {
    f"{loss}{ending}": f"loss={loss},{options}"
    for loss in ("cosine", "cosent")
    for ending, options in (
        ("", ""),
        ("_cached", "micro_batch_size=4"),
        ("_two_devices", "replicas=2"),
    )
}
SLOW |= {
    "one": "",
    "one_cached": "micro_batch_size=2",
    # 3 and 4 examples, so the shares differ.
    "seven": "rows=7",
    "seven_two_devices": "rows=7,replicas=2",
    "xla": "xla=1",
    "xla_cached": "xla=1,micro_batch_size=2",
    "half": "precision=float16",
    "half_cached": "precision=float16,micro_batch_size=4",
}
SLOW_PAIRS = [(name, name.split("_")[0]) for name in SLOW if "_" in name]
SLOW_PAIRS = [(name, "one" if than == "xla" else than) for name, than in SLOW_PAIRS] + [
    ("xla", "one"),
    ("two_workers", "one"),
    ("two_workers_cached", "one"),
]
WORKERS = {
    "two_workers": "replicas=2",
    "two_workers_cached": "replicas=2,micro_batch_size=2",
}


def run(folder, ways, kind="devices"):
    named = [f"{name}:{options}" for name, options in ways.items()]
    clusters = processes.cluster() if kind == "workers" else ["{}"]
    started = [
        processes.start(SCRIPT, kind, folder, *named, TF_CONFIG=config)
        for config in clusters
    ]
    with processes.running(*started):
        for process in started:
            processes.finish(process)
    return {name: dict(np.load(folder / f"{name}.npz")) for name in ways}


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    return run(tmp_path_factory.mktemp("quick"), QUICK)


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slow")
    return run(folder, SLOW) | run(folder, WORKERS, "workers")


def difference(moved, name, than):
    """Return max|Δa - Δb| / max|Δ| of the weights, and check the losses."""
    one, other = moved[than], moved[name]
    assert set(one) == set(other)
    largest = max(np.abs(one[path]).max() for path in set(one) - {"losses"})
    assert largest > 1e-4
    found = max(np.abs(one[p] - other[p]).max() for p in set(one) - {"losses"})
    return found / largest


def test_two_devices_and_two_passes_make_the_same_step(quick):
    losses = [quick[name]["losses"] for name in ("two_devices_cached", "one")]
    np.testing.assert_allclose(*losses, rtol=1e-5)
    assert difference(quick, "two_devices_cached", "one") < 1e-4


def test_windows_make_the_same_step_on_two_devices_and_in_two_passes(quick):
    assert difference(quick, "windows_two_devices_cached", "windows") < 1e-4
    assert difference(quick, "windows", "one") > 1e-2


def test_replicas_by_themselves_have_fewer_negatives(quick):
    """Without this difference, the comparison above could not fail."""
    assert max(quick["apart"]["losses"]) < min(quick["one"]["losses"])
    assert difference(quick, "apart", "one") > 1e-2


def test_both_passes_have_the_same_dropout():
    """The gradient equals that of micro-batches under one tape, with their seeds."""
    keras.utils.set_random_seed(3)
    dropout = {"hidden_dropout_prob": 0.2, "attention_probs_dropout_prob": 0.2}
    model = EmbeddingModel(dataclasses.replace(joint_table.CONFIG, **dropout))
    terms_of, batch = make_terms(LossSettings("info_nce", 0.1)), joint_table.batch(0, 6)
    seed, loss = step_seed(1, 2, 0), "embedding_loss"
    compute = make_gradients_of(model, terms_of, 2, MICRO_BATCH, False, WITH_GRADIENTS)
    replicas, six = Replicas(1, 0, lambda value: value), {loss: 6.0}
    found, terms = tf.function(compute)(batch, six, seed, None, replicas)
    with tf.GradientTape() as tape:
        vectors = []
        for number in range(3):
            part = {k: v[2 * number : 2 * number + 2] for k, v in batch.items()}
            own = seed + tf.constant([0, number * MICRO_BATCH], tf.int64)
            vectors.append(model(part, training=True, dropout_seed=own)["vectors"])
        total, _ = terms_of({"vectors": tf.concat(vectors, 0)}, batch)[loss]
        mean = total / 6
    np.testing.assert_allclose(terms[loss][0], total, rtol=1e-5)
    expected = tape.gradient(mean, [v.value for v in model.trainable_variables])
    largest = max(np.abs(tf.convert_to_tensor(each)).max() for each in expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(
            one, tf.convert_to_tensor(other), atol=1e-5 * largest
        )


@pytest.mark.slow  # The quick cases fail for the same errors.
@pytest.mark.parametrize(("name", "than"), SLOW_PAIRS)
def test_the_same_step_in_other_ways(slow, name, than):
    """The limit is wide, because Adam magnifies rounding of small gradients."""
    is_half = "half" in name
    losses = [slow[each]["losses"] for each in (name, than)]
    np.testing.assert_allclose(*losses, rtol=2e-2 if is_half else 1e-4)
    if not is_half:
        assert difference(slow, name, than) < (1e-3 if "xla" in name else 1e-4)
