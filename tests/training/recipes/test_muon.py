"""`BertMuon` compared with Muon in numpy, and with `BertAdam`."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import updates

from official_bert.training.optimizer import BertAdam
from official_bert.training.recipes.muon import BertMuon, is_matrix

RATE, DECAY = 0.01, 0.01


def numpy_muon(weights, gradients):
    """Return the weights and the momentum after one training step per gradient."""
    momentum = np.zeros_like(weights)
    for gradient in gradients:
        momentum = 0.95 * momentum + gradient
        x = gradient + 0.95 * momentum  # Nesterov
        x = x / np.linalg.norm(x)
        tall = x.shape[0] > x.shape[1]
        x = x.T if tall else x
        for _ in range(5):
            a = x @ x.T
            x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
        x = x.T if tall else x
        weights = weights * (1 - RATE * DECAY)
        weights = weights - RATE * 0.2 * max(x.shape) ** 0.5 * x
    return weights, momentum


def train(kind, steps=3):
    """Return variables before and after training, the gradients and the optimizer."""
    rng = np.random.default_rng(0)
    keras.utils.set_random_seed(0)
    variables = updates.make_state().model.trainable_variables
    before = [variable.numpy().astype(np.float64) for variable in variables]
    gradients = [[rng.normal(size=v.shape) for v in variables] for _ in range(steps)]
    optimizer = kind(RATE, weight_decay_rate=DECAY)
    optimizer.build(variables)
    update = tf.function(lambda each: optimizer.apply(each, variables))
    for each in gradients:
        update([tf.constant(gradient, tf.float32) for gradient in each])
    return variables, before, gradients, optimizer


def test_matrices_of_the_encoder_are_trained_with_muon():
    variables, before, gradients, optimizer = train(BertMuon)
    matrices = [i for i, variable in enumerate(variables) if is_matrix(variable)]
    # Query, key, value, output, and two feed-forward kernels.
    assert len(matrices) == 6 * updates.CONFIG.num_hidden_layers
    for i in matrices:
        weights, momentum = numpy_muon(before[i], [step[i] for step in gradients])
        np.testing.assert_allclose(variables[i], weights, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(optimizer.momenta[i], momentum, rtol=1e-4, atol=1e-5)


def test_all_others_are_trained_with_berts_adam():
    muon, adam = train(BertMuon)[0], train(BertAdam)[0]
    for one, other in zip(muon, adam, strict=True):
        same = np.array_equal(one.numpy(), other.numpy())
        assert same != is_matrix(one), one.path


def test_the_step_of_a_matrix_is_almost_orthogonal():
    variables, before, _, _ = train(
        lambda *_, **__: BertMuon(RATE, weight_decay_rate=0), 1
    )
    for variable, old in zip(variables, before, strict=True):
        if is_matrix(variable):
            step = (variable.numpy() - old) / (RATE * 0.2 * max(old.shape) ** 0.5)
            values = np.linalg.svd(step, compute_uv=False)
            assert values.min() > 0.3 and values.max() < 1.3, variable.path


def test_checkpoints_hold_one_moment_of_a_matrix():
    state = updates.make_state(optimizer=BertMuon(RATE))
    slots = {name.rpartition("/")[::2] for name in state.slots()}
    kinds = {}
    for name, slot in slots:
        kinds.setdefault(name, set()).add(slot)
    for variable in state.model.trainable_variables:
        expected = {"muon_m"} if is_matrix(variable) else {"adam_m", "adam_v"}
        assert kinds[variable.path] == expected


def test_the_training_step_takes_it():
    state = updates.make_state(optimizer=BertMuon(RATE))
    step, features = updates.make_step(state), updates.batch()
    losses = [float(step(features)["masked_lm_loss"]) for _ in range(30)]
    assert losses[-1] < 0.8 * losses[0]


def test_serializable():
    optimizer = BertMuon(3e-4, weight_decay_rate=0.02, momentum=0.9)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert isinstance(again, BertMuon)
    assert again.get_config() == optimizer.get_config()
    assert again.momentum == pytest.approx(0.9)
