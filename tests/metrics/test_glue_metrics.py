"""GLUE's metrics equal hand computations, scikit-learn and SciPy."""

import math

import numpy as np
import pytest

from official_bert.metrics import glue

# Two true positives, one false, three missed, four true negatives.
LABELS = [1, 1, 0, 1, 1, 1, 0, 0, 0, 0]
PREDICTIONS = [1, 1, 1, 0, 0, 0, 0, 0, 0, 0]


def random_classes(count, seed=1, size=500):
    rng = np.random.default_rng(seed)
    labels = rng.integers(count, size=size)
    random = rng.integers(count, size=size)
    return labels, np.where(rng.random(size) < 0.5, labels, random)


def random_scores():
    rng = np.random.default_rng(2)
    labels = rng.integers(26, size=400) / 5  # With many ties.
    return labels, np.round(labels + rng.normal(size=400), 1)


def test_accuracy():
    assert glue.accuracy(LABELS, PREDICTIONS) == 0.6
    assert glue.accuracy([2, 0, 1], [2, 1, 1]) == pytest.approx(2 / 3)


def test_f1_is_of_class_1():
    """Precision is 2/3, recall 2/5: F1 differs from both."""
    assert glue.f1(LABELS, PREDICTIONS) == pytest.approx(0.5)
    flipped = [1 - np.array(LABELS), 1 - np.array(PREDICTIONS)]
    assert glue.f1(*flipped) == pytest.approx(2 * 4 / (5 + 7))


def test_macro_f1_of_two_classes():
    """The F1 of class 1 is 0.5, that of class 0 is 2 · 4 / (5 + 7)."""
    expected = (1 / 2 + 2 / 3) / 2
    assert glue.macro_f1(LABELS, PREDICTIONS) == pytest.approx(expected)
    # The result does not depend on the order of the classes.
    flipped = [1 - np.array(LABELS), 1 - np.array(PREDICTIONS)]
    assert glue.macro_f1(*flipped) == pytest.approx(expected)


def test_macro_f1_of_three_classes():
    """The mean of 4/7, 2/5 and 2/4: rare classes count as much as frequent ones."""
    labels = [0, 0, 0, 1, 1, 1, 2, 2]
    predictions = [0, 0, 1, 1, 0, 2, 2, 0]
    expected = (4 / 7 + 2 / 5 + 1 / 2) / 3
    assert glue.macro_f1(labels, predictions) == pytest.approx(expected)
    assert glue.macro_f1([4, 7, 9], [4, 7, 9]) == 1


def test_macro_f1_of_classes_that_only_one_side_has():
    """Class 1 is never predicted and class 2 never a label: both F1 are 0."""
    assert glue.macro_f1([0, 0, 1], [0, 0, 0]) == pytest.approx((4 / 5 + 0) / 2)
    assert glue.macro_f1([0, 0, 0], [0, 0, 2]) == pytest.approx((4 / 5 + 0) / 2)
    assert glue.macro_f1([0, 0], [0, 0]) == 1


def test_matthews_of_two_classes():
    """(2 · 4 - 1 · 3) / √(3 · 5 · 5 · 7)."""
    expected = 5 / math.sqrt(525)
    assert glue.matthews_correlation(LABELS, PREDICTIONS) == pytest.approx(expected)
    assert glue.matthews_correlation([0, 1, 1], [0, 1, 1]) == 1
    assert glue.matthews_correlation([0, 1, 1], [1, 0, 0]) == -1


def test_matthews_of_three_classes():
    """Four of 8 are correct; labels 3, 3, 2; predictions 4, 2, 2.

    (4 · 8 - (12 + 6 + 4)) / √((64 - 22) (64 - 24)).
    """
    labels = [0, 0, 0, 1, 1, 1, 2, 2]
    predictions = [0, 0, 1, 1, 0, 2, 2, 0]
    right = sum(a == b for a, b in zip(labels, predictions, strict=True))
    assert right == 4
    expected = (4 * 8 - 22) / math.sqrt((64 - 22) * (64 - 24))
    assert glue.matthews_correlation(labels, predictions) == pytest.approx(expected)


def test_matthews_of_many_rows():
    """The product of squares of 400,000 rows exceeds 64 bits."""
    labels = np.tile(LABELS, 40_000)
    predictions = np.tile(PREDICTIONS, 40_000)
    expected = 5 / math.sqrt(525)
    assert glue.matthews_correlation(labels, predictions) == pytest.approx(expected)


def test_pearson():
    """Differences from the mean are -1, 0, 1 and -2, -1, 3: 5 / √(2 · 14)."""
    expected = 5 / math.sqrt(28)
    assert glue.pearson([1, 2, 3], [0, 1, 5]) == pytest.approx(expected)
    assert glue.pearson([1.0, 2.0, 3.0], [5.0, 4.0, 3.0]) == pytest.approx(-1)


def test_spearman_by_average_ranks():
    """Ranks are 1, 2.5, 2.5, 4 and 2, 1, 4, 3.

    Their differences from the mean are -1.5, 0, 0, 1.5 and -0.5, -1.5, 1.5, 0.5. The
    products add up to 1.5, the squares to 4.5 and 5.
    """
    expected = 1.5 / math.sqrt(4.5 * 5)
    found = glue.spearman([0, 1, 1, 9], [2.0, 0.5, 70.0, 3.0])
    assert found == pytest.approx(expected)
    assert glue.spearman([1, 2, 3], [1, 10, 1000]) == pytest.approx(1)


@pytest.mark.parametrize(
    ("labels", "predictions"),
    [([1, 0, 1], [0, 0, 0]), ([0, 0, 0], [1, 0, 1]), ([0, 0], [0, 0])],
)
def test_without_class_1_there_is_no_f1(labels, predictions):
    assert glue.f1(labels, predictions) == 0
    assert glue.matthews_correlation(labels, predictions) == 0


@pytest.mark.parametrize("metric", [glue.pearson, glue.spearman])
def test_what_is_constant_correlates_with_nothing(metric):
    assert metric([1.0, 2.0, 3.0], [0.1, 0.1, 0.1]) == 0
    assert metric([0.1, 0.1, 0.1], [1.0, 2.0, 3.0]) == 0
    # In floats, the mean of three times 0.1 is not 0.1, and the same for 0.7.
    assert metric([0.1, 0.1, 0.1], [0.7, 0.7, 0.7]) == 0
    assert metric([4.0], [4.0]) == 0


@pytest.mark.parametrize("metric", [glue.pearson, glue.spearman])
def test_nan_is_not_hidden(metric):
    assert math.isnan(metric([1.0, 2.0, 3.0], [1.0, math.nan, 3.0]))


@pytest.mark.parametrize("metric", glue.METRICS.values())
def test_what_cannot_be_compared(metric):
    with pytest.raises(ValueError, match=r"shape \(2,\) and .* shape \(3,\)"):
        metric([0, 1], [0, 1, 1])
    with pytest.raises(ValueError, match="N >= 1"):
        metric([], [])
    with pytest.raises(ValueError, match="must be"):
        metric([[0, 1]], [[0, 1]])


def test_several_at_once():
    found = glue.score(("f1", "accuracy"), LABELS, PREDICTIONS)
    assert found == {"f1": pytest.approx(0.5), "accuracy": 0.6}
    assert list(found) == ["f1", "accuracy"]
    assert all(type(value) is float for value in found.values())


# Results of scikit-learn 1.9.1 for `random_classes(count)`: Matthews correlation,
# accuracy, macro-F1, and F1 for two classes.
RECORDED = {
    1: (0.0, 1.0, 1.0, 0.0),
    2: (0.4647667091853912, 0.732, 0.7319614024419516, 0.7351778656126482),
    3: (0.5077873384013263, 0.672, 0.6716484299706974, None),
}


@pytest.mark.comparison
@pytest.mark.parametrize("count", RECORDED)
def test_classes_as_scikit_learn_recorded(count):
    pair = random_classes(count)
    matthews, accuracy, macro_f1, f1 = RECORDED[count]
    assert glue.matthews_correlation(*pair) == pytest.approx(matthews, abs=1e-12)
    assert glue.accuracy(*pair) == pytest.approx(accuracy)
    assert glue.macro_f1(*pair) == pytest.approx(macro_f1)
    if f1 is not None:
        assert glue.f1(*pair) == pytest.approx(f1)


@pytest.mark.comparison
def test_correlations_as_scipy_recorded():
    """Recorded with SciPy 1.17.1."""
    pair = random_scores()
    assert glue.pearson(*pair) == pytest.approx(0.8300293136934931, abs=1e-12)
    assert glue.spearman(*pair) == pytest.approx(0.8401368461708413, abs=1e-12)


@pytest.mark.comparison
@pytest.mark.parametrize("count", [1, 2, 3])
def test_classes_as_scikit_learn(count):
    sklearn = pytest.importorskip("sklearn.metrics")
    labels, predictions = random_classes(count)
    expected = sklearn.matthews_corrcoef(labels, predictions)
    assert glue.matthews_correlation(labels, predictions) == pytest.approx(expected)
    expected = sklearn.accuracy_score(labels, predictions)
    assert glue.accuracy(labels, predictions) == pytest.approx(expected)
    expected = sklearn.f1_score(labels, predictions, average="macro")
    assert glue.macro_f1(labels, predictions) == pytest.approx(expected)
    if count < 3:
        expected = sklearn.f1_score(labels, predictions, zero_division=0)
        assert glue.f1(labels, predictions) == pytest.approx(expected)


@pytest.mark.comparison
def test_scores_as_scipy():
    stats = pytest.importorskip("scipy.stats")
    labels, predictions = random_scores()
    expected = stats.pearsonr(labels, predictions)[0]
    assert glue.pearson(labels, predictions) == pytest.approx(expected, abs=1e-12)
    expected = stats.spearmanr(labels, predictions)[0]
    assert glue.spearman(labels, predictions) == pytest.approx(expected, abs=1e-12)
