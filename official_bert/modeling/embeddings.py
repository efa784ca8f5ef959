"""Word + position + segment embeddings (Sec. 3, Figure 2)."""

from typing import Any

import keras
import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.modeling import layers
from official_bert.modeling.kernels.interface import Kernels
from official_bert.modeling.kernels.packing import Packing


@keras.saving.register_keras_serializable("official_bert")
class Embeddings(keras.layers.Layer):
    """The sum of three embedding tables, then LayerNorm and dropout.

    Follows `embedding_lookup` and `embedding_postprocessor` in google-research/bert
    `modeling.py`: vectors are not scaled by sqrt(H), and `[PAD]` has an ordinary row.

    Args:
      config: `BertConfig`.
    """

    def __init__(self, config: BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.config = config
        self.layer_norm = layers.LayerNorm(
            config.layer_norm_eps, name="LayerNorm", dtype=self.dtype_policy
        )

    def build(self, input_shape: tuple[int | None, ...] | None = None) -> None:
        """Create the tables [V, H], [types, H], [max positions, H]."""
        config, width = self.config, self.config.hidden_size

        def table(name, rows, **settings):
            return self.add_weight(
                shape=(rows, width),
                initializer=layers.initializer(config),
                name=name,
                **settings,
            )

        # `kernels.lookup` casts this table itself.
        self.word_embeddings = table(
            "word_embeddings", config.vocab_size, autocast=False
        )
        self.token_type_embeddings = table(
            "token_type_embeddings", config.type_vocab_size
        )
        self.position_embeddings = table(
            "position_embeddings", config.max_position_embeddings
        )
        self.layer_norm.build((None, width))

    def call(
        self,
        input_ids: tf.Tensor,
        segment_ids: tf.Tensor,
        kernels: Kernels,
        position_ids: tf.Tensor | None = None,
        packing: Packing | None = None,
        dropout_seed: tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Return the embeddings of tokens.

        Args:
          input_ids: int [B, S].
          segment_ids: int [B, S].
          kernels: `Kernels`.
          position_ids: int [B, S], the position of each token in its sequence; by
            default its position in the row.
          packing: `Packing` of the tokens, or None for one hidden state per position.
          dropout_seed: int64 [2], or None in evaluation.

        Returns:
          (float [T, H], the word embeddings [V, H] for an output layer).
        """
        config = self.config
        length, width = tf.shape(input_ids)[1], config.hidden_size
        table = tf.convert_to_tensor(self.word_embeddings)
        dtype = tf.as_dtype(self.compute_dtype)
        words, table = kernels.lookup(table, input_ids, dtype)  # [B, S, H], [V, H]
        # Multiply with one-hot rows, as in the original. The gradient of a gather
        # from so small a table would add the tokens up one by one.
        kinds = tf.one_hot(
            tf.reshape(segment_ids, [-1]), config.type_vocab_size, dtype=words.dtype
        )  # [B * S, types]
        segments = tf.matmul(kinds, tf.convert_to_tensor(self.token_type_embeddings))
        if position_ids is None:
            positions = tf.convert_to_tensor(self.position_embeddings)[:length]
        else:
            positions = tf.gather(
                tf.convert_to_tensor(self.position_embeddings), position_ids
            )  # [B, S, H]
        x = tf.reshape(words + positions, [-1, width]) + segments  # [B * S, H]
        if packing:
            x = packing.pack(x)  # [T, H]
        x = self.layer_norm(x, layer_norm=kernels.layer_norm)
        x = kernels.dropout(x, config.hidden_dropout_prob, dropout_seed, 0)
        return x, table
