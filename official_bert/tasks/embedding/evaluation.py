"""Evaluate sentence vectors: similarity of pairs, and retrieval."""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from official_bert.errors import UserError
from official_bert.metrics import glue, retrieval
from official_bert.tasks.embedding.files import EmbeddingExample
from official_bert.tasks.embedding.search import nearest, unit

SIMILARITY = ("spearman", "pearson")
DEPTHS = {"mrr": (10,), "recall": (1, 10), "ndcg": (10,)}
RETRIEVAL = tuple(f"{name}_at_{k}" for name, ks in DEPTHS.items() for k in ks)
# Number of documents whose vectors are compared at the same time.
_BLOCK = 4096


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """A set of texts, and the scores of their vectors.

    Attributes:
      texts: N different texts.
      metrics: names of the scores.
      measure: function: vectors float32 [N, D] of the texts -> dict of scores.
    """

    texts: list[str]
    metrics: tuple[str, ...]
    measure: Callable[[np.ndarray], dict[str, float]]


def of_examples(examples: Sequence[EmbeddingExample], flag: str) -> Evaluation:
    """Return the `Evaluation` of a dev set.

    With scores: the correlation of cosines and scores. Without scores: each anchor
    searches its positive texts among all other texts of the set, including hard
    negatives.

    Args:
      examples: list of `EmbeddingExample`.
      flag: the flag that named their file, for messages.

    Raises:
      UserError: the examples are single texts.
    """
    if all(example.score is not None for example in examples):
        return _of_scores(examples)
    if any(len(example.texts) < 2 for example in examples):
        raise UserError(
            f"{flag} contains single texts, which cannot be scored. Give pairs, with "
            "or without scores."
        )
    return _of_pairs(examples)


def _of_scores(examples):
    texts = list(dict.fromkeys(text for each in examples for text in each.texts[:2]))
    numbers = {text: number for number, text in enumerate(texts)}
    pairs = np.array([[numbers[text] for text in each.texts[:2]] for each in examples])
    scores = np.array([each.score for each in examples])

    def measure(vectors):
        vectors = unit(vectors)
        cosines = (vectors[pairs[:, 0]] * vectors[pairs[:, 1]]).sum(-1)
        return glue.score(SIMILARITY, scores, cosines)

    return Evaluation(texts, SIMILARITY, measure)


def _of_pairs(examples):
    texts = list(dict.fromkeys(text for each in examples for text in each.texts))
    numbers = {text: number for number, text in enumerate(texts)}
    groups: dict[str, set[int]] = {}
    for each in examples:
        if each.group is not None:
            members = (numbers[text] for text in each.texts)
            groups.setdefault(each.group, set()).update(members)
    relevant: dict[int, set[int]] = {}
    for each in examples:
        anchor, positive = (numbers[text] for text in each.texts[:2])
        own = groups.get(each.group, {positive}) if each.group else {positive}
        relevant.setdefault(anchor, set()).update(own)
    relevant = {anchor: own - {anchor} for anchor, own in relevant.items()}
    anchors = [anchor for anchor, own in relevant.items() if own]
    if not anchors:
        raise UserError(
            "Each pair of the dev set has the same text twice. Give pairs of different "
            "texts."
        )
    documents = sorted({numbers[t] for each in examples for t in each.texts[1:]})
    answers = [dict.fromkeys(relevant[anchor], 1.0) for anchor in anchors]

    def measure(vectors):
        queries, candidates = vectors[anchors], vectors[documents]
        blocks = (
            candidates[at : at + _BLOCK] for at in range(0, len(candidates), _BLOCK)
        )
        # One more, because the anchor may be among the documents.
        _, found = nearest(queries, blocks, 1 + max(map(max, DEPTHS.values())))
        ranked = [
            [documents[column] for column in row if documents[column] != anchor]
            for anchor, row in zip(anchors, found, strict=True)
        ]
        return retrieval.score(ranked, answers, DEPTHS)

    return Evaluation(texts, RETRIEVAL, measure)
