"""`official_bert.load`: texts in; tensors, vectors and tokens out."""

import dataclasses
import re

import keras
import numpy as np
import pytest
import tensorflow as tf
import tiny_model
from record_files import MINI_CONFIG

import official_bert
from official_bert.constants import INPUTS
from official_bert.errors import UserError
from official_bert.modeling.encoder import BertEncoder
from official_bert.pretrained import bert as pretrained
from official_bert.pretrained import fill_mask
from official_bert.pretrained.feature_extraction import Reading, sentence_vectors

LIMIT = MINI_CONFIG.max_position_embeddings
TEXTS = ["the light on water", "", "the " * 50, "of her", "the light"]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tiny_model.write(tmp_path_factory.mktemp("models") / "model")


@pytest.fixture(scope="module")
def bert(directory):
    return official_bert.load(directory)


@pytest.fixture(scope="module")
def encoder(directory):
    return official_bert.load_encoder(directory)


def tokens(bert, row):
    return [bert.tokenizer.inv_vocab[index] for index in row.numpy().tolist()]


def test_what_encode_returns(bert):
    batch = bert.encode(["the light", "of"])
    assert list(batch) == list(INPUTS)
    assert all(isinstance(value, tf.Tensor) for value in batch.values())
    assert {value.dtype for value in batch.values()} == {tf.int32}
    assert tokens(bert, batch["input_ids"][0]) == ["[CLS]", "the", "light", "[SEP]"]
    assert batch["input_mask"].numpy().tolist() == [[1, 1, 1, 1], [1, 1, 1, 0]]
    assert batch["segment_ids"].numpy().tolist() == [[0] * 4] * 2
    outputs = bert.encoder(batch)
    assert outputs["sequence_output"].shape == (2, 4, MINI_CONFIG.hidden_size)


def test_pairs_have_two_segments_and_lose_the_longer_text_s_end(bert):
    batch = bert.encode(["the light on", "of"], ["water", "the water light on her"], 7)
    rows = [tokens(bert, row) for row in batch["input_ids"]]
    assert rows == [
        ["[CLS]", "the", "light", "on", "[SEP]", "water", "[SEP]"],
        ["[CLS]", "of", "[SEP]", "the", "water", "light", "[SEP]"],
    ]
    assert batch["segment_ids"].numpy().tolist() == [
        [0, 0, 0, 0, 0, 1, 1],
        [0, 0, 0, 1, 1, 1, 1],
    ]
    tuples = bert.encode([("the light on", "water"), "of"], max_seq_length=7)
    assert tokens(bert, tuples["input_ids"][0]) == rows[0]


@pytest.mark.parametrize(
    ("length", "padding", "wanted"),
    [
        (None, None, LIMIT),  # The longest text is cut here.
        (None, "max_seq_length", LIMIT),
        (10, None, 10),
        (20, "longest", 20),
        (20, "max_seq_length", 20),
    ],
)
def test_lengths(bert, length, padding, wanted):
    batch = bert.encode(TEXTS, max_seq_length=length, padding=padding)
    assert batch["input_ids"].shape == (len(TEXTS), wanted)
    assert batch["input_mask"].numpy().sum(1).tolist()[2] == wanted


def test_padding_to_the_longest_text_or_to_a_length(bert):
    short = ["the light", "of"]
    for options, length in (
        ({}, 4),
        ({"max_seq_length": 9}, 9),
        ({"max_seq_length": 9, "padding": "longest"}, 4),
        ({"padding": "max_seq_length"}, LIMIT),
    ):
        batch = bert.encode(short, **options)
        assert {value.shape[1] for value in batch.values()} == {length}, options
        assert batch["input_mask"].numpy().sum() == 7
        assert batch["input_ids"].numpy()[:, 4:].sum() == 0


@pytest.mark.parametrize("name", ["bert", "encoder"])
def test_vectors_are_those_of_feature_extraction(request, name):
    """This also holds for a model with heads."""
    bert = request.getfixturevalue(name)
    found = bert.vectors(TEXTS)
    assert (found.dtype, found.shape) == (np.float32, (5, MINI_CONFIG.hidden_size))
    wanted = sentence_vectors(bert, TEXTS, "mean", (-1,), Reading(LIMIT))
    np.testing.assert_array_equal(found, wanted)
    # Computed by hand for one text.
    batch = bert.encode(TEXTS[:1])
    mean = bert.encoder(batch)["sequence_output"].numpy()[0].mean(0)
    np.testing.assert_allclose(found[0], mean, atol=1e-5)


@pytest.mark.parametrize("pooling", ["cls", "pooler"])
def test_other_vectors(bert, pooling):
    found = bert.vectors(["the light"], ["of her"], 6, pooling)
    outputs = bert.encoder(bert.encode(["the light"], ["of her"], 6))
    wanted = outputs["pooled_output"]
    if pooling == "cls":
        wanted = outputs["sequence_output"][:, 0]
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_fill_mask(bert):
    (found,) = bert.fill_mask("the [MASK] on water", top_k=3)
    assert found == fill_mask.fill_mask(bert, "the [MASK] on water", 3)[0]
    assert len(found) == 3 and found[0].probability >= found[1].probability


def test_an_encoder_has_no_fill_mask(encoder):
    with pytest.raises(UserError, match=r"loaded with load_encoder\. Load it with off"):
        encoder.fill_mask("the [MASK]")


def test_a_model_with_its_masked_lm_head_alone(tmp_path):
    """The message names the argument that accepts such a model."""
    checkpoint = tiny_model.checkpoint()
    shapes = {
        name: shape
        for name, shape in checkpoint.shapes.items()
        if "seq_relationship" not in name
    }
    checkpoint = dataclasses.replace(checkpoint, shapes=shapes)
    tiny_model.google.write_model(str(tmp_path), checkpoint)
    with pytest.raises(UserError, match="In Python, next_sentence=False loads it"):
        official_bert.load(tmp_path)
    assert official_bert.load(tmp_path, next_sentence=False).fill_mask("[MASK]")


def test_a_keras_model_on_the_encoder_learns(bert):
    """`compile` and `fit` work with the result of `encode`."""
    keras.utils.set_random_seed(1)
    layer = BertEncoder(MINI_CONFIG)
    start = pretrained.Bert(layer, bert.tokenizer, MINI_CONFIG, bert.report)
    inputs = {name: keras.Input([None], dtype="int32", name=name) for name in INPUTS}
    pooled = start.encoder(inputs)["pooled_output"]
    model = keras.Model(inputs, keras.layers.Dense(2)(pooled))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(3e-3), loss)
    batch = start.encode(["the light on water", "of her dough"] * 4)
    before = layer.get_weights()
    losses = model.fit(batch, np.array([0, 1] * 4), epochs=20, verbose=0).history
    assert losses["loss"][-1] < losses["loss"][0] / 2
    assert model.predict(batch, verbose=0).argmax(1).tolist() == [0, 1] * 4
    changed = [
        np.any(one != other)
        for one, other in zip(before, layer.get_weights(), strict=True)
    ]
    assert np.mean(changed) > 0.9
    # Longer texts need no other model.
    assert model.predict(start.encode(["the " * 9]), verbose=0).shape == (1, 2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((["a"], ["b", "c"]), "There are 1 texts but 2 text_pairs"),
        ((["a"], None, LIMIT + 1), f"max_seq_length={LIMIT + 1} is too long"),
        ((["a"], None, 2), "max_seq_length is 2"),
        ((["a"], None, 9, "left"), "padding='left' is invalid. Choose 'longest' or"),
    ],
)
def test_what_encode_refuses(bert, arguments, words):
    with pytest.raises(UserError, match=re.escape(words)):
        bert.encode(*arguments)


@pytest.mark.parametrize(
    "texts", ["the light", ["a", 7], [("a", "b", "c")], [["a", 1]]]
)
def test_what_is_no_list_of_texts(bert, texts):
    for method in (bert.encode, bert.vectors):
        with pytest.raises(TypeError, match="list of texts|neither a str nor a pair"):
            method(texts)


def test_a_model_of_single_texts(bert):
    config = dataclasses.replace(MINI_CONFIG, type_vocab_size=1)
    other = pretrained.Bert(bert.model, bert.tokenizer, config, bert.report)
    with pytest.raises(UserError, match="Text 0 \\(counted from 0\\) is a pair"):
        other.encode([("a", "b")])
