"""Split batches: the dropout of each part, and the original's way to split."""

import json

import numpy as np
import processes
import pytest
import tensorflow as tf
import updates

from official_bert.modeling.dropout import NUM_INDICES
from official_bert.training.pretraining import PRETRAINING
from official_bert.training.step import MICRO_BATCH, STEP, step_seed

SEED, STEP_NUMBER, MICRO_BATCHES = 5, 3, 2


@pytest.fixture(scope="module")
def step_in_micro_batches():
    """Return (model, optimizer, report) of one step with the same rows twice."""
    state = updates.make_state()
    step = updates.make_step(state, seed=SEED, micro_batch_size=4)
    state.optimizer.iterations.assign(STEP_NUMBER)
    # Set the learning rate to 0 now, so that the weights stay as in the step.
    state.optimizer.learning_rate = 0.0
    report = step(same_rows(MICRO_BATCHES))
    return state, report


def same_rows(times):
    """Return a batch with copies of the same four records."""
    return {
        name: tf.concat([value] * times, axis=0)
        for name, value in updates.batch(rows=4).items()
    }


def seed_of(micro_batch):
    """Return the dropout seed of a micro-batch, int64 [2]."""
    own = tf.constant([0, micro_batch * 1024], tf.int64)
    return step_seed(SEED, STEP_NUMBER, 0) + own


def loss_of(model, micro_batch):
    rows = same_rows(1)
    outputs = model(rows, training=True, dropout_seed=seed_of(micro_batch))
    return float(PRETRAINING.terms(outputs, rows)["masked_lm_loss"][0])


def test_each_micro_batch_has_its_own_dropout(step_in_micro_batches):
    state, report = step_in_micro_batches
    alone = [loss_of(state.model, number) for number in range(MICRO_BATCHES)]
    assert float(report["masked_lm_loss"]) == pytest.approx(sum(alone), rel=1e-5)
    # With equal masks, equal rows would have equal losses.
    assert abs(alone[0] - alone[1]) > 1e-3 * alone[0]


def test_gradients_are_of_those_masks(step_in_micro_batches):
    state, report = step_in_micro_batches
    whole = updates.own_denominators(same_rows(MICRO_BATCHES))
    parts = [
        updates.loss_and_gradients(
            state.model,
            same_rows(1),
            whole,
            training=True,
            dropout_seed=seed_of(number),
        )[1]
        for number in range(MICRO_BATCHES)
    ]
    summed = [tf.add_n(pair) for pair in zip(*parts, strict=True)]
    norm = tf.linalg.global_norm(summed)
    assert float(report["gradient_norm"]) == pytest.approx(float(norm), rel=1e-5)
    clipped, _ = tf.clip_by_global_norm(summed, 1.0, use_norm=norm)
    for moment, gradient in zip(state.optimizer.adam_m, clipped, strict=True):
        np.testing.assert_allclose(moment, 0.1 * gradient, atol=1e-7)


def test_seeds_of_micro_batches_leave_room_for_the_sites_of_a_model():
    places = [int(seed_of(number)[1]) for number in (0, 1, 1023)]
    assert places[0] == STEP_NUMBER * STEP
    assert np.diff(places).tolist() == [MICRO_BATCH, 1022 * MICRO_BATCH]
    assert MICRO_BATCH == NUM_INDICES


@pytest.fixture(scope="module")
def two_replicas():
    """The output of `per_replica.py`."""
    process = processes.start("per_replica.py")
    with processes.running(process):
        return json.loads(processes.finish(process).splitlines()[-1])


@pytest.mark.slow
def test_means_and_clipping_on_each_replica_by_arithmetic(two_replicas):
    found = two_replicas["per_replica"]
    assert found["from_formula"] < 1e-6
    assert found["from_the_whole_batch"] > 1e-3
    # The halves differ, and both are clipped.
    assert found["denominators"][0] * 2 < found["denominators"][1]
    assert min(found["norms"]) > 1.0


def test_one_bad_replica_is_enough_to_skip(two_replicas):
    found = two_replicas["poisoned"]
    assert found["moved"] == 0
    assert found["skipped"] == [1, 1]
    assert found["steps"] == [2, 2]


def test_seven_rows_on_two_replicas(two_replicas):
    found = two_replicas["uneven"]
    assert found["rows"] == [3, 4]
    assert found["next_sentence_loss/weight"] == 7
    assert found["from_the_whole_batch"] < 1e-6
