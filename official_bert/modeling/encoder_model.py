"""The base of every model for a task: the encoder, to which a class adds its head."""

from typing import Any

import keras
import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.modeling.encoder import BertEncoder
from official_bert.modeling.kernels.interface import Kernels

# Before the head in training. The original has it as a constant.
DROPOUT = 0.1


class EncoderModel(keras.Model):
    """A model whose encoder is `bert`; its subclasses add the head.

    Args:
      config: `BertConfig`, or its `to_dict()`.
      recompute: see `BertEncoder`.
      pooled: whether the head reads the pooled output. If not, the pooler has
        no part in training and stays as it is.
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
        # Encoder and head are complete before the model opens a name scope of
        # its own, so that the paths of variables are Google's names.
        self.bert = BertEncoder(config, recompute)
        self.bert.pooler.trainable = pooled

    def dropped(
        self, x: tf.Tensor, dropout_seed: tf.Tensor | None, kernels: Kernels
    ) -> tf.Tensor:
        """Return an output of the encoder, with dropout before the head.

        Args:
          x: float tensor.
          dropout_seed: of `BertEncoder.draw_dropout_seed`; None for no dropout.
          kernels: `Kernels`.
        """
        # The first dropout index that the encoder leaves free.
        index = 1 + 3 * self.config.num_hidden_layers
        return kernels.dropout(x, DROPOUT, dropout_seed, index)

    def get_config(self) -> dict[str, Any]:
        """Return what `from_config` needs."""
        own = {"config": self.config.to_dict(), "recompute": self.bert.recompute}
        return {**super().get_config(), **own}
