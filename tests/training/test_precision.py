"""Half precision for speed, float32 for precision."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
import updates
from marks import slow

from official_bert.constants import PRECISIONS
from official_bert.training.precision import computing_in
from official_bert.training.pretraining import PRETRAINING

HALVES = ("bfloat16", "float16")
STEPS = 30

# Operations that must be in float32: softmax, the means and the root of LayerNorm's
# variance, and both losses.
IN_FLOAT32 = {"Softmax", "Rsqrt", "Mean", "Exp", "Log"}
IN_FLOAT32 |= {"SparseSoftmaxCrossEntropyWithLogits"}
IN_HALF = {"MatMul", "BatchMatMulV2"}


def policy():
    return keras.config.dtype_policy().name


@pytest.fixture
def mixed_before():
    """Let the program have a dtype policy of its own."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    yield
    keras.config.set_dtype_policy(before)


def test_the_policy_of_keras_is_put_back():
    before = keras.config.dtype_policy()
    found = {}
    for precision in PRECISIONS:
        with computing_in(precision):
            found[precision] = policy()
        assert keras.config.dtype_policy() == before
    mixed = {half: f"mixed_{half}" for half in HALVES}
    assert found == {"float32": "float32", **mixed}


def test_the_policy_is_put_back_after_an_error():
    before = keras.config.dtype_policy()
    with pytest.raises(RuntimeError, match="in the block"), computing_in("float16"):
        raise RuntimeError("in the block")
    assert keras.config.dtype_policy() == before


def test_a_policy_of_the_callers_own_is_put_back(mixed_before):
    with computing_in("float32"):
        assert policy() == "float32"
    assert policy() == "mixed_bfloat16"


@functools.cache
def trained(precision):
    """Return (state, each step's report) of a short training on one batch."""
    state = updates.make_state(precision=precision)
    step, features = updates.make_step(state), updates.batch()
    reports = [step(features) for _ in range(STEPS)]
    return state, [{k: float(v) for k, v in report.items()} for report in reports]


def losses(precision):
    reports = trained(precision)[1]
    return [
        report["masked_lm_loss"] / report["masked_lm_loss/weight"]
        + report["next_sentence_loss"] / report["next_sentence_loss/weight"]
        for report in reports
        if not report["skipped_in_row"]
    ]


@pytest.mark.parametrize("precision", ["bfloat16", slow("float16")])
def test_a_short_training_lowers_the_loss_as_in_float32(precision):
    plain, half = losses("float32"), losses(precision)
    assert len(half) == STEPS
    assert plain[-1] < 0.5 * plain[0]
    print(f"{precision}: {np.max(np.abs(np.divide(half, plain) - 1)):.1e}")
    np.testing.assert_allclose(half, plain, rtol=0.02)
    # They would be equal if the precision had no effect.
    assert half != plain


@pytest.mark.parametrize("precision", PRECISIONS)
def test_weights_and_moments_are_float32(precision):
    state, _ = trained(precision)
    variables = state.weights_and_slots().values()
    assert len(variables) == 3 * len(state.model.trainable_variables)
    assert {variable.dtype for variable in variables} == {"float32"}
    layers = state.model._flatten_layers(include_self=False)
    assert {layer.compute_dtype for layer in layers} == {precision}


@pytest.mark.parametrize("precision", PRECISIONS)
def test_only_float16_scales_the_loss(precision):
    state, reports = trained(precision)
    if precision == "float16":
        assert {report["loss_scale"] for report in reports} == {2.0**15}
        assert int(state.guard.good_updates) == STEPS
    else:
        assert not any("loss_scale" in report for report in reports)
        assert float(state.guard.loss_scale) == 1.0


@functools.cache
def first_gradient(precision):
    """Return the clipped gradient of the first step as one vector."""
    state = updates.make_state(updates.WITHOUT_DROPOUT, precision)
    report = updates.make_step(state)(updates.batch())
    assert float(report["gradient_norm"]) > 1
    return 10 * np.concatenate([m.numpy().ravel() for m in state.optimizer.adam_m])


@pytest.mark.parametrize(
    ("precision", "bound"), [("bfloat16", 0.02), slow("float16", 2e-3)]
)
def test_gradients_are_close_to_those_of_float32(precision, bound):
    plain, half = first_gradient("float32"), first_gradient(precision)
    assert np.linalg.norm(plain) == pytest.approx(1.0, rel=1e-4)
    difference = np.linalg.norm(half - plain)
    print(f"{precision}: {difference:.1e}")
    assert 0 < difference < bound


def operations(precision):
    """Return the operations of a forward and backward pass."""
    model = updates.make_state(precision=precision).model
    seed = tf.constant([1, 0], tf.int64)

    @tf.function(autograph=False)
    def gradients(features):
        return updates.loss_and_gradients(
            model, features, training=True, dropout_seed=seed
        )

    return gradients.get_concrete_function(updates.batch()).graph.get_operations()


def dtypes_of(found, kinds):
    """Return kind -> the float dtypes of inputs and outputs of such operations."""
    dtypes = {}
    for operation in found:
        if operation.type in kinds:
            tensors = [*operation.inputs, *operation.outputs]
            names = {t.dtype.name for t in tensors if t.dtype.is_floating}
            dtypes.setdefault(operation.type, set()).update(names)
    return dtypes


@pytest.mark.parametrize("precision", HALVES)
def test_products_are_in_half_precision_and_what_needs_it_in_float32(precision):
    found = operations(precision)
    plain = dtypes_of(found, IN_FLOAT32)
    assert plain == {kind: {"float32"} for kind in IN_FLOAT32}
    assert dtypes_of(found, IN_HALF) == {kind: {precision} for kind in IN_HALF}


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_row_that_is_all_padding_is_finite(precision):
    model = updates.make_state(updates.WITHOUT_DROPOUT, precision).model
    features = updates.batch(rows=2)
    mask = tf.stack([features["input_mask"][0], tf.zeros(32, tf.int32)])
    features |= {"input_mask": mask}
    loss, gradients = updates.loss_and_gradients(model, features, training=True)
    for value in (loss, *gradients):
        assert np.isfinite(value).all()
    outputs = model(features)
    encoded = model.bert(features, output_attention_probs=True)
    for value in tf.nest.flatten([outputs, encoded]):
        assert np.isfinite(tf.cast(value, tf.float32)).all()
    # The row has no tokens to attend to. Its attention is arbitrary, but not NaN.
    totals = tf.reduce_sum(tf.cast(encoded["attention_probs"][0][1], tf.float32), -1)
    np.testing.assert_allclose(totals, 1, atol=0.01)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_logits_are_float32(precision):
    model = updates.make_state(precision=precision).model
    outputs = model(updates.batch(rows=2))
    assert {value.dtype for value in outputs.values()} == {tf.float32}
    terms = PRETRAINING.terms(outputs, updates.batch(rows=2))
    assert {value.dtype for value in tf.nest.flatten(terms)} == {tf.float32}
