"""The metrics of GLUE (Wang et al. 2018), for class numbers and for scores.

A metric that is not defined for its input (one class only, predictions that
are all the same) is 0.0, as scikit-learn has it for F1 and Matthews, so that
a run which has learned nothing still has a score to be compared. Labels and
predictions are int [N] for the metrics of classes, and float [N] for correlations.
"""

import math
from collections.abc import Iterable

import numpy as np


def score(
    names: Iterable[str], labels: np.ndarray, predictions: np.ndarray
) -> dict[str, float]:
    """Return several metrics of the same predictions.

    Args:
      names: of `METRICS`, for example `GlueTask.metrics`.
      labels: the true class numbers, or scores, [N].
      predictions: as `labels`.

    Returns:
      dict of name -> float, in the order of `names`.

    Raises:
      ValueError: see `accuracy`.
    """
    return {name: METRICS[name](labels, predictions) for name in names}


def accuracy(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Return the share of predictions that are right.

    Args:
      labels: int [N], N >= 1.
      predictions: int [N].

    Raises:
      ValueError: the two are not as long as each other, or empty. So do the
        other metrics.
    """
    labels, predictions = _checked(labels, predictions)
    return float(np.mean(labels == predictions))


def f1(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Return the harmonic mean of precision and recall of class 1.

    It is 0.0 when class 1 was never predicted rightly, be it that nobody
    predicts it or that no label has it.

    Args:
      labels: int [N]; whatever is not 1 counts as the other class.
      predictions: int [N].
    """
    labels, predictions = _checked(labels, predictions)
    hits = np.sum((labels == 1) & (predictions == 1))
    positives = np.sum(labels == 1) + np.sum(predictions == 1)
    return float(2 * hits / positives) if positives else 0.0


def macro_f1(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Return the mean, over the classes that occur, of each one's F1."""
    labels, predictions = _checked(labels, predictions)
    classes = np.union1d(labels, predictions)
    return float(np.mean([f1(labels == one, predictions == one) for one in classes]))


def matthews_correlation(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Return Matthews' correlation of two lists of classes, from -1 to 1.

    For more than two classes it is Gorodkin's R_K (2004), which GLUE's
    diagnostic set is scored by. It is 0.0 when the labels, or the predictions,
    are all of one class.
    """
    labels, predictions = _checked(labels, predictions)
    classes = np.union1d(labels, predictions)
    # Python's numbers: the products exceed 64 bits for a few 100,000 rows.
    label_counts, predicted_counts = (
        np.array([int(np.sum(values == one)) for one in classes], object)
        for values in (labels, predictions)
    )
    total, right = len(labels), int(np.sum(labels == predictions))
    covariance = right * total - label_counts @ predicted_counts
    label_variance = total**2 - label_counts @ label_counts
    predicted_variance = total**2 - predicted_counts @ predicted_counts
    if not label_variance or not predicted_variance:
        return 0.0
    return covariance / math.sqrt(label_variance * predicted_variance)


def pearson(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Return Pearson's linear correlation, from -1 to 1.

    It is 0.0 when the labels, or the predictions, are all the same, and nan
    when one of them is nan.
    """
    labels, predictions = _checked(labels, predictions, np.float64)
    # Asked of the values: their deviations from a rounded mean are not all 0.
    if np.ptp(labels) == 0 or np.ptp(predictions) == 0:
        return 0.0
    labels, predictions = labels - labels.mean(), predictions - predictions.mean()
    norms = np.linalg.norm(labels) * np.linalg.norm(predictions)
    return float(np.clip(np.dot(labels, predictions) / norms, -1, 1))


def spearman(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Return Spearman's correlation: Pearson's of the ranks, from -1 to 1.

    Equal values share the mean of their ranks. Degenerate inputs are as for
    `pearson`.
    """
    labels, predictions = _checked(labels, predictions, np.float64)
    return pearson(_ranks(labels), _ranks(predictions))


METRICS = {
    metric.__name__: metric
    for metric in (accuracy, f1, macro_f1, matthews_correlation, pearson, spearman)
}


def _checked(labels, predictions, dtype=None):
    """Return both as arrays [N]; ValueError if they do not belong together."""
    labels, predictions = np.asarray(labels, dtype), np.asarray(predictions, dtype)
    if labels.ndim != 1 or labels.shape != predictions.shape or not labels.size:
        raise ValueError(
            f"Labels of shape {labels.shape} and predictions of shape "
            f"{predictions.shape} cannot be compared: both must be [N], N >= 1."
        )
    return labels, predictions


def _ranks(values):
    """Return the ranks from 1 of `values` [N], float [N]; nan if one is nan."""
    if np.isnan(values).any():
        return np.full(len(values), np.nan)
    _, groups, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[groups]
