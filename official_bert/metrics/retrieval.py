"""The metrics of retrieval, which compare rankings with relevant documents."""

import math
from collections.abc import Mapping, Sequence

import numpy as np


def score(
    ranked: Sequence[Sequence[int]],
    relevant: Sequence[Mapping[int, float]],
    depths: Mapping[str, Sequence[int]],
) -> dict[str, float]:
    """Return the mean of each metric over the queries.

    Args:
      ranked: for each of Q queries, the document numbers in order, the best first.
      relevant: for each query, its relevant documents: number -> gain, above 0.
      depths: name of a metric (`recall`, `mrr` or `ndcg`) -> the depths k at which
        to compute it.

    Returns:
      dict of `name_at_k` -> float.

    Raises:
      ValueError: `ranked` is empty, the lengths differ, or a query does not have
        a relevant document.
    """
    if not ranked or len(ranked) != len(relevant):
        raise ValueError(
            f"There are {len(ranked)} rankings, but {len(relevant)} sets of relevant "
            "documents. Give one ranking and one set for each query."
        )
    if not all(relevant):
        raise ValueError(
            "A query has no relevant document. Leave this query out, or give it one."
        )
    metrics = {"recall": recall, "mrr": reciprocal_rank, "ndcg": ndcg}
    return {
        f"{name}_at_{k}": float(
            np.mean(
                [metrics[name](*pair, k) for pair in zip(ranked, relevant, strict=True)]
            )
        )
        for name, ks in depths.items()
        for k in ks
    }


def recall(ranked: Sequence[int], relevant: Mapping[int, float], k: int) -> float:
    """Return the fraction of the relevant documents that are among the first k.

    If there are more than k relevant documents, it is the fraction of k.
    """
    hits = sum(document in relevant for document in ranked[:k])
    return hits / min(k, len(relevant))


def reciprocal_rank(
    ranked: Sequence[int], relevant: Mapping[int, float], k: int
) -> float:
    """Return 1 / rank of the first relevant document; 0 if it is not in the first k."""
    for rank, document in enumerate(ranked[:k], 1):
        if document in relevant:
            return 1 / rank
    return 0.0


def ndcg(ranked: Sequence[int], relevant: Mapping[int, float], k: int) -> float:
    """Return the discounted gain of the first k, divided by the best possible one.

    The gain of rank r is divided by log2(r + 1) (Järvelin and Kekäläinen, 2002).
    """
    gains = [relevant.get(document, 0.0) for document in ranked[:k]]
    best = sorted(relevant.values(), reverse=True)[:k]
    return _discounted(gains) / _discounted(best)


def _discounted(gains):
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))
