"""The same ten training steps on one kind of device, in a separate process.

    python device_table.py one|mirrored|worker FOLDER NAME:OPTION=VALUE,… …

Writes FOLDER/NAME.npz for each name: the movement of each weight, and `gradient_norms`
before clipping. Options are those of `StepSettings`, `recompute`, and `pack` (two
sequences in each row). The kind selects the strategy, which a process can choose only
once: one device, two logical devices, or one of the two workers of `TF_CONFIG`.
"""

import dataclasses
import pathlib
import sys

import keras
import numpy as np
import tensorflow as tf
from record_files import MINI_CONFIG

from official_bert.data.packed_rows import RowPacking
from official_bert.data.record_parsing import RecordFormat
from official_bert.modeling.pretraining import PretrainingModel
from official_bert.training import strategies
from official_bert.training.guard import Guard
from official_bert.training.optimizer import BertAdam
from official_bert.training.pretraining import PRETRAINING
from official_bert.training.schedule import WarmupLinearDecay
from official_bert.training.step import StepSettings, make_train_step

STEPS, ROWS, LENGTH, PREDICTIONS = 10, 16, 32, 5
CONFIG = dataclasses.replace(
    MINI_CONFIG,
    num_hidden_layers=1,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
    initializer_range=0.1,
    max_position_embeddings=2 * LENGTH,
)
STRATEGIES = {"one": "one_device", "mirrored": "mirrored", "worker": "multi_worker"}


def batch(step):
    """Return a batch whose rows have none to all of their predictions."""
    rng = np.random.default_rng(step)

    def numbers(high, *shape):
        return tf.constant(rng.integers(0, high, shape), tf.int32)

    counts = rng.integers(0, PREDICTIONS + 1, (ROWS, 1))
    # The first half has few predictions, so no share of the rows is like the whole.
    counts[: ROWS // 2] = np.minimum(counts[: ROWS // 2], 1)
    lengths = rng.integers(LENGTH // 2, LENGTH + 1, (ROWS, 1))
    return {
        "input_ids": numbers(CONFIG.vocab_size, ROWS, LENGTH),
        "input_mask": tf.constant(np.arange(LENGTH) < lengths, tf.int32),
        "segment_ids": numbers(2, ROWS, LENGTH),
        "masked_lm_positions": numbers(LENGTH // 2, ROWS, PREDICTIONS),
        "masked_lm_ids": numbers(CONFIG.vocab_size, ROWS, PREDICTIONS),
        "masked_lm_weights": tf.constant(np.arange(PREDICTIONS) < counts, tf.float32),
        "next_sentence_labels": numbers(2, ROWS, 1),
    }


def packed(features):
    """Return a batch of rows that contain two sequences, with room for three."""
    packing = RowPacking(RecordFormat({}, {}, {}), 2 * LENGTH, 2 * PREDICTIONS)
    held = tf.constant([[True, True, False]] * (ROWS // 2))
    return packing.join(features, held)


def ten_updates(strategy, recompute=False, pack=False, **options):
    """Return name -> movement of each weight, and the gradient norms."""
    keras.utils.set_random_seed(3)
    with strategy.scope():
        model = PretrainingModel(CONFIG, recompute)
        optimizer = BertAdam(WarmupLinearDecay(1e-3, num_train_steps=1000))
        optimizer.build(model.trainable_variables)
        guard = Guard()
    before = [variable.numpy() for variable in model.trainable_variables]
    settings = StepSettings(seed=1, **options)
    step = make_train_step(strategy, model, optimizer, guard, PRETRAINING, settings)
    num_rows = ROWS // 2 if pack else ROWS
    start, stop = strategies.local_rows(strategy, num_rows)
    norms = []
    for number in range(STEPS):
        whole = packed(batch(number)) if pack else batch(number)
        rows = {name: value[start:stop] for name, value in whole.items()}
        report = step(strategies.distribute(strategy, rows, num_rows, start))
        norms.append(float(report["gradient_norm"]))
    return {
        variable.path: variable.numpy() - old
        for variable, old in zip(model.trainable_variables, before, strict=True)
    } | {"gradient_norms": norms}


def main(kind, folder, *runs):
    devices = 2 if kind == "mirrored" else 0
    strategy = strategies.make_strategy(STRATEGIES[kind], devices)
    for run in runs:
        name, _, options = run.partition(":")
        pairs = (option.split("=") for option in options.split(",") if option)
        moved = ten_updates(strategy, **{key: int(value) for key, value in pairs})
        if strategies.is_chief(strategy):
            np.savez(pathlib.Path(folder) / name, **moved)


if __name__ == "__main__":
    main(*sys.argv[1:])
