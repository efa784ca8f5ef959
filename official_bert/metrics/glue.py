"""The metrics of GLUE (Wang et al. 2018), for classes and for numbers.

A metric that is not defined for its input (only one class, or all predictions equal)
is 0.0, as scikit-learn does for F1 and Matthews. A model that learned nothing
therefore still has a score to compare. Labels and predictions are int [N] for the
metrics of classes, and float [N] for correlations.
"""

import math
from collections.abc import Iterable

import numpy as np


def score(
    names: Iterable[str], labels: np.ndarray, predictions: np.ndarray
) -> dict[str, float]:
    """Return several metrics of the same predictions.

    Args:
      names: names of `METRICS`, for example `GlueTask.metrics`.
      labels: the true classes or numbers, [N].
      predictions: predicted classes or numbers, [N].

    Returns:
      dict of name -> float, in the order of `names`.

    Raises:
      ValueError: see `accuracy`.
    """
    return {name: METRICS[name](labels, predictions) for name in names}


def accuracy(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Return the fraction of predictions that are correct.

    Args:
      labels: int [N], N >= 1.
      predictions: int [N].

    Raises:
      ValueError: the two arrays differ in length or are empty. The other metrics
        raise the same error.
    """
    labels, predictions = _checked(labels, predictions)
    return float(np.mean(labels == predictions))


def f1(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Return the harmonic mean of precision and recall of class 1.

    It is 0.0 if class 1 is never predicted correctly, or does not occur.

    Args:
      labels: int [N]; all numbers except 1 count as the other class.
      predictions: int [N].
    """
    labels, predictions = _checked(labels, predictions)
    hits = np.sum((labels == 1) & (predictions == 1))
    positives = np.sum(labels == 1) + np.sum(predictions == 1)
    return float(2 * hits / positives) if positives else 0.0


def macro_f1(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Return the mean F1 over the classes that occur."""
    labels, predictions = _checked(labels, predictions)
    classes = np.union1d(labels, predictions)
    return float(np.mean([f1(labels == one, predictions == one) for one in classes]))


def matthews_correlation(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Return the Matthews correlation of labels and predictions, from -1 to 1.

    For more than two classes it is Gorodkin's R_K (2004), the metric of GLUE's
    diagnostic set. It is 0.0 if all labels, or all predictions, are the same class.
    """
    labels, predictions = _checked(labels, predictions)
    classes = np.union1d(labels, predictions)
    # Python integers, because the products exceed 64 bits from some 100,000 examples.
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

    It is 0.0 if all labels, or all predictions, are equal. It is nan if one of
    them is nan.
    """
    labels, predictions = _checked(labels, predictions, np.float64)
    # Checks the values, because differences from a rounded mean may not be exactly 0.
    if np.ptp(labels) == 0 or np.ptp(predictions) == 0:
        return 0.0
    labels, predictions = labels - labels.mean(), predictions - predictions.mean()
    norms = np.linalg.norm(labels) * np.linalg.norm(predictions)
    return float(np.clip(np.dot(labels, predictions) / norms, -1, 1))


def spearman(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Return Spearman's correlation: Pearson's correlation of the ranks, from -1 to 1.

    Equal values share the mean of their ranks. Results for constant inputs and nan
    are those of `pearson`.
    """
    labels, predictions = _checked(labels, predictions, np.float64)
    return pearson(_ranks(labels), _ranks(predictions))


METRICS = {
    metric.__name__: metric
    for metric in (accuracy, f1, macro_f1, matthews_correlation, pearson, spearman)
}


def _checked(labels, predictions, dtype=None):
    """Return both as arrays [N]; raise `ValueError` if their shapes do not match."""
    labels, predictions = np.asarray(labels, dtype), np.asarray(predictions, dtype)
    if labels.ndim != 1 or labels.shape != predictions.shape or not labels.size:
        raise ValueError(
            f"Labels of shape {labels.shape} and predictions of shape "
            f"{predictions.shape} cannot be compared. Both must be [N], N >= 1."
        )
    return labels, predictions


def _ranks(values):
    """Return the ranks of `values` [N], from 1, float [N]; all nan if one is nan."""
    if np.isnan(values).any():
        return np.full(len(values), np.nan)
    _, groups, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[groups]
