"""Hand-written gradients compared with TensorFlow's own."""

import functools

import pytest
import tensorflow as tf
from kernel_checks import check_same, normal, outputs_and_gradients

from official_bert.modeling import layers, losses
from official_bert.modeling.kernels import gradients

CASES = {
    "gelu": [normal(50, 8) * 3],
    "gelu_erf": [normal(50, 8) * 3],
    "layer_norm": [normal(50, 8), normal(8, seed=2), normal(8, seed=3)],
    "cross_entropy": [normal(20, 30) * 4, tf.range(20, dtype=tf.int32) % 7],
}


def both(name):
    plain = getattr(losses if name == "cross_entropy" else layers, name)
    written = getattr(gradients, name)
    if name == "layer_norm":
        return [functools.partial(one, epsilon=1e-3) for one in (plain, written)]
    return plain, written


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_the_plain_form(name):
    check_same(*(outputs_and_gradients(one, *CASES[name]) for one in both(name)))


@pytest.mark.parametrize("name", CASES)
def test_values_are_the_same_bits(name):
    """An evaluation during training therefore equals one of the saved model."""
    plain, written = (tf.nest.flatten(one(*CASES[name])) for one in both(name))
    for wanted, one in zip(plain, written, strict=True):
        assert bool(tf.reduce_all(wanted == one))


@pytest.mark.parametrize("precision", [tf.bfloat16, tf.float16])
def test_layer_norm_of_half_precision(precision):
    x, gamma, beta = CASES["layer_norm"]
    for one in both("layer_norm"):
        assert one(tf.cast(x, precision), gamma, beta).dtype == precision


def test_plain_cross_entropy_is_tensorflow_s():
    logits, labels = CASES["cross_entropy"]

    def theirs(logits, labels):
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)

    def ours(logits, labels):
        return losses.cross_entropy(logits, labels)[0]

    check_same(*(outputs_and_gradients(f, logits, labels) for f in (theirs, ours)))
