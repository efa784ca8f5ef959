"""The model for sentence tasks: encoder and classifier head (Sec. 4.1)."""

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.modeling import heads
from official_bert.modeling.bilstm import make_top, read
from official_bert.modeling.encoder_model import EncoderModel
from official_bert.modeling.kernels.choose import WITH_GRADIENTS
from official_bert.modeling.kernels.interface import Kernels


@keras.saving.register_keras_serializable("official_bert")
class ClassificationModel(EncoderModel):
    """BERT with one score per class, computed from the vector of `[CLS]`.

    Follows `create_model` in google-research/bert `run_classifier.py`.

    Args:
      config: `BertConfig`, or its `to_dict()`.
      num_outputs: C: the number of classes (one or several labels per text), or 1
        for regression.
      recompute: see `BertEncoder`.
      bilstm: whether a BiLSTM reads the token vectors. The head then scores its
        last outputs instead of the pooled output (Table 5, "+ BiLSTM").
    """

    def __init__(
        self,
        config: BertConfig | dict[str, Any],
        num_outputs: int,
        recompute: bool = False,
        bilstm: bool = False,
        **kwargs: Any,
    ):
        super().__init__(config, recompute, pooled=not bilstm, **kwargs)
        self.num_outputs = num_outputs
        self.bilstm, width = None, self.config.hidden_size
        if bilstm:
            self.bilstm, width = make_top(self.config, return_sequences=False)
        self.classifier = heads.Scores(
            self.config, num_outputs, width, name="classifier"
        )
        self.built = True

    def call(
        self,
        inputs: Mapping[str, tf.Tensor],
        training: bool = False,
        dropout_seed: tf.Tensor | None = None,
        kernels: Kernels = WITH_GRADIENTS,
    ) -> dict[str, tf.Tensor]:
        """Compute the scores of texts.

        Args:
          inputs: `input_ids`, `input_mask`, `segment_ids` int [B, S]; labels
            are ignored.
          training: whether dropout is active.
          dropout_seed: see `BertEncoder.call`.
          kernels: see `BertEncoder.call`.

        Returns:
          dict with float32 `logits` [B, C].
        """
        dropout_seed = self.bert.draw_dropout_seed(training, dropout_seed)
        encoded = self.bert(
            inputs, training=training, dropout_seed=dropout_seed, kernels=kernels
        )
        pooled = encoded["pooled_output"]
        if self.bilstm:
            tokens = encoded["sequence_output"]
            pooled = read(self.bilstm, tokens, inputs["input_mask"])
        pooled = self.dropped(pooled, dropout_seed, kernels)
        return {"logits": self.classifier(pooled)}

    def get_config(self) -> dict[str, Any]:
        """Return the arguments for `from_config`."""
        own = {"num_outputs": self.num_outputs, "bilstm": self.bilstm is not None}
        return {**super().get_config(), **own}


def single_label_terms(
    outputs: Mapping[str, tf.Tensor], features: Mapping[str, tf.Tensor]
) -> dict[str, tuple[tf.Tensor, tf.Tensor]]:
    """Return the sums of loss and accuracy for texts with one label each.

    Args:
      outputs: `logits` float32 [B, C].
      features: `label_ids` int [B].

    Returns:
      dict name -> (sum, weight): `classification_loss`, cross-entropy in nats,
      and `accuracy`.
    """
    logits, labels = outputs["logits"], features["label_ids"]
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    hits = tf.argmax(logits, axis=-1, output_type=labels.dtype) == labels
    return {
        "classification_loss": _summed(losses),
        "accuracy": _summed(tf.cast(hits, tf.float32)),
    }


def multi_label_terms(
    outputs: Mapping[str, tf.Tensor], features: Mapping[str, tf.Tensor]
) -> dict[str, tuple[tf.Tensor, tf.Tensor]]:
    """Return the sums of loss and accuracy for texts with any number of labels.

    Args:
      outputs: `logits` float32 [B, C].
      features: `label_ids` [B, C], 1 for each label of the text and 0 otherwise.

    Returns:
      dict name -> (sum, weight): `classification_loss`, the mean of the labels'
      binary cross-entropies, and `accuracy`, the share of texts with all labels
      correct.
    """
    logits = outputs["logits"]
    labels = tf.cast(features["label_ids"], tf.float32)
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels, logits)
    hits = tf.reduce_all((logits > 0) == (labels > 0.5), axis=-1)
    return {
        "classification_loss": _summed(tf.reduce_mean(losses, axis=-1)),
        "accuracy": _summed(tf.cast(hits, tf.float32)),
    }


def regression_terms(
    outputs: Mapping[str, tf.Tensor], features: Mapping[str, tf.Tensor]
) -> dict[str, tuple[tf.Tensor, tf.Tensor]]:
    """Return the sum of squared errors for texts with one number each.

    Args:
      outputs: `logits` float32 [B, 1].
      features: `label_ids` float [B].

    Returns:
      dict name -> (sum, weight): `regression_loss`, the squared error.
    """
    errors = outputs["logits"][:, 0] - tf.cast(features["label_ids"], tf.float32)
    return {"regression_loss": _summed(errors * errors)}


def _summed(values):
    """Return (sum, number of elements) of float32 [B]."""
    return tf.reduce_sum(values), tf.cast(tf.shape(values)[0], tf.float32)
