"""Losses and accuracies of the two heads, on numbers computed by hand."""

import math

import numpy as np
import pytest
import tensorflow as tf

from official_bert.modeling import pretraining


def mean(term):
    return float(term[0] / term[1])


def test_masked_lm_counts_only_weighted_predictions():
    # Probabilities are 3/4 and 1/4. The third prediction is padding.
    logits = tf.math.log([[[3.0, 1.0], [3.0, 1.0], [1.0, 3.0]]])
    features = {
        "masked_lm_ids": tf.constant([[0, 1, 0]]),
        "masked_lm_weights": tf.constant([[1.0, 1.0, 0.0]]),
    }
    terms = pretraining.masked_lm_terms(logits, features)
    expected = -(math.log(3 / 4) + math.log(1 / 4)) / 2
    assert mean(terms["masked_lm_loss"]) == pytest.approx(expected, rel=1e-6)
    assert mean(terms["masked_lm_accuracy"]) == 0.5
    assert float(terms["masked_lm_loss"][1]) == 2


def test_next_sentence_class_0_is_next():
    logits = tf.math.log([[3.0, 1.0], [3.0, 1.0], [1.0, 3.0]])
    features = {"next_sentence_labels": tf.constant([[0], [1], [1]])}
    terms = pretraining.next_sentence_terms(logits, features)
    expected = -(2 * math.log(3 / 4) + math.log(1 / 4)) / 3
    assert mean(terms["next_sentence_loss"]) == pytest.approx(expected, rel=1e-6)
    assert mean(terms["next_sentence_accuracy"]) == pytest.approx(2 / 3)
    assert float(terms["next_sentence_loss"][1]) == 3


def test_a_batch_without_predictions_has_loss_zero():
    logits = tf.zeros([2, 3, 5])
    features = {
        "masked_lm_ids": np.zeros((2, 3), np.int32),
        "masked_lm_weights": np.zeros((2, 3), np.float32),
    }
    terms = pretraining.masked_lm_terms(logits, features)
    assert float(terms["masked_lm_loss"][0]) == 0
    assert float(terms["masked_lm_loss"][1]) == 0
