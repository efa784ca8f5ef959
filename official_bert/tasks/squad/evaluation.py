"""Compute the official scores of predictions, and the best threshold."""

from collections.abc import Mapping, Sequence
from typing import Any

from official_bert.metrics.squad import evaluate_v1, evaluate_v2
from official_bert.tasks.squad.answers import Decoding, SquadPrediction


def evaluate_predictions(
    decoding: Decoding,
    predictions: Sequence[SquadPrediction],
    gold_answers: Mapping[str, Sequence[str]],
) -> dict[str, float]:
    """Return the official scores of predictions, in percent.

    Args:
      decoding: `Decoding` of the predictions.
      predictions: list of `SquadPrediction`.
      gold_answers: dict, from `files.read_gold_answers`.

    Returns:
      dict of name -> float. For SQuAD 2.0 also the scores at the best threshold on
      the null odds, and this threshold.
    """
    texts = {one.qas_id: one.answer.text for one in predictions}
    if not decoding.version_2_with_negative:
        return evaluate_v1(gold_answers, texts)
    # A threshold can remove an answer but cannot restore one.
    non_null = {
        one.qas_id: one.best_non_null.text if one.best_non_null else ""
        for one in predictions
    }
    odds: dict[str, Any] = {one.qas_id: one.null_odds for one in predictions}
    tuned = evaluate_v2(gold_answers, non_null, odds)
    best = {name: value for name, value in tuned.items() if name.startswith("best_")}
    return evaluate_v2(gold_answers, texts) | best
