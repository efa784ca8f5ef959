"""Compares two replicas with different halves of a batch with formulas.

Prints JSON. `per_replica`: the distances of the first moments after one such step
`from_formula` (0.1 times the sum of the clipped gradients of each half) and
`from_the_whole_batch`. `poisoned`: the effect on both replicas of a NaN loss on the
second one. `uneven`: the distance of the moments `from_the_whole_batch` after an
ordinary step of seven rows.
"""

import json

import numpy as np
import replay
import tensorflow as tf
import updates

from official_bert.training import strategies

ROWS = 8


def unlike_halves():
    """Return a batch whose first half has one masked token in each row."""
    features = updates.batch(ROWS)
    weights = features["masked_lm_weights"].numpy()
    weights[: ROWS // 2, 1:] = 0
    return {**features, "masked_lm_weights": tf.constant(weights)}


def rows(features, start, stop):
    return {name: value[start:stop] for name, value in features.items()}


def moments(state):
    return [moment.numpy() for moment in state.optimizer.adam_m]


def start(strategy, **options):
    """Return (state, step) on a strategy, without dropout."""
    with strategy.scope():
        state = updates.make_state(updates.WITHOUT_DROPOUT)
    return state, updates.make_step(state, strategy, **options)


def tenth_of_clipped(model, features):
    """Return 0.1 times the clipped gradient of some rows, and its norm."""
    _, gradients = updates.loss_and_gradients(model, features)
    clipped, norm = tf.clip_by_global_norm(gradients, 1.0)
    return [0.1 * gradient.numpy() for gradient in clipped], float(norm)


def per_replica(strategy, state, step):
    """Compare a step with `per_replica_update` with its formula."""
    features = unlike_halves()
    halves = rows(features, 0, ROWS // 2), rows(features, ROWS // 2, ROWS)
    (first, *_), (second, *_) = parts = [
        tenth_of_clipped(state.model, half) for half in halves
    ]
    whole, _ = tenth_of_clipped(state.model, features)
    step(strategies.distribute(strategy, features))
    found = moments(state)
    words = [updates.own_denominators(half)["masked_lm_loss"] for half in halves]
    return {
        "from_formula": updates.largest_difference(found, map(np.add, first, second)),
        "from_the_whole_batch": updates.largest_difference(found, whole),
        "norms": [norm for _, norm in parts],
        "denominators": [float(number) for number in words],
    }


def poisoned(strategy, state, step):
    """Make a step with an invalid last row; return the values on both devices."""
    features = unlike_halves()
    weights = features["masked_lm_weights"].numpy()
    weights[-1] = np.nan
    before = updates.numbers(state)
    bad = {**features, "masked_lm_weights": tf.constant(weights)}
    step(strategies.distribute(strategy, bad))
    after = updates.numbers(state)

    def on_both(variable):
        return [int(value) for value in strategy.experimental_local_results(variable)]

    return {
        "moved": updates.largest_difference(before.values(), after.values()),
        "skipped": on_both(state.guard.skipped),
        "steps": on_both(state.optimizer.iterations.value),
    }


def uneven(strategy):
    """Compare an ordinary step of seven rows with the gradient of all of them."""
    state, step = start(strategy)
    features = updates.batch(7)
    expected, _ = tenth_of_clipped(state.model, features)
    shares = strategies.distribute(strategy, features)
    report = step(shares)
    ids = strategy.experimental_local_results(shares["input_ids"])
    return {
        "rows": [len(share) for share in ids],
        "next_sentence_loss/weight": float(report["next_sentence_loss/weight"]),
        "from_the_whole_batch": updates.largest_difference(moments(state), expected),
    }


def main():
    strategy = replay.two_replicas()
    apart = start(strategy, per_replica_update=True)
    found = {
        "per_replica": per_replica(strategy, *apart),
        "poisoned": poisoned(strategy, *apart),
        "uneven": uneven(strategy),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
