"""The official scores of SQuAD 1.1 and 2.0: exact match and F1, in percent.

Answers are compared in lower case, without ASCII punctuation, without the
articles "a", "an" and "the", and with single spaces. Each question counts with
its best score over the answers that annotators gave.

The two official scripts differ where a question has no prediction: for 1.1 it
scores 0, for 2.0 it is left out as if it had never been asked.
"""

import collections
import itertools
import re
import string
from collections.abc import Mapping, Sequence

from absl import logging

from official_bert.errors import UserError, list_some

# Of the scores, the threshold to answer with; `best_f1_thresh` is the official one.
BEST_THRESHOLD = "best_null_score_diff_threshold"

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalize_answer(text: str) -> str:
    """Return an answer as it is compared.

    Follows `normalize_answer` in SQuAD's `evaluate-v1.1.py` and
    `evaluate-v2.0.py`.
    """
    text = text.lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def _compare(prediction, gold):
    """Return (exact, f1), 0 or 1 and a number from 0 to 1, of normalized answers.

    Follows `compute_exact` and `compute_f1` in SQuAD's `evaluate-v2.0.py`,
    where two answers that are both empty once normalized agree wholly. (The
    F1 of `evaluate-v1.1.py` is 0 for these; see `evaluate_v1`.)
    """
    exact = int(prediction == gold)
    if exact or not prediction or not gold:
        return exact, exact
    prediction, gold = prediction.split(), gold.split()
    common = collections.Counter(prediction) & collections.Counter(gold)
    num_same = sum(common.values())
    if num_same == 0:
        return exact, 0
    # Written as in the official scripts, whose last digit this keeps.
    precision = 1.0 * num_same / len(prediction)
    recall = 1.0 * num_same / len(gold)
    return exact, (2 * precision * recall) / (precision + recall)


def evaluate_v1(
    gold_answers: Mapping[str, Sequence[str]], predictions: Mapping[str, str]
) -> dict[str, float]:
    """Return the scores of SQuAD 1.1.

    Follows `evaluate` in SQuAD's `evaluate-v1.1.py`.

    Args:
      gold_answers: dict of question id -> texts, at least one each, of
        `tasks.squad.files.read_gold_answers`; at least one question.
      predictions: dict of question id -> text. Questions that it lacks score
        0, with a warning; other ids are passed over.

    Returns:
      dict of `exact_match` and `f1`, in percent of all questions.

    Raises:
      UserError: there is no question, or one without an answer.
    """
    _check_questions(gold_answers)
    exact = f1 = 0
    for qas_id, golds in gold_answers.items():
        if not golds:
            raise UserError(
                f"Question {qas_id} has no answer, which SQuAD 1.1 does not know; "
                "score the file as SQuAD 2.0 (--version_2_with_negative)."
            )
        if qas_id not in predictions:
            continue
        best_exact, best_f1 = _best_scores(predictions[qas_id], golds)
        exact += best_exact
        # Two empty answers match here, too, but share no word.
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

    Follows `main` in SQuAD's `evaluate-v2.0.py`, but for three things. Its
    threshold is 1.0 when none is given, which is meant for probabilities and
    harms null odds; here there is none then. And where a question has no
    prediction it fails at the scores of `HasAns` and `NoAns`; here these leave
    out the question, as its other scores do. So do the scores at the best
    threshold, which could exceed 100 there.

    Args:
      gold_answers: dict of question id -> texts, none for a question without
        an answer, of `tasks.squad.files.read_gold_answers`; at least one question.
      predictions: dict of question id -> text, "" for no answer. Questions
        that it lacks are left out of all scores, with a warning. For the
        scores at the best threshold these must be the best texts that are not
        empty, since a threshold cannot bring back a text that is not there.
      na_probs: None, or dict of question id -> float, the higher the less
        likely is an answer: null odds, or probabilities.
      na_prob_thresh: None, or float: questions whose `na_probs` is above it
        have "" as their prediction.

    Returns:
      dict of `exact` and `f1` in percent, and `total`, the number of questions
      with a prediction; the same with `HasAns_` and `NoAns_` before the names,
      if there are such questions; and, with `na_probs`, `best_exact`,
      `best_exact_thresh`, `best_f1` and `best_f1_thresh`, and `BEST_THRESHOLD`,
      which the official script has not: see `find_threshold_to_keep`.

    Raises:
      UserError: there is no question, no question has a prediction, or one
        with a prediction is not in `na_probs`.
    """
    _check_questions(gold_answers)
    exact, f1 = raw_scores(gold_answers, predictions)
    if not exact:
        raise UserError(
            "None of the questions has a prediction; are the predictions of another "
            "file?"
        )
    _warn_of_missing(gold_answers, predictions, "they are left out of the scores")
    if na_probs is not None:
        missing = [qas_id for qas_id in exact if qas_id not in na_probs]
        if missing:
            raise UserError(
                f"{len(missing)} questions have a prediction but no null odds: "
                f"{list_some(missing)}; take both files from the same run."
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
    """Return the score of every question that has a prediction.

    Follows `get_raw_scores` in SQuAD's `evaluate-v2.0.py`.

    Args:
      gold_answers: see `evaluate_v2`. Answers that are empty once normalized
        do not count; a question with no other has the answer "".
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

    Follows `find_best_thresh` in SQuAD's `evaluate-v2.0.py`. It begins with no
    question answered and answers one after the other, the smallest of
    `na_probs` first. (Of equal ones it may so answer some and others not,
    which no threshold does.) Questions without a prediction, which the script
    counts here as not answered, are left out as everywhere.

    The arguments are those of `evaluate_v2`; `scores` is one of the dicts of
    `raw_scores`.

    Returns:
      (score in percent, threshold): a question keeps its answer if its
      `na_probs` is not above the threshold. That is 0.0 where it is best to
      answer none, though it may answer some; `find_threshold_to_keep` does not.
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
    """Return the threshold on `na_probs` that answers with the best F1.

    It is the `best_f1_thresh` of `evaluate_v2`, and scores its `best_f1`, but
    in two cases. Where it is best to answer nothing it is below all
    `na_probs`, and not 0.0. And of questions whose `na_probs` are equal it
    answers all or none, so that it may score less than `best_f1`, which counts
    the first ones alone.

    The arguments are those of `evaluate_v2`, with one prediction at least.

    Returns:
      float, finite as `na_probs` are.
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
    """Return the best exact and the best F1 of a text over the gold answers."""
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
        raise UserError("There is no question to score; is the file empty?")


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
