"""Model directories are complete, small, and readable by other tools."""

import json
import os

import numpy as np
import original_head
import pytest
import tensorflow as tf
from record_files import MINI, MINI_CONFIG

import official_bert
from official_bert.checkpoints import any_format, google, model_directory
from official_bert.config import BertConfig
from official_bert.errors import UserError
from official_bert.modeling.pretraining import PretrainingModel

VOCAB = MINI / "vocab.txt"


@pytest.fixture(scope="module")
def model():
    return PretrainingModel(MINI_CONFIG)


@pytest.fixture
def directory(tmp_path, model):
    model_directory.save(str(tmp_path), model, VOCAB, do_lower_case=True)
    return tmp_path


def test_files(directory):
    assert sorted(os.listdir(directory)) == [
        "bert_config.json",
        "bert_model.ckpt.data-00000-of-00001",
        "bert_model.ckpt.index",
        "tokenizer_config.json",
        "vocab.txt",
    ]
    assert (directory / "vocab.txt").read_bytes() == VOCAB.read_bytes()
    assert BertConfig.from_json_file(directory / "bert_config.json") == MINI_CONFIG


def test_weights_and_nothing_else(directory, model):
    shapes = {v.path: list(v.shape) for v in model.trainable_variables}
    assert dict(tf.train.list_variables(str(directory / "bert_model.ckpt"))) == shapes
    recorded = original_head.HEAD / "checkpoint" / "bert_model.ckpt"
    original = {
        name.replace("layer_1", "layer_0").replace("layer_2", "layer_0")
        for name, _ in tf.train.list_variables(str(recorded))
    }
    assert set(shapes) == original


def test_size_is_that_of_the_parameters(tmp_path):
    """The size is that of the parameters, if there are more than 100,000."""
    config = BertConfig(1000, 128, 1, 2, 256, max_position_embeddings=64)
    model = PretrainingModel(config)
    model_directory.save(str(tmp_path), model)
    parameters = sum(int(np.prod(v.shape)) for v in model.trainable_variables)
    size = sum(path.stat().st_size for path in tmp_path.glob("bert_model.ckpt.*"))
    assert 4 * parameters <= size <= 1.05 * 4 * parameters


def test_load_gives_the_same_model(directory, model):
    bert = official_bert.load(str(directory))
    assert bert.config == MINI_CONFIG
    assert bert.tokenizer.tokenize("The fox")[0] == "the"
    for ours, theirs in zip(
        bert.model.trainable_variables, model.trainable_variables, strict=True
    ):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


@pytest.mark.parametrize("do_lower_case", [True, False])
def test_casing_is_kept(tmp_path, model, do_lower_case):
    model_directory.save(str(tmp_path), model, VOCAB, do_lower_case)
    tokenizer = tokenizer_of(tmp_path)
    assert (tokenizer.tokenize("THE")[0] == "the") == do_lower_case


@pytest.mark.parametrize(("token", "lowers"), [("zzz", True), ("Zzz", False)])
def test_casing_is_guessed_of_a_release(tmp_path, model, token, lowers):
    model_directory.save(str(tmp_path), model)
    (tmp_path / "vocab.txt").write_text(VOCAB.read_text() + token + "\n")
    tokenizer = tokenizer_of(tmp_path)
    assert (tokenizer.tokenize("THE")[0] == "the") == lowers


def test_a_casing_that_contradicts_the_vocabulary(tmp_path, model):
    model_directory.save(str(tmp_path), model, VOCAB, do_lower_case=True)
    (tmp_path / "vocab.txt").write_text(VOCAB.read_text() + "Zzz\n")
    with pytest.raises(UserError, match="do_lower_case true.*has capitals"):
        tokenizer_of(tmp_path)
    # An explicit value overrides the check.
    assert tokenizer_of(tmp_path, do_lower_case=True).do_lower_case
    assert not tokenizer_of(tmp_path, do_lower_case=False).do_lower_case


def tokenizer_of(directory, **given):
    with any_format.opened(directory) as checkpoint:
        return model_directory.tokenizer_of(checkpoint, **given)


def test_saving_beside_its_own_vocabulary(directory, model):
    model_directory.save(str(directory), model, str(directory / "vocab.txt"), True)
    assert (directory / "vocab.txt").read_bytes() == VOCAB.read_bytes()


def refused(directory, *words):
    with pytest.raises(UserError) as caught:
        model_directory.load(str(directory))
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("name", ["bert_config.json", "vocab.txt"])
def test_a_file_is_missing(directory, name):
    (directory / name).unlink()
    refused(directory, f"{directory} has no {name}")


def test_no_checkpoint(directory):
    google.delete_checkpoint(str(directory / "bert_model.ckpt"))
    refused(directory, f"{directory} contains no checkpoint")


def test_no_directory(directory):
    refused(directory / "other", "No checkpoint at", "other.index does not exist")


def test_config_of_another_size(directory):
    config = {**MINI_CONFIG.to_dict(), "hidden_size": 32}
    (directory / "bert_config.json").write_text(json.dumps(config))
    refused(
        directory, "does not fit", "hidden_size is 16 in the", "and 32 in the model"
    )


def test_damaged_config(directory):
    (directory / "bert_config.json").write_text('{"vocab_size": 128,')
    refused(directory, "bert_config.json", "line 1")


@pytest.mark.parametrize("length", [60, 140])
def test_vocabulary_of_another_size(directory, length):
    lines = VOCAB.read_text().splitlines() + [f"w{n}" for n in range(100)]
    (directory / "vocab.txt").write_text("\n".join(lines[:length]) + "\n")
    if length < 125:
        (directory / "bert_config.json").write_text(
            json.dumps({**MINI_CONFIG.to_dict(), "vocab_size": 300})
        )
    refused(directory, "vocab.txt", "vocab_size is")


def test_without_heads_it_is_no_pretrained_model(directory, model):
    """A model without heads is rejected: random heads predict randomly."""
    google.write_checkpoint(
        str(directory / "bert_model.ckpt"),
        {v.path: v.numpy() for v in model.bert.trainable_variables},
    )
    refused(directory, "not a pre-trained model", "cls/predictions/output_bias")


def test_full_disk_keeps_the_old_weights(directory, model, monkeypatch):
    def full(**_):
        raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")

    before = (directory / "bert_model.ckpt.index").read_bytes()
    monkeypatch.setattr(tf.raw_ops, "SaveV2", full)
    with pytest.raises(UserError, match="No space left"):
        model_directory.save(str(directory), model)
    assert (directory / "bert_model.ckpt.index").read_bytes() == before
    assert len(os.listdir(directory)) == 5
