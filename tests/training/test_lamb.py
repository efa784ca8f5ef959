"""`BertLamb` compared with LAMB in numpy."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import updates

from official_bert.training.optimizer import BertLamb, decays

RATE, DECAY = 0.01, 0.01


def numpy_lamb(weights, gradients, decay, adapted=True):
    """Return the weights and both moments after one training step per gradient.

    Follows Algorithm 2 of You et al. (2020): moments with bias correction, ε outside
    the corrected root, decay inside the trust ratio. Variables that are not adapted
    have neither decay nor trust ratio.
    """
    m, v = np.zeros_like(weights), np.zeros_like(weights)
    for t, gradient in enumerate(gradients, start=1):
        m = 0.9 * m + 0.1 * gradient
        v = 0.999 * v + 0.001 * gradient**2
        update = (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-6)
        ratio = 1.0
        if adapted:
            update = update + decay * weights
            norms = np.linalg.norm(weights), np.linalg.norm(update)
            ratio = norms[0] / norms[1] if all(norms) else 1.0
        weights = weights - RATE * ratio * update
    return weights, m, v


def is_excluded(variable):
    return any(word in variable.path for word in ("LayerNorm", "bias"))


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
        gradients = [step[i] for step in steps]
        expected = numpy_lamb(before[i], gradients, DECAY, not is_excluded(variable))
        np.testing.assert_allclose(variable, expected[0], rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(found[0], expected[1], rtol=1e-4, atol=1e-7)
        np.testing.assert_allclose(found[1], expected[2], rtol=1e-4, atol=1e-9)


def test_the_real_variables_have_every_case():
    """Otherwise the comparison above would not test every case."""
    variables, _ = start()
    kinds = {(decays(v), bool(v.numpy().any())) for v in variables}
    # Adapted; excluded and not 0; excluded and 0.
    assert kinds == {(True, True), (False, True), (False, False)}


@pytest.mark.parametrize("gradient", [0.0, 5.0])
def test_decay_is_inside_the_trust_ratio(gradient):
    """A weight of 2 at rate 0.1 and decay 0.01 becomes 1.8; Keras' LAMB: 1.7982."""
    kernel = keras.Variable([[2.0]], name="kernel")
    optimizer = BertLamb(0.1, weight_decay_rate=0.01)
    optimizer.build([kernel])
    optimizer.apply([tf.constant([[gradient]])], [kernel])
    assert float(kernel[0, 0]) == pytest.approx(1.8, rel=1e-6)


def test_decay_alone_shrinks_only_what_is_adapted():
    variables, steps = start()
    before = [variable.numpy() for variable in variables]
    still = [[np.zeros_like(gradient) for gradient in steps[0]]]
    train(variables, still, weight_decay_rate=0.5)
    for old, variable in zip(before, variables, strict=True):
        # The trust ratio cancels the size of the decay.
        kept = 1.0 if is_excluded(variable) else 1.0 - RATE
        np.testing.assert_allclose(variable, kept * old, rtol=1e-5)


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
        if is_excluded(variable):
            # Each number moves by the rate, like Adam's first step.
            assert moved == pytest.approx(RATE * np.sqrt(old.size), rel=1e-2)
        else:
            assert moved == pytest.approx(RATE * np.linalg.norm(old), rel=1e-3)


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
