"""What models answer to a whole SQuAD file, and how that is scored."""

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
    """Return the predictions of one model, or of several together.

    Args:
      predictors: list of `SquadPredictor`, of one vocabulary and casing; the
        logits of their windows are averaged.
      examples: list of `SquadExample`.

    Returns:
      list of `SquadPrediction`.

    Raises:
      UserError: the models do not read the same tokens.
    """
    first = predictors[0]
    tokenizers = [
        (one.tokenizer.vocab, one.tokenizer.do_lower_case) for one in predictors
    ]
    if any(tokenizer != tokenizers[0] for tokenizer in tokenizers):
        raise UserError(
            "--ensemble_dirs: the models have different vocabularies or casing, so "
            "their logits are of different tokens; take models of one kind."
        )
    features = first.features(examples)
    by_model = [one.logits(features) for one in predictors]
    # Models, then start and end, then windows.
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
    """Return the threshold on the null odds that answers with the best F1.

    Args:
      task: `SquadTask` of SQuAD 2.0.
      predictions: list of `SquadPrediction`.
      gold_answers: dict, of `files.read_gold_answers`.
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
    * `nbest_predictions.json`: of question id -> list of the n best answers;
    * `null_odds.json`: of question id -> float, for SQuAD 2.0;
    * `predictions.jsonl`: lines of `{"id", "text", "start", "end", "score",
      "probability"}`, and of SQuAD 2.0 `"null_odds"`. `text` is context[start:end],
      "" for no answer; that of `predictions.json` may differ, see `SquadAnswer`.

    The first three equal the original's byte for byte; SQuAD's official scripts read
    them.

    Args:
      directory: for the files.
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
    else:  # Those of an earlier model would be read as of these answers.
        if files.exists(odds_file):
            files.remove(odds_file)
    lines = [
        json.dumps(_line(one, example.context), ensure_ascii=False) + "\n"
        for example, one in zip(examples, predictions, strict=True)
    ]
    files.write_text(os.path.join(directory, "predictions.jsonl"), "".join(lines))
    print(f"Answers to {len(predictions)} questions: {answers_file}")


def _line(prediction, context):
    """Return the line of a prediction as a dict; its null odds are not rounded."""
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
    """Score predictions officially; write and print `eval_results.txt`, `key = value`.

    Args:
      directory: for the file.
      task: `SquadTask`.
      predictions: list of `SquadPrediction`.
      gold_answers: dict, of `files.read_gold_answers`.
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
      scores: what `score` writes, of SQuAD 2.0.
      null_odds: those of all questions.

    Returns:
      list of str; empty if `best_f1_thresh` is the threshold in use.
    """
    official, best = scores["best_f1_thresh"], scores[BEST_THRESHOLD]
    used = scores["null_score_diff_threshold"]
    notes = []
    if best < min(null_odds):
        notes.append(
            f"best_f1_thresh is {official}: the official script writes 0.0 if no "
            f"answer at all scores best. {BEST_THRESHOLD} is {best}, below all null "
            "odds, and leaves every question unanswered."
        )
    elif official != best:
        notes.append(
            f"best_f1_thresh is {official}: the official script answers only some of "
            "the questions with equal null odds, which no threshold can do. "
            f"{BEST_THRESHOLD} is {best} and answers all of them or none."
        )
    if used not in (official, best):
        notes.append(
            f"best_f1_thresh is {official}, but these answers use "
            f"null_score_diff_threshold {used}, from the flag or the model's "
            f"task.json: f1 is {scores['f1']:.2f} instead of {scores['best_f1']:.2f}. "
            "--do_eval without --do_train keeps the best threshold in task.json."
        )
    return notes


def silence_warning(
    predictions: Sequence[SquadPrediction],
    threshold: float,
    gold_answers: Mapping[str, Sequence[str]] | None = None,
) -> str | None:
    """Return a sentence about a model that answers no question of SQuAD 2.0.

    Args:
      predictions: list of `SquadPrediction`.
      threshold: the one on the null odds that chose them.
      gold_answers: dict, of `files.read_gold_answers`; None if not known.

    Returns:
      str; None if there is an answer, or if no question has one.
    """
    if any(one.answer.text for one in predictions):
        return None
    if gold_answers is not None and not any(gold_answers.values()):
        return None
    return (
        f"Warning: the model leaves all {len(predictions)} questions unanswered at "
        f"null_score_diff_threshold {threshold}. Find a better threshold with "
        "--do_eval; if that does not help, train longer, with another --seed or a "
        "lower --learning_rate."
    )
