"""Variants of the initial weights, as factors of the original's random values."""

import math

import keras

from official_bert.config import BertConfig

ORIGINAL, RESIDUAL, FAN_IN = VARIANTS = ("original", "residual", "fan_in")


def apply(model: keras.Model, config: BertConfig, variant: str) -> None:
    """Scale the kernels of a new model in place.

    Args:
      model: a Keras model with Google's names and the original's initial weights.
      config: its `BertConfig`.
      variant: "original" changes nothing. "residual" divides the two kernels before
        each residual sum by √(2 layers) (Radford et al., 2019, Sec. 2.3). "fan_in"
        replaces `initializer_range` in the encoder's layers by 1 / √inputs (LeCun et
        al., 1998, Sec. 4.6).
    """
    for variable in model.trainable_variables:
        value = factor(variable.path, tuple(variable.shape), config, variant)
        if value != 1.0:
            variable.assign(variable * value)


def factor(
    path: str, shape: tuple[int, ...], config: BertConfig, variant: str
) -> float:
    """Return the factor of one variable; for the arguments see `apply`."""
    if "/encoder/" not in path or not path.endswith("/kernel"):
        return 1.0
    if variant == RESIDUAL and path.endswith("/output/dense/kernel"):
        return 1.0 / math.sqrt(2 * config.num_hidden_layers)
    if variant == FAN_IN:
        return 1.0 / (math.sqrt(shape[0]) * config.initializer_range)
    return 1.0
