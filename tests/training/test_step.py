"""One training step equals the original's, on any number of replicas."""

import dataclasses
import functools
import json
import pathlib

import keras
import numpy as np
import processes
import pytest
import replay
import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.modeling.encoder import BertEncoder
from official_bert.modeling.kernels.interface import PLAIN
from official_bert.modeling.pretraining import PretrainingModel, pretraining_terms
from official_bert.training.guard import Guard
from official_bert.training.optimizer import BertAdam
from official_bert.training.pretraining import PRETRAINING
from official_bert.training.step import (
    Objective,
    StepSettings,
    make_eval_step,
    make_train_step,
    step_seed,
)

CONFIG = BertConfig(
    vocab_size=30,
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=24,
    max_position_embeddings=16,
    type_vocab_size=2,
    initializer_range=0.3,
)
FOLDER = pathlib.Path(__file__).parent


def run_on_two_replicas(script, *arguments):
    """Run a script of this folder; return the JSON of its last line."""
    process = processes.start(script, *arguments)
    with processes.running(process):
        return json.loads(processes.finish(process).splitlines()[-1])


# On two replicas: the simplest and the fastest way. On one device: also one XLA
# program. `make commands` runs the others.
FAST_ON_TWO = ("plain", "in few passes, packed in groups")
FAST = {
    "one device": (*FAST_ON_TWO, "one program"),
    "two replicas": FAST_ON_TWO,
}
CASES = {
    (way, devices): () if way in fast else pytest.mark.slow
    for devices, fast in FAST.items()
    for way in replay.WAYS
}


@pytest.fixture(
    params=[pytest.param(case, marks=marks) for case, marks in CASES.items()],
    ids="-".join,
)
def distances(request):
    way, devices = request.param
    if devices == "one device":
        return _on_one_device(way)
    others = tuple(way for way in replay.WAYS if way not in FAST_ON_TWO)
    return _on_two_replicas(FAST_ON_TWO if way in FAST_ON_TWO else others)[way]


@functools.cache
def _on_two_replicas(ways):
    return run_on_two_replicas("replay.py", *ways)


@functools.cache
def _on_one_device(way):
    return replay.distances(tf.distribute.get_strategy(), way)


@pytest.mark.comparison
def test_six_steps_end_where_the_original_did(distances):
    assert distances["steps"] == 6
    assert distances["adam_m"] < 1e-6
    assert distances["adam_v"] < 1e-6
    assert distances["weights"] < 5e-5
    # The weights moved, and every step was clipped.
    assert distances["moved"] > 0.1
    assert distances["norm"] > 1.0
    assert distances["replicas"] == 0.0


@pytest.mark.comparison
def test_losses_and_rates_of_the_six_steps(distances):
    assert distances["mlm"] < 1e-5
    assert distances["nsp"] < 1e-5
    assert distances["rate"] < 1e-8


def test_dropout_on_two_replicas():
    found = run_on_two_replicas("replica_dropout.py")
    assert found["together"] == pytest.approx(sum(found["alone"]), rel=1e-5)
    assert abs(found["alone"][0] - found["alone"][1]) > 1e-3
    assert found["evaluated"] == pytest.approx(2 * found["evaluated_alone"], rel=1e-5)


def make_features(rows=6, seed=0):
    """Return a batch in which most tokens occur several times."""
    rng = np.random.default_rng(seed)
    return {
        "input_ids": tf.constant(rng.integers(0, 8, (rows, 12)), tf.int32),
        "input_mask": tf.ones([rows, 12], tf.int32),
        "segment_ids": tf.zeros([rows, 12], tf.int32),
        "masked_lm_positions": tf.constant(rng.integers(1, 12, (rows, 3)), tf.int32),
        "masked_lm_ids": tf.constant(rng.integers(0, 30, (rows, 3)), tf.int32),
        "masked_lm_weights": tf.constant(rng.integers(0, 2, (rows, 3)), tf.float32),
        "next_sentence_labels": tf.constant(rng.integers(0, 2, (rows, 1)), tf.int32),
    }


WITHOUT_DROPOUT = dataclasses.replace(
    CONFIG, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
)


def train_step(model, optimizer, objective=PRETRAINING, seed=1):
    optimizer.build(model.trainable_variables)
    strategy = tf.distribute.get_strategy()
    return make_train_step(
        strategy, model, optimizer, Guard(), objective, StepSettings(seed)
    )


@functools.cache
def compiled(config_json, seed):
    keras.utils.set_random_seed(0)
    config = BertConfig.from_dict(json.loads(config_json))
    model, optimizer = PretrainingModel(config), BertAdam(0.0)
    return model, optimizer, train_step(model, optimizer, seed=seed)


def still_step(config=CONFIG, seed=1):
    """Return (model, optimizer, step) with a learning rate of 0, at step 0."""
    model, optimizer, step = compiled(config.to_json_string(), seed)
    for variable in (optimizer.iterations, *optimizer.adam_m, *optimizer.adam_v):
        variable.assign(tf.zeros_like(variable))
    return model, optimizer, step


def test_each_step_has_its_own_dropout():
    features = make_features()
    _, optimizer, step = still_step()
    losses = [float(step(features)["masked_lm_loss"]) for _ in range(3)]
    assert len(set(losses)) == 3
    optimizer.iterations.assign(1)
    assert float(step(features)["masked_lm_loss"]) == losses[1]


def test_each_run_has_its_own_dropout():
    features = make_features()
    losses = [float(still_step(seed=s)[2](features)["masked_lm_loss"]) for s in (1, 2)]
    assert losses[0] != losses[1]


def test_dropout_of_a_step_is_that_of_its_seed():
    features = make_features()
    model, optimizer, step = still_step()
    optimizer.iterations.assign(5)
    outputs = model(features, training=True, dropout_seed=step_seed(1, 5, 0))
    expected = pretraining_terms(outputs, features)["masked_lm_loss"][0]
    assert float(step(features)["masked_lm_loss"]) == pytest.approx(
        float(expected), rel=1e-5
    )


def test_step_seeds_do_not_collide():
    # Micro-batches and dropout indices add less than 2^20 to the second number.
    places = [
        int(step_seed(7, step, replica)[1])
        for step in (0, 1, 2, 10**6, 2**31 - 1)
        for replica in (0, 1, 4095)
    ]
    gaps = np.diff(sorted(places))
    assert gaps.min() >= 2**20
    assert min(places) >= 0
    assert int(step_seed(7, 3, 2)[0]) == 7


def hand_gradients(model, objective, features):
    """Return the loss and its dense gradients, with a plain tape."""
    with tf.GradientTape() as tape:
        terms = objective.terms(model(features), features)
        loss = sum(
            terms[name][0] / (terms[name][1] + added)
            for name, added in objective.losses.items()
        )
    gradients = tape.gradient(loss, [v.value for v in model.trainable_variables])
    return gradients, [tf.convert_to_tensor(g) for g in gradients]


def norm(gradients):
    return float(tf.sqrt(sum(tf.reduce_sum(g * g) for g in gradients)))


def test_gradient_norm_is_of_everything_embeddings_included():
    features = make_features()
    model, _, step = still_step(WITHOUT_DROPOUT)
    _, dense = hand_gradients(model, PRETRAINING, features)
    reported = float(step(features)["gradient_norm"])
    assert reported == pytest.approx(norm(dense), rel=1e-5)
    assert model.trainable_variables[0].path == "bert/embeddings/word_embeddings"
    assert reported > 1.01 * norm(dense[1:])


class Classifier(keras.Model):
    """A model whose embeddings are used only by the lookup."""

    def __init__(self, config):
        super().__init__()
        self.bert = BertEncoder(config)
        self.head = keras.layers.Dense(2)
        self.head.build((None, config.hidden_size))
        self.built = True

    def call(self, inputs, training=False, dropout_seed=None, kernels=PLAIN):
        encoded = self.bert(
            inputs, training=training, dropout_seed=dropout_seed, kernels=kernels
        )
        return self.head(encoded["pooled_output"])


def classification_terms(logits, features):
    labels = features["next_sentence_labels"][:, 0]
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    return {"loss": (tf.reduce_sum(losses), tf.cast(tf.size(losses), tf.float32))}


CLASSIFICATION = Objective(
    losses={"loss": 0.0},
    weights=lambda f: {"loss": tf.cast(tf.shape(f["input_ids"])[0], tf.float32)},
    terms=classification_terms,
)


def test_rows_of_a_lookup_are_added_up_before_the_norm():
    features, model = make_features(), Classifier(WITHOUT_DROPOUT)
    step = train_step(model, BertAdam(0.0), CLASSIFICATION)
    raw, dense = hand_gradients(model, CLASSIFICATION, features)
    assert isinstance(raw[0], tf.IndexedSlices)
    reported = float(step(features)["gradient_norm"])
    assert reported == pytest.approx(norm(dense), rel=1e-5)
    assert abs(reported - float(tf.linalg.global_norm(raw))) > 1e-3 * reported


def applied_norm(optimizer):
    """Return the gradient norm of the first step, from the optimizer's moments."""
    return 10 * norm([m.value for m in optimizer.adam_m])


def test_gradients_are_clipped_to_norm_one():
    _, optimizer, step = still_step(WITHOUT_DROPOUT)
    assert float(step(make_features())["gradient_norm"]) > 1.0
    assert applied_norm(optimizer) == pytest.approx(1.0, rel=1e-5)


def test_small_gradients_are_left_alone():
    # Without masked tokens only the sentence pairs have a gradient, a small one.
    config = dataclasses.replace(WITHOUT_DROPOUT, initializer_range=0.02)
    features = make_features()
    features["masked_lm_weights"] = tf.zeros_like(features["masked_lm_weights"])
    _, optimizer, step = still_step(config)
    reported = float(step(features)["gradient_norm"])
    assert 0 < reported < 1
    assert applied_norm(optimizer) == pytest.approx(reported, rel=1e-5)


def test_report():
    features = make_features()
    _, optimizer, step = still_step()
    report = step(features)
    names = {"masked_lm_loss", "masked_lm_accuracy"}
    names |= {"next_sentence_loss", "next_sentence_accuracy"}
    expected = names | {f"{name}/weight" for name in names}
    expected |= {"gradient_norm", "learning_rate", "skipped_updates", "skipped_in_row"}
    assert set(report) == expected
    predictions = float(tf.reduce_sum(features["masked_lm_weights"]))
    assert float(report["masked_lm_loss/weight"]) == predictions
    assert float(report["next_sentence_loss/weight"]) == 6
    assert int(optimizer.iterations) == 1


def test_rate_zero_moves_nothing():
    model, _, step = still_step()
    before = [v.numpy() for v in model.trainable_variables]
    step(make_features())
    for old, variable in zip(before, model.trainable_variables, strict=True):
        np.testing.assert_array_equal(variable, old)


def test_evaluation_has_no_dropout():
    features = make_features()
    model, _, _ = still_step()
    step = make_eval_step(tf.distribute.get_strategy(), model, PRETRAINING)
    expected = pretraining_terms(model(features), features)
    report = step(features)
    assert float(report["masked_lm_loss"]) == pytest.approx(
        float(expected["masked_lm_loss"][0]), rel=1e-5
    )
    assert float(report["masked_lm_loss"]) == float(step(features)["masked_lm_loss"])


def test_a_short_last_batch_needs_no_second_graph_of_its_own():
    """The step accepts six rows and four rows."""
    _, _, step = still_step()
    for rows in (6, 4):
        assert float(step(make_features(rows))["next_sentence_loss/weight"]) == rows


def test_a_batch_without_predictions_stays_finite():
    features = make_features()
    features["masked_lm_weights"] = tf.zeros_like(features["masked_lm_weights"])
    _, _, step = still_step()
    assert all(np.isfinite(float(value)) for value in step(features).values())


def test_the_loss_falls():
    features = make_features()
    keras.utils.set_random_seed(0)
    model, optimizer = PretrainingModel(CONFIG), BertAdam(1e-3)
    step = train_step(model, optimizer)
    losses = [float(step(features)["masked_lm_loss"]) for _ in range(40)]
    assert losses[-1] < 0.5 * losses[0]
