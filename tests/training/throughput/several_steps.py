"""Makes training steps one by one, and several per call; prints the differences.

    python tests/training/throughput/several_steps.py 2

It needs a separate process, because a process has a fixed number of replicas.
"""

import json
import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS), str(TESTS / "training"), str(TESTS.parent)]

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from record_files import MINI_CONFIG  # noqa: E402
from run_settings import FINE_TUNING, make  # noqa: E402

from official_bert.fine_tuning.job import FineTuningSettings  # noqa: E402
from official_bert.modeling.pretraining import PretrainingModel  # noqa: E402
from official_bert.training import runs, strategies  # noqa: E402
from official_bert.training.pretraining import PRETRAINING  # noqa: E402
from official_bert.training.step import (  # noqa: E402
    make_replica_step,
    make_train_step,
)
from official_bert.training.throughput import feed  # noqa: E402
from official_bert.training.throughput.train_loop import make_train_loop  # noqa: E402

# Rows that two replicas share unevenly; at most 4 steps per call.
ROWS, LENGTH, PREDICTIONS, MOST = 5, 16, 3, 4
CALLS = (4, 1, 3)


def make_batch(number):
    """Return batch `number`, a pure function of it."""
    draw = np.random.default_rng(number)

    def integers(limit, *shape):
        return tf.constant(draw.integers(0, limit, shape), tf.int32)

    return {
        "input_ids": integers(MINI_CONFIG.vocab_size, ROWS, LENGTH),
        "input_mask": tf.ones([ROWS, LENGTH], tf.int32),
        "segment_ids": integers(2, ROWS, LENGTH),
        "masked_lm_positions": integers(LENGTH, ROWS, PREDICTIONS),
        "masked_lm_ids": integers(MINI_CONFIG.vocab_size, ROWS, PREDICTIONS),
        "masked_lm_weights": tf.ones([ROWS, PREDICTIONS]),
        "next_sentence_labels": integers(2, ROWS, 1),
    }


def parts_of(strategy, settings):
    """Return a new run's state and the arguments of its training step."""
    state = runs.make_state(strategy, lambda: PretrainingModel(MINI_CONFIG), settings)
    parts = (state.model, state.optimizer, state.guard, PRETRAINING, settings.step)
    return state, (strategy, *parts)


def one_by_one(strategy, settings, batches):
    """Return the state and the reports [N] after one call per batch."""
    state, parts = parts_of(strategy, settings)
    step = make_train_step(*parts)
    reports = [step(strategies.distribute(strategy, batch, ROWS)) for batch in batches]
    return state, {n: np.array([r[n].numpy() for r in reports]) for n in reports[0]}


def several(strategy, settings, batches):
    """Return the same after calls of several steps, with copies on the devices."""
    state, parts = parts_of(strategy, settings)
    loop = make_train_loop(strategy, make_replica_step(*parts))
    reports, at = [], 0
    for count in CALLS:
        stacked = feed.stack(batches[at : at + count], MOST)
        shares = strategies.distribute(strategy, stacked, ROWS, 0, 1, copies=True)
        reports.append(loop(shares, tf.constant(count)))
        at += count
    assert loop.experimental_get_tracing_count() == 1
    return state, {n: np.concatenate([r[n] for r in reports]) for n in reports[0]}


def differences(strategy, **changes):
    """Return the names of values that are not bit-identical, and the step count.

    Args:
      strategy: a `tf.distribute` strategy.
      **changes: flags.
    """
    settings = make(FineTuningSettings, **FINE_TUNING | changes)
    batches = [make_batch(number) for number in range(sum(CALLS))]
    (one, ones), (other, others) = (
        make_updates(strategy, settings, batches)
        for make_updates in (one_by_one, several)
    )
    pairs = {f"report/{name}": (ones[name], others[name]) for name in ones}
    theirs = other.weights_and_slots() | other.guard_variables()
    for name, variable in (one.weights_and_slots() | one.guard_variables()).items():
        pairs[name] = (variable.numpy(), theirs[name].numpy())
    unequal = [n for n, (a, b) in pairs.items() if not np.array_equal(a, b)]
    return {
        "unequal": unequal,
        "compared": len(pairs),
        "same_reports": sorted(ones) == sorted(others),
        "steps": [one.step, other.step],
        "dropout": MINI_CONFIG.hidden_dropout_prob,
        "replicas": strategy.num_replicas_in_sync,
    }


if __name__ == "__main__":
    replicas = int(sys.argv[1])
    name = "mirrored" if replicas > 1 else "one_device"
    print(json.dumps(differences(strategies.make_strategy(name, replicas))))
