"""Models load weights by Google's names: all or none."""

import dataclasses

import numpy as np
import original_head
import pytest
import tensorflow as tf

from official_bert.checkpoints import google
from official_bert.checkpoints.initialize import load_weights
from official_bert.config import BertConfig
from official_bert.errors import UserError
from official_bert.modeling.encoder import BertEncoder
from official_bert.modeling.pretraining import PretrainingModel

CHECKPOINT = original_head.HEAD / "checkpoint"


@pytest.fixture
def model():
    return PretrainingModel(original_head.head_config())


def values(model):
    return {v.path: v.numpy() for v in model.trainable_variables}


@pytest.mark.comparison
@pytest.mark.parametrize("path", [CHECKPOINT, CHECKPOINT / "bert_model.ckpt"])
def test_the_original_s_checkpoint_gives_its_activations(model, path):
    report = load_weights(model, path)
    assert not report.new and not report.unused
    assert len(report.loaded) == len(model.trainable_variables)
    arrays = original_head.recording()
    features = original_head.features(arrays)
    encoded, outputs = model.bert(features), model(features)
    for number, layer in enumerate(encoded["all_encoder_layers"]):
        expected = arrays[f"out_layer_{number}"].reshape(layer.shape)
        np.testing.assert_allclose(layer, expected, atol=1e-5)
    pooled = arrays["out_pooled_output"]
    np.testing.assert_allclose(encoded["pooled_output"], pooled, atol=1e-5)
    # The recording has one row per prediction.
    logits = tf.nn.log_softmax(outputs["masked_lm_logits"]).numpy()
    expected = arrays["out_mlm_log_probs"].reshape(logits.shape)
    np.testing.assert_allclose(logits, expected, atol=1e-5)


@pytest.mark.comparison
def test_names_and_shapes_are_those_of_the_original_s_saver(model):
    shapes = {v.path: list(v.shape) for v in model.trainable_variables}
    assert shapes == dict(tf.train.list_variables(str(CHECKPOINT / "bert_model.ckpt")))


def test_names_and_shapes_of_a_release(shared):
    folder = shared / "golden/checkpoint_fixtures/index-only/uncased_L-4_H-256_A-4"
    config = BertConfig.from_json_file(folder / "bert_config.json")
    model = PretrainingModel(config)
    shapes = {v.path: list(v.shape) for v in model.trainable_variables}
    assert shapes == dict(tf.train.list_variables(str(folder / "bert_model.ckpt")))
    before = values(model)
    with pytest.raises(UserError, match="cannot read"):
        load_weights(model, folder)
    for name, value in values(model).items():
        np.testing.assert_array_equal(value, before[name])


def test_a_checkpoint_of_tensorflow_1_with_slots(shared):
    folder = shared / "golden/modeling/tf1_checkpoint_L2_H4"
    config = BertConfig.from_json_file(folder / "bert_config.json")
    # The code of that time computed this form.
    model = PretrainingModel(dataclasses.replace(config, hidden_act="gelu_erf"))
    report = load_weights(model, folder)
    assert not report.new
    note = "hidden_act is 'gelu' in the checkpoint's config and 'gelu_erf'"
    assert note in str(report)
    assert not [name for name in report.unused if "adam" in name or "step" in name]
    reader = tf.train.load_checkpoint(str(folder / "bert_model.ckpt"))
    for name, value in values(model).items():
        np.testing.assert_array_equal(value, reader.get_tensor(name))


def test_more_layers_than_the_config_says(tmp_path):
    """A checkpoint with 24 layers for a config of 12 is rejected in one line."""
    config = dataclasses.replace(original_head.head_config(), num_hidden_layers=24)
    write(tmp_path, BertEncoder(config))
    with pytest.raises(UserError) as caught:
        load_weights(
            BertEncoder(dataclasses.replace(config, num_hidden_layers=12)), tmp_path
        )
    assert "num_hidden_layers is 24 in the checkpoint and 12 in" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_another_number_of_attention_heads(tmp_path):
    """A different number of heads is rejected, using the checkpoint's config."""
    config = original_head.head_config()
    write(tmp_path, BertEncoder(config))
    (tmp_path / "bert_config.json").write_text(config.to_json_string())
    heads = config.num_attention_heads // 2
    model = BertEncoder(dataclasses.replace(config, num_attention_heads=heads))
    with pytest.raises(UserError, match=f"num_attention_heads is .* and {heads} in"):
        load_weights(model, tmp_path)


def test_a_misnamed_variable(tmp_path, model):
    name = "bert/encoder/layer_1/attention/self/query/kernel"
    other = name.replace("query", "qurey")
    write(tmp_path, model, **{name: None, other: values(model)[name]})
    with pytest.raises(UserError) as caught:
        load_weights(model, tmp_path)
    assert f"the first is {name} (similar name in the checkpoint: {other})" in str(
        caught.value
    )


def write(folder, model, **changes):
    """Write a model's weights; a change of None omits the variable."""
    tensors = {**values(model), **changes}
    tensors = {name: value for name, value in tensors.items() if value is not None}
    google.write_checkpoint(str(folder / "bert_model.ckpt"), tensors)
    return folder


def test_slots_and_step_are_not_weights(tmp_path, model):
    table = "bert/embeddings/word_embeddings"
    slots = {f"{table}/adam_m": np.ones(3), f"{table}/adam_v": np.ones(3)}
    write(tmp_path, model, **slots, global_step=np.int64(5), extra=np.ones(2))
    report = load_weights(model, tmp_path)
    assert report.unused == ["extra"]
    assert "Unused weights of the checkpoint: extra" in str(report)


def test_a_missing_head_is_new(tmp_path, model):
    name = "cls/predictions/transform/dense/kernel"
    write(tmp_path, model, **{name: None})
    before = values(model)[name]
    report = load_weights(model, tmp_path)
    assert report.new == [name]
    assert f"so newly initialized (kernels random, biases 0): {name}." in str(report)
    np.testing.assert_array_equal(values(model)[name], before)


def test_heads_are_unused_by_an_encoder(tmp_path, model):
    encoder = BertEncoder(model.config)
    report = load_weights(encoder, write(tmp_path, model))
    assert not report.new
    assert report.unused and all(name.startswith("cls/") for name in report.unused)
    table = values(model)["bert/embeddings/word_embeddings"]
    np.testing.assert_array_equal(encoder.embedding_table, table)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hidden_size": 48}, ["hidden_size is 24 in the", "and 48 in the model"]),
        ({"vocab_size": 61}, ["vocab_size is 60 in the", "and 61 in the model"]),
        ({"num_hidden_layers": 4}, ["num_hidden_layers is 3", "and 4 in the model"]),
        ({"max_position_embeddings": 8}, ["max_position_embeddings is"]),
        ({"type_vocab_size": 3}, ["type_vocab_size is", "and 3 in the model"]),
        ({"intermediate_size": 7}, ["intermediate_size is", "and 7 in the model"]),
    ],
)
def test_checkpoint_of_another_size(change, words):
    config = dataclasses.replace(original_head.head_config(), **change)
    model = PretrainingModel(config)
    before = values(model)
    with pytest.raises(UserError) as caught:
        load_weights(model, CHECKPOINT)
    for word in [*words, f"{CHECKPOINT} does not fit the model", "bert_config.json"]:
        assert word in str(caught.value)
    for name, value in values(model).items():
        np.testing.assert_array_equal(value, before[name])


def test_checkpoint_of_something_else(tmp_path, model):
    google.write_checkpoint(str(tmp_path / "bert_model.ckpt"), {"w": np.ones(3)})
    with pytest.raises(
        UserError, match="variables are missing, the first is bert/embeddings"
    ):
        load_weights(model, tmp_path)
