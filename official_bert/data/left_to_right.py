"""The task of a left-to-right model (Sec. 5.1): predict every next token."""

import tensorflow as tf


def predict_next(features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Make each token the label of the token before it.

    Args:
      features: dict of int32 tensors of unmasked records, including `input_ids`
        and `input_mask` [B, S]. `continues_word` is dropped; other features are
        returned unchanged.

    Returns:
      dict with the features of masked records and P = S - 1:
      `masked_lm_positions`
      and `masked_lm_ids` int32, `masked_lm_weights` float32, 1.0 unless the
      label
      is padding. Position i has the label of token i + 1, so `[SEP]` is also a
      label. `input_ids` are unchanged.
    """
    features = {n: value for n, value in features.items() if n != "continues_word"}
    labels = features["input_ids"][:, 1:]
    places = tf.range(tf.shape(labels)[1])[tf.newaxis, :]
    return {
        **features,
        "masked_lm_positions": tf.zeros_like(labels) + places,
        "masked_lm_ids": labels,
        "masked_lm_weights": tf.cast(features["input_mask"][:, 1:], tf.float32),
    }
