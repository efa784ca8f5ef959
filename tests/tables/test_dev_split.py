"""The dev split is stratified, reproducible and without leaks; the balance is right."""

import random

import pytest

from official_bert.errors import UserError
from official_bert.tables.dev_split import (
    class_balance,
    count_shared_texts,
    split_off_dev,
)
from official_bert.tables.examples import Example
from official_bert.tables.labels import MULTI_LABEL, REGRESSION, SINGLE_LABEL, Labels


def examples_of(labels):
    return [Example(n, f"text {n}", None, label) for n, label in enumerate(labels, 2)]


def count(examples, label):
    return sum(example.label == label for example in examples)


def test_every_label_gets_its_share():
    labels = ["a"] * 100 + ["b"] * 40 + ["c"] * 3 + ["d"] * 2 + ["e"]
    examples = examples_of(labels)
    train, dev = split_off_dev(examples, SINGLE_LABEL, seed=1)
    assert [count(dev, label) for label in "abcde"] == [10, 4, 1, 1, 0]
    assert sorted(train + dev, key=lambda each: each.guid) == examples
    for part in (train, dev):
        assert [each.guid for each in part] == sorted(each.guid for each in part)


def test_the_split_is_a_function_of_seed_and_rows():
    examples = examples_of(["a", "b"] * 100)
    dev = split_off_dev(examples, SINGLE_LABEL, seed=1)[1]
    assert split_off_dev(list(examples), SINGLE_LABEL, seed=1)[1] == dev
    assert split_off_dev(examples, SINGLE_LABEL, seed=2)[1] != dev
    # The hash seed of the process does not matter.
    assert [each.guid for each in dev][:4] == [15, 17, 21, 38]
    shuffled = random.Random(0).sample(examples, len(examples))
    assert set(split_off_dev(shuffled, SINGLE_LABEL, seed=1)[1]) == set(dev)


def test_a_new_row_moves_few_others():
    examples = examples_of(["a"] * 200)
    dev = set(split_off_dev(examples, SINGLE_LABEL, seed=1)[1])
    more = examples + [Example(999, "new", None, "a")]
    assert len(dev ^ set(split_off_dev(more, SINGLE_LABEL, seed=1)[1])) <= 2


def test_the_same_text_is_never_on_both_sides():
    rows = random.Random(0)
    examples = [
        Example(n, rows.choice(["x ", "x", " y"]) + str(n % 23), None, str(n % 2))
        for n in range(300)
    ]
    for seed in range(20):
        train, dev = split_off_dev(examples, SINGLE_LABEL, seed)
        texts = {" ".join(each.text_a.split()) for each in train}
        assert not texts & {" ".join(each.text_a.split()) for each in dev}
        assert 15 <= len(dev) <= 45
        assert count_shared_texts(dev, train) == 0
    assert count_shared_texts(dev, [Example(0, dev[0].text_a + " ")]) >= 1


def test_pairs_are_the_same_if_both_texts_are():
    examples = [
        Example(n, "first", f"second {n // 2}", "ab"[n // 2 % 2]) for n in range(80)
    ]
    train, dev = split_off_dev(examples, SINGLE_LABEL, seed=3)
    assert len(dev) == 8
    assert not {each.text_b for each in train} & {each.text_b for each in dev}


def test_a_text_repeated_often_goes_over_as_a_whole_or_not():
    copies = [Example(n, "same", None, "a") for n in range(50)]
    other = [Example(50, "other", None, "a"), Example(51, "third", None, "b")]
    train, dev = split_off_dev(copies + other, SINGLE_LABEL, seed=1)
    assert dev == [other[0]] and len(train) == 51
    twice = [Example(60 + n, "more", None, "a") for n in range(60)]
    train, dev = split_off_dev(copies + twice, SINGLE_LABEL, seed=1)
    assert dev == copies and train == twice


def test_several_labels_and_numbers():
    labels = [("a",)] * 80 + [("a", "rare")] * 2 + [()] * 10
    _, dev = split_off_dev(examples_of(labels), MULTI_LABEL, seed=1)
    assert [count(dev, label) for label in [("a",), ("a", "rare"), ()]] == [8, 1, 1]
    numbers = examples_of([n / 7 for n in range(70)])
    train, dev = split_off_dev(numbers, REGRESSION, seed=1)
    assert (len(train), len(dev)) == (63, 7)


def test_the_fraction():
    examples = examples_of(["a", "b"] * 50)
    assert len(split_off_dev(examples, SINGLE_LABEL, 1, 0.3)[1]) == 30
    assert len(split_off_dev(examples, SINGLE_LABEL, 1, 0.99)[1]) == 98
    for fraction in (0, 1, -1, 20, float("nan")):
        with pytest.raises(UserError, match="Choose a number between 0 and 1"):
            split_off_dev(examples, SINGLE_LABEL, 1, fraction)


def test_too_few_rows():
    with pytest.raises(UserError, match=r"3 rows are too few .* Give --dev_file"):
        split_off_dev(examples_of(["a", "b", "c"]), SINGLE_LABEL, 1)


def test_class_balance():
    sets = {
        "train": examples_of(["neg"] * 6 + ["very\npos"] * 2),
        "dev": examples_of(["neg", None]),
        "test": [],
    }
    assert class_balance(sets, Labels(SINGLE_LABEL, ("neg", "very\npos"))) == [
        "label         train        dev       test",
        "neg       6  75.0 %  1 100.0 %  0   0.0 %",
        "very pos  2  25.0 %  0   0.0 %  0   0.0 %",
        "rows              8          1          0",
    ]


def test_class_balance_of_several_labels():
    sets = {"train": examples_of([("a",), ("a", "b"), (), ("b", "a")])}
    assert class_balance(sets, Labels(MULTI_LABEL, ("a", "b"))) == [
        "label       train",
        "a       3  75.0 %",
        "b       2  50.0 %",
        "(none)  1  25.0 %",
        "rows            4",
    ]


def test_class_balance_of_many_labels():
    names = tuple(f"label {n}" for n in range(40))
    lines = class_balance({"train": examples_of(names)}, Labels(SINGLE_LABEL, names))
    assert len(lines) == 33
    assert lines[-2].split() == ["(10", "more)", "10", "25.0", "%"]


def test_class_balance_of_numbers():
    sets = {"train": examples_of([1.0, 2.0, 6.0]), "dev": []}
    assert class_balance(sets, Labels(REGRESSION, ())) == [
        "label  rows  mean  std dev  min  max",
        "train     3     3     2.16    1    6",
        "dev       0",
    ]
