"""Reports of training steps: sums with their weights, and their means."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tensorflow as tf

# Suffix of the name of a sum's weight in a report.
WEIGHT = "/weight"


def report_of(
    terms: Mapping[str, tuple["tf.Tensor", "tf.Tensor"]],
) -> dict[str, "tf.Tensor"]:
    """Flatten a dict of name -> (sum, weight) into `name` and `name/weight`."""
    sums = {name: pair[0] for name, pair in terms.items()}
    return sums | {name + WEIGHT: pair[1] for name, pair in terms.items()}


def weighted_means(reports: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Average the reports of several steps.

    Args:
      reports: list of dicts of floats, as from `step.make_train_step`.

    Returns:
      dict: for a `name` with a `name/weight`, the sum divided by the sum of weights;
      for any other name, the last value.
    """
    row = {}
    for name in reports[-1]:
        if name.endswith(WEIGHT):
            continue
        numbers = [report[name] for report in reports]
        weights = [report.get(name + WEIGHT, 0.0) for report in reports]
        row[name] = sum(numbers) / sum(weights) if any(weights) else numbers[-1]
    return row


def describe(row: Mapping[str, float]) -> str:
    """Return the loss and, if present, the accuracy of a row as text for a log line."""
    text = f"loss {row['loss']:.3f}"
    return text + (f"  accuracy {row['accuracy']:.1%}" if "accuracy" in row else "")
