"""SQuAD's scores equal hand computations and the official scripts' results."""

import json
import logging

import numpy as np
import pytest

from official_bert.errors import UserError
from official_bert.metrics import squad
from official_bert.tasks.squad.files import read_gold_answers

# Two questions with an answer, three without.
GOLD = {"a": ("Paris", "the city of Paris"), "b": ("1895",), "c": (), "d": (), "e": ()}
ANSWERED = {"a": "Paris, city", "b": "1895", "c": "", "d": "no", "e": "none"}


@pytest.mark.parametrize(
    ("text", "normalized"),
    [
        ("The  Eiffel-Tower!", "eiffeltower"),
        ("A man, an apple and the rest", "man apple and rest"),
        ("theatre of Athens", "theatre of athens"),
        ("a.m.", "am"),
        ("the", ""),
        ("\u00a0«Ça» – l'ÉTÉ\u3000\t", "«ça» – lété"),  # Only ASCII punctuation.
        ("a\u00a0b", "b"),
    ],
)
def test_normalized(text, normalized):
    assert squad.normalize_answer(text) == normalized


@pytest.mark.parametrize(
    ("prediction", "gold", "exact", "f1"),
    [
        ("the Nile", "Nile.", 1, 1),
        ("river Nile", "Nile", 0, 2 / 3),  # Precision 1/2, recall 1.
        ("Nile", "the river Nile, Egypt", 0, 1 / 2),
        (
            "Nile Nile Nile",
            "Nile river Nile",
            0,
            2 / 3,
        ),  # The counts of the words are equal.
        ("Po", "Nile", 0, 0),
        ("", "Nile", 0, 0),
        ("Nile", "", 0, 0),
        ("", "The", 1, 1),
    ],
)
def test_one_answer(prediction, gold, exact, f1):
    found = squad.evaluate_v2({"a": (gold,)}, {"a": prediction})
    assert (found["exact"], found["f1"]) == (100 * exact, pytest.approx(100 * f1))


def test_version_1_takes_the_best_annotator():
    """The answer "Paris, city" scores 2/3 with "Paris" and 4/5 with "city of Paris"."""
    gold = {key: GOLD[key] for key in "ab"}
    found = squad.evaluate_v1(gold, ANSWERED)
    assert found == {"exact_match": 50, "f1": pytest.approx(90)}


def test_version_1_scores_a_missing_question_0(caplog):
    gold = {key: GOLD[key] for key in "ab"}
    with caplog.at_level(logging.WARNING):
        found = squad.evaluate_v1(gold, {"b": "1895", "z": "x"})
    assert found == {"exact_match": 50, "f1": 50}
    assert caplog.messages == ["1 of 2 questions have no prediction, they score 0: a."]


def test_version_1_finds_no_common_word_in_empty_answers():
    assert squad.evaluate_v1({"a": ["The"]}, {"a": "a"}) == {
        "exact_match": 100,
        "f1": 0,
    }


def test_version_2():
    found = squad.evaluate_v2(GOLD, ANSWERED)
    assert found == {
        "exact": 40,
        "f1": pytest.approx(100 * 2.8 / 5),
        "total": 5,
        "HasAns_exact": 50,
        "HasAns_f1": pytest.approx(90),
        "HasAns_total": 2,
        "NoAns_exact": pytest.approx(100 / 3),
        "NoAns_f1": pytest.approx(100 / 3),
        "NoAns_total": 3,
    }


def test_version_2_leaves_a_missing_question_out(caplog):
    predictions = {key: ANSWERED[key] for key in "bce"}
    with caplog.at_level(logging.WARNING):
        found = squad.evaluate_v2(GOLD, predictions)
    totals = {key: value for key, value in found.items() if key.endswith("total")}
    assert totals == {"total": 3, "HasAns_total": 1, "NoAns_total": 2}
    assert found["exact"] == pytest.approx(100 * 2 / 3)
    assert found["HasAns_exact"] == 100
    assert found["NoAns_exact"] == 50
    assert caplog.messages == [
        "2 of 5 questions have no prediction, they are left out of the scores: a, d."
    ]


def test_version_2_without_one_kind_of_question():
    assert not any("NoAns" in key for key in squad.evaluate_v2({"b": ["x"]}, ANSWERED))
    assert not any("HasAns" in key for key in squad.evaluate_v2({"c": []}, ANSWERED))


def test_version_2_passes_over_gold_answers_that_are_nothing_but_an_article():
    """The question still counts as one with an answer."""
    found = squad.evaluate_v2({"a": ["the", "Nile"]}, {"a": ""})
    assert (found["exact"], found["HasAns_total"]) == (0, 1)
    found = squad.evaluate_v2({"a": ["the"]}, {"a": ""})
    assert (found["exact"], found["HasAns_total"]) == (100, 1)


def test_best_thresholds():
    """The order of answering is b, d, a, c, e. Answering none scores 3.

    Exact matches: 4 with b, then 3 with d. F1: 4, 3, 3.8 with a, and so on.
    """
    na_probs = {"a": -1.0, "b": -3.0, "c": 0.5, "d": -2.0, "e": 2.0, "z": -9.0}
    found = squad.evaluate_v2(GOLD, ANSWERED, na_probs)
    best = {key: value for key, value in found.items() if key.startswith("best")}
    assert best == {
        "best_exact": 80,
        "best_exact_thresh": -3.0,
        "best_f1": 80,
        "best_f1_thresh": -3.0,
        "best_null_score_diff_threshold": -3.0,
    }
    found = squad.evaluate_v2(GOLD, ANSWERED, na_probs | {"d": 1.0})
    assert (found["best_exact"], found["best_exact_thresh"]) == (80, -3.0)
    assert found["best_f1"] == pytest.approx(96)
    assert found["best_f1_thresh"] == -1.0


def test_best_to_answer_nothing():
    predictions = dict.fromkeys(GOLD, "wrong")
    found = squad.evaluate_v2(GOLD, predictions, dict.fromkeys(GOLD, -4.0))
    assert (found["best_exact"], found["best_exact_thresh"]) == (60, 0.0)
    # With this threshold all questions are answered.
    assert found["best_null_score_diff_threshold"] < -4.0


def test_the_best_threshold_leaves_out_questions_without_a_prediction():
    gold = {"a": ["x"], "b": [], "c": [], "d": []}
    found = squad.evaluate_v2(gold, {"a": "x", "b": "y"}, {"a": -1.0, "b": 2.0})
    assert (found["best_exact"], found["best_exact_thresh"]) == (100, -1.0)
    assert found["best_f1"] == 100


def test_a_threshold_that_is_given():
    na_probs = {"a": 2.5, "b": 1.5, "c": 0.0, "d": 1.6, "e": 0.0}
    plain = squad.evaluate_v2(GOLD, ANSWERED)
    unchanged = squad.evaluate_v2(GOLD, ANSWERED, na_probs)
    assert plain.items() <= unchanged.items()
    found = squad.evaluate_v2(GOLD, ANSWERED, na_probs, na_prob_thresh=1.5)
    assert found["exact"] == 60  # a becomes wrong, d right; b stays.
    assert found["f1"] == 60
    assert found["best_f1"] == unchanged["best_f1"]


def test_best_thresholds_are_those_of_a_search_through_all():
    rng = np.random.default_rng(5)
    for _ in range(50):
        ids = [str(number) for number in range(12)]
        gold = {key: ("x y",) if rng.random() < 0.5 else () for key in ids}
        texts = ["", "x", "x y", "z"]
        predictions = {key: texts[rng.integers(4)] for key in ids}
        na_probs = {key: float(rng.normal()) for key in ids}
        found = squad.evaluate_v2(gold, predictions, na_probs)
        for name in ("exact", "f1"):
            reached = {
                threshold: squad.evaluate_v2(gold, predictions, na_probs, threshold)[
                    name
                ]
                for threshold in [-9.0, *na_probs.values()]
            }
            best = max(reached.values())
            assert found[f"best_{name}"] == pytest.approx(best)
            threshold = found[f"best_{name}_thresh"]
            if threshold in reached:
                assert reached[threshold] == pytest.approx(best)
            else:
                assert threshold == 0.0
                assert reached[-9.0] == pytest.approx(best)


def test_what_cannot_be_scored():
    with pytest.raises(UserError, match="no questions to score"):
        squad.evaluate_v1({}, {})
    with pytest.raises(UserError, match="no questions to score"):
        squad.evaluate_v2({}, {})
    with pytest.raises(UserError, match="Question c has no answer.*version_2_with"):
        squad.evaluate_v1(GOLD, ANSWERED)
    with pytest.raises(UserError, match="No question has a prediction"):
        squad.evaluate_v2(GOLD, {"z": "x"})
    with pytest.raises(UserError, match="4 questions have a prediction but .*: b, c,"):
        squad.evaluate_v2(GOLD, ANSWERED, {"a": 0.0})


def published(shared, name):
    path = shared / "golden" / "squad_official_scores" / f"{name}.json"
    return json.loads(path.read_text("utf-8"))


@pytest.mark.comparison
def test_version_1_as_published(shared):
    gold = read_gold_answers(shared / "data" / "squad" / "dev-v1.1.json")
    assert len(gold) == 10570
    scores = {
        "bert-ensemble": (86.20624408703878, 92.1955797835112),
        "logreg": (40.14191106906339, 50.981536473244724),
    }
    for name, (exact, f1) in scores.items():
        found = squad.evaluate_v1(gold, published(shared, f"{name}-v1.1"))
        assert found["exact_match"] == exact
        assert found["f1"] == pytest.approx(f1, rel=1e-12)


@pytest.mark.comparison
def test_version_2_as_published(shared):
    gold = read_gold_answers(shared / "data" / "squad" / "dev-v2.0-restored.json")
    scores = {
        "bert-single": (78.74168280973637, 81.77528052374723),
        "bidaf": (65.70369746483618, 67.87648921451334),
        "nlnet": (75.82750779078582, 78.77776770381462),
    }
    for name, (exact, f1) in scores.items():
        found = squad.evaluate_v2(gold, published(shared, f"{name}-v2.0"))
        assert found["exact"] == exact
        assert found["f1"] == pytest.approx(f1, rel=1e-12)
        totals = [found[key] for key in ("total", "HasAns_total", "NoAns_total")]
        assert totals == [11873, 5928, 5945]
    found = squad.evaluate_v2(gold, published(shared, "bert-single-v2.0"))
    assert found["HasAns_exact"] == 74.10593792172739
    assert found["HasAns_f1"] == pytest.approx(80.18183293833508, rel=1e-12)
    assert found["NoAns_exact"] == found["NoAns_f1"] == 83.36417157275021
