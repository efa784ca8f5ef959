"""Python functions that take a model accept its name."""

import json

import huggingface_files
import numpy as np
import pytest
import tiny_model
from hub_server import COMMIT

import official_bert
from official_bert.checkpoints.keras_hub import preset
from official_bert.errors import UserError

pytestmark = pytest.mark.usefixtures("cache")
NAME = "bert-base-uncased"


def test_load():
    bert = official_bert.load(NAME)
    kernel = bert.encoder.pooler.dense.kernel.numpy()
    expected = huggingface_files.torch_tensors("BertForPreTraining")
    wanted = expected["bert.pooler.dense.weight"].T
    assert kernel.tobytes() == np.ascontiguousarray(wanted).tobytes()
    encoder = official_bert.load_encoder(f"hf://google-bert/{NAME}")
    assert encoder.tokenizer.tokenize("A b") == ["a", "b"]


def test_predictor(server, tmp_path, tiny_files):
    labels = {"id2label": {"0": "bad", "1": "good", "2": "fine"}}
    classifier = {"architectures": ["BertForSequenceClassification"], **labels}
    path = huggingface_files.write_config(tmp_path, **classifier)
    huggingface_files.FILES["safetensors"](tmp_path, "BertForSequenceClassification")
    files = dict(tiny_files)
    files["config.json"] = path.read_bytes()
    files["model.safetensors"] = (tmp_path / "model.safetensors").read_bytes()
    server.repositories["me/classifier"] = {COMMIT: files}
    (prediction,) = official_bert.Predictor("me/classifier").predict(["a b"])
    assert prediction.label in labels["id2label"].values()


def test_a_preset(server, tmp_path):
    preset.write_preset(str(tmp_path), tiny_model.checkpoint(heads=False))
    files = {
        path.relative_to(tmp_path).as_posix(): path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.is_file() and path.name != "bert_config.json"
    }
    server.presets["keras/bert/keras/bert_tiny_en_uncased"] = (3, files)
    bert = official_bert.load_encoder("bert_tiny_en_uncased")
    values = {v.path: v.numpy() for v in bert.model.weights}
    for name, value in tiny_model.checkpoint(heads=False).tensors().items():
        np.testing.assert_array_equal(values[name], value)
    # The same preset from Hugging Face.
    server.repositories["keras/bert_tiny_en_uncased"] = {COMMIT: files}
    again = official_bert.load_encoder("hf://keras/bert_tiny_en_uncased")
    assert again.config == bert.config


def test_a_missing_path_is_refused_as_before():
    with pytest.raises(UserError, match="No checkpoint at ./gone"):
        official_bert.load("./gone")
    with pytest.raises(UserError, match="No checkpoint at ./gone"):
        official_bert.Predictor("./gone")


def test_config_of_a_model_that_is_not_bert(server):
    files = {"config.json": json.dumps({"model_type": "gpt2"}).encode()}
    server.repositories["openai-community/gpt2"] = {COMMIT: files}
    with pytest.raises(UserError, match="is a GPT-2 model"):
        official_bert.load("openai-community/gpt2")
