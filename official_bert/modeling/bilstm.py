"""A BiLSTM over the tokens of a text: above a frozen BERT, or in an ablation."""

import keras
import tensorflow as tf

from official_bert.config import BertConfig


def make_bilstm(
    width: int, units: int, return_sequences: bool = True, name: str = "bilstm"
) -> keras.layers.Bidirectional:
    """Return a built layer that reads texts in both directions.

    Args:
      width: of its inputs, float [B, S, width].
      units: of each direction.
      return_sequences: whether it has an output [B, S, 2 units] for each token; if
        not, one for each text, [B, 2 units]: what the forward direction knows at the
        last token, and the backward one at the first.
      name: of the layer.
    """
    lstm = keras.layers.LSTM(
        units,
        return_sequences=return_sequences,
        # NVIDIA's kernel is none for XLA, nor for the CPU that serves an export.
        use_cudnn=False,
        # Without one of its own, Keras numbers it by what was made before.
        name="lstm",
    )
    layer = keras.layers.Bidirectional(lstm, name=name)
    layer.build((None, None, width))
    return layer


def make_top(
    config: BertConfig, return_sequences: bool
) -> tuple[keras.layers.Bidirectional, int]:
    """Return the BiLSTM of Table 5, which is put on a BERT that is fine-tuned.

    The paper states no size. This is one layer whose output is as wide as the
    encoder's, as the "768-dimensional" one of Sec. 5.3.

    Args:
      config: `BertConfig`.
      return_sequences: see `make_bilstm`.

    Returns:
      (the layer, width of its outputs).
    """
    units = max(1, config.hidden_size // 2)
    return make_bilstm(config.hidden_size, units, return_sequences), 2 * units


def read(layer: keras.layers.Layer, x: tf.Tensor, input_mask: tf.Tensor) -> tf.Tensor:
    """Return a BiLSTM's outputs; padding is passed over.

    Args:
      layer: as of `make_bilstm`.
      x: float [B, S, width].
      input_mask: int [B, S].
    """
    return layer(x, mask=tf.cast(input_mask, tf.bool))
