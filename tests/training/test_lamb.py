"""`BertLamb` compared with LAMB in numpy."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import updates

from official_bert.training.optimizer import BertLamb, decays

RATE, DECAY = 0.01, 0.01


def numpy_lamb(weights, gradients, decay):
    """Return the weights and both moments after one training step per gradient.

    Follows Keras: moments with bias correction, ε outside the corrected root, and one
    trust ratio |θ| / |update| per variable, computed from the weights after decay.
    """
    m, v = np.zeros_like(weights), np.zeros_like(weights)
    for t, gradient in enumerate(gradients, start=1):
        weights = weights * (1.0 - RATE * decay)
        m = 0.9 * m + 0.1 * gradient
        v = 0.999 * v + 0.001 * gradient**2
        update = (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-6)
        norms = np.linalg.norm(weights), np.linalg.norm(update)
        ratio = norms[0] / norms[1] if all(norms) else 1.0
        weights = weights - RATE * ratio * update
    return weights, m, v


def start(seed=0):
    """Return (the variables of a small model, 3 lists of gradients)."""
    rng = np.random.default_rng(seed)
    keras.utils.set_random_seed(seed)
    variables = updates.make_state().model.trainable_variables
    scales = 10.0 ** rng.uniform(-3, 1, len(variables))
    gradients = [
        [rng.normal(size=v.shape) * s for v, s in zip(variables, scales, strict=True)]
        for _ in range(3)
    ]
    return variables, gradients


def train(variables, gradients, factor=1.0, **arguments):
    """Make one training step per list of gradients; return the optimizer."""
    optimizer = BertLamb(RATE, **arguments)
    optimizer.build(variables)
    update = tf.function(lambda each: optimizer.apply(each, variables))
    for each in gradients:
        update([tf.constant(factor * gradient, tf.float32) for gradient in each])
    return optimizer


def test_three_steps_on_the_real_variables():
    variables, steps = start()
    before = [variable.numpy().astype(np.float64) for variable in variables]
    slots = train(variables, steps, weight_decay_rate=DECAY).slots()
    assert list(slots) == ["lamb_m", "lamb_v"]
    moments = zip(*slots.values(), strict=True)
    for i, (variable, found) in enumerate(zip(variables, moments, strict=True)):
        excluded = any(word in variable.path for word in ("LayerNorm", "bias"))
        gradients = [step[i] for step in steps]
        expected = numpy_lamb(before[i], gradients, 0.0 if excluded else DECAY)
        np.testing.assert_allclose(variable, expected[0], rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(found[0], expected[1], rtol=1e-4, atol=1e-7)
        np.testing.assert_allclose(found[1], expected[2], rtol=1e-4, atol=1e-9)


def test_the_real_variables_have_every_case():
    """Otherwise the comparison above would not test every case."""
    variables, _ = start()
    kinds = {(decays(v), bool(v.numpy().any())) for v in variables}
    # With decay; without decay and ones; without decay and zeros, which have no ratio.
    assert kinds == {(True, True), (False, True), (False, False)}


def test_decay_alone_shrinks_only_what_is_decayed():
    variables, steps = start()
    before = [variable.numpy() for variable in variables]
    still = [[np.zeros_like(gradient) for gradient in steps[0]]]
    train(variables, still, weight_decay_rate=0.5)
    for old, variable in zip(before, variables, strict=True):
        excluded = any(word in variable.path for word in ("LayerNorm", "bias"))
        kept = 1.0 if excluded else 1.0 - RATE * 0.5
        np.testing.assert_allclose(variable, kept * old, rtol=1e-6)


@pytest.mark.slow
def test_the_scale_of_the_gradient_does_not_matter():
    ends = []
    for factor in (1e3, 1e7):
        variables, steps = start()
        # ε has no effect with gradients of this size.
        train(variables, steps, factor)
        ends.append([variable.numpy() for variable in variables])
    assert updates.largest_difference(*ends) < 1e-6
    assert updates.largest_difference(ends[0], [v.numpy() for v in start()[0]]) > 1e-3


def test_a_weight_moves_by_the_rate_times_its_norm():
    variables, steps = start()
    before = [variable.numpy() for variable in variables]
    train(variables, steps[:1], weight_decay_rate=0.0)
    for old, variable in zip(before, variables, strict=True):
        moved = np.linalg.norm(variable.numpy() - old)
        if old.any():
            assert moved == pytest.approx(RATE * np.linalg.norm(old), rel=1e-3)
        else:
            assert moved == pytest.approx(RATE * np.sqrt(old.size), rel=1e-2)


def test_the_training_step_takes_it():
    state = updates.make_state(optimizer=BertLamb(RATE))
    step, features = updates.make_step(state), updates.batch()
    losses = [float(step(features)["masked_lm_loss"]) for _ in range(30)]
    assert losses[-1] < 0.8 * losses[0]
    assert state.step == 30


def test_serialisable():
    optimizer = BertLamb(3e-4, weight_decay_rate=0.02, beta_1=0.8)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert isinstance(again, BertLamb)
    assert again.get_config() == optimizer.get_config()
    assert (again.weight_decay_rate, again.beta_1, again.epsilon) == (0.02, 0.8, 1e-6)
