"""The left-to-right encoder, and pre-training without next-sentence prediction."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
import tiny_model
from record_files import MINI_CONFIG, mini_records, stacked
from small_encoder import make_encoder, make_features

from official_bert.checkpoints import google, model_directory
from official_bert.checkpoints.huggingface import transformers_model
from official_bert.checkpoints.keras_hub import preset
from official_bert.errors import UserError
from official_bert.modeling import transformer
from official_bert.modeling.kernels.choose import training_kernels
from official_bert.modeling.pretraining import PretrainingModel, pretraining_terms

SEED = tf.constant([1, 2**32], tf.int64)


def test_bias_hides_padding_and_what_is_behind():
    bias = transformer.attention_bias(tf.constant([[1, 1, 1, 0]]), -5.0, causal=True)
    expected = [[0, -5, -5, -5], [0, 0, -5, -5], [0, 0, 0, -5], [0, 0, 0, -5]]
    np.testing.assert_array_equal(bias, [[expected]])


@pytest.mark.parametrize("causal", [True, False])
def test_a_later_token_changes_nothing_before_it(causal):
    encoder, features = make_encoder(causal_attention=causal), make_features()
    before = encoder(features)["sequence_output"].numpy()
    features["input_ids"][0, 20] += 1
    after = encoder(features)["sequence_output"].numpy()
    changed = np.abs(after - before).max(axis=-1) > 1e-4
    assert changed[0].tolist() == [not causal] * 20 + [True] * 12
    assert not changed[1:].any()


def test_padding_is_not_seen():
    encoder, features = make_encoder(causal_attention=True), make_features()
    features["input_mask"][0, 5] = 0
    before = encoder(features)
    features["input_ids"][features["input_mask"] == 0] = 7
    after = encoder(features)
    real = features["input_mask"] == 1
    for name in ("sequence_output", "pooled_output"):
        rows = real if name == "sequence_output" else slice(None)
        pair = (outputs[name].numpy()[rows] for outputs in (before, after))
        np.testing.assert_allclose(*pair, atol=1e-5)


def test_the_pooler_reads_the_last_token():
    encoder, features = make_encoder(causal_attention=True), make_features()
    encoded = encoder(features)
    last = features["input_mask"].sum(axis=1) - 1
    tokens = encoded["sequence_output"].numpy()[range(4), last]
    assert len(set(last)) > 1
    np.testing.assert_allclose(encoded["pooled_output"], encoder.pooler(tokens))


@pytest.mark.parametrize("recompute", [False, True])
def test_training_without_rows_for_padding_is_the_same(recompute):
    rates = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    features, found = make_features(), []
    for skip in (False, True):
        encoder = make_encoder(recompute, causal_attention=True, **rates)
        kernels = training_kernels(skip_padding=skip)
        with tf.GradientTape() as tape:
            outputs = encoder(
                features, training=True, dropout_seed=SEED, kernels=kernels
            )
            loss = tf.reduce_sum(outputs["pooled_output"][:, :5])
        table = encoder.embedding_table
        gradient = tf.convert_to_tensor(tape.gradient(loss, table.value))
        found.append((outputs["pooled_output"], gradient))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)
    assert np.abs(gradient).max() > 1e-2


def test_without_next_sentence_no_head_and_no_training_of_the_pooler():
    model = PretrainingModel(MINI_CONFIG, next_sentence_prediction=False)
    features = stacked(mini_records()[:4])
    terms = pretraining_terms(model(features), features)
    assert set(terms) == {"masked_lm_loss", "masked_lm_accuracy"}
    names = {variable.path for variable in model.weights}
    trained = {variable.path for variable in model.trainable_variables}
    untrained = {"bert/pooler/dense/kernel", "bert/pooler/dense/bias"}
    assert {name for name in names - trained if "seed" not in name} == untrained
    assert not any("seq_relationship" in name for name in names)


@pytest.fixture
def checkpoint():
    config = dataclasses.replace(MINI_CONFIG, causal_attention=True)
    return tiny_model.checkpoint(config)


def test_the_model_directory_keeps_the_direction(checkpoint, tmp_path):
    google.write_model(str(tmp_path), checkpoint)
    assert model_directory.load_encoder(str(tmp_path)).config.causal_attention
    with pytest.raises(UserError, match="left-to-right model.* cannot fill masks"):
        model_directory.load(str(tmp_path))


def test_other_formats_cannot_say_it(checkpoint, tmp_path):
    with pytest.raises(UserError, match="causal_attention, but Hugging Face"):
        transformers_model.write_model(str(tmp_path), checkpoint)
    with pytest.raises(UserError, match="causal_attention, but KerasHub"):
        preset.write_preset(str(tmp_path), checkpoint)
    assert list(tmp_path.iterdir()) == []
