"""Every layer's output equals the recorded output of the original code."""

import hashlib

import numpy as np
import original_head
import pytest
import tensorflow as tf

from official_bert.fine_tuning import outputs
from official_bert.modeling import pretraining

TOLERANCE = 1e-5


def worst(ours, recorded):
    """Return the largest difference, after a reshape: some recordings are flat."""
    ours = np.asarray(ours)
    assert ours.size == recorded.size
    return np.abs(ours.reshape(recorded.shape) - recorded).max()


def run(config, arrays):
    """Return (encoder outputs, log-probabilities, losses) of the first batch."""
    model = pretraining.PretrainingModel(config)
    original_head.assign(model, arrays)
    features = original_head.features(arrays)
    encoded = model.bert(features, output_attention_probs=True)
    outputs = model(features)
    terms = pretraining.pretraining_terms(outputs, features)
    mlm, pair = terms["masked_lm_loss"], terms["next_sentence_loss"]
    losses = {"mlm": mlm[0] / (mlm[1] + 1e-5), "nsp": pair[0] / pair[1]}
    log_probs = {
        "mlm": tf.nn.log_softmax(outputs["masked_lm_logits"]),
        "nsp": tf.nn.log_softmax(outputs["next_sentence_logits"]),
    }
    return encoded, log_probs, losses


@pytest.fixture(scope="module")
def last_version():
    arrays = original_head.recording()
    return arrays, *run(original_head.head_config(), arrays)


@pytest.fixture(scope="module")
def first_version():
    arrays = original_head.recording("erf_activations_L2_H4.npz")
    return arrays, *run(original_head.ERF_CONFIG, arrays)


@pytest.mark.comparison
def test_embeddings(last_version):
    arrays, encoded, _, _ = last_version
    assert worst(encoded["embedding_output"], arrays["out_embedding_output"]) < 1e-5


@pytest.mark.comparison
@pytest.mark.parametrize("layer", range(3))
def test_each_layer(last_version, layer):
    arrays, encoded, _, _ = last_version
    ours = encoded["all_encoder_layers"][layer]
    assert worst(ours, arrays[f"out_layer_{layer}"]) < TOLERANCE


@pytest.mark.comparison
def test_sequence_output_is_the_last_layer(last_version):
    arrays, encoded, _, _ = last_version
    assert len(encoded["all_encoder_layers"]) == 3
    assert worst(encoded["sequence_output"], arrays["out_layer_2"]) < TOLERANCE


@pytest.mark.comparison
def test_pooled_output(last_version):
    arrays, encoded, _, _ = last_version
    assert worst(encoded["pooled_output"], arrays["out_pooled_output"]) < TOLERANCE


@pytest.mark.comparison
@pytest.mark.parametrize("head", ["mlm", "nsp"])
def test_log_probabilities_and_loss(last_version, head):
    arrays, _, log_probs, losses = last_version
    assert worst(log_probs[head], arrays[f"out_{head}_log_probs"]) < TOLERANCE
    assert abs(float(losses[head]) - arrays[f"out_{head}_loss"]) < TOLERANCE


@pytest.mark.comparison
def test_total_loss_is_the_plain_sum(last_version):
    arrays, _, _, losses = last_version
    total = float(losses["mlm"] + losses["nsp"])
    assert abs(total - arrays["out_total_loss"]) < TOLERANCE


@pytest.mark.comparison
def test_first_version_embeddings(first_version):
    arrays, encoded, _, _ = first_version
    assert worst(encoded["embedding_output"], arrays["out_embedding_output"]) < 1e-5


@pytest.mark.comparison
@pytest.mark.parametrize("layer", range(2))
def test_first_version_each_layer(first_version, layer):
    arrays, encoded, _, _ = first_version
    ours = encoded["all_encoder_layers"][layer]
    assert worst(ours, arrays[f"out_layer_{layer}"]) < TOLERANCE


@pytest.mark.comparison
@pytest.mark.parametrize("layer", range(2))
def test_first_version_attention_maps(first_version, layer):
    arrays, encoded, _, _ = first_version
    ours = encoded["attention_probs"][layer]
    recorded = arrays[f"out_attn_probs_{layer}"]
    assert ours.shape == recorded.shape
    assert worst(ours, recorded) < TOLERANCE


@pytest.mark.comparison
@pytest.mark.parametrize(
    ("config", "name", "last", "pooled"),
    [
        (
            original_head.head_config(),
            "original_head/pretraining.npz",
            "out_layer_2",
            "out_pooled_output",
        ),
        (
            original_head.ERF_CONFIG,
            "erf_activations_L2_H4.npz",
            "out_layer_1",
            "out_pooled",
        ),
    ],
    ids=["tanh", "erf"],
)
def test_what_answers_questions(config, name, last, pooled):
    """Tests the function that predictors call, with oneDNN's fused ops on CPUs."""
    arrays = original_head.recording(name)
    model = pretraining.PretrainingModel(config)
    original_head.assign(model, arrays)
    wanted = {"sequence_output": last, "pooled_output": pooled}

    def compute(features, kernels):
        encoded = model.bert(features, kernels=kernels)
        return {key: encoded[key] for key in wanted}

    found = outputs.compile_model(compute)(original_head.features(arrays))
    for key, recorded in wanted.items():
        assert worst(found[key], arrays[recorded]) < TOLERANCE


@pytest.mark.comparison
def test_first_version_pooled_output(first_version):
    arrays, encoded, _, _ = first_version
    assert worst(encoded["pooled_output"], arrays["out_pooled"]) < TOLERANCE


@pytest.mark.comparison
@pytest.mark.parametrize("head", ["mlm", "nsp"])
def test_first_version_log_probabilities_and_loss(first_version, head):
    arrays, _, log_probs, losses = first_version
    recorded = arrays[f"out_{head}_log_probs"]
    # Use a relative limit for large values. LayerNorm over four nearly equal numbers
    # magnifies rounding. Compared with float64, the error of the recording itself is
    # 1.3e-5 (at a log-probability of -5); ours is 0.6e-5.
    ours = np.reshape(log_probs[head], recorded.shape)
    np.testing.assert_allclose(ours, recorded, rtol=1e-5, atol=1e-5)
    assert abs(float(losses[head]) - arrays[f"out_{head}_loss"]) < TOLERANCE


@pytest.mark.comparison
def test_recordings_are_those_of_the_original(shared):
    for path in original_head.FOLDER.rglob("*"):
        twin = shared / "golden/modeling" / path.relative_to(original_head.FOLDER)
        if path.is_file() and path.name != "README.md":
            ours, theirs = (
                hashlib.sha256(p.read_bytes()).digest() for p in (path, twin)
            )
            assert ours == theirs, path.name
