"""Python's predictions in the form of outputs, with each value written by hand."""

import numpy as np
import pytest
import tiny_exports

from official_bert.export import expected
from official_bert.pretrained.fill_mask import Candidate
from official_bert.tasks.choice.predictor import ChoiceAnswer
from official_bert.tasks.classifier.predictor import PredictedValue, Prediction
from official_bert.tasks.ner.predictor import FoundEntity
from official_bert.tasks.predictor import load
from official_bert.tasks.squad.answers import Decoding
from official_bert.tasks.squad.predictor import Answer
from official_bert.tasks.squad.training import SquadTask


class Answering:
    """A predictor that returns fixed predictions and records its inputs."""

    def __init__(self, answers, task=None):
        self.answers, self.task, self.asked = answers, task, None

    def predict(self, texts):
        self.asked = list(texts)
        return self.answers

    predict_all = predict


def plain(outputs):
    return {name: value.tolist() for name, value in outputs.items()}


def test_label():
    predictor = Answering(
        [
            Prediction("schön", {"bad": 0.25, "so so": 0.25, "schön": 0.5}),
            Prediction("bad", {"bad": 1.0, "so so": 0.0, "schön": 0.0}),
        ],
        tiny_exports.SINGLE,
    )
    assert plain(expected.of_classifier(predictor, ["on", ""])) == {
        "label": ["schön".encode(), b"bad"],
        "probabilities": [[0.25, 0.25, 0.5], [1, 0, 0]],
    }
    assert predictor.asked == ["on", ""]
    expected.of_classifier(predictor, ["on", ""], ["of", "in"])
    assert predictor.asked == [("on", "of"), ("", "in")]


def test_labels():
    probabilities = {"bad": 0.75, "so so": 0.25, "schön": 0.5}
    predictor = Answering(
        [
            Prediction(("bad", "schön"), probabilities),
            Prediction((), dict.fromkeys(probabilities, 0.0)),
        ],
        tiny_exports.WINDOWS,
    )
    assert plain(expected.of_classifier(predictor, ["on", ""])) == {
        "labels": [[b"bad", b"", "schön".encode()], [b"", b"", b""]],
        "probabilities": [[0.75, 0.25, 0.5], [0, 0, 0]],
    }


def test_number():
    predictor = Answering([PredictedValue(1.5)], tiny_exports.NUMBER)
    assert plain(expected.of_classifier(predictor, ["on"])) == {"value": [1.5]}


ANSWERS = [Answer("né", 4, 6, 2.5, -1.0, 0.9), Answer("", 0, 0, 0.5, 0.5, 0.5)]


def test_answers():
    predictor = Answering(ANSWERS, SquadTask())
    wanted = {
        "answer": ["né".encode(), b""],
        "start": [4, 0],
        "end": [6, 0],
        "score": [2.5, 0.5],
    }
    assert plain(expected.of_squad(predictor, ["who", "?"], ["the né", "on"])) == wanted
    assert predictor.asked == [("who", "the né"), ("?", "on")]
    predictor.task = SquadTask(decoding=Decoding(version_2_with_negative=True))
    more = {"null_score": [-1, 0.5], "is_impossible": [False, True]}
    assert plain(expected.of_squad(predictor, ["", ""], ["", ""])) == wanted | more


def test_entities():
    predictor = Answering(
        [
            [],
            [FoundEntity("né", 4, 6, "LOC"), FoundEntity("on", 7, 9, "PER")],
            [FoundEntity("a", 0, 1, "PER")],
        ]
    )
    assert plain(expected.of_tagger(predictor, ["", "the né on", "a"])) == {
        "entities": [[b"", b""], ["né".encode(), b"on"], [b"a", b""]],
        "labels": [[b"", b""], [b"LOC", b"PER"], [b"PER", b""]],
        "starts": [[-1, -1], [4, 7], [0, -1]],
        "ends": [[-1, -1], [6, 9], [1, -1]],
    }
    nothing = expected.of_tagger(Answering([[], []]), ["", ""])
    assert {value.shape for value in nothing.values()} == {(2, 0)}


def test_choice():
    predictor = Answering([ChoiceAnswer(1, "né", (0.25, 0.75))])
    assert plain(expected.of_choice(predictor, ["on"], [["a", "né"]])) == {
        "index": [1],
        "choice": ["né".encode()],
        "probabilities": [[0.25, 0.75]],
    }
    assert predictor.asked == [("on", ["a", "né"])]


def test_masks(monkeypatch):
    one, two = Candidate("né", 0.5), Candidate("##a", 0.25)
    answers = {"a": [[one, two]], "b": [[two, one], [one, one]]}
    monkeypatch.setattr(expected, "fill_mask", lambda bert, text: answers[text])
    found = plain(expected.of_fill_mask(None, ["a", "b"]))
    né = "né".encode()
    assert found["tokens"] == [
        [[né, b"##a"], [b"", b""]],
        [[b"##a", né], [né, né]],
    ]
    assert found["probabilities"] == [
        [[0.5, 0.25], [0, 0]],
        [[0.25, 0.5], [0.5, 0.5]],
    ]


# Texts for each kind, predicted one by one by a real predictor.
TEXTS = ["the horse is on ne\u0301 water", "", "her light \U0001f600 was found"]


@pytest.mark.parametrize("kind", ["label", "squad 2.0", "tags"])
def test_real_predictors(kind):
    predictor = load(tiny_exports.open_kind(kind)[0])
    if kind == "label":
        found = expected.of_classifier(predictor, TEXTS)
        for row, text in enumerate(TEXTS):
            (one,) = predictor.predict([text])
            assert found["label"][row].decode() == one.label
            place = tiny_exports.LABELS.index(one.label)
            assert found["probabilities"][row].argmax() == place
    elif kind == "tags":
        found = expected.of_tagger(predictor, TEXTS)
        rows = predictor.predict(TEXTS)
        assert [len(row) for row in rows] == (found["starts"] >= 0).sum(1).tolist()
        assert found["entities"].shape[1] == max(map(len, rows)) > 0
    else:
        found = expected.of_squad(predictor, ["who"] * 3, TEXTS)
        for row, text in enumerate(TEXTS):
            one = predictor.predict("who", text)
            assert (found["start"][row], found["end"][row]) == (one.start, one.end)
            assert found["is_impossible"][row] == (one.text == "")
            np.testing.assert_allclose(found["score"][row], one.score, atol=1e-5)
            np.testing.assert_allclose(found["null_score"][row], one.null_score, 1e-5)
