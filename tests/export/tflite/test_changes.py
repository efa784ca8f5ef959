"""The predictions that a `.tflite` changes, and the size of the differences."""

import numpy as np
import pytest

from official_bert.export.tflite.changes import Answers, compare


def answers(labels, numbers):
    array = None if numbers is None else np.array(numbers, np.float32)
    return Answers(50.0, labels, array)


def test_a_label_that_changed():
    before = answers(["good", "bad", "bad"], [[0.9, 0.1], [0.4, 0.6], [0.0, 1.0]])
    after = answers(["good", "good", "bad"], [[0.8, 0.2], [0.55, 0.45], [0.0, 1.0]])
    changes = compare(before, after)
    assert changes.share_same == pytest.approx(2 / 3)
    assert changes.lines() == [
        "1 of 3 predictions differ from Python's: "
        "example 2: 'bad' (0.600) became 'good' (0.550).",
        "Probabilities differ by 0.1500 at most (example 2) and by 0.0833 on average.",
    ]


def test_no_label_changed():
    before = answers(["good"], [[0.75, 0.25]])
    changes = compare(before, answers(["good"], [[0.5, 0.5]]))
    assert changes.share_same == 1.0
    assert changes.lines() == [
        "0 of 1 predictions differ from Python's.",
        "Probabilities differ by 0.2500 at most (example 1) and by 0.2500 on average.",
    ]


def test_many_labels_are_counted_and_some_are_named():
    before = answers(["a"] * 9, [[1.0]] * 9)
    (first, _) = compare(before, answers(["b"] * 9, [[1.0]] * 9)).lines()
    assert first.count("became") == 5 and first.endswith("and 4 more.")


def test_tags_have_no_probabilities():
    changes = compare(answers(["O", "B-LOC"], None), answers(["O", "O"], None))
    assert changes.share_same == 0.5 and changes.largest is None
    assert changes.lines() == [
        "1 of 2 predictions differ from Python's: word 2: B-LOC became O."
    ]


def test_a_regression_has_no_labels():
    changes = compare(answers(None, [[1.0], [2.0]]), answers(None, [[1.0], [1.5]]))
    assert changes.share_same is None
    assert changes.lines() == [
        "Numbers differ by 0.5000 at most (example 2) and by 0.2500 on average."
    ]
