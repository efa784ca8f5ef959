"""The pre-training model: encoder, masked-LM head and next-sentence head."""

from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.modeling import heads
from official_bert.modeling.encoder_model import EncoderModel
from official_bert.modeling.kernels.choose import WITH_GRADIENTS
from official_bert.modeling.kernels.interface import Kernels
from official_bert.modeling.losses import cross_entropy


class PretrainingHeads(keras.layers.Layer):
    """The pre-training heads under their common scope `cls/`."""

    def __init__(
        self,
        config: BertConfig,
        next_sentence_prediction: bool = True,
        name: str = "cls",
        **kwargs: Any,
    ):
        super().__init__(name=name, **kwargs)
        self.config = config
        self.next_sentence_prediction = next_sentence_prediction
        self.build()

    def build(self, input_shape: tuple[int | None, ...] | None = None) -> None:
        """Create the heads."""
        if not self.built:
            self.predictions = heads.MaskedLM(self.config)
            if self.next_sentence_prediction:
                # Class 0 is "is next", class 1 is "random".
                self.seq_relationship = heads.Scores(
                    self.config, 2, name="seq_relationship"
                )
            self.built: bool = True


@keras.saving.register_keras_serializable("official_bert")
class PretrainingModel(EncoderModel):
    """BERT with the masked-LM and next-sentence heads (Sec. 3.1).

    Args:
      config: `BertConfig`, or its `to_dict()`.
      recompute: see `BertEncoder`.
      next_sentence_prediction: whether the model has the next-sentence head. Without
        it (Table 5, "No NSP") training does not change the pooler.
    """

    def __init__(
        self,
        config: BertConfig | dict[str, Any],
        recompute: bool = False,
        next_sentence_prediction: bool = True,
        **kwargs: Any,
    ):
        super().__init__(config, recompute, next_sentence_prediction, **kwargs)
        self.next_sentence_prediction = next_sentence_prediction
        self.cls = PretrainingHeads(self.config, next_sentence_prediction)
        self.built = True

    def call(
        self,
        inputs: Mapping[str, tf.Tensor],
        training: bool = False,
        dropout_seed: tf.Tensor | None = None,
        kernels: Kernels = WITH_GRADIENTS,
    ) -> dict[str, tf.Tensor]:
        """Compute the scores of the masked tokens and of the sentence pair.

        Args:
          inputs: the features of a pre-training record: `input_ids`,
            `input_mask`, `segment_ids` int [B, S] and `masked_lm_positions`
            int [B, P]; labels are ignored. For packed rows see
            `BertEncoder.call`.
          training: whether dropout is active.
          dropout_seed: int64 [2], see `BertEncoder.call`.
          kernels: see `BertEncoder.call`.

        Returns:
          dict with float32 `masked_lm_logits` [B, P, V] and, if the model has that
          head, `next_sentence_logits` [B, 2] (packed rows: [B * N, 2]).
        """
        encoded = self.bert(
            inputs,
            training=training,
            dropout_seed=dropout_seed,
            output_embedding_table=True,
            kernels=kernels,
        )
        outputs = {
            "masked_lm_logits": self.cls.predictions(
                encoded["sequence_output"],
                inputs["masked_lm_positions"],
                encoded["embedding_table"],
                kernels=kernels,
            )
        }
        if self.next_sentence_prediction:
            pooled = encoded["pooled_output"]
            outputs["next_sentence_logits"] = self.cls.seq_relationship(pooled)
        return outputs

    def get_config(self) -> dict[str, Any]:
        """Return the arguments for `from_config`."""
        own = {"next_sentence_prediction": self.next_sentence_prediction}
        return {**super().get_config(), **own}


def masked_lm_terms(
    logits: tf.Tensor,
    features: Mapping[str, tf.Tensor],
    cross_entropy: Callable[
        ..., tuple[tf.Tensor, tf.Tensor, tf.Tensor]
    ] = cross_entropy,
) -> dict[str, tuple[tf.Tensor, tf.Tensor]]:
    """Return the sums of loss and accuracy over the masked tokens of a batch.

    Args:
      logits: float32 [B, P, V].
      features: dict with `masked_lm_ids` int [B, P] and `masked_lm_weights`
        float [B, P], 0.0 at unused positions.
      cross_entropy: function with the signature of `losses.cross_entropy`.

    Returns:
      dict name -> (sum, weight): `masked_lm_loss` in nats and
      `masked_lm_accuracy`; each mean is sum / weight.
    """
    labels = tf.reshape(features["masked_lm_ids"], [-1])
    weights = tf.reshape(features["masked_lm_weights"], [-1])
    logits = tf.reshape(logits, [-1, logits.shape[-1]])  # [B * P, V]
    losses, best, own = cross_entropy(logits, labels)
    # The label is the prediction if no logit is larger. `argmax` needs another pass.
    hits = tf.cast(own >= best, tf.float32)
    total = tf.reduce_sum(weights)
    return {
        "masked_lm_loss": (tf.reduce_sum(weights * losses), total),
        "masked_lm_accuracy": (tf.reduce_sum(weights * hits), total),
    }


def next_sentence_terms(
    logits: tf.Tensor, features: Mapping[str, tf.Tensor]
) -> dict[str, tuple[tf.Tensor, tf.Tensor]]:
    """Return the sums of loss and accuracy over the sentence pairs of a batch.

    Args:
      logits: float32 [B, 2]; packed rows [B * N, 2].
      features: dict with `next_sentence_labels` int [B, 1]; 1 is "random". Packed
        rows have labels [B, N] and `next_sentence_weights` float32 [B, N], 0.0 for
        unused entries.

    Returns:
      dict name -> (sum, weight): `next_sentence_loss` in nats and
      `next_sentence_accuracy`.
    """
    labels = tf.reshape(features["next_sentence_labels"], [-1])
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    guesses = tf.argmax(logits, axis=-1, output_type=labels.dtype)
    hits = tf.cast(guesses == labels, tf.float32)
    if "next_sentence_weights" in features:
        weights = tf.reshape(features["next_sentence_weights"], [-1])
        losses, hits = weights * losses, weights * hits
    total = num_sentence_pairs(features)
    return {
        "next_sentence_loss": (tf.reduce_sum(losses), total),
        "next_sentence_accuracy": (tf.reduce_sum(hits), total),
    }


def num_sentence_pairs(features: Mapping[str, tf.Tensor]) -> tf.Tensor:
    """Return the number of sequences in a batch, a float32 scalar.

    The features are those of `next_sentence_terms`.
    """
    if "next_sentence_weights" in features:
        return tf.reduce_sum(features["next_sentence_weights"])
    return tf.cast(tf.shape(features["next_sentence_labels"])[0], tf.float32)


def pretraining_terms(
    outputs: Mapping[str, tf.Tensor],
    features: Mapping[str, tf.Tensor],
    cross_entropy: Callable[
        ..., tuple[tf.Tensor, tf.Tensor, tf.Tensor]
    ] = cross_entropy,
) -> dict[str, tuple[tf.Tensor, tf.Tensor]]:
    """Return all sums of a pre-training batch.

    See `masked_lm_terms` and `next_sentence_terms`. The next-sentence sums are
    included if the model has that head.
    """
    terms = masked_lm_terms(outputs["masked_lm_logits"], features, cross_entropy)
    if "next_sentence_logits" in outputs:
        terms |= next_sentence_terms(outputs["next_sentence_logits"], features)
    return terms
