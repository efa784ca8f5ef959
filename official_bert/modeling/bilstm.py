"""A BiLSTM over the tokens of a text, on a frozen BERT or in an ablation."""

import keras
import tensorflow as tf

from official_bert.config import BertConfig


def make_bilstm(
    width: int, units: int, return_sequences: bool = True, name: str = "bilstm"
) -> keras.layers.Bidirectional:
    """Return a built layer that reads texts in both directions.

    Args:
      width: size of the inputs, float [B, S, width].
      units: size of each direction.
      return_sequences: True for one output per token, [B, S, 2 units]. False for one
        per text, [B, 2 units]: the forward output at the last token and the backward
        output at the first.
      name: name of the layer.
    """
    lstm = keras.layers.LSTM(
        units,
        return_sequences=return_sequences,
        # cuDNN's kernel does not work with XLA or on a CPU that serves an export.
        use_cudnn=False,
        # Without a name, Keras would number the layer by the layers made before.
        name="lstm",
    )
    layer = keras.layers.Bidirectional(lstm, name=name)
    layer.build((None, None, width))
    return layer


def make_top(
    config: BertConfig, return_sequences: bool
) -> tuple[keras.layers.Bidirectional, int]:
    """Return the BiLSTM of Table 5, for the top of a fine-tuned BERT.

    The paper states no size. This is one layer with outputs as wide as the encoder's,
    like the "768-dimensional" one of Sec. 5.3.

    Args:
      config: `BertConfig`.
      return_sequences: see `make_bilstm`.

    Returns:
      (the layer, width of its outputs).
    """
    units = max(1, config.hidden_size // 2)
    return make_bilstm(config.hidden_size, units, return_sequences), 2 * units


def read(layer: keras.layers.Layer, x: tf.Tensor, input_mask: tf.Tensor) -> tf.Tensor:
    """Return a BiLSTM's outputs, ignoring padding.

    Args:
      layer: from `make_bilstm`.
      x: float [B, S, width].
      input_mask: int [B, S].
    """
    return layer(x, mask=tf.cast(input_mask, tf.bool))
