"""Search for the nearest vectors, exactly and block by block.

Legend: `Q` queries, `N` documents per block, `D` numbers per vector, `k` results.
"""

from collections.abc import Iterable

import numpy as np

# Limit of the scores in memory: this number of queries times one block of documents.
QUERY_BLOCK = 1024


def nearest(
    queries: np.ndarray, blocks: Iterable[np.ndarray], k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each query, the k documents with the largest cosine.

    Memory holds the queries, one block, and `QUERY_BLOCK` rows of scores. On equal
    scores the document with the smaller number comes first.

    Args:
      queries: float32 [Q, D].
      blocks: the documents' vectors in order, float32 [N, D] each.
      k: at least 1.

    Returns:
      (cosines float32 [Q, k], numbers int64 [Q, k]), the best first. If there are
      fewer than k documents, the arrays have one column per document.
    """
    queries = unit(queries)
    cosines = np.empty((len(queries), 0), np.float32)
    numbers = np.empty((len(queries), 0), np.int64)
    first = 0
    for block in blocks:
        block = unit(block)
        parts = [
            _merged(cosines[part], numbers[part], queries[part] @ block.T, first, k)
            for part in _parts(len(queries))
        ]
        if parts:
            cosines, numbers = (np.concatenate(each) for each in zip(*parts))  # noqa: B905
        first += len(block)
    return cosines, numbers


def unit(vectors: np.ndarray) -> np.ndarray:
    """Scale vectors [N, D] to length 1, float32; zero vectors stay zero."""
    vectors = np.asarray(vectors, np.float32)
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.maximum(lengths, 1e-12)


def _parts(count):
    return [slice(at, at + QUERY_BLOCK) for at in range(0, count, QUERY_BLOCK)]


def _merged(cosines, numbers, scores, first, k):
    """Return the best k of the previous results and of a block's scores [Q, N]."""
    own = np.broadcast_to(first + np.arange(scores.shape[1]), scores.shape)
    if scores.shape[1] > k:
        # The k-th largest score. Ties with it are resolved below.
        least = np.partition(scores, -k, axis=1)[:, -k]
        kept = scores >= least[:, np.newaxis]
        width = kept.sum(1).max()
        columns = np.argsort(~kept, axis=1, kind="stable")[:, :width]
        scores = np.take_along_axis(np.where(kept, scores, -np.inf), columns, 1)
        own = np.take_along_axis(own, columns, 1)
    scores = np.concatenate([cosines, scores], 1)
    own = np.concatenate([numbers, own], 1)
    # Numbers increase within equal scores, and a stable sort keeps their order.
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(scores, order, 1), np.take_along_axis(own, order, 1)
