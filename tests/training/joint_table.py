"""Three training steps of an embedding model on several devices, in a process.

    python joint_table.py devices|workers FOLDER NAME:OPTION=VALUE,… …

Writes FOLDER/NAME.npz for each name: the movement of each weight, and the losses before
each step. Options are `replicas` (1, or 2 logical devices of one process; a worker has
one device), `loss`, and those of `StepSettings`.
"""

import dataclasses
import pathlib
import sys

import keras
import numpy as np
import tensorflow as tf
from record_files import MINI_CONFIG

from official_bert.constants import WINDOW_WEIGHTS
from official_bert.modeling.embedding.losses import LossSettings
from official_bert.modeling.embedding.model import EmbeddingModel
from official_bert.tasks.embedding.training import LOSS, objective_of
from official_bert.training import strategies
from official_bert.training.guard import Guard
from official_bert.training.optimizer import BertAdam
from official_bert.training.precision import computing_in
from official_bert.training.step import StepSettings, make_train_step

STEPS, TEXTS, LENGTH = 3, 3, 16
CONFIG = dataclasses.replace(
    MINI_CONFIG,
    num_hidden_layers=1,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
    initializer_range=0.2,
)


def batch(step, rows, windows=0):
    """Return a batch of triplets with scores; some have no hard negative.

    With `windows`, the first text has so many additional windows.
    """
    rng = np.random.default_rng(step)
    shape, inputs = (rows, TEXTS), (rows, TEXTS + windows)
    lengths = rng.integers(3, LENGTH + 1, (*inputs, 1))
    mask = np.ones(shape)
    mask[::3, 2] = 0
    numbers = np.arange(rows * TEXTS).reshape(shape)
    # The first and the last example have the same positive.
    numbers[-1, 1] = numbers[0, 1]
    arrays = {
        "input_ids": rng.integers(5, CONFIG.vocab_size, (*inputs, LENGTH)),
        "input_mask": np.arange(LENGTH) < lengths,
        "segment_ids": np.zeros((*inputs, LENGTH)),
        "text_mask": mask,
        "text_numbers": numbers,
    }
    tensors = {name: tf.constant(v, tf.int32) for name, v in arrays.items()}
    tensors["scores"] = tf.constant(rng.uniform(0, 5, rows), tf.float32)
    if windows:
        counts = [1 + windows, *[1] * (TEXTS - 1)]
        weights = np.repeat(np.eye(TEXTS), counts, 1) / np.array(counts)[:, np.newaxis]
        weights = np.broadcast_to(weights, (rows, *weights.shape))
        tensors[WINDOW_WEIGHTS] = tf.constant(weights, tf.float32)
    return tensors


def moved(strategy, loss="info_nce", rows=8, precision="float32", windows=0, **options):
    """Return name -> movement of each weight, and `losses`."""
    keras.utils.set_random_seed(3)
    with strategy.scope(), computing_in(precision):
        model = EmbeddingModel(CONFIG)
        optimizer = BertAdam(1e-3)
        optimizer.build(model.trainable_variables)
        guard = Guard(scaled=precision == "float16")
    before = [variable.numpy() for variable in model.trainable_variables]
    objective = objective_of(LossSettings(loss, 0.1, sizes=(8, 16), max_score=5.0))
    settings = StepSettings(seed=1, **options)
    step = make_train_step(strategy, model, optimizer, guard, objective, settings)
    start, stop = strategies.local_rows(strategy, rows)
    losses = []
    for number in range(STEPS):
        own = {name: v[start:stop] for name, v in batch(number, rows, windows).items()}
        report = step(strategies.distribute(strategy, own, rows, start))
        assert float(report[f"{LOSS}/weight"]) == rows
        losses.append(float(report[LOSS]) / rows)
    return {
        variable.path: variable.numpy() - old
        for variable, old in zip(model.trainable_variables, before, strict=True)
    } | {"losses": losses}


def main(kind, folder, *runs):
    """Make the steps of all runs of a process."""
    if kind == "workers":
        several = strategies.make_strategy("multi_worker")
    else:
        several = strategies.make_strategy("mirrored", 2)
    one = tf.distribute.get_strategy()
    for run in runs:
        name, _, options = run.partition(":")
        pairs = dict(option.split("=") for option in options.split(",") if option)
        values = {k: int(v) if v.isdecimal() else v for k, v in pairs.items()}
        replicas = values.pop("replicas", 1)
        arrays = moved(several if replicas > 1 else one, **values)
        if strategies.is_chief(several):
            np.savez(pathlib.Path(folder) / name, **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
