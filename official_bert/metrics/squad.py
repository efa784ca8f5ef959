"""The official scores of SQuAD 1.1 and 2.0: exact match and F1, in percent.

Answers are compared in lower case, without ASCII punctuation, without the
articles "a", "an" and "the", and with single spaces. Each question counts with
its best score over the answers of the annotators.

The two official scripts treat a question without a prediction differently. In 1.1
it scores 0. In 2.0 the question is ignored.
"""

import collections
import itertools
import re
import string
from collections.abc import Mapping, Sequence

from absl import logging

from official_bert.errors import UserError, list_some

# Name of our score that is a threshold; `best_f1_thresh` is the official one.
BEST_THRESHOLD = "best_null_score_diff_threshold"

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalize_answer(text: str) -> str:
    """Return an answer in the form that is compared.

    Follows `normalize_answer` in SQuAD's `evaluate-v1.1.py` and
    `evaluate-v2.0.py`.
    """
    text = text.lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def _compare(prediction, gold):
    """Return (exact, f1) of two normalized answers: 0 or 1, and a number from 0 to 1.

    Follows `compute_exact` and `compute_f1` in SQuAD's `evaluate-v2.0.py`. There,
    two answers that are both empty after normalization are equal. (Their F1 is 0
    in `evaluate-v1.1.py`; see `evaluate_v1`.)
    """
    exact = int(prediction == gold)
    if exact or not prediction or not gold:
        return exact, exact
    prediction, gold = prediction.split(), gold.split()
    common = collections.Counter(prediction) & collections.Counter(gold)
    num_same = sum(common.values())
    if num_same == 0:
        return exact, 0
    # The same expressions as in the official scripts, for the same last digit.
    precision = 1.0 * num_same / len(prediction)
    recall = 1.0 * num_same / len(gold)
    return exact, (2 * precision * recall) / (precision + recall)


def evaluate_v1(
    gold_answers: Mapping[str, Sequence[str]], predictions: Mapping[str, str]
) -> dict[str, float]:
    """Return the scores of SQuAD 1.1.

    Follows `evaluate` in SQuAD's `evaluate-v1.1.py`.

    Args:
      gold_answers: dict of question id -> texts, as returned by
        `tasks.squad.files.read_gold_answers`. At least one question, and at least
        one text per question.
      predictions: dict of question id -> text. Questions without a prediction
        score 0, with a warning. Other ids are ignored.

    Returns:
      dict of `exact_match` and `f1`, in percent of all questions.

    Raises:
      UserError: there are no questions, or a question has no answer.
    """
    _check_questions(gold_answers)
    exact = f1 = 0
    for qas_id, golds in gold_answers.items():
        if not golds:
            raise UserError(
                f"Question {qas_id} has no answer, but SQuAD 1.1 requires one. Score "
                "the file as SQuAD 2.0 (--version_2_with_negative)."
            )
        if qas_id not in predictions:
            continue
        best_exact, best_f1 = _best_scores(predictions[qas_id], golds)
        exact += best_exact
        # In 1.1, two empty answers match exactly, but their F1 is 0.
        if normalize_answer(predictions[qas_id]):
            f1 += best_f1
    _warn_of_missing(gold_answers, predictions, "they score 0")
    total = len(gold_answers)
    return {"exact_match": 100.0 * exact / total, "f1": 100.0 * f1 / total}


def evaluate_v2(
    gold_answers: Mapping[str, Sequence[str]],
    predictions: Mapping[str, str],
    na_probs: Mapping[str, float] | None = None,
    na_prob_thresh: float | None = None,
) -> dict[str, float]:
    """Return the scores of SQuAD 2.0.

    Follows `main` in SQuAD's `evaluate-v2.0.py`, with three differences:

    * The script's default threshold is 1.0, which is meant for probabilities and
      wrong for null odds. The default here is no threshold.
    * The script fails at the scores of `HasAns` and `NoAns` if a question has no
      prediction. Here these scores ignore the question, as the other scores do.
    * The scores at the best threshold also ignore questions without a prediction.
      In the script these scores could exceed 100.

    Args:
      gold_answers: dict of question id -> texts, as returned by
        `tasks.squad.files.read_gold_answers`. A question without an answer has no
        texts. At least one question.
      predictions: dict of question id -> text, "" for no answer. All scores ignore
        questions without a prediction, with a warning. The scores at the best
        threshold need the best texts that are not empty, because a threshold can
        remove an answer but cannot restore one.
      na_probs: None, or dict of question id -> float: null odds or probabilities.
        A higher number means that an answer is less likely.
      na_prob_thresh: None, or float. Questions whose `na_probs` is above it get
        the prediction "".

    Returns:
      dict of `exact` and `f1` in percent, and `total`, the number of questions
      with a prediction. The same scores with the prefixes `HasAns_` and `NoAns_`,
      if such questions exist. With `na_probs` also `best_exact`,
      `best_exact_thresh`, `best_f1`, `best_f1_thresh` and `BEST_THRESHOLD`. The
      official script does not have the last; see `find_threshold_to_keep`.

    Raises:
      UserError: there are no questions or no predictions, or a question with a
        prediction is not in `na_probs`.
    """
    _check_questions(gold_answers)
    exact, f1 = raw_scores(gold_answers, predictions)
    if not exact:
        raise UserError(
            "No question has a prediction. Check that the predictions and the "
            "questions belong to the same file."
        )
    _warn_of_missing(gold_answers, predictions, "they are left out of the scores")
    if na_probs is not None:
        missing = [qas_id for qas_id in exact if qas_id not in na_probs]
        if missing:
            raise UserError(
                f"{len(missing)} questions have a prediction but no null odds: "
                f"{list_some(missing)}. Use both files from the same run."
            )
    raw = exact, f1
    if na_probs is not None and na_prob_thresh is not None:
        silenced = {
            qas_id: float(not gold_answers[qas_id])
            for qas_id in exact
            if na_probs[qas_id] > na_prob_thresh
        }
        exact, f1 = exact | silenced, f1 | silenced
    results = _averages(exact, f1, list(exact))
    for name, has_answer in (("HasAns", True), ("NoAns", False)):
        ids = [qas_id for qas_id in exact if bool(gold_answers[qas_id]) == has_answer]
        if ids:
            averages = _averages(exact, f1, ids)
            results |= {f"{name}_{key}": value for key, value in averages.items()}
    if na_probs is not None:
        for name, scores in zip(("exact", "f1"), raw, strict=True):
            best = find_best_threshold(gold_answers, predictions, scores, na_probs)
            results[f"best_{name}"], results[f"best_{name}_thresh"] = best
        results[BEST_THRESHOLD] = find_threshold_to_keep(
            gold_answers, predictions, na_probs
        )
    return results


def raw_scores(
    gold_answers: Mapping[str, Sequence[str]], predictions: Mapping[str, str]
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the score of each question that has a prediction.

    Follows `get_raw_scores` in SQuAD's `evaluate-v2.0.py`.

    Args:
      gold_answers: see `evaluate_v2`. Answers that are empty after normalization
        do not count. A question without other answers has the answer "".
      predictions: see `evaluate_v2`.

    Returns:
      (exact, f1): two dicts of question id -> score from 0 to 1, in the order
      of `gold_answers`.
    """
    exact, f1 = {}, {}
    for qas_id, golds in gold_answers.items():
        if qas_id in predictions:
            golds = [text for text in golds if normalize_answer(text)] or [""]
            exact[qas_id], f1[qas_id] = _best_scores(predictions[qas_id], golds)
    return exact, f1


def find_best_threshold(
    gold_answers: Mapping[str, Sequence[str]],
    predictions: Mapping[str, str],
    scores: Mapping[str, float],
    na_probs: Mapping[str, float],
) -> tuple[float, float]:
    """Return the best score that a threshold on `na_probs` reaches.

    Follows `find_best_thresh` in SQuAD's `evaluate-v2.0.py`. It starts without
    answers and adds one answer after the other, the smallest of `na_probs` first.
    If several `na_probs` are equal, it may count only some of these answers,
    although no threshold separates them. The script counts questions without a
    prediction as not answered; here they are ignored, as in all scores.

    The arguments are those of `evaluate_v2`; `scores` is one of the dicts of
    `raw_scores`.

    Returns:
      (score in percent, threshold). A question keeps its answer if its `na_probs`
      is not above the threshold. If it is best to keep no answer, the threshold is
      0.0, which may still keep some; `find_threshold_to_keep` avoids this.
    """
    score: float = sum(not gold_answers[qas_id] for qas_id in scores)
    best_score, best_threshold = score, 0.0
    for qas_id in sorted(na_probs, key=na_probs.__getitem__):
        if qas_id not in scores:
            continue
        if gold_answers[qas_id]:
            score += scores[qas_id]
        elif predictions[qas_id]:
            score -= 1
        if score > best_score:
            best_score, best_threshold = score, na_probs[qas_id]
    return 100.0 * best_score / len(scores), best_threshold


def find_threshold_to_keep(
    gold_answers: Mapping[str, Sequence[str]],
    predictions: Mapping[str, str],
    na_probs: Mapping[str, float],
) -> float:
    """Return the threshold on `na_probs` with the best F1.

    It equals `best_f1_thresh` of `evaluate_v2`, and its score is `best_f1`, except
    in two cases. If it is best to keep no answer, the threshold is below all
    `na_probs` instead of 0.0. Questions with equal `na_probs` are all kept or all
    removed. The score may then be lower than `best_f1`, which may count only some
    of these answers.

    The arguments are those of `evaluate_v2`, with at least one prediction.

    Returns:
      float; finite if all `na_probs` are.
    """
    _, answered = raw_scores(gold_answers, predictions)
    _, silent = raw_scores(gold_answers, dict.fromkeys(answered, ""))
    ids = sorted(answered, key=na_probs.__getitem__)
    score = sum(silent.values())
    best_score, best_threshold = score, na_probs[ids[0]] - 1.0
    for threshold, of_equal in itertools.groupby(ids, key=na_probs.__getitem__):
        score += sum(answered[qas_id] - silent[qas_id] for qas_id in of_equal)
        if score > best_score:
            best_score, best_threshold = score, threshold
    return best_threshold


def _best_scores(prediction, golds):
    """Return the best exact match and the best F1 of a text over the gold answers."""
    prediction = normalize_answer(prediction)
    scores = [_compare(prediction, normalize_answer(gold)) for gold in golds]
    return tuple(map(max, zip(*scores, strict=True)))


def _averages(exact, f1, ids):
    return {
        "exact": 100.0 * sum(exact[qas_id] for qas_id in ids) / len(ids),
        "f1": 100.0 * sum(f1[qas_id] for qas_id in ids) / len(ids),
        "total": len(ids),
    }


def _check_questions(gold_answers):
    if not gold_answers:
        raise UserError("The file has no questions to score. Use another file.")


def _warn_of_missing(gold_answers, predictions, consequence):
    missing = [qas_id for qas_id in gold_answers if qas_id not in predictions]
    if missing:
        logging.warning(
            "%d of %d questions have no prediction, %s: %s.",
            len(missing),
            len(gold_answers),
            consequence,
            list_some(missing),
        )
