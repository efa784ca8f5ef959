"""The evaluation of a model on a data set, for pre-training and fine-tuning."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import keras
import tensorflow as tf

from official_bert.training import strategies
from official_bert.training.reports import WEIGHT, weighted_means
from official_bert.training.step import Objective, make_eval_step

_Row = TypeVar("_Row")


def make_evaluate(
    evaluate_batch: Callable[[Any], Any],
    batches: Callable[[], Iterable[Any]],
    summarize: Callable[[list[Any]], _Row],
) -> Callable[..., _Row | None]:
    """Return a function that evaluates a model.

    Args:
      evaluate_batch: function: a batch -> its outputs or losses.
      batches: function: () -> iterable of all batches.
      summarize: function: list of results of `evaluate_batch` -> row of scores.

    Returns:
      function: (function that says whether to stop; by default never) -> the row of
      scores, or None if it stopped before the end.
    """

    def evaluate(break_off=lambda: False):
        results = []
        for batch in batches():
            if break_off():
                return None
            results.append(evaluate_batch(batch))
        return summarize(results)

    return evaluate


def make_loss_evaluate(
    strategy: tf.distribute.Strategy,
    model: keras.Model,
    objective: Objective,
    batches: tf.data.Dataset,
) -> Callable[..., dict[str, float] | None]:
    """Return a function that evaluates the losses of an objective.

    Args:
      strategy: a `tf.distribute` strategy.
      model: a Keras model.
      objective: `step.Objective`.
      batches: `tf.data.Dataset` of complete batches.

    Returns:
      see `make_evaluate`. The row has the weighted mean of each term over all batches,
      and `loss`, the mean over batches of the batch's total loss. The original reports
      the same loss.
    """
    eval_step = make_eval_step(strategy, model, objective)

    def evaluate_batch(batch):
        report = eval_step(strategies.distribute(strategy, batch))
        return {name: float(value) for name, value in report.items()}

    def summarize(reports):
        losses = [
            sum(
                report[name] / (report[name + WEIGHT] + added)
                for name, added in objective.losses.items()
            )
            for report in reports
        ]
        return {"loss": sum(losses) / len(losses), **weighted_means(reports)}

    return make_evaluate(evaluate_batch, lambda: batches, summarize)
