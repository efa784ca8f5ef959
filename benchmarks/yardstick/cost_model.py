"""The cost of a training step: its matrix products, other numbers, and weights."""

import numpy as np

from benchmarks import workload
from official_bert.config import BertConfig
from official_bert.parameter_count import parameter_parts, training_flops

FITTED = ("numbers", "weights")


def work(size, batch, length):
    """Return the work of a training step of a released size.

    Returns:
      dict of int: `flops` of matrix products, `numbers` that element-wise work
      writes, `weights` that the optimizer updates.
    """
    config, predictions = BertConfig.named(size), workload.predictions_of(length)
    maps = config.num_attention_heads * length**2
    hidden = length * (8 * config.hidden_size + config.intermediate_size)
    logits = predictions * config.vocab_size
    return {
        "flops": batch * training_flops(config, length, predictions),
        "numbers": batch * (config.num_hidden_layers * (maps + hidden) + logits),
        "weights": sum(part.exact for part in parameter_parts(config)),
    }


def fit(points):
    """Return the fitted seconds per number and per weight, a dict.

    Args:
      points: list of dicts with the values of `work`, the measured `seconds`
        and the `flops_per_second` of matrix products.
    """
    work = np.array([[point[name] for name in FITTED] for point in points], float)
    measured = np.array([point["seconds"] for point in points])
    left = measured - [seconds_of_products(point) for point in points]
    scale = work.max(axis=0)
    relative = work / scale / measured[:, np.newaxis]
    found, *_ = np.linalg.lstsq(relative, left / measured, rcond=None)
    return dict(zip(FITTED, map(float, found / scale), strict=True))


def seconds_of_products(point):
    """Return the seconds of a point's matrix products at their full speed."""
    return point["flops"] / point["flops_per_second"]


def predicted(point, costs):
    """Return the seconds of a point, with the costs from `fit`."""
    others = sum(costs[name] * point[name] for name in FITTED)
    return seconds_of_products(point) + others
