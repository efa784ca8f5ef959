"""The multiple-choice model: a score C · V for each continuation (Sec. 4.4)."""

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.modeling import heads
from official_bert.modeling.classification import single_label_terms
from official_bert.modeling.encoder_model import EncoderModel
from official_bert.modeling.kernels.choose import WITH_GRADIENTS
from official_bert.modeling.kernels.interface import Kernels

# Logit of a missing choice, if the examples of a batch have different numbers of them.
NO_CHOICE = -1e9


@keras.saving.register_keras_serializable("official_bert")
class MultipleChoiceModel(EncoderModel):
    """BERT with one score per choice of an example, computed from `[CLS]`.

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
        super().__init__(config, recompute, **kwargs)
        self.classifier = heads.Scores(self.config, 1, name="classifier")
        self.built = True

    def call(
        self,
        inputs: Mapping[str, tf.Tensor],
        training: bool = False,
        dropout_seed: tf.Tensor | None = None,
        kernels: Kernels = WITH_GRADIENTS,
    ) -> dict[str, tf.Tensor]:
        """Compute the scores of choices.

        Args:
          inputs: `input_ids`, `input_mask`, `segment_ids` int [B, C, S] and
            `choice_mask` int [B, C], 1 for choices that exist; labels are
            ignored.
          training: whether dropout is active.
          dropout_seed: see `BertEncoder.call`.
          kernels: see `BertEncoder.call`.

        Returns:
          dict with float32 `logits` [B, C].
        """
        shape = tf.shape(inputs["input_ids"])
        names = ("input_ids", "input_mask", "segment_ids")
        texts = {name: tf.reshape(inputs[name], [-1, shape[2]]) for name in names}
        dropout_seed = self.bert.draw_dropout_seed(training, dropout_seed)
        encoded = self.bert(
            texts, training=training, dropout_seed=dropout_seed, kernels=kernels
        )
        pooled = self.dropped(encoded["pooled_output"], dropout_seed, kernels)
        logits = tf.reshape(self.classifier(pooled), shape[:2])  # [B, C]
        is_there = tf.cast(inputs["choice_mask"], tf.bool)
        return {"logits": tf.where(is_there, logits, NO_CHOICE)}


def choice_terms(
    outputs: Mapping[str, tf.Tensor], features: Mapping[str, tf.Tensor]
) -> dict[str, tuple[tf.Tensor, tf.Tensor]]:
    """Return the sums of loss and accuracy over examples with one right choice each.

    Args:
      outputs: `logits` float32 [B, C], `NO_CHOICE` for choices that do not exist.
      features: `label_ids` int [B], the indices of the right choices.

    Returns:
      dict name -> (sum, weight): `choice_loss`, cross-entropy in nats over the
      existing choices, and `accuracy`.
    """
    found = single_label_terms(outputs, features)
    return {
        "choice_loss": found["classification_loss"],
        "accuracy": found["accuracy"],
    }
