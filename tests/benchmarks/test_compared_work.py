"""The measured work of this project: each part once, and its operations."""

import math

import numpy as np
import pytest
import tensorflow as tf
import tiny_model
from places import MINI

from benchmarks import ours, workload
from benchmarks.yardstick import comparisons
from official_bert.config import BertConfig
from official_bert.modeling.pretraining import PretrainingModel
from official_bert.parameter_count import training_flops
from official_bert.training.pretraining import PRETRAINING

pytestmark = pytest.mark.slow

CONFIG = tiny_model.MINI_CONFIG.to_dict() | {"max_position_embeddings": 128}


@pytest.fixture
def texts(tmp_path):
    path = str(tmp_path / "texts.npz")
    rng = np.random.default_rng(1)
    lengths = [5, 9, 17, 12, 30, 7, 8, 21]
    ids = [rng.integers(0, CONFIG["vocab_size"], length) for length in lengths]
    workload.write_texts(path, [(one, np.zeros_like(one), len(one) % 2) for one in ids])
    return path


@pytest.mark.parametrize("skip_padding", [False, True])
def test_training(skip_padding):
    update = ours.training("tiny", 2, skip_padding=skip_padding)
    # Random weights make all words equally likely: a sum over the masked words
    # of 2 records.
    words = 2 * workload.PREDICTIONS
    assert update() == pytest.approx(words * math.log(30522), rel=0.05)


def test_products():
    assert math.isfinite(ours.products("tiny", 2)())
    config = BertConfig.named("tiny")
    shapes = ours.product_shapes(config, 2)
    counted = sum(2 * math.prod(left) * right[-1] for left, right in shapes)
    # Each product has two more for its gradients, with twice the operations.
    # The formula also includes the pooler.
    assert 3 * counted / 2 == pytest.approx(training_flops(config, 128, 20), rel=2e-4)


def test_operations_leave_padding_out():
    config = BertConfig.named("tiny")
    mixed, full = comparisons.training("tiny"), comparisons.full_sequences("tiny")
    assert full.flops == 32 * training_flops(config, 128, 20)
    assert 32 * training_flops(config, 64, 20) < mixed.flops < full.flops
    [with_padding] = [
        one for one in mixed.variants if one.name == comparisons.WITH_PADDING
    ]
    assert with_padding.flops == full.flops


@pytest.mark.parametrize("padded", [False, True])
def test_fine_tuning(texts, padded):
    ours.fine_tuning(CONFIG, texts, 4, 2, padded)()


def test_encoding():
    outputs = ours.encoding("tiny", 2)()
    assert outputs["sequence_output"].shape == (2, workload.LENGTH, 128)


def test_windows(texts):
    plain = ours.windows(CONFIG, texts, 4)()
    padded = ours.windows(CONFIG, texts, 4, padded_to=32)()
    assert len(plain) == len(padded) == 8


def test_text():
    lines, vocab = str(MINI / "text.txt"), str(MINI / "vocab.txt")
    for seen in (False, True):
        ours.tokenization(lines, vocab, seen)()
    ours.instances(lines, vocab, 1)()


@pytest.mark.parametrize("size", ["tiny", "mini"])
def test_operations_are_those_of_the_graph(size):
    """The operations equal those of the products in TensorFlow's graph."""
    config = BertConfig.named(size)
    model = PretrainingModel(config)
    features = workload.pretraining_batch(config.vocab_size, 2)

    @tf.function(autograph=False)
    def gradients(features):
        with tf.GradientTape() as tape:
            outputs = model(features, training=True, dropout_seed=tf.zeros(2, tf.int64))
            terms = PRETRAINING.terms(outputs, features)
            loss = sum(terms[name][0] for name in PRETRAINING.losses)
        return tape.gradient(loss, [one.value for one in model.trainable_variables])

    graph = gradients.get_concrete_function(features).graph
    products = [one for one in graph.get_operations() if "MatMul" in one.type]
    assert {one.type for one in products} == {"MatMul", "BatchMatMulV2"}
    counted = 0
    for one in products:
        flag = "transpose_a" if one.type == "MatMul" else "adj_x"
        inner = one.inputs[0].shape[-2 if one.get_attr(flag) else -1]
        counted += 2 * math.prod(one.outputs[0].shape) * inner
    # A 6000th more: the next-sentence head, which the formula omits.
    assert counted / 2 == pytest.approx(training_flops(config, 128, 20), rel=2e-4)
