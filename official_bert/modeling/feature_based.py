"""The feature-based approach (Sec. 5.3, Table 7): a BiLSTM on a frozen BERT."""

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.modeling import bilstm, heads
from official_bert.modeling.encoder_model import EncoderModel
from official_bert.modeling.kernels.choose import WITH_GRADIENTS
from official_bert.modeling.kernels.interface import Kernels

# Units per direction in each of the two BiLSTM layers. The paper's "two-layer
# 768-dimensional" counts both directions.
WIDTH = 384


class LayerMix(keras.layers.Layer):
    """One vector per token, combined from several encoder layers.

    Args:
      kind: one of `constants.FEATURE_LAYERS`.
      num_layers: L, the number of encoder layers.
    """

    def __init__(self, kind: str, num_layers: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.kind, self.num_layers = kind, num_layers

    def build(self, input_shape: tuple[int | None, ...] | None = None) -> None:
        """Create one weight per layer if `kind` is a weighted sum."""
        if self.kind.startswith("weighted_sum") and not self.built:
            last_four = self.kind.endswith("four")
            count = min(4, self.num_layers) if last_four else self.num_layers
            self.weight = self.add_weight((count,), "zeros", name="weight")
        self.built: bool = True

    def call(self, encoded: Mapping[str, Any]) -> tf.Tensor:
        """Return the combined vectors.

        Args:
          encoded: the outputs of `BertEncoder`.

        Returns:
          float [B, S, H], or [B, S, min(4, L) H] for `concat_last_four`.
        """
        if self.kind == "embeddings":
            return encoded["embedding_output"]
        hidden = encoded["all_encoder_layers"]
        if self.kind == "last":
            return hidden[-1]
        if self.kind == "second_to_last":
            return hidden[-2] if len(hidden) > 1 else encoded["embedding_output"]
        if self.kind == "concat_last_four":
            return tf.concat(hidden[-4:], axis=-1)
        shares = tf.nn.softmax(tf.convert_to_tensor(self.weight))
        chosen = hidden[-shares.shape[0] :]
        return tf.add_n([shares[n] * layer for n, layer in enumerate(chosen)])


@keras.saving.register_keras_serializable("official_bert")
class FeatureBasedModel(EncoderModel):
    """Tag scores for each token from a frozen encoder.

    Args:
      config: `BertConfig`, or its `to_dict()`.
      num_outputs: C, the number of tags.
      kind: one of `constants.FEATURE_LAYERS`.
    """

    def __init__(
        self,
        config: BertConfig | dict[str, Any],
        num_outputs: int,
        kind: str,
        **kwargs: Any,
    ):
        kwargs.pop("recompute", None)  # A frozen encoder has no backward pass.
        super().__init__(config, **kwargs)
        config = self.config
        self.num_outputs, self.kind = num_outputs, kind
        self.bert.trainable = False
        self.mix = LayerMix(kind, config.num_hidden_layers, name="mix")
        self.mix.build()
        width = config.hidden_size
        if kind == "concat_last_four":
            width *= min(4, config.num_hidden_layers)
        self.bilstm = []
        for number in range(2):
            layer = bilstm.make_bilstm(width, WIDTH, name=f"bilstm_{number}")
            self.bilstm.append(layer)
            width = 2 * WIDTH
        self.classifier = heads.Scores(config, num_outputs, width, name="classifier")
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
          inputs: `input_ids`, `input_mask`, `segment_ids` int [B, S].
          training: ignored: this model has no dropout.
          dropout_seed: ignored.
          kernels: see `BertEncoder.call`.

        Returns:
          dict with float32 `logits` [B, S, C].
        """
        x = self.mix(self.bert(inputs, training=False, kernels=kernels))
        for layer in self.bilstm:
            x = bilstm.read(layer, x, inputs["input_mask"])
        return {"logits": self.classifier.of_tokens(x)}

    def get_config(self) -> dict[str, Any]:
        """Return the arguments for `from_config`."""
        own = {"num_outputs": self.num_outputs, "kind": self.kind}
        return {**super().get_config(), **own}
