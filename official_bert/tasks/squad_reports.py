"""What models answer to a whole SQuAD file, and how that is scored.

* `predictions.json`, `nbest_predictions.json`, `null_odds.json`: the original's;
* `eval_results.txt`: the official scores, `key = value`.
"""

import os

from official_bert.errors import UserError
from official_bert.tasks import squad_answers, squad_scores
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
    found = [one.logits(features) for one in predictors]
    # Models, then start and end, then windows.
    logits = [
        [sum(of_window) / len(found) for of_window in zip(*of_models, strict=True)]
        for of_models in zip(*found, strict=True)
    ]
    return first.decode(examples, features, logits)


def _check_same_tokens(predictors):
    first = predictors[0].tokenizer
    for one in predictors[1:]:
        other = one.tokenizer
        if (other.vocab, other.do_lower_case) != (first.vocab, first.do_lower_case):
            raise UserError(
                "--ensemble_dirs: the models have different vocabularies or casing, so "
                "their logits are of different tokens; take models of one kind."
            )


def write(directory, predictions, version_2_with_negative):
    """Write the original's files.

    Args:
      directory: for the files.
      predictions: list of `SquadPrediction`.
      version_2_with_negative: whether there are null odds.
    """
    place = os.path.join(directory, "")
    squad_answers.write_predictions(f"{place}predictions.json", predictions)
    squad_answers.write_nbest(f"{place}nbest_predictions.json", predictions)
    if version_2_with_negative:
        squad_answers.write_null_odds(f"{place}null_odds.json", predictions)
    print(f"Answers to {len(predictions)} questions: {place}predictions.json")


def score(directory, task, predictions, gold_answers):
    """Score predictions officially; write and print `eval_results.txt`.

    Args:
      directory: for the file.
      task: `SquadTask`.
      predictions: list of `SquadPrediction`.
      gold_answers: dict, of `squad_files.read_gold_answers`.
    """
    found = squad_scores.evaluate(task.decoding, predictions, gold_answers)
    if task.decoding.version_2_with_negative:
        threshold = task.decoding.null_score_diff_threshold
        found["null_score_diff_threshold"] = threshold
    eval_results.write(directory, found)
