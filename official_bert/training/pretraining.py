"""What pre-training minimises, and how it is evaluated (Sec. 3.1, App. A.2)."""

import tensorflow as tf

from official_bert.modeling.pretraining import pretraining_terms
from official_bert.training.step import Objective


def _weights(features):
    rows = tf.shape(features["next_sentence_labels"])[0]
    return {
        "masked_lm_loss": tf.reduce_sum(features["masked_lm_weights"]),
        "next_sentence_loss": tf.cast(rows, tf.float32),
    }


# The sum of both mean losses, without a weight between them. The original
# adds 1e-5 to the number of masked words, so that a batch without any is 0.
PRETRAINING = Objective(
    losses={"masked_lm_loss": 1e-5, "next_sentence_loss": 0.0},
    weights=_weights,
    terms=pretraining_terms,
)
