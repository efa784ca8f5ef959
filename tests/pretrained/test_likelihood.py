"""Pseudo-log-likelihood and next-sentence probability equal the plain sums."""

import dataclasses
import gc
import math
import weakref

import keras
import numpy as np
import original_head
import pytest
import tensorflow as tf
from marks import slow
from record_files import MINI, MINI_CONFIG

from official_bert.checkpoints.initialize import Report
from official_bert.checkpoints.model_directory import NEXT_SENTENCE, Bert
from official_bert.errors import UserError
from official_bert.modeling.pretraining import PretrainingModel
from official_bert.pretrained import likelihood
from official_bert.pretrained.fill_mask import fill_mask
from official_bert.pretrained.likelihood import (
    next_sentence_probability,
    pseudo_log_likelihood,
)
from official_bert.tokenization.full import FullTokenizer

# Far from uniform, so that a wrong position or token is detected.
CONFIG = dataclasses.replace(MINI_CONFIG, initializer_range=0.5)
TEXT = "She found that the light over the water was one of years."


def report(new=()):
    return Report("tiny", loaded=[], new=list(new), unused=[], notes=[])


def make_bert(seed):
    keras.utils.set_random_seed(seed)
    tokenizer = FullTokenizer(str(MINI / "vocab.txt"))
    return Bert(PretrainingModel(CONFIG), tokenizer, CONFIG, report())


@pytest.fixture(scope="module")
def bert():
    return make_bert(3)


def slow_scores(bert, text):
    """Return log p of each token, with one forward pass and one mask at a time."""
    vocab = bert.tokenizer.vocab
    ids = [vocab["[CLS]"], *bert.tokenizer.encode(text), vocab["[SEP]"]]
    found = []
    for place in range(1, len(ids) - 1):
        masked = [*ids[:place], vocab["[MASK]"], *ids[place + 1 :]]
        features = {
            "input_ids": tf.constant([masked]),
            "masked_lm_positions": tf.constant([[place]]),
        }
        logits = bert.model(features)["masked_lm_logits"].numpy()[0, 0]
        words = logits[: len(vocab)].astype(np.float64)
        found.append(words[ids[place]] - np.log(np.exp(words).sum()))
    return found


@pytest.mark.parametrize("text", [TEXT, "the", "老 lamps ±", "the " * 30])
@pytest.mark.parametrize("batch_size", [slow(1), 4, slow(32)])
def test_pseudo_log_likelihood(bert, text, batch_size):
    wanted = slow_scores(bert, text)
    score = pseudo_log_likelihood(bert, text, batch_size)
    assert score.tokens == bert.tokenizer.tokenize(text)
    np.testing.assert_allclose(score.log_probabilities, wanted, atol=2e-5)
    assert score.pseudo_log_likelihood == pytest.approx(sum(wanted), abs=1e-4)
    perplexity = math.exp(-sum(wanted) / len(wanted))
    assert score.pseudo_perplexity == pytest.approx(perplexity, rel=1e-4)


def test_it_agrees_with_fill_mask(bert):
    score = pseudo_log_likelihood(bert, "the light over the water")
    (candidates,) = fill_mask(bert, "the light [MASK] the water", 1000)
    (over,) = [c.probability for c in candidates if c.token == score.tokens[2]]
    assert math.exp(score.log_probabilities[2]) == pytest.approx(over, rel=1e-4)


def test_models_are_kept_apart(bert):
    other = make_bert(4)
    first = pseudo_log_likelihood(bert, TEXT).pseudo_log_likelihood
    second = pseudo_log_likelihood(other, TEXT).pseudo_log_likelihood
    assert abs(first - second) > 0.1
    assert second == pytest.approx(sum(slow_scores(other, TEXT)), abs=1e-4)


def test_texts_of_all_lengths_share_a_graph(bert):
    count = likelihood._masked_log_probabilities.experimental_get_tracing_count
    pseudo_log_likelihood(bert, "the light", 3)
    pseudo_log_likelihood(bert, "the light over", 3)
    before = count()
    for length in range(4, 12):
        pseudo_log_likelihood(bert, "the " * length, 3)
    assert count() == before


@pytest.mark.slow
def test_a_model_that_is_done_with_leaves_memory():
    other = make_bert(6)
    reference = weakref.ref(other.model)
    pseudo_log_likelihood(other, "the light")
    next_sentence_probability(other, "the light", "the")
    del other
    gc.collect()
    assert reference() is None


def set_head(bert, weights, bias):
    head = bert.model.cls.seq_relationship
    before = [v.numpy() for v in (head.output_weights, head.output_bias)]
    head.output_weights.assign(weights)
    head.output_bias.assign(bias)
    return before


def test_class_0_is_the_next_sentence(bert):
    before = set_head(bert, np.zeros([2, CONFIG.hidden_size]), [2.0, 0.5])
    try:
        probability = next_sentence_probability(bert, "the light", "on water")
        assert probability == pytest.approx(1 / (1 + math.exp(-1.5)))
    finally:
        set_head(bert, *before)


def test_next_sentence_is_the_model_s(bert):
    vocab, encode = bert.tokenizer.vocab, bert.tokenizer.encode
    first = [vocab["[CLS]"], *encode("the light"), vocab["[SEP]"]]
    second = [vocab["[MASK]"], *encode("water"), vocab["[SEP]"]]
    features = {
        "input_ids": tf.constant([first + second]),
        "input_mask": tf.ones([1, len(first + second)], tf.int32),
        "segment_ids": tf.constant([[0] * len(first) + [1] * len(second)]),
        "masked_lm_positions": tf.constant([[1]]),
    }
    logits = bert.model(features)["next_sentence_logits"].numpy()[0]
    wanted = np.exp(logits[0]) / np.exp(logits).sum()
    found = next_sentence_probability(bert, "The light", "[MASK] water")
    assert found == pytest.approx(wanted, abs=1e-5)
    other_way = next_sentence_probability(bert, "[MASK] water", "The light")
    assert abs(found - other_way) > 1e-3


@pytest.mark.comparison
def test_next_sentence_as_the_original_recorded_it():
    """Two of the recorded rows have no padding."""
    arrays = original_head.recording()
    model = PretrainingModel(original_head.head_config())
    original_head.assign(model, arrays)
    rows = original_head.features(arrays)
    full = [0, 2]
    assert rows["input_mask"][full].all()
    logits = likelihood._next_sentence_logits(
        model,
        tf.constant(rows["input_ids"][full]),
        tf.constant(rows["segment_ids"][full]),
    )
    ours = tf.nn.softmax(logits)[:, likelihood.IS_NEXT]
    recorded = np.exp(arrays["out_nsp_log_probs"].reshape(-1, 2)[full, 0])
    np.testing.assert_allclose(ours, recorded, atol=1e-5)


def refused(match, call, *arguments):
    with pytest.raises(UserError, match=match):
        call(*arguments)


@pytest.mark.parametrize("text", ["", "  ", "\x01"])
def test_nothing_to_score(bert, text):
    refused("no tokens to score", pseudo_log_likelihood, bert, text)
    refused("is empty. Give two texts", next_sentence_probability, bert, text, "a")
    refused("is empty. Give two texts", next_sentence_probability, bert, "a", text)


def test_a_mask_has_no_likelihood(bert):
    refused(r"contains \[MASK\]", pseudo_log_likelihood, bert, "the [MASK]")


def test_too_long(bert):
    words = "the " * 30
    assert len(pseudo_log_likelihood(bert, words).tokens) == 30
    refused("33 tokens, .* at most 32", pseudo_log_likelihood, bert, words + "the")
    half = "the " * 14
    assert 0 < next_sentence_probability(bert, half, half + "the") < 1
    refused(
        "33 tokens, .* at most 32",
        next_sentence_probability,
        bert,
        half,
        half + "the of",
    )


def test_batch_size(bert):
    refused("batch_size=0 is invalid", pseudo_log_likelihood, bert, "the", 0)


@pytest.mark.parametrize("start", NEXT_SENTENCE)
def test_a_random_head_is_refused(bert, start):
    other = dataclasses.replace(bert, report=report([f"{start}x"]))
    match = f"tiny has no next-sentence head .it lacks {start}x"
    refused(match, next_sentence_probability, other, "a", "the")
    assert pseudo_log_likelihood(other, "the").tokens == ["the"]
