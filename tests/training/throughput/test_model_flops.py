"""Model FLOPs: compared with the compiler's counts, and for each model."""

import math
import re

import numpy as np
import pytest
import tensorflow as tf
from run_settings import FINE_TUNING, make

from official_bert import parameter_count
from official_bert.config import BertConfig
from official_bert.fine_tuning.job import FineTuningSettings
from official_bert.modeling.classification import ClassificationModel
from official_bert.modeling.feature_based import FeatureBasedModel
from official_bert.modeling.multiple_choice import MultipleChoiceModel
from official_bert.modeling.pretraining import PretrainingModel
from official_bert.modeling.span_prediction import SpanModel
from official_bert.modeling.token_classification import TokenClassificationModel
from official_bert.training import pretraining, runs
from official_bert.training.plans import program
from official_bert.training.step import make_train_step
from official_bert.training.throughput.model_flops import (
    Heads,
    heads_of,
    size_of,
    static_size,
    step_flops,
)

CONFIG = BertConfig(
    vocab_size=512,
    hidden_size=64,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=128,
    max_position_embeddings=32,
)


def pretraining_heads(config):
    """Return the pooler and the next-sentence scores, transform and vocabulary."""
    hidden = config.hidden_size
    return Heads(hidden * (hidden + 2), 0, hidden * (hidden + config.vocab_size))


@pytest.mark.parametrize(
    ("layers", "expected"),
    # The TPU compiler's counts for base, 32 x 128, 20 predictions.
    [(12, 2.27e12), (2, 0.457e12)],
)
def test_base_on_a_tpu(layers, expected):
    values = BertConfig.named("base").to_dict() | {"num_hidden_layers": layers}
    config = BertConfig.from_dict(values)
    counted = step_flops(config, static_size(32, 128, 20), pretraining_heads(config))
    assert counted == pytest.approx(expected, rel=0.02)
    # `describe_model.py` omits the next-sentence scores, 2 H weights.
    described = 32 * parameter_count.training_flops(config, 128, 20)
    assert counted - described == 32 * 6 * 2 * 768


def products_in(hlo):
    """Return the operations of all matrix products in the text of an HLO module."""
    shapes = {
        name: [int(size) for size in shape.split(",") if size]
        for name, shape in re.findall(r"%?([\w.-]+) = \w+\[([\d,]*)\]", hlo)
    }
    total = 0
    for result, left, axes in re.findall(
        r"= \w+\[([\d,]*)\]\S* dot\((?:\w+\[[\d,]*\]\S* )?%?([\w.-]+), .*?"
        r"lhs_contracting_dims=\{([\d,]*)\}",
        hlo,
    ):
        sizes = [int(size) for size in result.split(",") if size]
        summed = [shapes[left][int(axis)] for axis in axes.split(",")]
        total += 2 * math.prod(sizes) * math.prod(summed)
    return total


@pytest.mark.parametrize("recompute", [False, True])
def test_xla_makes_these_products(recompute):
    values = FINE_TUNING | {"train_batch_size": 4, "num_train_steps": 9}
    settings = make(FineTuningSettings, **values)
    strategy = tf.distribute.get_strategy()
    state = runs.make_state(
        strategy, lambda: PretrainingModel(CONFIG, recompute), settings
    )
    step = make_train_step(
        strategy,
        state.model,
        state.optimizer,
        state.guard,
        pretraining.make_objective(),
        settings.step,
    )
    features = program.pretraining_features(4, 32, 5)
    compiled = tf.function(step.python_function, jit_compile=True, autograph=False)
    hlo = compiled.experimental_get_compiler_ir(features)(stage="hlo")
    counted = step_flops(CONFIG, size_of(features), heads_of(state.model))
    # A second forward pass of the layers does not count as model FLOPs.
    expected = counted * (4 / 3 if recompute else 1)
    assert products_in(hlo) == pytest.approx(expected, rel=0.03 if recompute else 0.01)


def test_a_batch_with_padding():
    mask = np.array([[1, 1, 1, 0], [1, 0, 0, 0]])
    features = {"input_ids": np.zeros([2, 4], np.int32), "input_mask": mask}
    features["masked_lm_positions"] = np.zeros([2, 3], np.int32)
    assert size_of(features) == static_size(2, 4, 3)
    skipped = size_of(features, skips_padding=True)
    assert (skipped.rows, skipped.tokens, skipped.pairs) == (2, 4, 9 + 1)
    assert skipped.predictions == 6
    # Heads that score each token also compute padding.
    assert skipped.positions == 8
    scores = step_flops(CONFIG, skipped, Heads(per_token=5))
    assert scores - step_flops(CONFIG, skipped, Heads()) == 6 * 5 * 8


def test_several_choices_are_several_rows():
    features = {"input_ids": tf.zeros([2, 3, 8]), "input_mask": tf.ones([2, 3, 8])}
    assert size_of(features) == static_size(6, 8) == size_of(features, True)


def test_heads_of_models():
    assert heads_of(PretrainingModel(CONFIG)) == pretraining_heads(CONFIG)
    without = heads_of(PretrainingModel(CONFIG, next_sentence_prediction=False))
    assert without == Heads(per_prediction=64 * (64 + 512))
    assert heads_of(ClassificationModel(CONFIG, 3)) == Heads(per_row=64 * (64 + 3))
    assert heads_of(MultipleChoiceModel(CONFIG)) == Heads(per_row=64 * (64 + 1))
    tagged = heads_of(TokenClassificationModel(CONFIG, 5))
    assert tagged == Heads(per_token=64 * 5)
    assert heads_of(SpanModel(CONFIG)) == Heads(per_token=64 * 2)
    with_bilstm = heads_of(ClassificationModel(CONFIG, 3, bilstm=True))
    # Two directions with four gates of 32 units. They read 64 inputs and 32 outputs.
    assert with_bilstm == Heads(per_token=2 * 4 * 32 * (64 + 32) + 3 * 64)


def test_a_frozen_encoder_has_no_backward_pass():
    heads = heads_of(FeatureBasedModel(CONFIG, 5, "last"))
    assert not heads.trains_encoder and heads.per_row == 0
    encoder = step_flops(CONFIG, static_size(2, 8), Heads())
    frozen = step_flops(CONFIG, static_size(2, 8), Heads(trains_encoder=False))
    assert 3 * frozen == encoder
