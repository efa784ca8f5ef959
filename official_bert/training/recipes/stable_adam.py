"""`StableAdam`: layer-wise learning rates and weight averaging for fine-tuning."""

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from official_bert.checkpoints import names
from official_bert.training.optimizer import BertAdam

_LAYER = re.compile(r"(?:^|/)encoder/layer_(\d+)/")


def layer_rates(paths: Sequence[str], layer_decay: float) -> list[float]:
    """Return the factor of each variable's learning rate.

    Heads and pooler have factor 1, the top layer `layer_decay`, and each lower layer
    `layer_decay` times the factor of the layer above it. The embeddings are below
    layer 0 (Howard and Ruder, 2018; Zhang et al., 2021).

    Args:
      paths: paths of the variables.
      layer_decay: factor from one layer to the next lower one.
    """
    layers = [_LAYER.search(path) for path in paths]
    count = max((int(match[1]) + 1 for match in layers if match), default=0)

    def depth(path, match):
        if match:
            return count - int(match[1])
        return count + 1 if "/embeddings/" in f"/{path}" else 0

    pairs = zip(paths, layers, strict=True)
    return [layer_decay ** depth(path, match) for path, match in pairs]


@keras.saving.register_keras_serializable("official_bert")
class StableAdam(BertAdam):
    """`BertAdam` with a learning rate per layer and an average of the last weights.

    Args:
      learning_rate: float or schedule.
      layer_decay: see `layer_rates`; 1.0 for the same learning rate everywhere.
      first_averaged: the step (from 0) at which the average of the weights begins
        (Izmailov et al., 2018); None for no average. Before it, the average equals
        the weights. A skipped step counts like the average of the steps before it.
      **kwargs: arguments of `BertAdam`.
    """

    def __init__(
        self,
        learning_rate: float | keras.optimizers.schedules.LearningRateSchedule = 1e-4,
        layer_decay: float = 1.0,
        first_averaged: int | None = None,
        **kwargs: Any,
    ):
        kwargs.setdefault("name", "stable_adam")
        super().__init__(learning_rate, **kwargs)
        self.layer_decay = layer_decay
        self.first_averaged = first_averaged

    def build(self, var_list: Sequence[keras.Variable]) -> None:
        """Create the moments, and the offset of each average."""
        if self.built:
            return
        super().build(var_list)
        paths = [variable.path for variable in var_list]
        self._rates = layer_rates(paths, self.layer_decay)
        self.offsets = None
        if self.first_averaged is not None:
            self.offsets = self.add_optimizer_variables(var_list, "average_offset")

    def slots(self) -> dict[str, list[keras.Variable]]:
        """Return name in checkpoints -> list of variables."""
        own = {names.AVERAGE_OFFSET: self.offsets} if self.offsets else {}
        return {**super().slots(), **own}

    def update_step(
        self,
        gradient: tf.Tensor,
        variable: keras.Variable | tf.Variable,
        learning_rate: tf.Tensor,
    ) -> None:
        """Update one variable, its moments and the offset of its average in place.

        The offset is average - weights. A running mean in float32 would lose small
        changes of weights near 1 after about a thousand steps.
        """
        index = self._get_variable_index(variable)
        learning_rate = learning_rate * self._rates[index]
        if self.offsets is None:
            super().update_step(gradient, variable, learning_rate)
            return
        before = tf.convert_to_tensor(variable)
        super().update_step(gradient, variable, learning_rate)
        change = tf.convert_to_tensor(variable) - before
        count = tf.cast(self.iterations - self.first_averaged + 1, change.dtype)
        share = tf.maximum(count - 1.0, 0.0) / tf.maximum(count, 1.0)
        offset = self.offsets[index]
        offset.assign(share * (offset - change))

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {
            **super().get_config(),
            "layer_decay": self.layer_decay,
            "first_averaged": self.first_averaged,
        }


@contextlib.contextmanager
def averaged_weights(
    model: keras.Model, optimizer: keras.optimizers.Optimizer
) -> Iterator[None]:
    """Give a model the averaged weights inside the context, if there are any.

    Args:
      model: the model that the optimizer trains.
      optimizer: a built optimizer.
    """
    offsets = getattr(optimizer, "offsets", None)
    if not offsets:
        yield
        return
    variables = model.trainable_variables
    trained = [variable.numpy() for variable in variables]
    for variable, value, offset in zip(variables, trained, offsets, strict=True):
        variable.assign(value + offset.numpy())
    try:
        yield
    finally:
        for variable, value in zip(variables, trained, strict=True):
            variable.assign(value)
