"""Predicted tokens at the [MASK] positions of a text."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from record_files import MINI, MINI_CONFIG

from official_bert.checkpoints.model_directory import Bert
from official_bert.errors import UserError
from official_bert.modeling.pretraining import PretrainingModel, masked_lm_terms
from official_bert.pretrained.fill_mask import encode_with_masks, fill_mask
from official_bert.tokenization.full import FullTokenizer

SENTENCE = "she found that the light over the water was one of years"


@pytest.fixture(scope="module")
def bert():
    keras.utils.set_random_seed(3)
    tokenizer = FullTokenizer(str(MINI / "vocab.txt"))
    return Bert(PretrainingModel(MINI_CONFIG), tokenizer, MINI_CONFIG)


@pytest.fixture(scope="module")
def learned(bert):
    """Return a model that learned one sentence by heart, each word masked once."""
    tokens = bert.tokenizer.tokenize(SENTENCE)
    ids = encode_with_masks(bert.tokenizer, SENTENCE)
    places = range(1, len(ids) - 1)
    mask = bert.tokenizer.vocab["[MASK]"]
    features = {
        "input_ids": tf.constant([[*ids[:p], mask, *ids[p + 1 :]] for p in places]),
        "masked_lm_positions": tf.constant([[p] for p in places]),
        "masked_lm_ids": tf.constant([[ids[p]] for p in places]),
        "masked_lm_weights": tf.ones([len(places), 1]),
    }
    optimizer = keras.optimizers.Adam(0.02)
    variables = bert.model.trainable_variables

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            logits = bert.model(features)["masked_lm_logits"]
            loss, _ = masked_lm_terms(logits, features)["masked_lm_loss"]
        gradients = tape.gradient(loss, [v.value for v in variables])
        pairs = [p for p in zip(gradients, variables, strict=True) if p[0] is not None]
        optimizer.apply_gradients(pairs)

    for _ in range(120):
        step()
    return bert, tokens


@pytest.mark.slow
def test_it_fills_in_what_it_learned(learned):
    bert, tokens = learned
    words = SENTENCE.split()
    single = [word for word in words if word in tokens]
    assert single == words
    for word in single:
        place = words.index(word)
        text = " ".join([*words[:place], "[MASK]", *words[place + 1 :]])
        (candidates,) = fill_mask(bert, text, 3)
        assert candidates[0].token == word
        assert candidates[0].probability > 0.5


def test_probabilities_are_the_model_s(bert):
    text = "a [MASK] and the [MASK] ."
    answers = fill_mask(bert, text, 4)
    ids = encode_with_masks(bert.tokenizer, text)
    mask = bert.tokenizer.vocab["[MASK]"]
    places = [place for place, token in enumerate(ids) if token == mask]
    assert len(answers) == len(places) == 2
    outputs = bert.model(
        {
            "input_ids": np.array([ids]),
            "input_mask": np.ones([1, len(ids)], np.int32),
            "segment_ids": np.zeros([1, len(ids)], np.int32),
            "masked_lm_positions": np.array([places]),
        }
    )
    logits = outputs["masked_lm_logits"].numpy()[0, :, : len(bert.tokenizer.vocab)]
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    for row, candidates in zip(shares, answers, strict=True):
        best = np.argsort(-row)[:4]
        assert [c.token for c in candidates] == [
            bert.tokenizer.inv_vocab[token] for token in best
        ]
        found = [c.probability for c in candidates]
        np.testing.assert_allclose(found, row[best], rtol=1e-5)
        assert found == sorted(found, reverse=True)
        assert sum(found) <= 1


def test_all_pieces_together_are_one(bert):
    """The padding rows of the table (125 to 127) are not tokens."""
    (candidates,) = fill_mask(bert, "the [MASK]", 10_000)
    assert len(candidates) == 125
    assert sum(c.probability for c in candidates) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("text", ["", "no mask", "[mask]", "[ MASK ]", "MASK"])
def test_without_a_mask(bert, text):
    with pytest.raises(UserError, match=r"contains no \[MASK\]"):
        fill_mask(bert, text)


def test_longest_text(bert):
    """32 tokens with [CLS] and [SEP] fit; 33 do not."""
    assert len(fill_mask(bert, "[MASK] " + "the " * 29)) == 1
    with pytest.raises(UserError, match="33 tokens.* at most 32. Shorten"):
        fill_mask(bert, "[MASK] " + "the " * 30)


def test_masks_beside_each_other_and_beside_letters(bert):
    assert len(fill_mask(bert, "[MASK][MASK]s the([MASK])")) == 3


def test_encoding(bert):
    vocab = bert.tokenizer.vocab
    ids = encode_with_masks(bert.tokenizer, "The [MASK] the")
    names = ["[CLS]", "the", "[MASK]", "the", "[SEP]"]
    assert ids == [vocab[name] for name in names]
