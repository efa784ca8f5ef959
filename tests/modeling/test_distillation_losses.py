"""The losses of distillation compared with numpy."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from record_files import MINI_CONFIG

from official_bert.modeling.distillation import (
    DistillationModel,
    hidden_losses,
    logit_losses,
)


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("temperature", [1.0, 4.0])
def test_the_loss_on_logits_is_a_scaled_divergence(temperature):
    rng = np.random.default_rng(0)
    ours, theirs = 3 * rng.normal(size=(2, 5, 3)).astype(np.float32)
    p, q = softmax(theirs / temperature), softmax(ours / temperature)
    expected = temperature**2 * (p * np.log(p / q)).sum(axis=-1)
    found = logit_losses(tf.constant(ours), tf.constant(theirs), temperature)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    same = logit_losses(tf.constant(theirs), tf.constant(theirs), temperature)
    np.testing.assert_allclose(same, 0, atol=1e-6)


def test_one_output_is_a_squared_difference():
    found = logit_losses(tf.constant([[1.0], [2.0]]), tf.constant([[1.5], [0.0]]), 3.0)
    np.testing.assert_allclose(found, [0.25, 4.0])


def test_the_loss_on_hidden_states_compares_directions():
    ours = tf.constant([[[2.0, 0.0], [0.0, 1.0]]])
    theirs = tf.constant([[[5.0, 0.0], [0.0, -3.0]]])
    # Equal directions give 0, opposite ones 4; the mean is over the layers.
    np.testing.assert_allclose(hidden_losses(ours, theirs), [2.0], rtol=1e-6)


def test_the_maps_are_not_part_of_the_student():
    keras.utils.set_random_seed(0)
    model = DistillationModel(MINI_CONFIG, 3, teacher_width=40)
    student = model.student()
    names = {variable.path for variable in student.weights}
    own = {variable.path for variable in model.weights} - names
    assert own == {"distillation_map_0/kernel"}
    ids = {"input_ids": tf.constant([[2, 8, 9, 3]])}
    ours, theirs = model(ids)["logits"], student(ids)["logits"]
    np.testing.assert_array_equal(ours, theirs)
    assert model(ids, training=True)["vectors"].shape == (1, 1, 40)
