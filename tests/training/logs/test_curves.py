"""The figure of a run."""

import json
import os

import pytest

from official_bert.training.logs import curves


def write(directory, rows):
    lines = [json.dumps(row) + "\n" for row in rows]
    (directory / "metrics.jsonl").write_text("".join(lines))


def row(step, prefix=""):
    names = ("masked_lm_loss", "masked_lm_accuracy")
    names += ("next_sentence_loss", "next_sentence_accuracy")
    return {"step": step, **{f"{prefix}{name}": 1 / step for name in names}}


@pytest.fixture
def drawn(monkeypatch):
    """Return the axes of the figure, which is kept."""
    figure = pytest.importorskip("matplotlib.figure")
    kept = []

    class Kept(figure.Figure):
        def savefig(self, *arguments, **settings):
            kept.append(self)
            super().savefig(*arguments, **settings)

    monkeypatch.setattr(figure, "Figure", Kept)
    return lambda: kept[-1].axes


def test_lines_of_a_run(tmp_path, drawn):
    write(tmp_path, [row(2), row(4), row(4, "eval_")])
    assert curves.draw(str(tmp_path), 2.5) == str(tmp_path / "training_curves.png")
    assert (tmp_path / "training_curves.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(os.listdir(tmp_path)) == ["metrics.jsonl", "training_curves.png"]
    lines = {line.get_label(): line for line in drawn()[0].lines}
    training = lines["masked lm, training"]
    assert list(training.get_xdata()) == [2, 4]
    assert list(training.get_ydata()) == [0.5, 0.25]
    assert list(lines["masked lm, held-out"].get_xdata()) == [4]
    assert set(lines["unigram entropy"].get_ydata()) == {2.5}
    assert list(drawn()[1].lines[0].get_ydata()) == [0.5, 0.25]


def test_without_evaluation(tmp_path, drawn):
    write(tmp_path, [row(1), row(2)])
    assert curves.draw(str(tmp_path))
    labels = [line.get_label() for line in drawn()[0].lines]
    assert "unigram entropy" not in labels


def test_nothing_to_draw(tmp_path):
    assert curves.draw(str(tmp_path)) is None
    assert not os.listdir(tmp_path)


def test_without_matplotlib(tmp_path, monkeypatch):
    write(tmp_path, [row(1)])
    monkeypatch.setattr(curves.importlib.util, "find_spec", lambda name: None)
    assert curves.draw(str(tmp_path)) is None
