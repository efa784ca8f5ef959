"""An ensemble, and the files of answers and scores, are correct."""

import dataclasses
import json
import os

import keras
import numpy as np
import pytest
import tiny_model
from places import MINI

from official_bert.checkpoints import model_directory
from official_bert.errors import UserError
from official_bert.fine_tuning.task_file import write_task
from official_bert.metrics import squad as scores
from official_bert.modeling.span_prediction import SpanModel
from official_bert.tasks.squad import answers as squad_answers
from official_bert.tasks.squad import files as squad_files
from official_bert.tasks.squad import reports as squad_reports
from official_bert.tasks.squad import training as squad
from official_bert.tasks.squad.answers import Decoding, SquadAnswer, SquadPrediction
from official_bert.tasks.squad.evaluation import evaluate_predictions
from official_bert.tasks.squad.predictor import SquadPredictor
from official_bert.tasks.squad.training import SquadTask

V1 = SquadTask(32, 10, 8)
V2 = dataclasses.replace(V1, decoding=Decoding(version_2_with_negative=True))
CONFIG = dataclasses.replace(tiny_model.MINI_CONFIG, initializer_range=0.3)
FILE = str(MINI / "squad.json")
EXAMPLES = squad_files.read_examples(FILE, False, True)
GOLD = squad_files.read_gold_answers(FILE)


def write(directory, seed, task=V2, vocab=tiny_model.VOCAB, lower=True):
    directory.mkdir()
    keras.utils.set_random_seed(seed)
    model_directory.save(str(directory), SpanModel(CONFIG), str(vocab), lower)
    write_task(str(directory), task, 7)
    return SquadPredictor(str(directory))


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return [write(folder / f"seed-{seed}", seed) for seed in range(3)]


def test_the_three_files(tmp_path):
    """The layout is the original's, which writes ASCII."""
    one = SquadAnswer("é", 0, 1, 1.0, 1.5, 0.75)
    null = SquadAnswer("", 0, 0, -9.0, -8.5, 0.25)
    example = squad_files.make_example("who ?", "é!", "q")
    found = SquadPrediction("q", one, (one, null), one, -20.0)
    squad_reports.write(str(tmp_path), [example], [found], True)
    predictions, nbest, odds = (
        (tmp_path / f"{name}.json").read_bytes()
        for name in ("predictions", "nbest_predictions", "null_odds")
    )
    assert predictions == b'{\n    "q": "\\u00e9"\n}\n'
    assert odds == b'{\n    "q": -20.0\n}\n'
    rows = json.loads(nbest)["q"]
    assert [list(row.items()) for row in rows] == [
        [
            ("text", "é"),
            ("probability", 0.75),
            ("start_logit", 1.0),
            ("end_logit", 1.5),
        ],
        [
            ("text", ""),
            ("probability", 0.25),
            ("start_logit", -9.0),
            ("end_logit", -8.5),
        ],
    ]


def test_places_of_answers(tmp_path):
    """Offsets refer to the unchanged context; null odds are exact."""
    one = SquadAnswer("é b", 2, 6, 1.0, 1.23456789, 0.7512345678)
    null = SquadAnswer("", 0, 0, -9.0, -8.5, 0.25)
    nothing = SquadAnswer(squad_answers.NOTHING, 0, 0, 0.0, 0.0, 1.0)
    examples = [squad_files.make_example("?", "a é\n b", key) for key in "pqr"]
    predictions = [
        SquadPrediction("p", one, (one, null), one, -20.123456789),
        SquadPrediction("q", null, (one, null), one, 2.0),
        SquadPrediction("r", nothing, (nothing,), None, None),
    ]
    path = tmp_path / "predictions.jsonl"
    squad_reports.write(str(tmp_path), examples, predictions, True)
    assert path.read_text("utf-8").splitlines() == [
        '{"id": "p", "text": "é\\n b", "start": 2, "end": 6, "score": 2.234568, '
        '"probability": 0.751235, "null_odds": -20.123456789}',
        '{"id": "q", "text": "", "start": 0, "end": 0, "score": -17.5, '
        '"probability": 0.25, "null_odds": 2.0}',
        '{"id": "r", "text": "", "start": 0, "end": 0, "score": 0.0, '
        '"probability": 1.0}',
    ]


def averaged(models, features):
    """Return the means of start and end logits, window by window."""
    found = [one.logits(features) for one in models]
    return [
        [np.mean(of_window, axis=0) for of_window in zip(*side, strict=True)]
        for side in zip(*found, strict=True)
    ]


def assert_averaged(models):
    """Answers come from the mean logits, with the lengths of the first model."""
    found = squad_reports.answer(models, EXAMPLES)
    features = models[0].features(EXAMPLES)
    expected = squad_answers.decode(
        EXAMPLES,
        features,
        *averaged(models, features),
        models[0].tokenizer,
        V2.decoding,
    )
    assert [one.qas_id for one in found] == [one.qas_id for one in EXAMPLES]
    for one, other in zip(found, expected, strict=True):
        assert one.answer.text == other.answer.text
        assert one.null_odds == pytest.approx(other.null_odds, abs=1e-4)
        assert one.answer.score == pytest.approx(other.answer.score, abs=1e-4)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_logits_are_averaged(models, count):
    assert_averaged(models[:count])


def test_each_model_has_a_say(models):
    odds = [
        [one.null_odds for one in squad_reports.answer(each, EXAMPLES)]
        for each in (models[:1], models[1:2], models[:2], models[1::-1])
    ]
    assert odds[0] != odds[1] != odds[2] != odds[0]
    np.testing.assert_allclose(odds[2], odds[3], atol=1e-5)


def test_the_first_model_s_lengths_are_all_s(models, tmp_path):
    shorter = dataclasses.replace(V2, max_seq_length=28, doc_stride=7)
    other = write(tmp_path / "other", 5, shorter)
    sizes = [len(one.features(EXAMPLES)) for one in (models[0], other)]
    assert sizes[0] != sizes[1]
    assert_averaged([other, models[0]])


def test_models_that_read_other_tokens(models, tmp_path):
    words = tiny_model.VOCAB.read_text("utf-8").split("\n")
    words[20], words[21] = words[21], words[20]
    vocab = tmp_path / "vocab.txt"
    vocab.write_text("\n".join(words), "utf-8")
    others = [
        write(tmp_path / "vocab", 1, vocab=vocab),
        write(tmp_path / "cased", 1, lower=False),
    ]
    for other in others:
        for pair in ([models[0], other], [other, models[0]], [*models, other]):
            with pytest.raises(UserError, match="--ensemble_dirs: .* vocabularies"):
                squad_reports.answer(pair, EXAMPLES)


@pytest.mark.parametrize("version_2", [True, False])
def test_the_original_s_files(models, tmp_path, capsys, version_2):
    found = squad_reports.answer(models[:1], EXAMPLES)
    # Written by an earlier model.
    (tmp_path / "null_odds.json").write_text("{}")
    squad_reports.write(str(tmp_path), EXAMPLES, found, version_2)
    names = {"predictions.json", "nbest_predictions.json", "predictions.jsonl"}
    assert set(os.listdir(tmp_path)) == names | (
        {"null_odds.json"} if version_2 else set()
    )
    text = (tmp_path / "predictions.json").read_text("ascii")
    answers = {one.qas_id: one.answer.text for one in found}
    assert text == json.dumps(answers, indent=4) + "\n"
    nbest = json.loads((tmp_path / "nbest_predictions.json").read_text())
    assert list(nbest) == list(answers)
    for rows in nbest.values():
        assert [list(row) for row in rows] == [
            ["text", "probability", "start_logit", "end_logit"]
        ] * len(rows)
        assert sum(row["probability"] for row in rows) == pytest.approx(1)
        assert 1 < len(rows) <= 21
    if version_2:
        odds = json.loads((tmp_path / "null_odds.json").read_text())
        assert odds == {one.qas_id: one.null_odds for one in found}
    place = os.path.join(tmp_path, "predictions.json")
    assert capsys.readouterr().out == f"Answers to 8 questions: {place}\n"


def read_scores(directory):
    lines = (directory / "eval_results.txt").read_text().splitlines()
    assert lines == sorted(lines)
    return {name: float(v) for name, v in (line.split(" = ") for line in lines)}


def test_scores_of_version_2(models, tmp_path, capsys):
    found = squad_reports.answer(models[:1], EXAMPLES)
    task = squad.at_best_threshold(V2, {scores.BEST_THRESHOLD: -1.5})
    squad_reports.score(str(tmp_path), task, found, GOLD)
    written = read_scores(tmp_path)
    assert written.pop("null_score_diff_threshold") == -1.5
    assert written == evaluate_predictions(V2.decoding, found, GOLD)
    said = capsys.readouterr().out
    assert "***** Eval results *****" in said
    assert f"  best_f1 = {written['best_f1']}\n" in said


NULL = SquadAnswer("", 0, 0, -1.0, -1.0, 0.5)
TEXT = SquadAnswer("Paris", 0, 5, 1.0, 1.0, 0.5)


def answered(odds, threshold):
    """Return a prediction for each of the null odds; all texts are "Paris"."""
    return [
        SquadPrediction(
            key, TEXT if value <= threshold else NULL, (TEXT, NULL), TEXT, value
        )
        for key, value in odds.items()
    ]


def told(tmp_path, capsys, odds, gold, threshold):
    """Return the text that is printed after the scores."""
    task = V2.with_threshold(threshold)
    squad_reports.score(str(tmp_path), task, answered(odds, threshold), gold)
    lines = capsys.readouterr().out.splitlines()
    return [line for line in lines if not line.startswith(("  ", "*****"))]


RIGHT, NONE = ("Paris",), ()


def test_thresholds_that_agree_need_no_words(tmp_path, capsys):
    odds, gold = {"a": -2.0, "b": 3.0}, {"a": RIGHT, "b": NONE}
    assert told(tmp_path, capsys, odds, gold, -2.0) == []


def test_the_best_threshold_if_silence_is_best(tmp_path, capsys):
    odds, gold = {"a": -2.0, "b": 3.0}, {"a": NONE, "b": NONE}
    (note,) = told(tmp_path, capsys, odds, gold, -3.0)
    assert "best_f1_thresh is 0.0: the official script writes 0.0 if" in note
    assert "best_null_score_diff_threshold is -3.0, below all null odds" in note


def test_the_best_threshold_of_equal_odds(tmp_path, capsys):
    odds = {"a": -2.0, "b": 1.0, "c": 1.0, "d": 1.0}
    gold = {"a": RIGHT, "b": RIGHT, "c": NONE, "d": NONE}
    (note,) = told(tmp_path, capsys, odds, gold, -2.0)
    assert "best_f1_thresh is 1.0: the official script answers only some" in note
    assert "best_null_score_diff_threshold is -2.0 and answers all" in note


def test_a_stored_threshold_that_is_not_the_best(tmp_path, capsys):
    odds, gold = {"a": -2.0, "b": 3.0}, {"a": RIGHT, "b": NONE}
    (note,) = told(tmp_path, capsys, odds, gold, 4.0)
    assert "best_f1_thresh is -2.0, but these answers use null_score" in note
    assert "diff_threshold 4.0" in note and "f1 is 50.00 instead of 100.00" in note


def test_no_question_answered():
    silent = answered({"a": 1.0, "b": 2.0}, 0.0)
    warn = squad_reports.silence_warning
    for gold in (None, {"a": NONE, "b": RIGHT}):
        assert "leaves all 2 questions unanswered at null_score_diff_threshold 0.5" in (
            warn(silent, 0.5, gold)
        )
    assert warn(silent, 0.5, {"a": NONE, "b": NONE}) is None
    assert warn(answered({"a": -1.0, "b": 2.0}, 0.0), 0.0) is None


def test_scores_of_version_1(models, tmp_path):
    found = squad_reports.answer(models[:1], EXAMPLES)
    gold = {key: texts or ("nothing",) for key, texts in GOLD.items()}
    squad_reports.score(str(tmp_path), V1, found, gold)
    answers = {one.qas_id: one.answer.text for one in found}
    assert read_scores(tmp_path) == scores.evaluate_v1(gold, answers)
