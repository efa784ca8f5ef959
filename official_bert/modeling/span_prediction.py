"""The question-answering model: encoder and two scores per token (Sec. 4.2)."""

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.modeling import heads
from official_bert.modeling.encoder_model import EncoderModel
from official_bert.modeling.kernels.choose import WITH_GRADIENTS
from official_bert.modeling.kernels.interface import Kernels


class SquadHead(keras.layers.Layer):
    """The start and end scores under their scope `cls/squad/`."""

    def __init__(self, config: BertConfig, name: str = "cls", **kwargs: Any):
        super().__init__(name=name, **kwargs)
        self.config = config
        self.build()

    def build(self, input_shape: tuple[int | None, ...] | None = None) -> None:
        """Create the start and end vectors [2, H] and their bias."""
        if not self.built:
            self.squad = heads.Scores(self.config, 2, name="squad")
            self.built: bool = True


@keras.saving.register_keras_serializable("official_bert")
class SpanModel(EncoderModel):
    """BERT with two scores per token: as start and as end of the answer.

    Follows `create_model` in google-research/bert `run_squad.py`. It does not use
    the pooler, and training does not change the pooler's weights.

    Args:
      config: `BertConfig`, or its `to_dict()`.
      recompute: see `BertEncoder`.
    """

    def __init__(
        self,
        config: BertConfig | dict[str, Any],
        recompute: bool = False,
        **kwargs: Any,
    ):
        super().__init__(config, recompute, pooled=False, **kwargs)
        self.cls = SquadHead(self.config)
        self.built = True

    def call(
        self,
        inputs: Mapping[str, tf.Tensor],
        training: bool = False,
        dropout_seed: tf.Tensor | None = None,
        kernels: Kernels = WITH_GRADIENTS,
    ) -> dict[str, tf.Tensor]:
        """Compute the start and end scores of the tokens.

        Args:
          inputs: `input_ids`, `input_mask`, `segment_ids` int [B, S]; positions
            are ignored.
          training: whether dropout is active.
          dropout_seed: int64 [2], see `BertEncoder.call`; required in training.
          kernels: see `BertEncoder.call`.

        Returns:
          dict with float32 `start_logits` and `end_logits` [B, S]. As in the
          original, padding has scores too.
        """
        encoded = self.bert(
            inputs, training=training, dropout_seed=dropout_seed, kernels=kernels
        )
        logits = self.cls.squad.of_tokens(encoded["sequence_output"])
        return {"start_logits": logits[..., 0], "end_logits": logits[..., 1]}


def span_terms(
    outputs: Mapping[str, tf.Tensor], features: Mapping[str, tf.Tensor]
) -> dict[str, tuple[tf.Tensor, tf.Tensor]]:
    """Return the sums of loss and accuracy over the windows of a batch.

    Args:
      outputs: `start_logits`, `end_logits` float32 [B, S].
      features: `start_positions`, `end_positions` int [B]; 0, the position of
        `[CLS]`, if the window does not contain the answer.

    Returns:
      dict name -> (sum, weight): `span_loss`, the mean of both cross-entropies
      in nats, and `span_accuracy`, the share of windows with both ends correct.
    """
    losses, hits = [], []
    for name in ("start", "end"):
        logits, labels = outputs[f"{name}_logits"], features[f"{name}_positions"]
        losses.append(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        hits.append(tf.argmax(logits, axis=-1, output_type=labels.dtype) == labels)
    rows = tf.cast(tf.shape(losses[0])[0], tf.float32)
    both = tf.cast(tf.logical_and(*hits), tf.float32)
    return {
        "span_loss": (tf.reduce_sum(losses[0] + losses[1]) / 2.0, rows),
        "span_accuracy": (tf.reduce_sum(both), rows),
    }
