"""Train sentence embeddings: the objective, the evaluation, the run."""

import functools
from collections.abc import Callable, Mapping, Sequence

import keras
import numpy as np
import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.fine_tuning import outputs
from official_bert.fine_tuning.batches import FeatureSet
from official_bert.fine_tuning.config_labels import config_with_labels
from official_bert.fine_tuning.job import DevSet, FineTuningJob, Start, crc32_of
from official_bert.fine_tuning.task_file import task_content
from official_bert.modeling.embedding.losses import LossSettings, make_terms
from official_bert.modeling.embedding.model import EmbeddingModel
from official_bert.tasks.embedding.evaluation import Evaluation
from official_bert.tasks.embedding.features import (
    TrainingFeatures,
    convert_texts,
    length_of,
    num_rows_of,
    pad_training,
    rows_of,
    vectors_of_texts,
)
from official_bert.tasks.embedding.task import EmbeddingTask
from official_bert.training.step import Objective, mean_over_examples

LOSS = "embedding_loss"
ARCHITECTURE = "BertModel"


def describe(row: Mapping[str, float]) -> str:
    """Return the loss and the scores as one line of text."""
    names = ("accuracy", "spearman", "pearson", "mrr_at_10", "recall_at_1")
    parts = [f"{name} {row[name]:.4f}" for name in names if name in row]
    if "loss" in row:
        parts.insert(0, f"loss {row['loss']:.4f}")
    return "  ".join(parts)


def objective_of(settings: LossSettings) -> Objective:
    """Return the `Objective` of a loss, which compares all examples of a batch."""
    return mean_over_examples(LOSS, make_terms(settings), describe, joint=True)


def make_model(
    config: BertConfig, task: EmbeddingTask, recompute: bool = False
) -> EmbeddingModel:
    """Return the model of a task."""
    return EmbeddingModel(config, task.pooling, task.size, task.normalize, recompute)


def outputs_of(model: keras.Model) -> Callable[..., dict[str, tf.Tensor]]:
    """Return a function: rows -> dict with their `embedding`, float32 [B, size]."""
    return model.embedding


def compile_model(
    model: keras.Model,
) -> Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]:
    """Compile the function of a batch of rows; see `outputs_of`."""
    return outputs.compile_model(outputs_of(model))


def feature_set(
    features: Sequence[TrainingFeatures], max_seq_length: int
) -> FeatureSet:
    """Return examples as a `FeatureSet` whose batches have K texts per example."""
    num_texts = max(len(each.numbers) for each in features)
    pad = functools.partial(pad_training, num_texts=num_texts)
    return FeatureSet(features, max_seq_length, pad, length_of, num_rows_of=num_rows_of)


def make_job(
    start: Start,
    task: EmbeddingTask,
    loss: LossSettings,
    train_features: Sequence[TrainingFeatures],
    evaluation: Evaluation | None = None,
) -> FineTuningJob:
    """Return the `FineTuningJob` of an embedding model.

    Args:
      start: `job.Start`.
      task: `EmbeddingTask`, with the `metrics` of the evaluation.
      loss: `LossSettings`.
      train_features: list of `TrainingFeatures`.
      evaluation: `Evaluation` that selects the best model; None keeps the last
        model.
    """
    return FineTuningJob(
        start=start,
        task=task,
        written_config=config_with_labels(start.config),
        make_model=lambda recompute: make_model(start.trained_config, task, recompute),
        objective=objective_of(loss),
        train_set=feature_set(train_features, task.max_seq_length),
        fingerprint={
            "task": task_content(task),
            "loss": loss.name,
            "temperature": loss.temperature,
            "symmetric": loss.symmetric,
            "sizes": list(loss.sizes),
            "max_score": loss.max_score,
            "num_examples": len(train_features),
            "examples_crc32": crc32_of(_parts_of(train_features)),
            "dev_texts_crc32": _crc32_of_texts(evaluation),
        },
        dev_set=_dev_set(start, task, evaluation) if evaluation else None,
    )


def _dev_set(start, task, evaluation):
    windows = convert_texts(evaluation.texts, start.tokenizer, task)

    def measure(rows):
        vectors = vectors_of_texts(rows, windows, task.normalize)
        return evaluation.measure(vectors)

    return DevSet(rows_of(windows, task.max_seq_length), measure, outputs_of)


def _parts_of(features):
    """Yield arrays that distinguish these examples from others."""
    for example in features:
        yield np.array([len(example.rows), *example.numbers], np.int64)
        yield np.array(example.counts, np.int64)
        yield np.array([example.score], np.float32)
        for row in example.rows:
            yield row.input_ids


def _crc32_of_texts(evaluation):
    texts = evaluation.texts if evaluation else ()
    return crc32_of(np.frombuffer(text.encode(), np.uint8) for text in texts)
