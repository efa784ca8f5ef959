"""Metrics of retrieval, computed by hand."""

import math

import pytest

from official_bert.metrics import retrieval

RANKED = [[4, 2, 9], [1, 3], [7]]
RELEVANT = [{2: 1.0, 9: 2.0}, {1: 1.0}, {8: 1.0, 5: 3.0}]


def test_scores_by_hand():
    depths = {"mrr": (1, 10), "recall": (1, 2, 3), "ndcg": (10,)}
    found = retrieval.score(RANKED, RELEVANT, depths)
    ideal = 2 + 1 / math.log2(3)
    first = (1 / math.log2(3) + 2 / math.log2(4)) / ideal
    expected = {
        "mrr_at_1": (0 + 1 + 0) / 3,
        "mrr_at_10": (1 / 2 + 1 + 0) / 3,
        "recall_at_1": (0 + 1 + 0) / 3,
        "recall_at_2": (1 / 2 + 1 + 0) / 3,
        "recall_at_3": (1 + 1 + 0) / 3,
        "ndcg_at_10": (first + 1 + 0) / 3,
    }
    assert found == pytest.approx(expected)


def test_at_a_depth_the_best_possible_is_1():
    relevant = {1: 1.0, 2: 1.0, 3: 2.0}
    assert retrieval.recall([3, 1], relevant, 2) == 1.0
    assert retrieval.ndcg([3, 1], relevant, 2) == pytest.approx(1.0)
    assert retrieval.ndcg([1, 3], relevant, 2) < 1.0


@pytest.mark.parametrize(("ranked", "relevant"), [([], []), ([[1]], [{}])])
def test_nothing_to_score(ranked, relevant):
    with pytest.raises(ValueError):
        retrieval.score(ranked, relevant, {"mrr": (10,)})
