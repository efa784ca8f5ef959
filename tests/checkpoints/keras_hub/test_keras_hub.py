"""KerasHub presets: presets that we write load there, and the reverse."""

import dataclasses
import json
import pathlib

import keras
import keras_hub as library
import numpy as np
import pytest
import tiny_model
from marks import slow

from official_bert.checkpoints import initialize
from official_bert.checkpoints.checkpoint import Checkpoint
from official_bert.checkpoints.keras_hub import bert_backbone, preset
from official_bert.checkpoints.keras_hub.detection import is_preset
from official_bert.config import BertConfig
from official_bert.errors import UserError
from official_bert.modeling import heads
from official_bert.modeling.encoder import BertEncoder

CONFIG = BertConfig(
    vocab_size=128,
    hidden_size=32,
    num_hidden_layers=3,
    num_attention_heads=4,
    intermediate_size=48,
    max_position_embeddings=40,
    type_vocab_size=2,
)
VOCAB = tiny_model.VOCAB
CLASSIFIER = ("output_weights", "output_bias")


def random_tensors(config=CONFIG):
    """Return weights that keep activations at normal sizes."""
    return {
        name: (1.0 if name.endswith("gamma") else 0.0) + np.float32(0.3) * value
        for name, value in tiny_model.tensors(config).items()
    }


VALUES = {name: np.float32(value) for name, value in random_tensors().items()}


def made(names=VALUES, config=CONFIG, vocab_file=str(VOCAB), casing=True, **more):
    """Return a `Checkpoint` of some of the weights, and of other tensors."""
    values = {name: VALUES[name] for name in names} | more
    shapes = {name: value.shape for name, value in values.items()}
    return Checkpoint(
        "source", "google", shapes, values.__getitem__, config, vocab_file, casing
    )


def named(*beginnings):
    return [name for name in VALUES if name.startswith(beginnings)]


def write(directory, checkpoint):
    directory.mkdir(exist_ok=True)
    return preset.write_preset(str(directory), checkpoint)


def opened(directory):
    assert is_preset(str(directory))
    return preset.open_preset(str(directory), str(directory))


def assert_same_tensors(after, before):
    assert after.shapes.keys() == before.shapes.keys()
    for name, value in after.tensors().items():
        assert value.dtype == np.float32 and value.flags.c_contiguous
        assert value.shape == tuple(after.shapes[name]) == before.shapes[name], name
        assert value.tobytes() == before.read(name).tobytes(), name


CASES = {
    "encoder": made(named("bert/")),
    "all heads": made(),
    "pre-training": made(named("bert/", "cls/predictions", "cls/seq_relationship")),
    "classifier": made(named("bert/", "output_")),
    "SQuAD": made(named("bert/", "cls/squad")),
    "no pooler": made(named("bert/embeddings", "bert/encoder", "cls/predictions")),
    "half a head": made(named("bert/", "cls/predictions/output_bias")),
    "half a pooler": made(
        named("bert/embeddings", "bert/encoder", "bert/pooler/dense/kernel")
    ),
    "unknown": made(
        named("bert/"), mine=np.arange(6, dtype=np.float32).reshape(2, 3).T
    ),
    "no vocabulary": made(vocab_file=None, casing=False),
    "cased": made(named("bert/", "output_"), casing=False),
    "erf": made(config=dataclasses.replace(CONFIG, hidden_act="gelu_erf")),
    "config": made(
        config=dataclasses.replace(
            CONFIG,
            hidden_dropout_prob=0.2,
            initializer_range=0.01,
            extra={"pooler_type": "first_token_transform"},
        )
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_there_and_back(tmp_path, case):
    before = CASES[case]
    write(tmp_path, before)
    after = opened(tmp_path)
    assert_same_tensors(after, before)
    assert (after.format, after.path) == ("keras_hub", str(tmp_path))
    assert (after.config, after.do_lower_case) == (before.config, before.do_lower_case)
    if before.vocab_file:
        assert pathlib.Path(after.vocab_file).read_bytes() == VOCAB.read_bytes()
    else:
        assert after.vocab_file is None
    assert after.notes == ()


def test_casing_is_guessed_where_none_is_stated(tmp_path):
    write(tmp_path, made(named("bert/"), casing=None))
    assert opened(tmp_path).do_lower_case is True


def test_the_vocabulary_keeps_its_bytes(tmp_path):
    """The vocabulary keeps its bytes, although KerasHub would rewrite its lines."""
    source = tmp_path / "vocab.txt"
    source.write_bytes(VOCAB.read_bytes().rstrip().replace(b"\n", b"\r\n"))
    write(tmp_path / "preset", made(named("bert/"), vocab_file=str(source)))
    copied = pathlib.Path(opened(tmp_path / "preset").vocab_file)
    assert copied.read_bytes() == source.read_bytes()


def batch(length=33, seed=1):
    """Return our features and KerasHub's, with padding and two segments."""
    rng = np.random.default_rng(seed)
    mask = np.arange(length) < np.array([[33], [20], [7], [2]])
    ours = {
        "input_ids": rng.integers(0, CONFIG.vocab_size, (4, length)),
        "input_mask": mask,
        "segment_ids": rng.integers(0, 2, (4, length)),
    }
    ours = {name: value.astype(np.int32) for name, value in ours.items()}
    names = ("token_ids", "padding_mask", "segment_ids")
    return ours, dict(zip(names, ours.values(), strict=True))


def encoder(checkpoint):
    """Return our encoder, initialized from a checkpoint."""
    model = BertEncoder(checkpoint.config)
    assert initialize.load_opened(model, checkpoint).new == []
    return model


def assert_same_outputs(ours, theirs):
    features, inputs = batch()
    found, expected = ours(features), theirs(inputs)
    for name in ("sequence_output", "pooled_output"):
        np.testing.assert_allclose(found[name], expected[name], atol=1e-5, rtol=0)
    assert np.std(expected["sequence_output"]) > 0.1


@pytest.fixture(scope="module")
def backbone():
    """Return a backbone with random weights, made by KerasHub."""
    return new_backbone()


def new_backbone(**options):
    made = library.models.BertBackbone(
        vocabulary_size=CONFIG.vocab_size,
        num_layers=CONFIG.num_hidden_layers,
        num_heads=CONFIG.num_attention_heads,
        hidden_dim=CONFIG.hidden_size,
        intermediate_dim=CONFIG.intermediate_size,
        max_sequence_length=CONFIG.max_position_embeddings,
        **options,
    )
    scramble(made.weights)
    return made


def scramble(variables):
    rng = np.random.default_rng(2)
    for each in variables:
        value = (1.0 if each.name == "gamma" else 0.0) + rng.normal(0, 0.3, each.shape)
        each.assign(value)


@pytest.mark.comparison
def test_their_backbone_becomes_our_encoder(backbone):
    checkpoint = bert_backbone.from_backbone(backbone)
    assert checkpoint.config == CONFIG
    assert_same_outputs(encoder(checkpoint), backbone)


@pytest.mark.comparison
def test_our_weights_become_their_backbone():
    checkpoint = made(named("bert/"))
    assert_same_outputs(encoder(checkpoint), bert_backbone.to_backbone(checkpoint))


def test_to_a_backbone_and_back():
    checkpoint = made(named("bert/"))
    back = bert_backbone.from_backbone(bert_backbone.to_backbone(checkpoint))
    assert_same_tensors(back, checkpoint)


def test_only_a_backbone_is_one():
    with pytest.raises(UserError, match="Dense is not a keras_hub.models.BertBackbone"):
        bert_backbone.from_backbone(keras.layers.Dense(3))


@pytest.mark.comparison
def test_kerashub_loads_the_encoder(tmp_path):
    checkpoint = made(named("bert/"))
    write(tmp_path, checkpoint)
    theirs = library.models.BertBackbone.from_preset(str(tmp_path))
    assert_same_outputs(encoder(checkpoint), theirs)


@pytest.mark.comparison
def test_kerashub_loads_the_classifier(tmp_path):
    checkpoint = made(named("bert/", "output_"))
    write(tmp_path, checkpoint)
    theirs = library.models.BertTextClassifier.from_preset(
        str(tmp_path), preprocessor=None
    )
    features, inputs = batch()
    pooled = encoder(checkpoint)(features)["pooled_output"].numpy()
    weights, bias = (VALUES[name] for name in CLASSIFIER)
    np.testing.assert_allclose(theirs(inputs), pooled @ weights.T + bias, atol=1e-5)
    # Its tokenizer lets it process text.
    theirs = library.models.TextClassifier.from_preset(str(tmp_path))
    assert theirs.predict(["a text", "another"], verbose=0).shape == (2, 3)


@pytest.mark.comparison
def test_kerashub_loads_the_masked_lm_head(tmp_path):
    """KerasHub loads our masked-LM head; its own GELU and epsilon are noted."""
    checkpoint = made(named("bert/", "cls/predictions"))
    notes = write(tmp_path, checkpoint)
    assert notes == [preset.HEAD_NOTE]
    theirs = library.models.BertMaskedLM.from_preset(str(tmp_path), preprocessor=None)
    features, inputs = batch()
    positions = np.array([[1, 2], [3, 4], [5, 6], [0, 1]])
    model = encoder(checkpoint)
    config = dataclasses.replace(CONFIG, hidden_act="gelu_erf", layer_norm_eps=1e-5)
    head = heads.MaskedLM(config)
    for variable in head.trainable_variables:
        variable.assign(VALUES["cls/" + variable.path])
    expected = head(
        model(features)["sequence_output"], positions, model.embedding_table
    )
    found = theirs({**inputs, "mask_positions": positions})
    np.testing.assert_allclose(found, expected, atol=5e-5, rtol=0)


@pytest.mark.parametrize(("casing", "word"), [(True, "the"), (False, "[UNK]")])
def test_kerashub_loads_the_tokenizer(tmp_path, casing, word):
    write(tmp_path, made(named("bert/"), casing=casing))
    tokenizer = library.models.BertTokenizer.from_preset(str(tmp_path))
    lines = VOCAB.read_text(encoding="utf-8").splitlines()
    assert tokenizer.get_vocabulary() == lines
    ids = np.asarray(tokenizer("THÉ"))
    assert [lines[index] for index in ids] == [word]


@pytest.mark.parametrize(
    "name",
    [
        slow("bert-base-chinese"),
        slow("bert-base-multilingual-cased"),
        "bert-base-cased",
    ],
)
def test_released_vocabularies(tmp_path, shared, name):
    """Released vocabularies keep their bytes; the Chinese one has an empty line."""
    folder = shared / "data" / "vocab" / name
    (vocab_file,) = folder.glob("*vocab.txt")
    source = vocab_file.read_bytes()
    write(tmp_path, made(named("bert/"), vocab_file=str(vocab_file), casing=None))
    assert pathlib.Path(opened(tmp_path).vocab_file).read_bytes() == source
    tokenizer = library.models.BertTokenizer.from_preset(str(tmp_path))
    assert tokenizer.vocabulary_size() == source.count(b"\n")


def preprocessor(kind):
    tokenizer = library.models.BertTokenizer(vocabulary=str(VOCAB), lowercase=True)
    return kind(tokenizer, sequence_length=16)


def test_a_preset_of_their_backbone(tmp_path, backbone):
    backbone.save_to_preset(str(tmp_path))
    checkpoint = opened(tmp_path)
    assert_same_tensors(checkpoint, bert_backbone.from_backbone(backbone))
    assert checkpoint.config == CONFIG
    assert (checkpoint.vocab_file, checkpoint.do_lower_case) == (None, None)
    assert checkpoint.notes == ()


@pytest.mark.parametrize("tokenizer", [True, False])
def test_a_preset_of_their_masked_lm(tmp_path, backbone, tokenizer):
    kind = library.models.BertMaskedLMPreprocessor
    task = library.models.BertMaskedLM(
        backbone, preprocessor=preprocessor(kind) if tokenizer else None
    )
    scramble(task.masked_lm_head.weights)
    task.save_to_preset(str(tmp_path))
    checkpoint = opened(tmp_path)
    assert set(checkpoint.shapes) == set(named("bert/", "cls/predictions"))
    head = task.masked_lm_head
    for name, variable in {
        "transform/dense/kernel": head._intermediate_dense.kernel,
        "transform/dense/bias": head._intermediate_dense.bias,
        "transform/LayerNorm/gamma": head._intermediate_layer_norm.gamma,
        "transform/LayerNorm/beta": head._intermediate_layer_norm.beta,
        "output_bias": head._bias,
    }.items():
        value = checkpoint.read("cls/predictions/" + name)
        np.testing.assert_array_equal(value, variable.numpy())
    accents = [preset.ACCENTS_NOTE] if tokenizer else []
    assert checkpoint.notes == (preset.HEAD_NOTE, *accents)
    assert checkpoint.do_lower_case is (True if tokenizer else None)
    if tokenizer:
        found = pathlib.Path(checkpoint.vocab_file).read_bytes()
        assert found == VOCAB.read_bytes()


@pytest.mark.parametrize("tokenizer", [True, False])
def test_a_preset_of_their_classifier(tmp_path, backbone, tokenizer):
    kind = library.models.BertTextClassifierPreprocessor
    task = library.models.BertTextClassifier(
        backbone,
        num_classes=5,
        activation="softmax",
        preprocessor=preprocessor(kind) if tokenizer else None,
    )
    scramble(task.output_dense.weights)
    task.save_to_preset(str(tmp_path))
    checkpoint = opened(tmp_path)
    assert set(checkpoint.shapes) == {*named("bert/"), *CLASSIFIER}
    assert checkpoint.shapes["output_weights"] == (5, CONFIG.hidden_size)
    for name, variable in zip(CLASSIFIER, task.output_dense.weights, strict=True):
        np.testing.assert_array_equal(checkpoint.read(name), variable.numpy().T)


def test_a_preset_of_a_task_without_head(tmp_path, backbone):
    library.models.BertTextEmbedder(backbone).save_to_preset(str(tmp_path))
    checkpoint = opened(tmp_path)
    assert_same_tensors(checkpoint, bert_backbone.from_backbone(backbone))
    assert checkpoint.notes == (
        "The task is a BertTextEmbedder; only its encoder was read.",
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_becomes_float32(tmp_path, dtype):
    half = new_backbone(dtype=dtype)
    task = library.models.BertTextClassifier(half, num_classes=3)
    task.save_to_preset(str(tmp_path))
    checkpoint = opened(tmp_path)
    assert_same_tensors(
        dataclasses.replace(
            checkpoint,
            shapes={n: s for n, s in checkpoint.shapes.items() if n not in CLASSIFIER},
        ),
        bert_backbone.from_backbone(half),
    )
    kernel = keras.ops.convert_to_numpy(task.output_dense.kernel).astype(np.float32)
    np.testing.assert_array_equal(checkpoint.read("output_weights"), kernel.T)
    assert checkpoint.notes == (f"The {dtype} weights were read as float32.",)


def test_a_preset_of_kerasnlp(tmp_path, backbone):
    """Presets with KerasHub's former name, KerasNLP, are read."""
    backbone.save_to_preset(str(tmp_path))
    edit(tmp_path / "config.json", registered_name="keras_nlp>BertBackbone")
    assert_same_tensors(opened(tmp_path), bert_backbone.from_backbone(backbone))


def test_shards(tmp_path, backbone):
    backbone.save_to_preset(str(tmp_path), max_shard_size=5e-5)
    assert len(list(tmp_path.glob("model_*.weights.h5"))) > 1
    assert_same_tensors(opened(tmp_path), bert_backbone.from_backbone(backbone))


def edit(path, **changes):
    """Change keys of a JSON file; `config__key` is a key in its `config`."""
    values = json.loads(path.read_text())
    for key, value in changes.items():
        inner, _, leaf = key.rpartition("__")
        (values[inner] if inner else values)[leaf] = value
    path.write_text(json.dumps(values))


def test_what_is_a_preset(tmp_path):
    assert not is_preset(str(tmp_path))
    config = tmp_path / "config.json"
    for text in ('{"model_type": "bert"}', '{"registered_name": null}', "{", "[]"):
        config.write_text(text)
        assert not is_preset(str(tmp_path)), text
    assert not is_preset(str(config))
    config.write_text('{"registered_name": "keras_hub>RobertaBackbone"}')
    assert is_preset(str(tmp_path))


def test_another_architecture(tmp_path):
    sizes = {"vocabulary_size": 9, "num_layers": 1, "num_heads": 1}
    other = library.models.RobertaBackbone(**sizes, hidden_dim=4, intermediate_dim=4)
    other.save_to_preset(str(tmp_path))
    refused(tmp_path, "is a KerasHub preset of a RobertaBackbone, not of a BERT")


def test_a_quantised_preset(tmp_path, backbone):
    backbone.save_to_preset(str(tmp_path))
    policy = {"class_name": "DTypePolicyMap", "config": {"policy_map": {}}}
    edit(tmp_path / "config.json", config__dtype=policy)
    refused(tmp_path, "is a quantized KerasHub preset. Give the preset before")


def refused(directory, message):
    with pytest.raises(UserError, match=message) as caught:
        opened(directory)
    assert str(directory) in str(caught.value)


def truncate(path):
    path.write_bytes(path.read_bytes()[:1000])


@pytest.mark.parametrize("name", ["model.weights.h5", "task.weights.h5"])
def test_damaged_weights(tmp_path, name):
    write(tmp_path, made())
    truncate(tmp_path / name)
    refused(tmp_path, f"{name} is damaged or belongs to another model .*truncated")
    (tmp_path / name).unlink()
    refused(tmp_path, f"has no {name}. Copy the complete preset")


def test_damaged_other_weights(tmp_path):
    write(tmp_path, made())
    truncate(tmp_path / "other_weights.safetensors")
    refused(tmp_path, r"other_weights.safetensors is damaged \(")


def test_damaged_files(tmp_path):
    write(tmp_path, made())
    for name in ("task.json", "tokenizer.json"):
        whole = (tmp_path / name).read_text()
        (tmp_path / name).write_text(whole[:-100])
        refused(tmp_path, f"{name} is not a KerasHub t.*: line")
        (tmp_path / name).write_text(whole)


def test_a_classifier_without_number_of_classes(tmp_path):
    write(tmp_path, CASES["classifier"])
    edit(tmp_path / "task.json", config__num_classes=None)
    refused(tmp_path, "task.json has no num_classes. Copy the complete preset")


def test_weights_of_another_size(tmp_path, backbone):
    backbone.save_to_preset(str(tmp_path))
    edit(tmp_path / "config.json", config__vocabulary_size=100)
    refused(tmp_path, "model.weights.h5 is damaged or belongs to another model")


def test_weights_of_fewer_layers(tmp_path, backbone):
    backbone.save_to_preset(str(tmp_path))
    edit(tmp_path / "config.json", config__num_layers=4)
    refused(tmp_path, "model.weights.h5 is damaged or belongs to another model")


def test_an_impossible_config(tmp_path, backbone):
    backbone.save_to_preset(str(tmp_path))
    edit(tmp_path / "config.json", config__num_heads=5)
    refused(tmp_path, "config.json: hidden_size=32 is not a multiple")
    edit(tmp_path / "config.json", config={"vocabulary_size": 128})
    refused(tmp_path, "config.json has no hidden_dim")


def test_a_preset_written_anew_over_ours(tmp_path, backbone):
    write(tmp_path, made(config=dataclasses.replace(CONFIG, hidden_act="gelu_erf")))
    edit(tmp_path / "bert_config.json", num_hidden_layers=2)
    refused(
        tmp_path,
        "bert_config.json has num_hidden_layers 2, but config.json has 3. .*remove",
    )


def test_a_pooler_that_kerashub_trained_since(tmp_path):
    write(tmp_path, made(named("bert/embeddings", "bert/encoder")))
    theirs = library.models.BertBackbone.from_preset(str(tmp_path))
    assert not np.any(theirs.pooled_dense.kernel)
    scramble(theirs.pooled_dense.weights)
    theirs.save_to_preset(str(tmp_path))
    assert_same_tensors(opened(tmp_path), bert_backbone.from_backbone(theirs))


def notes_of(tmp_path, checkpoint):
    return " ".join(write(tmp_path, checkpoint))


def test_what_kerashub_will_not_do_is_said(tmp_path):
    assert notes_of(tmp_path / "0", CASES["encoder"]) == ""
    assert notes_of(tmp_path / "1", CASES["classifier"]) == ""
    assert "trained with the erf GELU" in notes_of(tmp_path / "2", CASES["erf"])
    assert "it applies 0.2 to the attention too, instead of 0.1" in notes_of(
        tmp_path / "3", CASES["config"]
    )
    assert "has no bert/pooler/dense/bias; KerasHub sets these to 0" in notes_of(
        tmp_path / "4", CASES["half a pooler"]
    )
    squad = (
        "cannot store cls/squad/output_weights, cls/squad/output_bias; "
        "they are in other_weights"
    )
    assert squad in notes_of(tmp_path / "5", CASES["SQuAD"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"hidden_act": "relu"},
            "hidden_act 'relu', but KerasHub's BERT computes only",
        ),
        (
            {"layer_norm_eps": 1e-5},
            "layer_norm_eps 1e-05, but KerasHub's BERT computes",
        ),
        (
            {"vocab_size": 100},
            r"word_embeddings is \[128, 32\], expected \[100, 32\]",
        ),
        ({"num_hidden_layers": 4}, "has no bert/encoder/layer_3/attention/self/query"),
    ],
)
def test_models_that_kerashub_cannot_hold(tmp_path, changes, message):
    config = dataclasses.replace(CONFIG, **changes)
    with pytest.raises(UserError, match=f"source .*{message}"):
        write(tmp_path, made(config=config))
    assert not list(tmp_path.iterdir())


def test_a_config_is_needed(tmp_path):
    with pytest.raises(UserError, match="source has no config"):
        write(tmp_path, made(config=None))
