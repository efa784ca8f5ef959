"""Fine-tune a classifier (Sec. 4.1): the objective, the evaluation, the run."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.fine_tuning import outputs
from official_bert.fine_tuning.batches import FeatureSet
from official_bert.fine_tuning.job import DevSet, FineTuningJob, Start, crc32_of
from official_bert.fine_tuning.task_file import task_content
from official_bert.metrics import glue
from official_bert.modeling import classification
from official_bert.modeling.classification import ClassificationModel
from official_bert.tables.labels import MULTI_LABEL, REGRESSION, SINGLE_LABEL
from official_bert.tasks.classifier.features import Features, pad_features
from official_bert.tasks.classifier.task import ClassifierTask, written_config
from official_bert.training.step import Objective, mean_over_examples

# Batch -> dict with `logits`, float32 [B, C].
compile_model = outputs.compile_model

# Kind of labels -> terms and name of the loss.
_LOSSES = {
    SINGLE_LABEL: (classification.single_label_terms, "classification_loss"),
    MULTI_LABEL: (classification.multi_label_terms, "classification_loss"),
    REGRESSION: (classification.regression_terms, "regression_loss"),
}


def objective(task: ClassifierTask) -> Objective:
    """Return the `Objective` of a `ClassifierTask`: the mean loss over texts."""
    terms, loss = _LOSSES[task.kind]
    return mean_over_examples(loss, terms, describe)


def describe(row: Mapping[str, float]) -> str:
    """Return the loss and the scores as one line of text."""
    shown = [f"loss {row['loss']:.3f}"]
    shown += [f"{name} {row[name]:.4f}" for name in glue.METRICS if name in row]
    return "  ".join(shown)


def make_model(
    config: BertConfig, task: ClassifierTask, recompute: bool = False
) -> keras.Model:
    """Return the Keras model of a `ClassifierTask`."""
    return ClassificationModel(config, task.num_outputs, recompute, task.bilstm)


def predict(
    score: Callable[[dict[str, np.ndarray]], Mapping[str, np.ndarray]],
    windows: Sequence[Sequence[Features]],
    batch_size: int,
    max_seq_length: int,
) -> np.ndarray:
    """Return the logits of examples, each the mean of the logits of its windows.

    Args:
      score: result of `compile_model`.
      windows: list of N lists of `Features`, from `classifier_features.encode`.
      batch_size: number of windows per batch.
      max_seq_length: see `FeatureSet`.

    Returns:
      float32 logits [N, C] in the order of the examples.
    """
    features = _all_windows(windows, max_seq_length)
    return _mean_logits(outputs.run_examples(score, features, batch_size), windows)


def _all_windows(windows, max_seq_length):
    """Return the windows of all examples as a `FeatureSet`."""
    flat = [one for each in windows for one in each]
    return FeatureSet(flat, max_seq_length, pad_features)


def _mean_logits(rows, windows):
    """Return the mean over the windows of each example, float32 [N, C]."""
    logits = np.stack([row["logits"] for row in rows])
    counts = np.array([len(each) for each in windows])
    firsts = np.cumsum(counts) - counts
    return np.add.reduceat(logits, firsts) / counts[:, np.newaxis].astype(np.float32)


def evaluate(
    task: ClassifierTask, logits: np.ndarray, windows: Sequence[Sequence[Features]]
) -> dict[str, float]:
    """Return the mean loss and the task's scores.

    For multi-label tasks, `f1` is micro-averaged over all texts and labels, and
    `accuracy` is the fraction of texts with all labels correct. For single-label
    tasks, `predicted_classes` is the number of distinct predicted labels.

    Args:
      task: `ClassifierTask`.
      logits: float32 [N, C].
      windows: list of N lists of `Features` with labels.

    Returns:
      dict of name -> float, including `loss`.
    """
    labels = _label_ids(windows)
    row = {"loss": outputs.mean_loss(*_LOSSES[task.kind], logits, labels)}
    if task.kind == MULTI_LABEL:
        predicted = (probabilities(task, logits) >= task.threshold).astype(int)
        right = (predicted == labels).all(axis=1)
        scores = {
            "f1": glue.f1(labels.ravel(), predicted.ravel()),
            "accuracy": float(right.mean()),
        }
        return row | {name: scores[name] for name in task.metrics}
    if task.kind == REGRESSION:
        return row | glue.score(task.metrics, labels, logits[:, 0])
    predictions = logits.argmax(axis=1)
    row |= glue.score(task.metrics, labels, predictions)
    if len(set(labels.tolist())) > 1:
        row["predicted_classes"] = len(set(predictions.tolist()))
    return row


def results(
    task: ClassifierTask,
    logits: np.ndarray,
    windows: Sequence[Sequence[Features]],
    batch_size: int,
) -> dict[str, float]:
    """Return the entries of `eval_results.txt`, except `global_step`.

    Args:
      task: `ClassifierTask`.
      logits: float32 [N, C].
      windows: list of N lists of `Features` with labels.
      batch_size: batch size of the evaluation. The original's `loss` is the mean
        over its batches.

    Returns:
      dict of name -> float: the original's `eval_loss`, `loss` and, except for
      regression, `eval_accuracy`; and `eval_…` for each of the task's metrics.
    """
    row = evaluate(task, logits, windows)
    labels = _label_ids(windows)
    loss = outputs.mean_loss(*_LOSSES[task.kind], logits, labels, batch_size)
    row.pop("predicted_classes", None)
    written = {"eval_loss": row.pop("loss"), "loss": loss}
    if task.kind == SINGLE_LABEL:
        written["eval_accuracy"] = glue.accuracy(labels, logits.argmax(axis=1))
    return written | {f"eval_{name}": value for name, value in row.items()}


def probabilities(task: ClassifierTask, logits: np.ndarray) -> np.ndarray:
    """Convert logits to probabilities, float32 [N, C].

    Args:
      task: `ClassifierTask`.
      logits: float32 [N, C].

    Returns:
      the probability of each label; for regression the number itself.
    """
    if task.kind == SINGLE_LABEL:
        return tf.nn.softmax(logits).numpy()
    return tf.nn.sigmoid(logits).numpy() if task.kind == MULTI_LABEL else logits


def _label_ids(windows):
    return np.array([each[0].label_id for each in windows])


def only_class(
    task: ClassifierTask, logits: np.ndarray, windows: Sequence[Sequence[Features]]
) -> str | None:
    """Return the label that is predicted for all texts, if that is a failure.

    Training that has diverged often ends like this. It is not a failure if all
    examples have the same label.

    Args:
      task: `ClassifierTask`.
      logits: float32 [N, C].
      windows: list of N lists of `Features` with labels.

    Returns:
      the label's name, or None.
    """
    if task.kind != SINGLE_LABEL:
        return None
    predicted = set(logits.argmax(axis=1).tolist())
    if len(predicted) > 1 or len(set(_label_ids(windows).tolist())) == 1:
        return None
    return task.labels[predicted.pop()]


def make_job(
    start: Start,
    task: ClassifierTask,
    train_features: Sequence[Features],
    dev_windows: Sequence[Sequence[Features]] | None = None,
) -> FineTuningJob:
    """Return the `FineTuningJob` of a classifier.

    Args:
      start: `job.Start`.
      task: `ClassifierTask`.
      train_features: list of `Features` to train on.
      dev_windows: list of lists of `Features` that selects the best model; None
        keeps the last model.
    """
    data, dev_set = fingerprint(task, train_features), None
    if dev_windows is not None:
        data["dev_set"] = fingerprint(task, [each[0] for each in dev_windows])
        dev_set = DevSet(
            _all_windows(dev_windows, task.max_seq_length),
            lambda rows: evaluate(task, _mean_logits(rows, dev_windows), dev_windows),
        )

    def trouble(row):
        is_one = row.get("predicted_classes") == 1
        return one_class_warning(len(dev_windows or ())) if is_one else None

    return FineTuningJob(
        start=start,
        task=task,
        written_config=written_config(start.config, task),
        make_model=lambda recompute: make_model(start.trained_config, task, recompute),
        objective=objective(task),
        train_set=FeatureSet(train_features, task.max_seq_length, pad_features),
        fingerprint=data,
        dev_set=dev_set,
        trouble=trouble,
    )


def one_class_warning(count: int, label: str | None = None) -> str:
    """Return the warning about a model that predicts the same for all texts."""
    what = "the same label" if label is None else repr(label)
    return (
        f"All {count} dev examples are predicted as {what}: the training has learned "
        "nothing. Try another --seed, a lower --learning_rate or --bias_correction."
    )


def fingerprint(task: ClassifierTask, features: Sequence[Features]) -> dict[str, Any]:
    """Return a dict that distinguishes this task and its examples from others."""
    return {
        "task": task_content(task),
        "num_examples": len(features),
        "examples_crc32": crc32_of(
            part
            for one in features
            for part in (one.input_ids, one.segment_ids, np.array(one.label_id))
        ),
    }
