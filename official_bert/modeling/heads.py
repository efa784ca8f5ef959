"""The heads: masked LM (Sec. 3.1) and class scores."""

from typing import Any

import keras
import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.modeling import layers
from official_bert.modeling.kernels.choose import WITH_GRADIENTS
from official_bert.modeling.kernels.interface import Kernels


class Transform(keras.layers.Layer):
    """LayerNorm(act(dense(x))), the layer before the vocabulary (`transform/`)."""

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.config = config
        self.dense = layers.dense(config.hidden_size, config, "dense")
        self.layer_norm = layers.LayerNorm(config.layer_norm_eps, name="LayerNorm")

    def build(self, input_shape: tuple[int | None, ...] | None = None) -> None:
        """Create the projection [H, H] and the normalization."""
        self.dense.build((None, self.config.hidden_size))
        self.layer_norm.build((None, self.config.hidden_size))

    def call(self, x: tf.Tensor, kernels: Kernels) -> tf.Tensor:
        """Map [N, H] to [N, H]."""
        x = kernels.activation(self.config.hidden_act)(self.dense(x))
        return self.layer_norm(x, layer_norm=kernels.layer_norm)


@keras.saving.register_keras_serializable("official_bert")
class MaskedLM(keras.layers.Layer):
    """Scores of all vocabulary entries at the masked positions.

    Follows `get_masked_lm_output` in google-research/bert `run_pretraining.py`: the
    output matrix is the word embedding table.

    Args:
      config: `BertConfig`, or its `to_dict()`.
    """

    def __init__(
        self,
        config: BertConfig | dict[str, Any],
        name: str = "predictions",
        **kwargs: Any,
    ):
        super().__init__(name=name, **kwargs)
        self.config = config = BertConfig.of(config)
        self.transform = Transform(config, name="transform")
        self.build()

    def build(self, input_shape: tuple[int | None, ...] | None = None) -> None:
        """Create the transform and the bias [V]."""
        if not self.built:
            self.transform.build()
            self.output_bias = self.add_weight(
                shape=(self.config.vocab_size,),
                initializer="zeros",
                name="output_bias",
                # Logits are float32 in every precision, and so is their bias.
                autocast=False,
            )
            self.built: bool = True

    def call(
        self,
        sequence_output: tf.Tensor,
        masked_lm_positions: tf.Tensor,
        embedding_table: tf.Tensor | keras.Variable,
        kernels: Kernels = WITH_GRADIENTS,
    ) -> tf.Tensor:
        """Compute the vocabulary scores at the masked positions.

        Args:
          sequence_output: float [B, S, H].
          masked_lm_positions: int [B, P].
          embedding_table: float [V, H], `BertEncoder.embedding_table`; in a
            functional model the encoder's output `embedding_table`.
          kernels: see `BertEncoder.call`.

        Returns:
          float32 logits [B, P, V].
        """
        # Multiply only the P masked positions with the vocabulary. This product is a
        # large part of all arithmetic.
        x = tf.gather(sequence_output, masked_lm_positions, batch_dims=1)  # [B, P, H]
        x = tf.reshape(x, [-1, self.config.hidden_size])  # [B * P, H]
        table = tf.cast(tf.convert_to_tensor(embedding_table), x.dtype)
        x = self.transform(x, kernels=kernels)
        logits = tf.matmul(x, table, transpose_b=True)  # [B * P, V]
        logits = tf.cast(logits, tf.float32) + self.output_bias
        shape = tf.shape(masked_lm_positions)
        return tf.reshape(logits, [shape[0], shape[1], self.config.vocab_size])

    def get_config(self) -> dict[str, Any]:
        """Return the arguments for `from_config`."""
        return {**super().get_config(), "config": self.config.to_dict()}


@keras.saving.register_keras_serializable("official_bert")
class Scores(keras.layers.Layer):
    """One score for each of C classes, x Wᵀ + b: next sentence, classifier.

    Follows `get_next_sentence_output` in google-research/bert
    `run_pretraining.py` and `create_model` in `run_classifier.py`.

    Args:
      config: `BertConfig`, or its `to_dict()`.
      num_outputs: C.
      width: size of the input vectors; by default H.
    """

    def __init__(
        self,
        config: BertConfig | dict[str, Any],
        num_outputs: int,
        width: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        config = BertConfig.of(config)
        self.config, self.num_outputs = config, num_outputs
        self.width = width or config.hidden_size
        self.build()

    def build(self, input_shape: tuple[int | None, ...] | None = None) -> None:
        """Create the weights [C, H] (the original's orientation) and bias [C]."""
        if not self.built:
            self.output_weights = self.add_weight(
                shape=(self.num_outputs, self.width),
                initializer=layers.initializer(self.config),
                name="output_weights",
            )
            self.output_bias = self.add_weight(
                shape=(self.num_outputs,),
                initializer="zeros",
                name="output_bias",
                autocast=False,
            )
            self.built: bool = True

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Map vectors [B, width] to float32 logits [B, C]."""
        weights = tf.convert_to_tensor(self.output_weights)
        logits = tf.matmul(x, weights, transpose_b=True)
        return tf.cast(logits, tf.float32) + self.output_bias

    def of_tokens(self, tokens: tf.Tensor) -> tf.Tensor:
        """Map the vectors of tokens [B, S, width] to float32 logits [B, S, C]."""
        shape = tf.shape(tokens)
        logits = self(tf.reshape(tokens, [-1, self.width]))
        return tf.reshape(logits, [shape[0], shape[1], self.num_outputs])

    def get_config(self) -> dict[str, Any]:
        """Return the arguments for `from_config`."""
        own = {
            "config": self.config.to_dict(),
            "num_outputs": self.num_outputs,
            "width": self.width,
        }
        return {**super().get_config(), **own}
