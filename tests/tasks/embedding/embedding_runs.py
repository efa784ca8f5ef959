"""Train embeddings on a tiny task, for the tests of this folder."""

import dataclasses

import numpy as np
import tensorflow as tf
import tiny_model
from run_settings import changed, fine_tuning_settings, start_of

from official_bert.fine_tuning import job as fine_tuning
from official_bert.modeling.embedding.losses import LossSettings
from official_bert.tasks.embedding import training
from official_bert.tasks.embedding.evaluation import of_examples
from official_bert.tasks.embedding.features import convert_training
from official_bert.tasks.embedding.files import EmbeddingExample
from official_bert.tasks.embedding.task import EmbeddingTask

# A narrow model learns quickly if its initial weights are larger than usual.
CONFIG = dataclasses.replace(
    tiny_model.MINI_CONFIG,
    initializer_range=0.2,
    num_hidden_layers=1,
)
START, SETTINGS = start_of(CONFIG), fine_tuning_settings(learning_rate=1e-3)
TOPICS = ["horse", "crust", "dough", "logbook", "years", "water", "her", "grand"]
FILLERS = ["the", "of", "in", "that", "is", "and", "on", "than", "be", "was", "over"]


def pairs(count, seed, scored=False):
    """Return pairs that share two topics; with scores, half of them share none."""
    rng, found = np.random.default_rng(seed), []
    for number in range(count):
        chosen = rng.permutation(TOPICS)
        topics = [chosen[:2], chosen[:2]]
        score = None
        if scored:
            score = float(number % 2)
            topics[1] = topics[1] if score else chosen[2:4]
        texts = [
            " ".join(rng.permutation([*rng.choice(FILLERS, rng.integers(1, 4)), *own]))
            for own in topics
        ]
        found.append(EmbeddingExample(number, tuple(texts), score))
    return found


def make_job(task, loss, train, dev=None, start=START):
    """Return the fine-tuning job for examples."""
    evaluation = of_examples(dev, "--dev_file") if dev else None
    if evaluation:
        task = dataclasses.replace(task, metrics=evaluation.metrics)
    features = convert_training(train, start.tokenizer, task, loss.name)
    return training.make_job(start, task, loss, features, evaluation)


def run(
    directory,
    train,
    dev=None,
    task=EmbeddingTask(32),  # noqa: B008
    loss=LossSettings("info_nce"),  # noqa: B008
    strategy=None,
    start=START,
    **changes,
):
    """Train; return the scores of the best model."""
    directory.mkdir(exist_ok=True)
    settings = changed(SETTINGS, output_dir=str(directory), **changes)
    job = make_job(task, loss, train, dev, start)
    strategy = strategy or tf.distribute.get_strategy()
    return fine_tuning.fine_tune(strategy, job, settings)
