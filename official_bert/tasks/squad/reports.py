"""Answer all questions of a SQuAD file, and score the answers."""

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from official_bert import files
from official_bert.errors import UserError
from official_bert.metrics.squad import BEST_THRESHOLD
from official_bert.tasks.squad.answers import SquadPrediction
from official_bert.tasks.squad.evaluation import evaluate_predictions
from official_bert.tasks.squad.files import SquadExample
from official_bert.training.logs import eval_results

if TYPE_CHECKING:
    from official_bert.tasks.squad.predictor import SquadPredictor
    from official_bert.tasks.squad.training import SquadTask


def answer(
    predictors: Sequence["SquadPredictor"], examples: Sequence[SquadExample]
) -> list[SquadPrediction]:
    """Return the predictions of one model, or of an ensemble.

    Args:
      predictors: list of `SquadPredictor` with the same vocabulary and casing. The
        logits of their windows are averaged.
      examples: list of `SquadExample`.

    Returns:
      list of `SquadPrediction`.

    Raises:
      UserError: the models have different tokens.
    """
    first = predictors[0]
    tokenizers = [
        (one.tokenizer.vocab, one.tokenizer.do_lower_case) for one in predictors
    ]
    if any(tokenizer != tokenizers[0] for tokenizer in tokenizers):
        raise UserError(
            "--ensemble_dirs: the models have different vocabularies or casing, so "
            "their logits belong to different tokens. Use models with the same ones."
        )
    features = first.features(examples)
    by_model = [one.logits(features) for one in predictors]
    # Axes: models, then start and end, then windows.
    logits = [
        [sum(of_window) / len(by_model) for of_window in zip(*of_models, strict=True)]
        for of_models in zip(*by_model, strict=True)
    ]
    return first.outputs(examples, features, logits)


def best_threshold(
    task: "SquadTask",
    predictions: Sequence[SquadPrediction],
    gold_answers: Mapping[str, Sequence[str]],
) -> float:
    """Return the threshold on the null odds with the best F1.

    Args:
      task: `SquadTask` of SQuAD 2.0.
      predictions: list of `SquadPrediction`.
      gold_answers: dict, from `files.read_gold_answers`.
    """
    scores = evaluate_predictions(task.decoding, predictions, gold_answers)
    return scores[BEST_THRESHOLD]


def at_threshold(
    task: "SquadTask", predictions: Sequence[SquadPrediction], threshold: float
) -> tuple["SquadTask", list[SquadPrediction]]:
    """Return (task, predictions) with another threshold; see `best_threshold`."""
    answered = [
        dataclasses.replace(one, answer=one.answer_at(threshold)) for one in predictions
    ]
    return task.with_threshold(threshold), answered


def write(
    directory: str | os.PathLike[str],
    examples: Sequence[SquadExample],
    predictions: Sequence[SquadPrediction],
    version_2_with_negative: bool,
) -> None:
    """Write the original's files, and `predictions.jsonl`.

    * `predictions.json`: a JSON object of question id -> text;
    * `nbest_predictions.json`: the same with lists of the n best answers;
    * `null_odds.json`: the same with floats, for SQuAD 2.0;
    * `predictions.jsonl`: lines of `{"id", "text", "start", "end", "score",
      "probability"}`, and for SQuAD 2.0 `"null_odds"`. `text` is context[start:end],
      "" for no answer; it may differ from `predictions.json`, see `SquadAnswer`.

    The first three equal the original's byte for byte. SQuAD's official scripts read
    them.

    Args:
      directory: folder of the files.
      examples: list of `SquadExample`.
      predictions: list of their `SquadPrediction`.
      version_2_with_negative: whether there are null odds.
    """
    answers_file = os.path.join(directory, "predictions.json")
    _write(answers_file, {one.qas_id: one.answer.text for one in predictions})
    keys = ("text", "probability", "start_logit", "end_logit")
    nbest = {
        one.qas_id: [{key: getattr(row, key) for key in keys} for row in one.nbest]
        for one in predictions
    }
    _write(os.path.join(directory, "nbest_predictions.json"), nbest)
    odds_file = os.path.join(directory, "null_odds.json")
    if version_2_with_negative:
        _write(odds_file, {one.qas_id: one.null_odds for one in predictions})
    elif files.exists(odds_file):
        # Null odds of an earlier model do not belong to these answers.
        files.remove(odds_file)
    lines = [
        json.dumps(_line(one, example.context), ensure_ascii=False) + "\n"
        for example, one in zip(examples, predictions, strict=True)
    ]
    files.write_text(os.path.join(directory, "predictions.jsonl"), "".join(lines))
    print(f"Answers to {len(predictions)} questions: {answers_file}")


def _line(prediction, context):
    """Return the dict for a prediction's line. Null odds are not rounded."""
    answer = prediction.answer
    line = {
        "id": prediction.qas_id,
        "text": context[answer.start : answer.end],
        "start": answer.start,
        "end": answer.end,
        "score": round(answer.score, 6),
        "probability": round(answer.probability, 6),
    }
    if prediction.null_odds is not None:
        line["null_odds"] = prediction.null_odds
    return line


def _write(path, value):
    # Not `files.write_json`: the original indents by 4 and writes ASCII.
    files.write_text(path, json.dumps(value, indent=4) + "\n")


def score(
    directory: str | os.PathLike[str],
    task: "SquadTask",
    predictions: Sequence[SquadPrediction],
    gold_answers: Mapping[str, Sequence[str]],
) -> None:
    """Compute the official scores; write and print `eval_results.txt`.

    Args:
      directory: folder of the file.
      task: `SquadTask`.
      predictions: list of `SquadPrediction`.
      gold_answers: dict, from `files.read_gold_answers`.
    """
    decoding = task.decoding
    scores = evaluate_predictions(decoding, predictions, gold_answers)
    if decoding.version_2_with_negative:
        scores["null_score_diff_threshold"] = decoding.null_score_diff_threshold
    eval_results.write(directory, scores)
    if decoding.version_2_with_negative:
        odds = [one.null_odds for one in predictions if one.null_odds is not None]
        for note in threshold_notes(scores, odds):
            print(note, flush=True)


def threshold_notes(
    scores: Mapping[str, float], null_odds: Sequence[float]
) -> list[str]:
    """Return sentences that explain why thresholds on the null odds differ.

    Args:
      scores: the scores that `score` writes, for SQuAD 2.0.
      null_odds: null odds of all questions.

    Returns:
      list of str; empty if `best_f1_thresh` is the threshold in use.
    """
    official, best = scores["best_f1_thresh"], scores[BEST_THRESHOLD]
    used = scores["null_score_diff_threshold"]
    notes = []
    if best < min(null_odds):
        notes.append(
            f"best_f1_thresh is {official}: the official script writes 0.0 if it is "
            f"best to answer no question. {BEST_THRESHOLD} is {best}, below all null "
            "odds, so every question stays unanswered."
        )
    elif official != best:
        notes.append(
            f"best_f1_thresh is {official}: the official script answers only some of "
            "the questions with equal null odds, which a threshold cannot do. "
            f"{BEST_THRESHOLD} is {best} and answers all of them or none."
        )
    if used not in (official, best):
        notes.append(
            f"best_f1_thresh is {official}, but these answers use "
            f"null_score_diff_threshold {used}, from the flag or the model's "
            f"task.json: f1 is {scores['f1']:.2f} instead of {scores['best_f1']:.2f}. "
            "--do_eval without --do_train stores the best threshold in task.json."
        )
    return notes


def silence_warning(
    predictions: Sequence[SquadPrediction],
    threshold: float,
    gold_answers: Mapping[str, Sequence[str]] | None = None,
) -> str | None:
    """Return a warning about a model that leaves all SQuAD 2.0 questions unanswered.

    Args:
      predictions: list of `SquadPrediction`.
      threshold: the threshold on the null odds that chose them.
      gold_answers: dict, from `files.read_gold_answers`; None if unknown.

    Returns:
      str; None if at least one question is answered, or if no question has an answer.
    """
    if any(one.answer.text for one in predictions):
        return None
    if gold_answers is not None and not any(gold_answers.values()):
        return None
    return (
        f"Warning: the model leaves all {len(predictions)} questions unanswered at "
        f"null_score_diff_threshold {threshold}. Find a better threshold with "
        "--do_eval. If that does not help, train longer, with another --seed or a "
        "lower --learning_rate."
    )
