"""What models answer to a whole SQuAD file, and how that is scored.

* `predictions.json`, `nbest_predictions.json`, `null_odds.json`: the original's;
* `predictions.jsonl`: a line for each question, with its answer's place in the context;
* `eval_results.txt`: the official scores, `key = value`.
"""

import dataclasses
import json
import os
import pathlib

from official_bert import files
from official_bert.errors import UserError
from official_bert.metrics.squad import BEST_THRESHOLD
from official_bert.tasks.squad.evaluation import evaluate_predictions
from official_bert.training import eval_results


def answer(predictors, examples):
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
    _check_same_tokens(predictors)
    features = first.features(examples)
    by_model = [one.logits(features) for one in predictors]
    # Models, then start and end, then windows.
    logits = [
        [sum(of_window) / len(by_model) for of_window in zip(*of_models, strict=True)]
        for of_models in zip(*by_model, strict=True)
    ]
    return first.outputs(examples, features, logits)


def _check_same_tokens(predictors):
    first = predictors[0].tokenizer
    for one in predictors[1:]:
        other = one.tokenizer
        if (other.vocab, other.do_lower_case) != (first.vocab, first.do_lower_case):
            raise UserError(
                "--ensemble_dirs: the models have different vocabularies or casing, so "
                "their logits are of different tokens; take models of one kind."
            )


def best_threshold(task, predictions, gold_answers):
    """Return the threshold on the null odds that answers with the best F1.

    Args:
      task: `SquadTask` of SQuAD 2.0.
      predictions: list of `SquadPrediction`.
      gold_answers: dict, of `files.read_gold_answers`.
    """
    found = evaluate_predictions(task.decoding, predictions, gold_answers)
    return found[BEST_THRESHOLD]


def at_threshold(task, predictions, threshold):
    """Return (task, predictions) with another threshold; see `best_threshold`."""
    answered = [
        dataclasses.replace(one, answer=one.answer_at(threshold)) for one in predictions
    ]
    return task.with_threshold(threshold), answered


def write(directory, examples, predictions, version_2_with_negative):
    """Write the original's files, and `predictions.jsonl`.

    Args:
      directory: for the files.
      examples: list of `SquadExample`.
      predictions: list of their `SquadPrediction`.
      version_2_with_negative: whether there are null odds.
    """
    place = os.path.join(directory, "")
    write_predictions(f"{place}predictions.json", predictions)
    write_nbest(f"{place}nbest_predictions.json", predictions)
    if version_2_with_negative:
        write_null_odds(f"{place}null_odds.json", predictions)
    else:  # Those of an earlier model would be read as of these answers.
        pathlib.Path(f"{place}null_odds.json").unlink(missing_ok=True)
    write_places(f"{place}predictions.jsonl", examples, predictions)
    print(f"Answers to {len(predictions)} questions: {place}predictions.json")


def write_predictions(path, predictions):
    """Write the answers, a JSON object of question id -> text.

    This and the other two files are laid out as the original's
    `predictions.json`, `nbest_predictions.json` and `null_odds.json`, byte for
    byte, and read by SQuAD's official scripts.

    Args:
      path: the file.
      predictions: list of `SquadPrediction`.
    """
    _write(path, {each.qas_id: each.answer.text for each in predictions})


def write_nbest(path, predictions):
    """Write the n best answers, a JSON object of question id -> list.

    Args:
      path: the file.
      predictions: list of `SquadPrediction`.
    """
    keys = ("text", "probability", "start_logit", "end_logit")
    rows = {
        each.qas_id: [{key: getattr(one, key) for key in keys} for one in each.nbest]
        for each in predictions
    }
    _write(path, rows)


def write_null_odds(path, predictions):
    """Write the null odds, a JSON object of question id -> float.

    Args:
      path: the file.
      predictions: list of `SquadPrediction`, of SQuAD 2.0.
    """
    _write(path, {each.qas_id: each.null_odds for each in predictions})


def write_places(path, examples, predictions):
    """Write the answers as JSON lines, with their places in the contexts.

    A line is `{"id", "text", "start", "end", "score", "probability"}`, and of
    SQuAD 2.0 `"null_odds"`. `text` is context[start:end], "" for no answer:
    what `predictions.json` has instead may differ, see `SquadAnswer`.

    Args:
      path: the file.
      examples: list of `SquadExample`.
      predictions: list of their `SquadPrediction`.
    """
    lines = [
        json.dumps(_line(one, example.context), ensure_ascii=False) + "\n"
        for example, one in zip(examples, predictions, strict=True)
    ]
    files.write_text(path, "".join(lines))


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


def score(directory, task, predictions, gold_answers):
    """Score predictions officially; write and print `eval_results.txt`.

    Args:
      directory: for the file.
      task: `SquadTask`.
      predictions: list of `SquadPrediction`.
      gold_answers: dict, of `files.read_gold_answers`.
    """
    found = evaluate_predictions(task.decoding, predictions, gold_answers)
    if task.decoding.version_2_with_negative:
        threshold = task.decoding.null_score_diff_threshold
        found["null_score_diff_threshold"] = threshold
    eval_results.write(directory, found)
