"""The tagging model: encoder and one score per tag and token (Sec. 5.3)."""

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.constants import IGNORED
from official_bert.modeling import heads
from official_bert.modeling.bilstm import make_top, read
from official_bert.modeling.encoder_model import EncoderModel
from official_bert.modeling.kernels.choose import WITH_GRADIENTS
from official_bert.modeling.kernels.interface import Kernels


@keras.saving.register_keras_serializable("official_bert")
class TokenClassificationModel(EncoderModel):
    """BERT with one score per tag for each token, and dropout before the head.

    It does not use the pooler, and training does not change the pooler's weights.

    Args:
      config: `BertConfig`, or its `to_dict()`.
      num_outputs: C, the number of tags.
      recompute: see `BertEncoder`.
      bilstm: whether a BiLSTM reads the token vectors. The head then scores its
        outputs (Table 5, "+ BiLSTM").
    """

    def __init__(
        self,
        config: BertConfig | dict[str, Any],
        num_outputs: int,
        recompute: bool = False,
        bilstm: bool = False,
        **kwargs: Any,
    ):
        super().__init__(config, recompute, pooled=False, **kwargs)
        self.num_outputs = num_outputs
        self.bilstm, width = None, self.config.hidden_size
        if bilstm:
            self.bilstm, width = make_top(self.config, return_sequences=True)
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
        """Compute the tag scores of the tokens.

        Args:
          inputs: `input_ids`, `input_mask`, `segment_ids` int [B, S]; labels
            are ignored.
          training: whether dropout is active.
          dropout_seed: see `BertEncoder.call`.
          kernels: see `BertEncoder.call`.

        Returns:
          dict with float32 `logits` [B, S, C].
        """
        dropout_seed = self.bert.draw_dropout_seed(training, dropout_seed)
        encoded = self.bert(
            inputs, training=training, dropout_seed=dropout_seed, kernels=kernels
        )
        tokens = encoded["sequence_output"]
        if self.bilstm:
            tokens = read(self.bilstm, tokens, inputs["input_mask"])
        tokens = self.dropped(tokens, dropout_seed, kernels)
        return {"logits": self.classifier.of_tokens(tokens)}

    def get_config(self) -> dict[str, Any]:
        """Return the arguments for `from_config`."""
        own = {"num_outputs": self.num_outputs, "bilstm": self.bilstm is not None}
        return {**super().get_config(), **own}


def token_terms(
    outputs: Mapping[str, tf.Tensor], features: Mapping[str, tf.Tensor]
) -> dict[str, tuple[tf.Tensor, tf.Tensor]]:
    """Return the sums of loss and accuracy over the scored tokens of a batch.

    Args:
      outputs: `logits` float32 [B, S, C].
      features: `label_ids` int [B, S], `IGNORED` for tokens without a score.

    Returns:
      dict name -> (sum, weight): `token_loss`, cross-entropy in nats, and
      `token_accuracy`.
    """
    logits, labels = outputs["logits"], features["label_ids"]
    scored = tf.cast(labels != IGNORED, tf.float32)
    known = tf.maximum(labels, 0)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(known, logits)
    guesses = tf.argmax(logits, axis=-1, output_type=labels.dtype)
    hits = tf.cast(guesses == labels, tf.float32)
    total = tf.reduce_sum(scored)
    return {
        "token_loss": (tf.reduce_sum(losses * scored), total),
        "token_accuracy": (tf.reduce_sum(hits * scored), total),
    }
