"""The task of a left-to-right model (Sec. 5.1): every next token is to be guessed."""

import tensorflow as tf


def predict_next(features: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Make each token the label of the one before it.

    Args:
      features: dict of int32 tensors of unmasked records, `input_ids` and
        `input_mask` [B, S] among them; others but `continues_word` are passed on.

    Returns:
      dict, the features of masked records with P = S - 1: `masked_lm_positions` and
      `masked_lm_ids` int32, `masked_lm_weights` float32, 1.0 where the token to
      guess is none of padding. Position i has the label of token i + 1, so `[SEP]`
      is to be guessed too, and nothing is changed in `input_ids`.
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
