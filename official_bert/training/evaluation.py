"""The evaluation of a model on a data set, as pre-training and fine-tuning make it."""

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
    """Return the function that evaluates a model.

    Args:
      evaluate_batch: function: a batch -> its outputs or losses.
      batches: function: () -> iterable of all batches, once.
      summarize: function: list of what `evaluate_batch` returned -> row of scores.

    Returns:
      function: (callable that says whether to break off; by default never) -> the
      row of scores, or None if it broke off.
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
    """Return the function that evaluates the losses of an objective.

    Args:
      strategy: a `tf.distribute` strategy.
      model: a Keras model.
      objective: `step.Objective`.
      batches: `tf.data.Dataset` of whole batches.

    Returns:
      as `make_evaluate`. The row has the weighted mean of each term over all
      batches, and `loss`, the mean over batches of the batch's total loss, as the
      original reports it.
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
