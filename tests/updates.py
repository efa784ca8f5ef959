"""A small model in training, for tests of single training steps."""

import dataclasses

import keras
import numpy as np
import tensorflow as tf
from record_files import MINI_CONFIG, mini_records, stacked

from official_bert.modeling.pretraining import PretrainingModel
from official_bert.training.guard import Guard
from official_bert.training.optimizer import BertAdam
from official_bert.training.precision import computing_in
from official_bert.training.pretraining import PRETRAINING
from official_bert.training.saving import State
from official_bert.training.step import StepSettings, make_train_step

# Weights are spread enough for every gradient to matter.
CONFIG = dataclasses.replace(MINI_CONFIG, initializer_range=0.1)
WITHOUT_DROPOUT = dataclasses.replace(
    CONFIG, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
)


def batch(rows=8, first=0):
    """Return records of `fixtures/mini` as the features of one batch."""
    records = stacked(mini_records()[first : first + rows])
    return {name: tf.constant(value) for name, value in records.items()}


def poisoned(features):
    """Return features whose loss is not a number."""
    weights = tf.fill(features["masked_lm_weights"].shape, np.nan)
    return {**features, "masked_lm_weights": weights}


def make_state(config=CONFIG, precision="float32", optimizer=None):
    """Return a `State` whose weights are the same at each call."""
    keras.utils.set_random_seed(0)
    with computing_in(precision):
        model = PretrainingModel(config)
        optimizer = optimizer or BertAdam(1e-3)
        optimizer.build(model.trainable_variables)
        guard = Guard(scaled=precision == "float16")
    return State(model, optimizer, guard)


def make_step(state, strategy=None, **options):
    """Return the compiled training step, with its `StepSettings` from `options`."""
    return make_train_step(
        strategy or tf.distribute.get_strategy(),
        state.model,
        state.optimizer,
        state.guard,
        PRETRAINING,
        StepSettings(**{"seed": 1, **options}),
    )


def numbers(state):
    """Return name -> array: the weights and both moments of each."""
    return {name: v.numpy() for name, v in state.weights_and_slots().items()}


def loss_and_gradients(model, features, denominators=None, **arguments):
    """Return the loss and its dense gradients, computed with a plain tape.

    Args:
      model: `PretrainingModel`.
      features: features of the rows.
      denominators: name -> number that divides each loss's sum; by default that of
        these rows.
      **arguments: arguments of the model's call.
    """
    if denominators is None:
        denominators = own_denominators(features)
    with tf.GradientTape() as tape:
        terms = PRETRAINING.terms(model(features, **arguments), features)
        loss = sum(terms[name][0] / denominators[name] for name in denominators)
    found = tape.gradient(loss, [v.value for v in model.trainable_variables])
    return loss, [tf.convert_to_tensor(gradient) for gradient in found]


def own_denominators(features):
    """Return the denominator of each loss for these rows alone."""
    weights = PRETRAINING.weights(features)
    return {name: weights[name] + PRETRAINING.losses[name] for name in weights}


def largest_difference(ones, others):
    """Return max|a - b| over two lists of arrays."""
    pairs = zip(ones, others, strict=True)
    return max(float(np.abs(np.subtract(a, b)).max()) for a, b in pairs)
