"""Kernels of a step that XLA compiles as one program, compared with the plain ones."""

import functools

import keras
import pytest
import tensorflow as tf
from kernel_checks import (
    SEED,
    check_same,
    element_wise_cases,
    normal,
    outputs_and_gradients,
)
from kernel_variants import dropout_by_hash, with_dropout
from marks import slow
from small_encoder import SMALL, make_features

from official_bert.config import BertConfig
from official_bert.modeling import layers
from official_bert.modeling.kernels.whole_program import kernels_for
from official_bert.modeling.pretraining import PretrainingModel, pretraining_terms
from official_bert.training.precision import computing_in

KERNELS = kernels_for(tf.float32)
# The plain forms with the same dropout function.
HASHED = with_dropout(dropout_by_hash)

compiled = functools.partial(tf.function, jit_compile=True, autograph=False)

IDS = tf.constant([[1, 4, 4], [2, 1, 4]])


CASES = element_wise_cases(KERNELS, HASHED) | {
    "dropout": (
        lambda x: HASHED.dropout(x, 0.3, SEED, 5),
        lambda x: KERNELS.dropout(x, 0.3, SEED, 5),
        normal(6, 5, 4),
    ),
    "no dropout": (
        lambda x: HASHED.dropout(x, 0.3, None, 5),
        lambda x: KERNELS.dropout(x, 0.3, None, 5),
        normal(6, 5, 4),
    ),
    "rows of a table": (
        # The product makes the gradient a matrix instead of a list of rows.
        lambda table: layers.lookup(1.0 * table, IDS, tf.float32)[0],
        lambda table: KERNELS.lookup(table, IDS, tf.float32)[0],
        normal(6, 5),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_the_plain_form(name):
    plain, kernel, *inputs = CASES[name]
    found = outputs_and_gradients(compiled(kernel), *inputs)
    check_same(outputs_and_gradients(plain, *inputs), found)


def test_both_gradients_of_the_embedding_table_are_added():
    def loss(lookup, table):
        rows, shared = lookup(table, IDS, tf.float32)
        return tf.reduce_sum(rows**2) + tf.reduce_sum(shared**3)

    table = normal(6, 5)
    plain = functools.partial(loss, layers.lookup)
    kernel = functools.partial(loss, KERNELS.lookup)
    found = outputs_and_gradients(compiled(kernel), table)
    check_same(outputs_and_gradients(plain, table), found)


@pytest.mark.parametrize("rate", [0.0, 0.3])
@pytest.mark.parametrize("queries", [1, 7], ids=["bidirectional", "causal"])
def test_attention_with_the_same_masks(rate, queries):
    """Compare its hand-written gradient with that of the plain formula."""
    bias = tf.where(normal(2, 1, queries, 7, seed=5) > 1, -1e4, 0.0)
    inputs = [normal(2 * 7, 3 * 5, seed=seed) for seed in range(3)]

    def attend(kernels):
        return lambda *inputs: kernels.attention(*inputs, bias, 3, rate, SEED, 4)[0]

    found = outputs_and_gradients(compiled(attend(KERNELS)), *inputs)
    check_same(outputs_and_gradients(attend(HASHED), *inputs), found)


def pretraining_gradients(kernels, precision="float32", recompute=False):
    """Return a small model's loss and the gradients of its weights, by name."""
    keras.utils.set_random_seed(1)
    with computing_in(precision):
        model = PretrainingModel(BertConfig(**SMALL), recompute)
    features = make_features() | {
        "masked_lm_positions": tf.constant([[1, 3, 4]] * 4),
        "masked_lm_ids": tf.constant([[7, 9, 7]] * 4),
        "masked_lm_weights": tf.constant([[1.0, 1.0, 0.0]] * 4),
        "next_sentence_labels": tf.constant([[0], [1], [1], [0]]),
    }

    def run():
        with tf.GradientTape() as tape:
            outputs = model(features, training=True, dropout_seed=SEED, kernels=kernels)
            terms = pretraining_terms(outputs, features, kernels.cross_entropy)
            loss = terms["masked_lm_loss"][0] + terms["next_sentence_loss"][0]
        variables = model.trainable_variables
        gradients = tape.gradient(loss, [variable.value for variable in variables])
        return [loss, *map(tf.convert_to_tensor, gradients)]

    run = tf.function(run) if kernels is HASHED else compiled(run)
    names = ["loss", *(variable.path for variable in model.trainable_variables)]
    return dict(zip(names, run(), strict=True))


@pytest.mark.parametrize("recompute", [slow(False), True])
def test_a_whole_model_with_the_same_masks(recompute):
    expected = pretraining_gradients(HASHED)
    found = pretraining_gradients(KERNELS, recompute=recompute)
    assert expected.keys() == found.keys()
    check_same(expected.values(), found.values(), tolerance=2e-5)


@pytest.mark.slow
def test_in_bfloat16_gradients_point_where_those_of_float32_do():
    kernels = kernels_for(tf.bfloat16)
    expected = pretraining_gradients(HASHED)
    found = pretraining_gradients(kernels, "bfloat16")
    assert float(found["loss"]) == pytest.approx(float(expected["loss"]), rel=2e-2)
    for name, wanted in expected.items():
        # The keys' bias shifts all scores of a row equally, so its gradient is 0.
        if name != "loss" and not name.endswith("key/bias"):
            product = tf.reduce_sum(wanted * found[name])
            cosine = float(product / (tf.norm(wanted) * tf.norm(found[name])))
            assert cosine > 0.95, name


def test_each_step_and_each_dropout_has_masks_of_its_own():
    x = tf.ones([40, 50])
    masks = [
        compiled(KERNELS.dropout)(x, 0.5, seed, index).numpy()
        for seed in (SEED, SEED + [0, 2**32])
        for index in (0, 1)
    ]
    for number, mask in enumerate(masks):
        assert 0.45 < (mask == 0).mean() < 0.55
        for other in masks[:number]:
            assert 0.45 < ((mask == 0) == (other == 0)).mean() < 0.55


def test_masks_are_not_constants_of_the_program():
    """TensorFlow would store values that do not depend on inputs in the program."""
    run = compiled(lambda x, seed: KERNELS.dropout(x, 0.1, seed, 0))
    program = run.experimental_get_compiler_ir(tf.ones([1024, 128]), SEED)
    assert len(program(stage="hlo_serialized")) < 1024 * 128
