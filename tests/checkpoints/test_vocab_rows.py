"""New rows in a checkpoint; the old numbers stay."""

import dataclasses

import numpy as np
import pytest
from record_files import MINI_CONFIG

from official_bert.checkpoints import google, vocab_rows
from official_bert.checkpoints.checkpoint import Checkpoint
from official_bert.errors import UserError

SIZE = MINI_CONFIG.vocab_size
WORDS, BIAS = vocab_rows.WORD_EMBEDDINGS, vocab_rows.MLM_BIAS
# One unused row, the last row, and two appended rows.
PIECES = {3: [40, 41, 42], 127: [50, 50, 7], 128: [9], 129: [60, 61, 62, 63, 64]}


def checkpoint_of(tensors):
    return Checkpoint(
        path="somewhere",
        format="google",
        shapes={name: value.shape for name, value in tensors.items()},
        read=tensors.__getitem__,
        config=MINI_CONFIG,
        notes=("A note.",),
    )


@pytest.fixture
def tensors():
    rng = np.random.default_rng(1)
    shapes = {
        WORDS: (SIZE, 16),
        BIAS: (SIZE,),
        "bert/embeddings/position_embeddings": (32, 16),
        "output_weights": (3, 16),
        "output_bias": (3,),
        "cls/seq_relationship/output_weights": (2, 16),
    }
    return {
        name: rng.normal(size=shape).astype(np.float32)
        for name, shape in shapes.items()
    }


def test_new_rows_are_the_means_of_the_old_ones(tensors):
    before = {name: value.copy() for name, value in tensors.items()}
    extended = vocab_rows.extend(checkpoint_of(tensors), PIECES)
    for name in (WORDS, BIAS):
        new = extended.read(name)
        assert new.dtype == np.float32
        assert new.shape == extended.shapes[name] == (130, *before[name].shape[1:])
        for index, ids in PIECES.items():
            mean = sum(before[name][i] for i in ids) / np.float32(len(ids))
            assert mean.dtype == np.float32
            np.testing.assert_array_equal(new[index], mean)
        old = [index for index in range(SIZE) if index not in PIECES]
        np.testing.assert_array_equal(new[old], before[name][old])
    for name, value in tensors.items():
        np.testing.assert_array_equal(value, before[name])


def test_all_else_stays(tensors):
    checkpoint = checkpoint_of(tensors)
    extended = vocab_rows.extend(checkpoint, PIECES)
    assert list(extended.shapes) == list(checkpoint.shapes)
    for name in set(tensors) - {WORDS, BIAS}:
        assert extended.read(name) is tensors[name]
        assert extended.shapes[name] == tensors[name].shape
    assert extended.config == dataclasses.replace(MINI_CONFIG, vocab_size=130)
    assert extended.notes == ("A note.",)
    assert checkpoint.config.vocab_size == SIZE


@pytest.mark.parametrize("pieces", [{}, {3: [40, 41]}, {127: [4], 3: [127, 5]}])
def test_without_appended_rows_the_size_stays(tensors, pieces):
    before = tensors[BIAS].copy()
    extended = vocab_rows.extend(checkpoint_of(tensors), pieces)
    assert extended.shapes == checkpoint_of(tensors).shapes
    assert extended.config == MINI_CONFIG
    for index, ids in pieces.items():
        np.testing.assert_array_equal(extended.read(BIAS)[index], before[ids].mean())
    np.testing.assert_array_equal(tensors[BIAS], before)


def test_an_unknown_word_starts_as_the_unknown_token(tensors):
    extended = vocab_rows.extend(checkpoint_of(tensors), {128: [6]})
    np.testing.assert_array_equal(extended.read(WORDS)[128], tensors[WORDS][6])


def test_an_encoder_without_heads(tensors):
    del tensors[BIAS]
    extended = vocab_rows.extend(checkpoint_of(tensors), PIECES)
    assert BIAS not in extended.shapes
    assert extended.shapes[WORDS] == (130, 16)


def test_no_embeddings(tensors):
    del tensors[WORDS]
    with pytest.raises(UserError, match="somewhere has no bert/embeddings/word_emb"):
        vocab_rows.extend(checkpoint_of(tensors), PIECES)


def test_what_else_has_a_row_per_token_is_told(tensors):
    tensors["decoder"] = np.ones((16, SIZE), np.float32)
    tensors["adapter"] = np.ones((SIZE, 2), np.float32)
    extended = vocab_rows.extend(checkpoint_of(tensors), PIECES)
    for note, name in zip(extended.notes[1:], ["decoder", "adapter"], strict=True):
        assert note.startswith(f"{name} also has 128 rows or columns")
        assert extended.read(name) is tensors[name]
        assert extended.shapes[name] == tensors[name].shape


def test_nothing_is_read_before_it_is_needed(tensors):
    def refuse(name):
        raise AssertionError(name)

    lazy = dataclasses.replace(checkpoint_of(tensors), read=refuse)
    vocab_rows.extend(lazy, PIECES)


@pytest.fixture(scope="module")
def model_tensors():
    """Return a pre-training model in which no number is 0 or repeated."""
    from official_bert.modeling.pretraining import PretrainingModel

    rng = np.random.default_rng(2)
    return {
        variable.path: rng.normal(size=variable.shape).astype(np.float32) * 0.1
        for variable in PretrainingModel(MINI_CONFIG).trainable_variables
    }


def outputs(checkpoint, folder, input_ids):
    """Write a checkpoint, load it into a model; return the model's outputs."""
    import tensorflow as tf

    from official_bert.checkpoints.initialize import load_opened
    from official_bert.modeling.pretraining import PretrainingModel

    folder.mkdir()
    google.write_model(str(folder), checkpoint)
    again = google.open_weights(str(folder / "bert_model.ckpt"), str(folder))
    model = PretrainingModel(again.config)
    load_opened(model, again)
    ids = tf.constant(input_ids)
    places = tf.tile(tf.range(ids.shape[1])[tf.newaxis], [ids.shape[0], 1])
    inputs = {"input_ids": ids, "masked_lm_positions": places}
    return {**model.bert(inputs), **model(inputs)}


def test_texts_without_new_words_give_the_same_outputs(model_tensors, tmp_path):
    checkpoint = checkpoint_of(model_tensors)
    old_ids = [i for i in range(SIZE) if i not in PIECES]
    input_ids = np.random.default_rng(3).choice(old_ids, (4, 20)).astype(np.int32)
    before = outputs(checkpoint, tmp_path / "old", input_ids)
    extended = vocab_rows.extend(checkpoint, PIECES)
    after = outputs(extended, tmp_path / "new", input_ids)
    for name in ("sequence_output", "pooled_output", "next_sentence_logits"):
        np.testing.assert_array_equal(before[name], after[name])
    logits = [np.asarray(o["masked_lm_logits"]) for o in (before, after)]
    np.testing.assert_array_equal(logits[0][..., old_ids], logits[1][..., old_ids])
    # A new word's score is the mean of its pieces' scores.
    for index, ids in PIECES.items():
        mean = logits[0][..., ids].mean(axis=-1)
        np.testing.assert_allclose(logits[1][..., index], mean, atol=1e-5)
        assert (logits[1][..., index] <= logits[0][..., ids].max(-1) + 1e-5).all()
