"""The base class of the task models: an encoder, to which a subclass adds its head."""

from typing import Any

import keras
import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.modeling.encoder import BertEncoder
from official_bert.modeling.kernels.interface import Kernels

# Dropout rate before the head in training, a constant in the original.
DROPOUT = 0.1


class EncoderModel(keras.Model):
    """A model with the encoder `bert`; subclasses add the head.

    Args:
      config: `BertConfig`, or its `to_dict()`.
      recompute: see `BertEncoder`.
      pooled: whether the head reads the pooled output. If not, training does not
        change the pooler.
    """

    def __init__(
        self,
        config: BertConfig | dict[str, Any],
        recompute: bool = False,
        pooled: bool = True,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.config = config = BertConfig.of(config)
        # Build the encoder and the head before the model opens its own name scope.
        # The paths of the variables are then Google's names.
        self.bert = BertEncoder(config, recompute)
        self.bert.pooler.trainable = pooled

    def dropped(
        self, x: tf.Tensor, dropout_seed: tf.Tensor | None, kernels: Kernels
    ) -> tf.Tensor:
        """Return an encoder output with dropout, as input of the head.

        Args:
          x: float tensor.
          dropout_seed: from `BertEncoder.draw_dropout_seed`; None for no dropout.
          kernels: `Kernels`.
        """
        # The first dropout index that the encoder does not use.
        index = 1 + 3 * self.config.num_hidden_layers
        return kernels.dropout(x, DROPOUT, dropout_seed, index)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments for `from_config`."""
        own = {"config": self.config.to_dict(), "recompute": self.bert.recompute}
        return {**super().get_config(), **own}
