"""Hugging Face's checkpoints: all formats are read, one complete format is written."""

import dataclasses
import json
import os
import pathlib

import h5py
import huggingface_files as made
import ml_dtypes
import numpy as np
import pytest
import safetensors
import safetensors.numpy

from official_bert.checkpoints.checkpoint import Checkpoint
from official_bert.checkpoints.huggingface import (
    config_json,
    tensor_names,
    transformers_model,
)
from official_bert.config import BertConfig
from official_bert.errors import UserError
from official_bert.modeling.pretraining import PretrainingModel

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "##a", "##b", "."]
FIXTURES = "golden/checkpoint_fixtures/"


def open_model(place):
    return transformers_model.open_model(place, str(place))


def assert_same(found, expected):
    """Assert equal names and shapes, and equal bytes in float32."""
    assert sorted(found) == sorted(expected)
    for name, value in expected.items():
        assert found[name].shape == value.shape, name
        assert found[name].dtype == np.float32
        assert found[name].tobytes() == value.tobytes(), name


def write_vocab(directory, tokens=VOCAB):
    path = directory / "vocab.txt"
    path.write_text("".join(token + "\n" for token in tokens), encoding="utf-8")
    return str(path)


@pytest.fixture
def model(tmp_path):
    """Return a directory with the `model.safetensors` of a pre-training model."""
    made.write_config(tmp_path)
    made.FILES["safetensors"](tmp_path, "BertForPreTraining")
    write_vocab(tmp_path)
    return tmp_path


# Reading and writing.


@pytest.mark.parametrize("activation", ["gelu", "gelu_new"])
@pytest.mark.parametrize("architecture", made.HEADS_OF)
@pytest.mark.parametrize("kind", made.FILES)
def test_round_trip(tmp_path, kind, architecture, activation):
    made.FILES[kind](tmp_path, architecture)
    made.write_config(
        tmp_path, hidden_act=activation, architectures=["TF" + architecture]
    )
    vocab_file = write_vocab(tmp_path)
    first = open_model(tmp_path)
    expected = made.weights(architecture)
    assert_same(first.tensors(), expected)
    assert first.shapes == {name: value.shape for name, value in expected.items()}
    assert (
        first.config.hidden_act == {"gelu": "gelu_erf", "gelu_new": "gelu"}[activation]
    )
    assert (first.format, first.vocab_file) == ("huggingface", vocab_file)
    assert first.notes == ()

    written = tmp_path / "written"
    written.mkdir()
    assert transformers_model.write_model(written, first) == []
    assert sorted(os.listdir(written)) == [
        "config.json",
        "model.safetensors",
        "tokenizer_config.json",
        "vocab.txt",
    ]
    second = open_model(written)
    assert_same(second.tensors(), expected)
    assert second.config == first.config
    config = json.loads((written / "config.json").read_text())
    assert config["hidden_act"] == activation
    assert config["architectures"] == [architecture]
    assert pathlib.Path(second.vocab_file).read_bytes() == vocab_bytes(VOCAB)
    with safetensors.safe_open(written / "model.safetensors", "numpy") as file:
        assert file.metadata() == {"format": "pt"}
        prefix = architecture != "BertModel"
        assert sorted(file.keys()) == sorted(made.torch_tensors(architecture, prefix))


def vocab_bytes(tokens):
    return "".join(token + "\n" for token in tokens).encode()


def test_the_model_computes_the_same(model):
    """A model with the loaded weights computes the recorded outputs."""
    checkpoint = open_model(model)
    network = PretrainingModel(checkpoint.config)
    assert sorted(v.path for v in network.trainable_variables) == list(
        checkpoint.shapes
    )
    for variable in network.trainable_variables:
        variable.assign(checkpoint.read(variable.path))
    ids = np.array([[2, 5, 6, 3]])
    positions = np.array([[1]])
    outputs = network({"input_ids": ids, "masked_lm_positions": positions})
    states = network.bert({"input_ids": ids})
    tensors = made.torch_tensors()
    pooled = np.tanh(
        states["sequence_output"][:, 0].numpy() @ tensors["bert.pooler.dense.weight"].T
        + tensors["bert.pooler.dense.bias"]
    )
    np.testing.assert_allclose(states["pooled_output"], pooled, atol=1e-5)
    logits = pooled @ tensors["cls.seq_relationship.weight"].T
    logits += tensors["cls.seq_relationship.bias"]
    np.testing.assert_allclose(outputs["next_sentence_logits"], logits, atol=1e-5)


def test_a_model_without_a_config(model):
    os.remove(model / "config.json")
    checkpoint = open_model(model)
    assert checkpoint.config is None
    with pytest.raises(UserError, match="has no config.*Put its bert_config.json"):
        transformers_model.write_model(model, checkpoint)
    assert_same(open_model(model).tensors(), made.weights())


@pytest.mark.parametrize(
    "name",
    ["model.safetensors", "tf_model.h5", "other.bin", "a.safetensors.index.json"],
)
def test_a_single_file(tmp_path, name):
    path = tmp_path / name
    assert not transformers_model.is_model(path)
    tensors = made.torch_tensors()
    if name.endswith(".h5"):
        made.write_h5(path, made.tf_tensors())
    elif name.endswith(".bin"):
        made.write_torch(path, made.in_torch_file(tensors))
    elif name.endswith(".json"):
        base = name.removesuffix(".index.json")
        made.write_shards(tmp_path, tensors, base, made.write_safetensors)
    else:
        made.write_safetensors(path, tensors)
    made.write_config(tmp_path)
    assert transformers_model.is_model(path) and transformers_model.is_model(str(path))
    checkpoint = open_model(path)
    assert_same(checkpoint.tensors(), made.weights())
    assert checkpoint.config.hidden_size == 8


def test_what_is_no_model(tmp_path):
    assert not transformers_model.is_model(tmp_path)
    assert not transformers_model.is_model(tmp_path / "missing")
    (tmp_path / "bert_model.ckpt.index").touch()
    (tmp_path / "config.json").touch()
    (tmp_path / "model.safetensors").mkdir()
    assert not transformers_model.is_model(tmp_path)
    assert not transformers_model.is_model(tmp_path / "bert_model.ckpt.index")


def test_which_of_several_files_is_read(tmp_path):
    """`.safetensors` is read before `.h5` and `.bin`, and one file before several."""
    made.write_config(tmp_path)
    zeros = {n: np.zeros_like(v) for n, v in made.torch_tensors().items()}
    made.FILES["sharded bin"](tmp_path, "BertForPreTraining")
    assert "pytorch_model.bin" not in os.listdir(tmp_path)
    assert open_model(tmp_path).read("bert/pooler/dense/bias").any()
    made.write_torch(tmp_path / "pytorch_model.bin", made.in_torch_file(zeros))
    assert not open_model(tmp_path).read("bert/pooler/dense/bias").any()
    made.FILES["h5"](tmp_path, "BertForPreTraining")
    assert open_model(tmp_path).read("bert/pooler/dense/bias").any()
    made.write_shards(tmp_path, zeros, "model.safetensors", made.write_safetensors)
    assert not open_model(tmp_path).read("bert/pooler/dense/bias").any()
    made.FILES["safetensors"](tmp_path, "BertForPreTraining")
    assert open_model(tmp_path).read("bert/pooler/dense/bias").any()


# Names.


@pytest.mark.parametrize("architecture", made.HEADS_OF)
def test_names_there_and_back(architecture):
    for google, torch, _ in made.rows(architecture):
        assert tensor_names.torch_name(google, prefix=True) == torch
        assert tensor_names.google_name(torch, "torch") == google
        assert tensor_names.is_known(google)


def test_old_names(model):
    tensors = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): value
        for name, value in made.torch_tensors().items()
    }
    assert len(set(tensors) - set(made.torch_tensors())) == 12
    made.write_safetensors(model / "model.safetensors", tensors)
    assert_same(open_model(model).tensors(), made.weights())


def test_names_without_prefix(model):
    tensors = made.torch_tensors("BertForSequenceClassification", prefix=False)
    made.write_safetensors(model / "model.safetensors", tensors)
    expected = made.weights("BertForSequenceClassification")
    assert_same(open_model(model).tensors(), expected)


def test_buffers_are_left_out(model):
    ids = np.arange(16)[None]
    for prefix in ("", "bert."):
        buffers = {
            prefix + "embeddings.position_ids": ids,
            prefix + "embeddings.token_type_ids": ids * 0,
        }
        made.write_safetensors(
            model / "model.safetensors", made.torch_tensors() | buffers
        )
        checkpoint = open_model(model)
        assert_same(checkpoint.tensors(), made.weights())
        assert checkpoint.notes == ()


@pytest.mark.parametrize(
    "name",
    [
        "bert.encoder.layer.0.attention.self.distance_embedding.weight",
        "bert.encoder.layer.0.crossattention.self.query.weight",
        "bert.encoder.layer.x.output.dense.weight",
        "adapter.down.weight",
        "some/dense/kernel",
        "classifier.dense.weight",
    ],
)
def test_unknown_names_are_kept(model, name, tmp_path):
    """Unknown tensors keep name, layout and bytes after reading and writing."""
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    made.write_safetensors(
        model / "model.safetensors", made.torch_tensors() | {name: value}
    )
    first = open_model(model)
    assert_same(first.tensors(), made.weights() | {name: value})
    transformers_model.write_model(model, first)
    assert_same(open_model(model).tensors(), made.weights() | {name: value})


def with_decoder(model, **changes):
    """Write the model with its tied decoder, changed or not; return it opened."""
    tensors = made.torch_tensors()
    decoder = {
        "cls.predictions.decoder.weight": tensors[
            "bert.embeddings.word_embeddings.weight"
        ],
        "cls.predictions.decoder.bias": tensors["cls.predictions.bias"],
    }
    for leaf, change in changes.items():
        decoder[f"cls.predictions.decoder.{leaf}"] = change
    # Put first, which another sorting would do.
    made.write_torch(model / "pytorch_model.bin", made.in_torch_file(decoder | tensors))
    return open_model(model / "pytorch_model.bin")


def test_tied_decoder_is_left_out(model):
    checkpoint = with_decoder(model)
    assert_same(checkpoint.tensors(), made.weights())
    assert checkpoint.notes == ()


@pytest.mark.parametrize("leaf, shape", [("weight", (11, 8)), ("bias", (11,))])
def test_untied_decoder_is_kept(model, leaf, shape):
    other = np.full(shape, 0.5, np.float32)
    checkpoint = with_decoder(model, **{leaf: other})
    name = f"cls.predictions.decoder.{leaf}"
    assert_same(checkpoint.tensors(), made.weights() | {name: other})
    (note,) = checkpoint.notes
    assert note.startswith(f"{name} should be a copy of ")
    transformers_model.write_model(model, checkpoint)
    again = open_model(model)
    assert_same(again.tensors(), made.weights() | {name: other})
    assert again.notes == checkpoint.notes


def test_decoder_bias_alone(model):
    """The decoder bias is read if the file omits its equal copy."""
    tensors = made.torch_tensors()
    tensors["cls.predictions.decoder.bias"] = tensors.pop("cls.predictions.bias")
    made.write_safetensors(model / "model.safetensors", tensors)
    assert_same(open_model(model).tensors(), made.weights())


def test_two_spellings_of_one_tensor(model):
    twice = made.torch_tensors() | made.torch_tensors("BertModel", prefix=False)
    made.write_safetensors(model / "model.safetensors", twice)
    assert_same(open_model(model).tensors(), made.weights())
    twice["pooler.dense.bias"] = np.ones(8, np.float32)
    made.write_safetensors(model / "model.safetensors", twice)
    checkpoint = open_model(model)
    assert len(checkpoint.shapes) == len(made.weights()) + 1
    (note,) = checkpoint.notes
    assert note.startswith("pooler.dense.bias should be a copy of bert/pooler/dense/b")


def test_two_tensors_would_get_one_name(model):
    checkpoint = open_model(model)
    name = "bert.pooler.dense.bias"
    checkpoint.shapes[name] = (8,)
    clash = dataclasses.replace(
        checkpoint, read=lambda n: checkpoint.read("bert/pooler/dense/bias")
    )
    with pytest.raises(UserError, match=f"two tensors would get the name {name}"):
        transformers_model.write_model(model, clash)


def test_a_checkpoint_of_something_else(model):
    made.write_safetensors(
        model / "model.safetensors", {"linear.weight": np.ones((2, 2), np.float32)}
    )
    with pytest.raises(
        UserError, match=r"none of its 1 tensors.*first is linear\.weig"
    ):
        open_model(model)
    made.write_safetensors(model / "model.safetensors", {})
    with pytest.raises(UserError, match="none of its 0 tensors has a BERT name"):
        open_model(model)


# Numbers.


@pytest.mark.parametrize("kind", ["safetensors", "bin", "older bin"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_precisions(tmp_path, kind, dtype):
    made.write_config(tmp_path)
    dtype = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    tensors = made.torch_tensors()
    half = {name: value.astype(dtype) for name, value in tensors.items()}
    half["cls.predictions.bias"] = tensors["cls.predictions.bias"]
    if kind == "safetensors":
        made.write_safetensors(tmp_path / "model.safetensors", half)
    else:
        write = {"bin": made.write_torch, "older bin": made.write_older_torch}[kind]
        write(tmp_path / "pytorch_model.bin", made.in_torch_file(half))
    checkpoint = open_model(tmp_path)
    expected = {
        n: v.astype(dtype).astype(np.float32) for n, v in made.weights().items()
    }
    expected["cls/predictions/output_bias"] = made.weights()[
        "cls/predictions/output_bias"
    ]
    assert_same(checkpoint.tensors(), expected)
    assert checkpoint.notes == (
        f"45 of 46 tensors have type {dtype}; they are read as float32.",
    )


def test_precision_of_h5(tmp_path):
    made.write_config(tmp_path)
    half = {n: v.astype(np.float16) for n, v in made.tf_tensors().items()}
    made.write_h5(tmp_path / "tf_model.h5", half)
    checkpoint = open_model(tmp_path)
    assert checkpoint.read("bert/pooler/dense/bias").dtype == np.float32
    assert checkpoint.notes == (
        "46 of 46 tensors have type float16; they are read as float32.",
    )


def test_a_type_that_cannot_be_read(model):
    tensors = made.torch_tensors()
    tensors["x"] = np.ones(3, ml_dtypes.float8_e4m3fn)
    made.write_safetensors(model / "model.safetensors", tensors)
    with pytest.raises(UserError, match="x has the unsupported type F8_E4M3"):
        open_model(model)


def test_arrays_are_ones_own(model):
    """Changing a loaded array does not change the file."""
    checkpoint = open_model(model)
    for name in checkpoint.shapes:
        array = checkpoint.read(name)
        array += 1
        assert array.flags.c_contiguous
    assert_same(checkpoint.tensors(), made.weights())


# `tf_model.h5`.


@pytest.mark.parametrize(
    "change",
    [
        lambda name: name.partition("/")[2],  # Built outside a model.
        lambda name: "model/" + name,  # Built in a custom model.
        lambda name: name.replace(
            "word_embeddings/weight", "word_embeddings/embeddings"
        ),
        lambda name: name.replace("s/weight:0", "s/word_embeddings:0"),
    ],
)
def test_spellings_of_variables(tmp_path, change):
    with h5py.File(tmp_path / "tf_model.h5", "w") as file:
        for name, value in made.tf_tensors().items():
            file[change(name)] = value
    made.write_config(tmp_path)
    assert_same(open_model(tmp_path).tensors(), made.weights())


def test_attention_with_an_axis_for_the_heads(tmp_path):
    """Attention with an axis for heads (transformers 4.1 and 4.2) is read."""
    tensors = made.tf_tensors()
    for name, value in tensors.items():
        if "/attention/self/" in name:
            shape = (8, 2, 4) if name.endswith("kernel:0") else (2, 4)
            tensors[name] = value.reshape(shape)
        elif name.endswith("attention/output/dense/kernel:0"):
            tensors[name] = value.reshape(2, 4, 8)
    made.write_h5(tmp_path / "tf_model.h5", tensors)
    made.write_config(tmp_path)
    checkpoint = open_model(tmp_path)
    assert_same(checkpoint.tensors(), made.weights())
    assert checkpoint.shapes == {n: v.shape for n, v in made.weights().items()}


def test_model_saved_as_a_whole(tmp_path):
    """A file of `model.save("….h5")` is read without its optimizer slots."""
    with h5py.File(tmp_path / "tf_model.h5", "w") as file:
        for name, value in made.tf_tensors().items():
            file["model_weights/" + name] = value
            file[f"optimizer_weights/Adam/{name.removesuffix(':0')}/m:0"] = value
        file["optimizer_weights/Adam/iter:0"] = 3
        file["note"] = "not a number"
    made.write_config(tmp_path)
    assert_same(open_model(tmp_path).tensors(), made.weights())


def test_flax(model):
    path = model / "model.safetensors"
    made.write_safetensors(path, made.torch_tensors(), "flax")
    with pytest.raises(UserError, match=f"{path} was written by Flax"):
        open_model(model)


# Damaged files.


def error_of(place):
    with pytest.raises(UserError) as caught:
        open_model(place).tensors()
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_truncated_safetensors(model):
    path = model / "model.safetensors"
    data = path.read_bytes()
    for kept in [*range(0, 400), *range(400, len(data), 97), len(data) - 1]:
        path.write_bytes(data[:kept])
        assert f"Cannot read {path}; it may be truncated" in error_of(model)


def test_header_of_impossible_length(model):
    (model / "model.safetensors").write_bytes(b"\xff" * 100)
    assert "; it may be truncated (" in error_of(model)


@pytest.mark.parametrize(
    "header",
    [
        b"no json",
        b"[]",
        b"\xff\xfe",
        b'{"a": 3}',
        b'{"a": {"dtype": "F32", "shape": [2]}}',
        b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}',
        b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [8, 4]}}',
        b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [-4, 0]}}',
        b'{"a": {"dtype": "F32", "shape": [9], "data_offsets": [0, 36]}}',
        b'{"a": {"dtype": "F32", "shape": "x", "data_offsets": [0, 4]}}',
        b'{"a": {"dtype": [], "shape": [1], "data_offsets": [0, 4]}}',
    ],
)
def test_damaged_header(model, header):
    path = model / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"12345678")
    assert f"Cannot read {path}; it may be truncated" in error_of(model)


def test_truncated_h5(tmp_path):
    path = tmp_path / "tf_model.h5"
    made.FILES["h5"](tmp_path, "BertForPreTraining")
    made.write_config(tmp_path)
    data = path.read_bytes()
    for kept in [0, 1, 100, len(data) // 2, len(data) - 1]:
        path.write_bytes(data[:kept])
        assert f"Cannot read {path}; it may be truncated" in error_of(tmp_path)


def test_truncated_bin(tmp_path):
    made.write_config(tmp_path)
    for kind in ("bin", "older bin"):
        made.FILES[kind](tmp_path, "BertForPreTraining")
        path = tmp_path / "pytorch_model.bin"
        os.truncate(path, os.path.getsize(path) - 1)
        assert f"{path} is not a readable PyTorch file; it may" in error_of(tmp_path)


def test_a_program_in_a_bin(tmp_path):
    bad = made.Call(made.Global("os", "system"), f"touch {tmp_path}/proof")
    made.write_torch(tmp_path / "pytorch_model.bin", {"a": bad})
    assert "contains os.system, which is not a tensor" in error_of(tmp_path)
    assert os.listdir(tmp_path) == ["pytorch_model.bin"]


def test_file_that_goes_away(model):
    checkpoint = open_model(model)
    os.remove(model / "model.safetensors")
    with pytest.raises(UserError, match="Cannot read .*model.safetensors"):
        checkpoint.tensors()


def test_pointer_of_git_lfs(tmp_path):
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    for name in ("model.safetensors", "tf_model.h5", "pytorch_model.bin"):
        (tmp_path / name).write_text(pointer)
        assert f"{name} is a Git LFS pointer" in error_of(tmp_path / name)


@pytest.mark.parametrize("kind", ["sharded safetensors", "sharded bin"])
def test_shards_that_do_not_fit(tmp_path, kind):
    made.FILES[kind](tmp_path, "BertForPreTraining")
    made.write_config(tmp_path)
    (index,) = tmp_path.glob("*.index.json")
    shards = sorted(path for path in tmp_path.glob("*-of-*"))
    values = json.loads(index.read_text())
    values["weight_map"]["bert.other"] = shards[1].name
    index.write_text(json.dumps(values))
    assert f"{index} lists bert.other, which {shards[1].name} does" in error_of(
        tmp_path
    )
    os.remove(shards[1])
    message = error_of(tmp_path)
    assert message.startswith(f"{shards[1]} does not exist, but ")
    index.write_text("{}")
    assert f"{index} is not an index of weights" in error_of(tmp_path)
    index.write_text("{")
    assert f"{index} is not an index of weights" in error_of(tmp_path)


def test_shards_are_looked_for_beside_the_index(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    first, _ = made.FILES["sharded safetensors"](folder, "BertForPreTraining")
    os.replace(folder / first, tmp_path / first)
    index = folder / "model.safetensors.index.json"
    index.write_text(index.read_text().replace(first, f"../{first}"))
    assert f"{folder / first} does not exist" in error_of(folder)


def test_messages_name_what_the_user_gave(model, tmp_path):
    """Messages show the user's path, not the temporary folder of an archive."""
    os.truncate(model / "model.safetensors", 100)
    with pytest.raises(UserError, match=r"^Cannot read bert\.zip/model\.safetensors;"):
        transformers_model.open_model(str(model), "bert.zip")
    made.FILES["safetensors"](model, "BertForPreTraining")
    checkpoint = transformers_model.open_model(str(model), "bert.zip")
    assert checkpoint.path == "bert.zip"
    os.truncate(model / "model.safetensors", 5000)
    with pytest.raises(UserError, match=r"^Cannot read bert\.zip/model\.safetensors;"):
        checkpoint.tensors()


# `config.json`.


@pytest.mark.parametrize(
    "name, ours",
    [
        ("gelu", "gelu_erf"),
        ("gelu_python", "gelu_erf"),
        ("gelu_new", "gelu"),
        ("gelu_pytorch_tanh", "gelu"),
        ("gelu_fast", "gelu"),
        ("relu", "relu"),
        ("tanh", "tanh"),
    ],
)
def test_activations(model, name, ours):
    made.write_config(model, hidden_act=name)
    checkpoint = open_model(model)
    assert checkpoint.config.hidden_act == ours
    transformers_model.write_model(model, checkpoint)
    written = json.loads((model / "config.json").read_text())["hidden_act"]
    assert written == {"gelu_erf": "gelu", "gelu": "gelu_new"}.get(ours, ours)
    assert open_model(model).config == checkpoint.config


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"model_type": "roberta"}, "model_type 'roberta' is not a BERT"),
        ({"model_type": "distilbert"}, "model_type 'distilbert' is not a BERT"),
        ({"model_type": "electra"}, "model_type 'electra' is not a BERT"),
        (
            {"model_type": None, "architectures": ["RobertaModel"]},
            "architecture 'RobertaModel' is not a BERT",
        ),
        ({"is_decoder": True}, "is_decoder is true, so the model is a decoder"),
        ({"add_cross_attention": True}, "add_cross_attention is true"),
        (
            {"position_embedding_type": "relative_key"},
            "embedding_type is 'relative_key'",
        ),
        ({"pruned_heads": {"0": [1]}}, "pruned_heads is not empty"),
        (
            {"hidden_act": "quick_gelu"},
            "hidden_act is 'quick_gelu'. Supported activations",
        ),
        ({"hidden_act": ["gelu"]}, "hidden_act is ['gelu']. Supported activations"),
        ({"hidden_size": 0}, "hidden_size=0 is invalid"),
        ({"hidden_size": 9}, "hidden_size=9 is not a multiple"),
    ],
)
def test_configs_that_are_refused(model, changes, message):
    path = made.write_config(model, **changes)
    found = error_of(model)
    assert found.startswith(f"{path}: ") and message in found


def test_config_that_is_no_json(model):
    (model / "config.json").write_text("{,}")
    assert "config.json is not a config: line 1" in error_of(model)


@pytest.mark.parametrize(
    "changes",
    [
        {"model_type": "bert", "architectures": None},
        {"model_type": None, "architectures": ["TFBertModel"]},
        {"is_decoder": False, "add_cross_attention": False, "pruned_heads": {}},
        {"position_embedding_type": "absolute"},
        {"position_embedding_type": None},
    ],
)
def test_configs_that_are_not(model, changes):
    made.write_config(model, **changes)
    assert open_model(model).config.extra == {}


def test_missing_keys_are_as_transformers_has_them(model):
    (model / "config.json").write_text("{}")
    assert open_model(model).config == BertConfig(
        vocab_size=30522, hidden_act="gelu_erf", type_vocab_size=2
    )


def test_oldest_layout(model):
    """In a config of pytorch-pretrained-bert, gelu means the erf form."""
    os.rename(model / "config.json", model / "bert_config.json")
    config = open_model(model).config
    assert (config.hidden_act, config.hidden_size) == ("gelu_erf", 8)
    made.write_config(model, hidden_act="relu")
    assert open_model(model).config.hidden_act == "relu"


def test_epsilon(model):
    made.write_config(model, layer_norm_eps=1e-5)
    checkpoint = open_model(model)
    assert checkpoint.config.layer_norm_eps == 1e-5
    transformers_model.write_model(model, checkpoint)
    assert json.loads((model / "config.json").read_text())["layer_norm_eps"] == 1e-5
    standard = dataclasses.replace(checkpoint.config, layer_norm_eps=1e-12)
    checkpoint = dataclasses.replace(open_model(model), config=standard)
    transformers_model.write_model(model, checkpoint)
    assert json.loads((model / "config.json").read_text())["layer_norm_eps"] == 1e-12


def test_what_else_is_kept(model):
    kept = {
        "id2label": {"0": "no", "1": "yes"},
        "label2id": {"no": 0, "yes": 1},
        "problem_type": "single_label_classification",
        "classifier_dropout": 0.3,
        "pad_token_id": 1,
        "tie_word_embeddings": False,
        "directionality": "bidi",
        "pooler_fc_size": 768,
    }
    clutter = {
        "transformers_version": "4.8.2",
        "_name_or_path": "bert",
        "use_cache": True,
        "num_beams": 1,
        "temperature": 1.0,
        "torch_dtype": "float32",
        "output_past": True,
    }
    made.write_config(model, **kept, **clutter)
    first = open_model(model)
    assert first.config.extra == kept
    transformers_model.write_model(model, first)
    written = json.loads((model / "config.json").read_text())
    assert {key: written[key] for key in kept} == kept
    assert not clutter.keys() & written.keys()
    assert open_model(model).config == first.config
    usual = {"pad_token_id": 0, "tie_word_embeddings": True, "classifier_dropout": None}
    labels = {"id2label": {"0": "LABEL_0", "1": "LABEL_1"}, "label2id": {"LABEL_0": 0}}
    made.write_config(model, **usual, **labels)
    assert open_model(model).config.extra == {}


@pytest.mark.parametrize(
    "weights, stated, written",
    [
        ("BertModel", None, "BertModel"),
        ("BertModel", "BertForMaskedLM", "BertModel"),
        ("BertForPreTraining", None, "BertForPreTraining"),
        ("BertForPreTraining", "BertModel", "BertForPreTraining"),
        ("BertForPreTraining", "BertForMaskedLM", "BertForMaskedLM"),
        ("BertForPreTraining", "BertForQuestionAnswering", "BertForPreTraining"),
        ("BertForMaskedLM", "BertForPreTraining", "BertForMaskedLM"),
        ("BertForMaskedLM", "BertLMHeadModel", "BertForMaskedLM"),
        ("BertForNextSentencePrediction", None, "BertForNextSentencePrediction"),
        ("BertForQuestionAnswering", None, "BertForQuestionAnswering"),
        ("BertForTokenClassification", None, "BertForSequenceClassification"),
        (
            "BertForTokenClassification",
            "BertForTokenClassification",
            "BertForTokenClassification",
        ),
        (
            "BertForTokenClassification",
            "TFBertForMultipleChoice",
            "BertForMultipleChoice",
        ),
    ],
)
def test_architecture(model, weights, stated, written):
    made.write_config(model, architectures=stated and [stated])
    made.FILES["safetensors"](model, weights)
    checkpoint = open_model(model)
    transformers_model.write_model(model, checkpoint)
    config = json.loads((model / "config.json").read_text())
    assert (config["architectures"], config["model_type"]) == ([written], "bert")
    again = open_model(model).config
    labels = {
        key: again.extra.pop(key) for key in config_json.LABELS & again.extra.keys()
    }
    assert again == checkpoint.config
    assert bool(labels) == (written == "BertForSequenceClassification")


def test_labels_that_are_written(model):
    """As many labels are written as the head has outputs, as transformers needs."""
    made.FILES["safetensors"](model, "BertForSequenceClassification")
    checkpoint = open_model(model)
    transformers_model.write_model(model, checkpoint)
    config = json.loads((model / "config.json").read_text())
    assert config["id2label"] == {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}
    assert config["label2id"] == {"LABEL_0": 0, "LABEL_1": 1, "LABEL_2": 2}
    # When read again, they identify the model as a classifier.
    again = open_model(model).config
    assert again.extra == {key: config[key] for key in ("id2label", "label2id")}
    assert dataclasses.replace(again, extra={}) == checkpoint.config
    del config["id2label"], config["label2id"]  # As transformers does for two labels.
    (model / "config.json").write_text(json.dumps(config))
    assert open_model(model).config == again

    names = {"id2label": {"0": "x", "1": "y", "2": "z"}, "label2id": {"x": 0}}
    made.write_config(model, **names)
    transformers_model.write_model(model, open_model(model))
    config = json.loads((model / "config.json").read_text())
    assert {key: config[key] for key in names} == names

    made.write_config(model, id2label={"0": "x"})
    transformers_model.write_model(model, open_model(model))
    config = json.loads((model / "config.json").read_text())
    assert list(config["id2label"].values()) == ["LABEL_0", "LABEL_1", "LABEL_2"]


def test_a_checkpoint_of_google(tmp_path):
    """A checkpoint with Google's config is converted; its extra keys are kept."""
    tensors = made.weights()
    config = BertConfig.from_dict(
        {k: made.CONFIG[k] for k in made.CONFIG if k not in ("model_type",)}
        | {"directionality": "bidi", "pooler_type": "first_token_transform"}
    )
    shapes = {name: value.shape for name, value in tensors.items()}
    checkpoint = Checkpoint("x", "google", shapes, tensors.get, config)
    transformers_model.write_model(tmp_path, checkpoint)
    assert sorted(os.listdir(tmp_path)) == ["config.json", "model.safetensors"]
    again = open_model(tmp_path)
    assert_same(again.tensors(), tensors)
    assert again.config == config
    assert (again.vocab_file, again.do_lower_case) == (None, None)
    assert (
        json.loads((tmp_path / "config.json").read_text())["hidden_act"] == "gelu_new"
    )


@pytest.mark.parametrize(
    ("changes", "further", "message"),
    [
        ({}, "bilstm/forward_lstm/lstm_cell/bias", "has a BiLSTM on top"),
        ({"causal_attention": True}, None, "has causal_attention"),
    ],
)
def test_what_transformers_would_not_compute_is_not_written(
    tmp_path, changes, further, message
):
    tensors = made.weights()
    tensors |= {further: np.zeros(8, np.float32)} if further else {}
    stated = {k: made.CONFIG[k] for k in made.CONFIG if k != "model_type"}
    config = BertConfig.from_dict(stated | changes)
    shapes = {name: value.shape for name, value in tensors.items()}
    checkpoint = Checkpoint("x", "google", shapes, tensors.get, config)
    with pytest.raises(UserError, match=message):
        transformers_model.write_model(tmp_path, checkpoint)
    assert not os.listdir(tmp_path)


# The tokenizer.


def write_fast(directory, lowercase=True, vocab=None, **changes):
    """Write a `tokenizer.json`; `changes` apply to its normalizer."""
    normalizer = {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": True,
        "strip_accents": None,
        "lowercase": lowercase,
    }
    vocab = {token: i for i, token in enumerate(VOCAB)} if vocab is None else vocab
    path = directory / "tokenizer.json"
    value = {
        "added_tokens": [{"id": 0, "content": "[PAD]"}],
        "normalizer": normalizer | changes,
        "model": {"type": "WordPiece", "vocab": vocab},
    }
    path.write_text(json.dumps(value))
    return path


def write_settings(directory, **settings):
    path = directory / "tokenizer_config.json"
    path.write_text(json.dumps(settings))
    return path


@pytest.mark.parametrize("stated", [None, True, False])
@pytest.mark.parametrize("fast", [None, True, False])
def test_casing(model, stated, fast):
    if stated is not None:
        write_settings(model, do_lower_case=stated)
    if fast is not None:
        write_fast(model, fast)
    if None not in (stated, fast) and stated != fast:
        message = error_of(model)
        assert f"{model}/tokenizer_config.json has do_lower_case {stated}" in message
        assert f"{model}/tokenizer.json has lowercase {fast}" in message
    else:
        expected = fast if stated is None else stated
        assert open_model(model).do_lower_case is expected


def test_casing_that_is_no_casing(model):
    write_settings(model, do_lower_case="yes", strip_accents="no")
    checkpoint = open_model(model)
    assert (checkpoint.do_lower_case, checkpoint.notes) == (None, ())
    for value in ({"normalizer": [1]}, {"model": "WordPiece"}):
        (model / "tokenizer.json").write_text(json.dumps(value))
        assert f"{model}/tokenizer.json is not a tokenizer" in error_of(model)


def test_casing_within_a_sequence(model):
    path = write_fast(model, False)
    value = json.loads(path.read_text())
    steps = [{"type": "NFC"}, value["normalizer"]]
    value["normalizer"] = {"type": "Sequence", "normalizers": steps}
    path.write_text(json.dumps(value))
    assert open_model(model).do_lower_case is False


@pytest.mark.parametrize(
    "settings, what",
    [
        ({"tokenizer_class": "BertJapaneseTokenizer"}, "tokenizer is BertJapaneseTok"),
        ({"tokenizer_class": "PreTrainedTokenizerFast"}, "tokenizer is PreTrained"),
        ({"tokenize_chinese_chars": False}, "tokenize_chinese_chars is false"),
        ({"do_basic_tokenize": False}, "do_basic_tokenize is false"),
        ({"do_lower_case": True, "strip_accents": False}, "strip_accents is False and"),
        ({"do_lower_case": False, "strip_accents": True}, "strip_accents is True and"),
    ],
)
def test_settings_that_are_not_followed(model, settings, what):
    write_settings(model, **settings)
    (note,) = open_model(model).notes
    assert note.startswith("tokenizer_config.json: ") and what in note
    assert note.endswith("than in the original model.")


@pytest.mark.parametrize(
    "changes, what",
    [
        ({"handle_chinese_chars": False}, "handle_chinese_chars is false"),
        ({"strip_accents": False}, "strip_accents is False and lowercasing True"),
        ({"type": "Lowercase"}, "the normalizer is not BERT's"),
    ],
)
def test_a_normalizer_that_is_not_followed(model, changes, what):
    write_fast(model, **changes)
    (note,) = open_model(model).notes
    assert note.startswith("tokenizer.json: ") and what in note


@pytest.mark.parametrize(
    "settings",
    [
        {"tokenizer_class": "BertTokenizer", "strip_accents": None},
        {"tokenizer_class": "BertTokenizerFast", "do_lower_case": True},
        {"do_lower_case": True, "strip_accents": True, "tokenize_chinese_chars": True},
        {"do_lower_case": False, "strip_accents": False, "do_basic_tokenize": True},
        {"model_max_length": 512},
    ],
)
def test_settings_that_are(model, settings):
    write_settings(model, **settings)
    assert open_model(model).notes == ()


def test_general_class_with_our_normalizer(model):
    write_settings(model, tokenizer_class="PreTrainedTokenizerFast")
    write_fast(model)
    assert open_model(model).notes == ()


def test_another_model_of_tokens(model):
    path = write_fast(model)
    value = json.loads(path.read_text())
    value["model"] = {"type": "BPE", "vocab": {"a": 0}, "merges": []}
    path.write_text(json.dumps(value))
    (note,) = open_model(model).notes
    assert "tokenizer.json: the model is BPE" in note


def test_vocabulary_of_a_fast_tokenizer(model):
    """The vocabulary is read from `tokenizer.json`, as transformers 5 needs."""
    os.remove(model / "vocab.txt")
    assert open_model(model).vocab_file is None
    tokens = [*VOCAB[:9], "ü", "\u2028"]
    write_fast(model, vocab={t: i for i, t in reversed(list(enumerate(tokens)))})
    checkpoint = open_model(model)
    assert pathlib.Path(checkpoint.vocab_file).read_bytes() == vocab_bytes(tokens)
    assert checkpoint.notes == ()
    transformers_model.write_model(model, checkpoint)
    assert (model / "vocab.txt").read_bytes() == vocab_bytes(tokens)


def test_added_tokens_are_of_the_vocabulary(model):
    os.remove(model / "vocab.txt")
    path = write_fast(model)
    value = json.loads(path.read_text())
    value["added_tokens"] += [{"id": 11, "content": "new"}]
    path.write_text(json.dumps(value))
    found = pathlib.Path(open_model(model).vocab_file).read_bytes()
    assert found == vocab_bytes([*VOCAB, "new"])


@pytest.mark.parametrize("vocab", [{}, {"[PAD]": 0, "a": 2}, {"[PAD]": 0, "a\nb": 1}])
def test_vocabulary_that_is_none(model, vocab):
    os.remove(model / "vocab.txt")
    write_fast(model, vocab=vocab)
    checkpoint = open_model(model)
    assert checkpoint.vocab_file is None
    assert checkpoint.notes == (
        "vocab.txt does not exist, and tokenizer.json contains no usable vocabulary.",
    )


@pytest.mark.parametrize("tokens, guess", [(VOCAB, True), ([*VOCAB, "Ü"], False)])
@pytest.mark.parametrize("stated", [None, True, False])
def test_settings_that_are_written(model, tokens, guess, stated):
    write_vocab(model, tokens)
    if stated is not None:
        write_settings(model, do_lower_case=stated)
    transformers_model.write_model(model, open_model(model))
    settings = json.loads((model / "tokenizer_config.json").read_text())
    assert settings["do_lower_case"] is (guess if stated is None else stated)
    assert settings["tokenizer_class"] == "BertTokenizer"
    assert settings["model_max_length"] == 16
    assert settings["mask_token"] == "[MASK]" and settings["strip_accents"] is None
    again = open_model(model)
    assert again.do_lower_case is settings["do_lower_case"] and again.notes == ()


# Writing.


def test_size(model):
    """No tied tensor is stored twice, and no optimizer state is stored."""
    transformers_model.write_model(model, open_model(model))
    count = sum(value.size for value in made.weights().values())
    size = os.path.getsize(model / "model.safetensors")
    assert size < 4 * count + 200 * len(made.weights())


def test_weights_come_last(model, monkeypatch):
    """A directory has weights only while they fit its other files."""
    checkpoint = open_model(model)
    seen = []

    def save_file(*_):
        seen.extend(sorted(os.listdir(model)))
        raise KeyboardInterrupt

    monkeypatch.setattr(safetensors.numpy, "save_file", save_file)
    with pytest.raises(KeyboardInterrupt):
        transformers_model.write_model(model, checkpoint)
    assert seen == ["config.json", "tokenizer_config.json", "vocab.txt"]
    assert sorted(os.listdir(model)) == seen


def test_a_damaged_checkpoint_writes_nothing(model, tmp_path):
    checkpoint = open_model(model)
    os.truncate(model / "model.safetensors", 6000)
    target = tmp_path / "target"
    target.mkdir()
    with pytest.raises(UserError, match="Cannot read"):
        transformers_model.write_model(target, checkpoint)
    assert os.listdir(target) == []


def test_a_disk_that_is_full(model, monkeypatch):
    def save_file(*_):
        raise safetensors.SafetensorError("I/O error: No space left on device")

    checkpoint = open_model(model)
    monkeypatch.setattr(safetensors.numpy, "save_file", save_file)
    with pytest.raises(UserError, match="Cannot write .*safetensors: I/O error: No sp"):
        transformers_model.write_model(model, checkpoint)


# Real files.


@pytest.mark.comparison
@pytest.mark.parametrize(
    "name, count, architecture, casing",
    [
        ("hf-allenai-kb-fixture", 46, "BertForPreTraining", None),
        ("hf-camphr-fixtures/bert-test", 39, "BertModel", None),
        ("hf-camphr-fixtures/ner_bert", 23, "BertForTokenClassification", True),
        ("hf-camphr-fixtures/bert-base-japanese-test", 55, "BertModel", None),
    ],
)
def test_real_models(shared, tmp_path, name, count, architecture, casing):
    first = open_model(shared / FIXTURES / name)
    assert len(first.shapes) == count and first.notes == ()
    assert all(map(tensor_names.is_known, first.shapes))
    assert first.do_lower_case is casing
    config = first.config
    assert first.shapes["bert/encoder/layer_0/intermediate/dense/kernel"] == (
        config.hidden_size,
        config.intermediate_size,
    )
    transformers_model.write_model(tmp_path, first)
    second = open_model(tmp_path)
    assert_same(second.tensors(), first.tensors())
    assert second.config == config and config.hidden_act == "gelu_erf"
    written = json.loads((tmp_path / "config.json").read_text())
    assert written["architectures"] == [architecture]


@pytest.mark.comparison
def test_real_labels(shared):
    extra = open_model(shared / FIXTURES / "hf-camphr-fixtures/ner_bert").config.extra
    assert list(extra) == ["architectures", "id2label", "label2id"]
    assert extra["id2label"]["3"] == "B-PER"


def test_the_lists_here_are_complete():
    """The lists above contain each part of this package's pre-training model."""
    config = BertConfig(**{k: v for k, v in made.CONFIG.items() if k != "model_type"})
    paths = [v.path for v in PretrainingModel(config).trainable_variables]
    assert sorted(paths) == sorted(made.weights())
