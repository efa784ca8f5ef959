"""The computed numbers of parameters equal those of released models and ours."""

import math
import subprocess
import sys

import pytest
from places import ROOT

from official_bert import parameter_count
from official_bert.config import SIZES, BertConfig

# size, vocabulary -> encoder with pooler, the same with both heads.
RELEASED = [
    ("tiny", 30522, 4_385_920, 4_433_468),
    ("mini", 30522, 11_170_560, 11_267_900),
    ("small", 30522, 28_763_648, 29_058_876),
    ("medium", 30522, 41_373_184, 41_668_412),
    ("base", 30522, 109_482_240, 110_106_428),
    ("base", 28996, 108_310_272, 108_932_934),
    ("base", 119547, 177_853_440, 178_566_653),
    ("base", 21128, 102_267_648, 102_882_442),
    ("large", 30522, 335_141_888, 336_226_108),
    ("large", 28996, 333_579_264, 334_661_958),
]


def count_parameters(config, with_heads=False):
    return sum(
        part.exact
        for part in parameter_count.parameter_parts(config)
        if with_heads or part.group == parameter_count.ENCODER
    )


@pytest.mark.comparison
@pytest.mark.parametrize("size, vocab_size, encoder, with_heads", RELEASED)
def test_released_sizes(size, vocab_size, encoder, with_heads):
    config = BertConfig.named(size, vocab_size)
    assert count_parameters(config) == encoder
    assert count_parameters(config, with_heads=True) == with_heads


def test_every_named_size_is_covered():
    assert {row[0] for row in RELEASED} == set(SIZES)


def scope_counts(variables):
    """Return the exact count of each part from real variables."""
    counts = dict.fromkeys(
        [p.name for p in parameter_count.parameter_parts(BertConfig(10))], 0
    )
    scopes = {
        "word_embeddings": "word embeddings",
        "position_embeddings": "position embeddings",
        "token_type_embeddings": "segment embeddings",
        "embeddings/LayerNorm": "their LayerNorm",
        "/attention/": "attention",
        "encoder/layer_": "feed-forward",
        "pooler": "pooler",
        "predictions": "masked LM",
        "seq_relationship": "next sentence",
    }
    for variable in variables:
        part = next(part for key, part in scopes.items() if key in variable.path)
        counts[part] += math.prod(variable.shape)
    return counts


@pytest.mark.parametrize(
    "config",
    [
        BertConfig.named("tiny"),
        BertConfig(50, 24, 3, 2, 40, max_position_embeddings=30),
    ],
)
def test_each_part_is_that_of_the_real_variables(config):
    from official_bert.modeling.pretraining import PretrainingModel

    model = PretrainingModel(config)
    parts = parameter_count.parameter_parts(config)
    real = scope_counts(model.trainable_variables)
    assert {part.name: part.exact for part in parts} == real
    assert count_parameters(config) == model.bert.count_params()


def test_readers_arithmetic():
    """V·H + P·H + T·H + 12·L·H² is within 1 % of the exact count."""
    config = BertConfig.named("base")
    parts = parameter_count.parameter_parts(config)
    blocks = sum(p.rough for p in parts if p.name in ("attention", "feed-forward"))
    assert blocks == 12 * 12 * 768**2
    assert parts[0].rough == 30522 * 768
    rough = sum(p.rough for p in parts)
    exact = count_parameters(config, with_heads=True)
    assert 0.99 < rough / exact < 1


@pytest.mark.parametrize(
    "size, length, predictions, expected",
    [
        ("base", 128, 20, 6.99e10),
        ("base", 512, 80, 3.01e11),
        ("large", 128, 20, 2.41e11),
        ("large", 512, 80, 1.02e12),
    ],
)
def test_training_flops(size, length, predictions, expected):
    config = BertConfig.named(size)
    flops = parameter_count.training_flops(config, length, predictions)
    assert flops == pytest.approx(expected, rel=5e-3)


def test_no_tensorflow_is_needed():
    code = (
        "import sys; from official_bert import parameter_count; "
        "sys.exit('tensorflow' in sys.modules or 'keras' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False)
    assert done.returncode == 0
