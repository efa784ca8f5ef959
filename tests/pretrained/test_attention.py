"""Attention maps equal the model's own, as numbers and as a figure."""

import json
import re

import numpy as np
import pytest
import tensorflow as tf
from tiny_model import write

from official_bert.checkpoints import model_directory
from official_bert.errors import UserError
from official_bert.pretrained import attention, attention_picture

TEXT, TEXT_B = "the [MASK] of water", "she is on it"
SIZE, FIRST = 11, 6


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    # Weights around 1, so that the maps are far from uniform.
    folder = tmp_path_factory.mktemp("attention") / "model"
    write(folder, num_hidden_layers=2)
    return model_directory.load_encoder(str(folder))


@pytest.fixture(scope="module")
def maps(bert):
    return attention.attention_maps(bert, TEXT, TEXT_B)


def test_tokens_and_segments(maps, bert):
    words = ["[CLS]", "the", "[MASK]", "of", "water", "[SEP]"]
    assert maps.tokens == [*words, "she", "is", "on", "it", "[SEP]"]
    assert maps.segment_ids == [0] * FIRST + [1] * 5
    config = bert.config
    heads = config.num_attention_heads
    assert maps.probs.shape == (config.num_hidden_layers, heads, SIZE, SIZE)
    alone = attention.attention_maps(bert, TEXT)
    assert (alone.tokens, alone.segment_ids) == (words, [0] * FIRST)


def test_rows_sum_to_one(maps):
    np.testing.assert_allclose(maps.probs.sum(axis=-1), 1, rtol=1e-5)
    assert maps.probs.max() > 0.5  # Detects a softmax over another axis.


def test_the_encoder_weighs_its_values_with_them(maps, bert, monkeypatch):
    """Probabilities times values are the attention's output."""
    ids = bert.tokenizer.convert_tokens_to_ids(maps.tokens)
    features = {
        "input_ids": tf.constant([ids]),
        "segment_ids": tf.constant([maps.segment_ids]),
    }
    given = []
    blocks = bert.model.encoder.blocks
    for block in blocks:
        layer = block.attention.self_attention
        monkeypatch.setattr(layer, "call", _noting(layer.call, given))
    bert.model(features)
    assert len(given) == len(blocks)
    for block, probs, (x, context) in zip(blocks, maps.probs, given, strict=True):
        values = np.asarray(block.attention.self_attention.value(x))
        values = values.reshape(SIZE, len(probs), -1).transpose(1, 0, 2)
        wanted = np.matmul(probs, values).transpose(1, 0, 2).reshape(SIZE, -1)
        np.testing.assert_allclose(context, wanted, rtol=1e-4, atol=1e-4)


def _noting(call, given):
    def noting(x, *args, **kwargs):
        context, probs = call(x, *args, **kwargs)
        given.append((x, np.asarray(context)))
        return context, probs

    return noting


def test_too_long(bert):
    with pytest.raises(UserError, match="42 tokens.* at most 32"):
        attention.attention_maps(bert, "of " * 40)


def test_numbers_of_layers():
    assert [attention.layer_number(n, 3) for n in (0, 2, -1, -3)] == [0, 2, 2, 0]
    for wrong in (3, -4):
        with pytest.raises(UserError, match=f"--layer={wrong} does not exist.* 0 to 2"):
            attention.layer_number(wrong, 3)


def test_saved_numbers(maps, tmp_path):
    attention.save_numbers(tmp_path / "maps.npz", maps, [1])
    with np.load(tmp_path / "maps.npz") as saved:
        np.testing.assert_array_equal(saved["attention_probs"], maps.probs[[1]])
        assert saved["tokens"].tolist() == maps.tokens
        assert saved["layers"].tolist() == [1]
    attention.save_numbers(tmp_path / "maps.json", maps, [1])
    saved = json.loads((tmp_path / "maps.json").read_text())
    assert (saved["tokens"], saved["segment_ids"]) == (maps.tokens, maps.segment_ids)
    difference = np.array(saved["attention_probs"]) - maps.probs[[1]]
    assert np.abs(difference).max() <= 1e-6


@pytest.fixture
def figures(monkeypatch):
    """Return the list of the figures that are drawn."""
    figure = pytest.importorskip("matplotlib.figure").Figure
    kept, save = [], figure.savefig

    def savefig(self, *args, **kwargs):
        kept.append(self)
        return save(self, *args, **kwargs)

    monkeypatch.setattr(figure, "savefig", savefig)
    return kept


def panels(figure):
    return [axes for axes in figure.axes if axes.get_images()]


def test_picture_of_all(maps, figures, tmp_path):
    path = tmp_path / "all.png"
    assert attention_picture.draw_all(str(path), maps)
    assert path.read_bytes().startswith(b"\x89PNG")
    drawn = panels(figures[0])
    shown = [axes.get_images()[0].get_array() for axes in drawn]
    np.testing.assert_array_equal(shown, maps.probs.reshape(-1, SIZE, SIZE))
    # The lines at the start of the second text.
    assert {tuple(line.get_ydata()) for line in drawn[0].lines} == {
        (FIRST - 0.5, FIRST - 0.5),
        (0, 1),
    }


def test_picture_of_a_layer(maps, figures, tmp_path):
    path = tmp_path / "one.svg"
    assert attention_picture.draw_layer(str(path), maps, 1)
    drawn = panels(figures[0])
    shown = [axes.get_images()[0].get_array() for axes in drawn]
    np.testing.assert_array_equal(shown, maps.probs[1])
    for axis in (drawn[0].xaxis, drawn[0].yaxis):
        assert [tick.get_text() for tick in axis.get_ticklabels()] == maps.tokens
    assert re.search("Layer 1", path.read_text())


def test_letters_that_no_font_has(maps, figures, tmp_path, monkeypatch):
    monkeypatch.setattr(attention_picture, "FONTS", ("DejaVu Sans",))
    odd = attention.AttentionMaps(["$", "\U0001234f"], [0, 0], maps.probs[..., :2, :2])
    assert not attention_picture.draw_layer(str(tmp_path / "odd.png"), odd, 0)


def test_without_matplotlib(monkeypatch):
    monkeypatch.setattr(attention_picture.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UserError, match=r"pip install 'official-bert\[plots\]'"):
        attention_picture.check_output("maps.png")
