"""The same short fine-tuning on one kind of device, in a separate process.

    python fine_tuning_table.py one|mirrored|workers FOLDER NAME:FLAG=VALUE,… …

Writes a model directory FOLDER/NAME for each name, and prints as JSON how often each
traced its training step. Flags are fields of `FineTuningSettings`, and `evaluated`. The
kind selects the strategy, which a process can choose only once: one device, two logical
devices, or two processes, one of which is this one. There the first saves slowly.
"""

import dataclasses
import json
import pathlib
import sys
import time

import numpy as np
import tiny_model
from run_settings import fine_tuning_settings, start_of

from official_bert.checkpoints import google
from official_bert.fine_tuning import job as fine_tuning
from official_bert.modeling import encoder_model
from official_bert.tasks.classifier import training as classifier
from official_bert.tasks.classifier.features import Features
from official_bert.tasks.classifier.task import ClassifierTask
from official_bert.training import loop, strategies
from official_bert.training.step import make_train_step

CONFIG = dataclasses.replace(
    tiny_model.MINI_CONFIG,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
    initializer_range=0.1,
    max_position_embeddings=128,
)
TASK = ClassifierTask("single_label", ("no", "yes"), ("accuracy",), 128)
UPDATES = dict(num_train_steps=8, num_warmup_steps=0, train_batch_size=4)


KINDS = {"one": [], "mirrored": ["mirrored", 2], "workers": ["multi_worker"]}


def examples():
    """Return texts of 3 to 128 tokens, so that batches have many lengths."""
    rng = np.random.default_rng(1)
    found = []
    for length in (3, 4, 5, 7, 9, 20, 24, 28, 40, 42, 55, 60, 75, 90, 110, 128):
        ids = rng.integers(5, 100, length).astype(np.int32)
        found.append(Features(ids, np.zeros_like(ids), int(rng.integers(2)), 0))
    return found


def train(strategy, directory, evaluated=0, **changes):
    """Fine-tune; return the number of times that the training step was traced."""
    encoder_model.DROPOUT = 0.0  # Dropout before the head, which has no config key.
    steps = []

    def remembered(*arguments):
        steps.append(make_train_step(*arguments))
        return steps[-1]

    loop.make_train_step = remembered
    settings = fine_tuning_settings(
        **{"output_dir": str(directory), **UPDATES, **changes}
    )
    dev = [[one] for one in examples()] if evaluated else None
    job = classifier.make_job(start_of(CONFIG), TASK, examples(), dev)
    assert fine_tuning.fine_tune(strategy, job, settings)
    return steps[0].experimental_get_tracing_count()


def main(kind, folder, *runs):
    """Run all fine-tunings of one kind of device."""
    strategy = strategies.make_strategy(*KINDS[kind])
    if kind == "workers":
        write = google.write_checkpoint
        google.write_checkpoint = lambda *args: time.sleep(3) or write(*args)
    traced = {}
    for run in runs:
        name, _, flags = run.partition(":")
        pairs = (flag.split("=") for flag in flags.split(",") if flag)
        directory = pathlib.Path(folder, name)
        directory.mkdir(exist_ok=True)
        changes = {key: int(value) for key, value in pairs}
        traced[name] = train(strategy, directory, **changes)
    print(json.dumps(traced))


if __name__ == "__main__":
    main(*sys.argv[1:])
