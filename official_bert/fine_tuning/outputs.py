"""Run a model on many examples; compiled once, usable from any thread."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from official_bert.constants import INPUTS
from official_bert.fine_tuning.batches import FeatureSet
from official_bert.modeling.kernels.choose import for_inference
from official_bert.training.evaluation import make_evaluate


def compile_model(
    compute: Callable[..., Mapping[str, tf.Tensor]],
) -> Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]:
    """Compile the function from a batch of features to a model's outputs.

    It is traced once, for any shape. Several threads may call it.

    Args:
      compute: function: (dict of the `INPUTS`, int32 tensors [B, S]; keyword
        `kernels`, a `Kernels`) -> dict of tensors [B, …]. For example a Keras model.

    Returns:
      function: dict of int32 arrays -> the outputs of `compute` as arrays.
    """
    ids, kernels = tf.TensorSpec([None, None], tf.int32), for_inference()

    @tf.function(input_signature=[ids, ids, ids], autograph=False)
    def score(*values):
        return compute(dict(zip(INPUTS, values, strict=True)), kernels=kernels)

    def run_batch(batch):
        tensors = score(*(tf.constant(batch[name]) for name in INPUTS))
        return {name: tensor.numpy() for name, tensor in tensors.items()}

    return run_batch


def run_examples(
    score: Callable[[dict[str, np.ndarray]], Mapping[str, np.ndarray]],
    feature_set: FeatureSet,
    batch_size: int,
) -> list[dict[str, np.ndarray]]:
    """Return the outputs of all examples.

    Args:
      score: the result of `compile_model`, or a `TfliteModel`.
      feature_set: `FeatureSet` of N examples.
      batch_size: number of examples per batch.

    Returns:
      list of N dicts of outputs, in the order of the examples. Outputs with a value
      per token are as long as their batch.
    """
    return make_evaluate_rows(score, feature_set, batch_size, lambda rows: rows)()


def make_evaluate_rows(
    score: Callable[[dict[str, np.ndarray]], Mapping[str, np.ndarray]],
    feature_set: FeatureSet,
    batch_size: int,
    measure: Callable[[list[dict[str, np.ndarray]]], Any],
) -> Callable[..., Any]:
    """Return the function that evaluates a model on examples in memory.

    Args:
      score: see `run_examples`.
      feature_set: see `run_examples`.
      batch_size: see `run_examples`.
      measure: function: the result of `run_examples` -> dict of scores.

    Returns:
      function as returned by `evaluation.make_evaluate`.
    """

    def in_order(batches):
        rows: list[Any] = [None] * len(feature_set.features)
        for numbers, outputs in batches:
            for index, number in enumerate(numbers):
                rows[number] = {name: value[index] for name, value in outputs.items()}
        return measure(rows)

    return make_evaluate(
        lambda batch: (batch[0], score(batch[1])),
        lambda: feature_set.ordered_batches(batch_size),
        in_order,
    )


def mean_loss(
    terms: Callable[..., Mapping[str, tuple[tf.Tensor, tf.Tensor]]],
    loss: str,
    logits: np.ndarray,
    labels: np.ndarray,
    batch_size: int | None = None,
) -> float:
    """Return the mean of the batches' losses, which is the `loss` of the original.

    Args:
      terms: see `step.Objective`; reads `logits` and `label_ids`.
      loss: name of the loss in `terms`.
      logits: array [N, ...].
      labels: array [N, ...].
      batch_size: examples per batch; the last batch may have fewer. None for one
        batch.
    """
    size, losses = batch_size or len(logits), []
    for start in range(0, len(logits), size):
        part = slice(start, start + size)
        features = {"label_ids": tf.constant(labels[part])}
        total, weight = terms({"logits": tf.constant(logits[part])}, features)[loss]
        losses.append(float(total / weight))
    return float(np.mean(losses))
