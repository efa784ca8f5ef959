"""Long texts are read in windows, without losing tokens."""

import logging

import numpy as np
import pytest

from official_bert.errors import UserError
from official_bert.fine_tuning.batches import FeatureSet
from official_bert.fine_tuning.outputs import make_evaluate_rows
from official_bert.tables.examples import Example
from official_bert.tasks.classifier import training as classifier
from official_bert.tasks.classifier.features import (
    Features,
    convert_examples,
    convert_windows,
    encode,
    pad_features,
)
from official_bert.tasks.classifier.task import ClassifierTask
from official_bert.tokenization.full import FullTokenizer

PAD, UNK, CLS, SEP, MASK = range(5)
FIRST, COUNT = 5, 60
LABELS = ("no", "yes")


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    """Word n is `wn` and has the id 5 + n, so ids show positions."""
    path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    words = [f"w{n}" for n in range(COUNT)]
    path.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]))
    return FullTokenizer(str(path))


def words(start, stop):
    return " ".join(f"w{n}" for n in range(start, stop))


def ids(start, stop):
    return list(range(FIRST + start, FIRST + stop))


def windows_of(tokenizer, length, *texts, label=None, labels=()):
    example = Example(3, *texts, label=label)
    (found,) = convert_windows([example], tokenizer, length, labels)
    return found


def parts(window):
    """Return (tokens of the first text, tokens of the second) of a window."""
    found = window.input_ids.tolist()
    assert found[0] == CLS and found[-1] == SEP
    middle = found.index(SEP)
    first, second = found[1:middle], found[middle + 1 : -1]
    segments = [0] * (middle + 1) + [1] * (len(found) - middle - 1)
    assert window.segment_ids.tolist() == segments
    assert window.input_ids.dtype == window.segment_ids.dtype == np.int32
    return first, second


def test_one_long_text(tokenizer):
    """Windows have room for 8 of 10 tokens, and start at 0, 4, 8 and 12."""
    found = windows_of(tokenizer, 10, words(0, 19))
    assert [parts(one)[0] for one in found] == [
        ids(0, 8),
        ids(4, 12),
        ids(8, 16),
        ids(12, 19),
    ]
    assert all(one.num_cut == 0 for one in found)


def test_a_pair_whose_second_text_is_long(tokenizer):
    """The first text takes 3 of 9 tokens, so windows of 6 start 3 apart."""
    found = windows_of(tokenizer, 12, words(0, 3), words(20, 32))
    assert [parts(one) for one in found] == [
        (ids(0, 3), ids(20, 26)),
        (ids(0, 3), ids(23, 29)),
        (ids(0, 3), ids(26, 32)),
    ]
    assert all(one.num_cut == 0 for one in found)


def test_a_pair_whose_first_text_is_long(tokenizer):
    found = windows_of(tokenizer, 12, words(20, 32), words(0, 3))
    assert [parts(one) for one in found] == [
        (ids(20, 26), ids(0, 3)),
        (ids(23, 29), ids(0, 3)),
        (ids(26, 32), ids(0, 3)),
    ]


def test_a_pair_of_two_long_texts(tokenizer, caplog):
    """The shorter text keeps 4 of 9 tokens, half of them; windows have 5."""
    with caplog.at_level(logging.INFO, logger="absl"):
        found = windows_of(tokenizer, 12, words(0, 10), words(20, 29))
    assert [parts(one) for one in found] == [
        (ids(0, 5), ids(20, 24)),
        (ids(2, 7), ids(20, 24)),
        (ids(4, 9), ids(20, 24)),
        (ids(6, 10), ids(20, 24)),
    ]
    assert [one.num_cut for one in found] == [5] * 4
    # A text is counted once, not once per window.
    assert caplog.messages == [
        "1 of 1 texts are longer than max_seq_length 12: they are read in 4 windows.",
        "1 of 1 texts are longer than max_seq_length 12: 5 tokens were cut off, at "
        "most 5 from one text.",
    ]


def test_of_equally_long_texts_the_second_is_read_through_windows(tokenizer):
    found = windows_of(tokenizer, 11, words(0, 6), words(20, 26))
    assert [parts(one) for one in found] == [
        (ids(0, 4), ids(20, 24)),
        (ids(0, 4), ids(22, 26)),
    ]
    assert found[0].num_cut == 2


@pytest.mark.parametrize("length", range(5, 15))
@pytest.mark.parametrize(
    "sizes", [(31, 0), (1, 30), (25, 6), (20, 20), (0, 17), (9, 8)]
)
def test_nothing_is_lost_and_nothing_too_long(tokenizer, length, sizes):
    texts = words(0, sizes[0]), words(30, 30 + sizes[1])
    found = windows_of(tokenizer, length, *texts)
    room = length - (3 if sizes[1] else 2)
    long = 0 if sizes[0] > sizes[1] else 1
    kept = min(sizes[1 - long], room // 2)
    if sum(sizes) <= room:
        kept = sizes[1 - long]
        assert len(found) == 1
    short = [parts(one)[1 - long] for one in found]
    assert all(one == ids(30 * (1 - long), 30 * (1 - long) + kept) for one in short)
    read = [parts(one)[long] for one in found]
    seen = sorted({token for one in read for token in one})
    assert seen == ids(30 * long, 30 * long + sizes[long])
    assert all(len(one.input_ids) <= length for one in found)
    # All windows except the last are full, and start half a window apart.
    half = max(1, (room - kept) // 2)
    assert all(len(one.input_ids) == length for one in found[:-1])
    assert [one[0] - read[0][0] for one in read] == [half * i for i in range(len(read))]
    assert {one.num_cut for one in found} == {sizes[1 - long] - kept}


def assert_equal(left, right):
    assert left.input_ids.tolist() == right.input_ids.tolist()
    assert left.segment_ids.tolist() == right.segment_ids.tolist()
    assert left[2:] == right[2:]


def test_short_texts_are_as_ever(tokenizer, caplog):
    """Texts that just fit, and empty texts, have one window as without windows."""
    examples = [
        Example(0, words(0, 8), None, "yes"),
        Example(1, words(0, 4), words(4, 7), "no"),
        Example(2, "", None, "no"),
        Example(3, "", words(0, 7)),
        Example(4, words(0, 7), "", "yes"),
    ]
    with caplog.at_level(logging.INFO, logger="absl"):
        found = convert_windows(examples, tokenizer, 10, LABELS)
    expected = convert_examples(examples, tokenizer, 10, LABELS)
    assert not caplog.records
    assert [len(each) for each in found] == [1] * 5
    for (one,), other in zip(found, expected, strict=True):
        assert_equal(one, other)


@pytest.mark.parametrize(
    ("label", "labels", "expected"),
    [
        ("yes", LABELS, 1),
        (("yes",), LABELS, (0, 1)),
        ((), LABELS, (0, 0)),
        (3.5, (), 3.5),
        (None, LABELS, None),
    ],
)
def test_each_window_has_the_label(tokenizer, label, labels, expected):
    found = windows_of(tokenizer, 8, words(0, 30), label=label, labels=labels)
    assert len(found) > 5
    assert {one.label_id for one in found} == {expected}


def test_limits(tokenizer):
    with pytest.raises(
        UserError, match="max_seq_length is 4, but windows need at least 5"
    ):
        convert_windows([], tokenizer, 4)
    assert convert_windows([], tokenizer, 5) == []
    found = windows_of(tokenizer, 5, words(0, 5), words(10, 13))
    assert [parts(one) for one in found] == [
        (ids(i, i + 1), ids(10, 11)) for i in range(5)
    ]
    with pytest.raises(ValueError, match="3: the label 'maybe' is not one of no, yes."):
        windows_of(tokenizer, 5, words(0, 9), label="maybe", labels=LABELS)


def test_the_task_tells_what_becomes_of_long_texts(tokenizer):
    examples = [Example(0, words(0, 20), None, "yes"), Example(1, "w1", None, "no")]
    task = ClassifierTask("single_label", LABELS, ("accuracy",), 10)
    cut = encode(task, examples, tokenizer)
    assert [len(each) for each in cut] == [1, 1] and cut[0][0].num_cut == 12
    expected = convert_examples(examples, tokenizer, 10, LABELS)
    for (one,), other in zip(cut, expected, strict=True):
        assert_equal(one, other)
    task = ClassifierTask("single_label", LABELS, ("accuracy",), 10, long_text="window")
    read = encode(task, examples, tokenizer)
    assert [len(each) for each in read] == [4, 1]


def window(*tokens):
    return Features(np.array(tokens, np.int32), np.zeros(len(tokens), np.int32), 0, 0)


def sums(batch):
    """A "model" that returns the sum of a row's ids, and its length."""
    assert not (batch["input_ids"] * (1 - batch["input_mask"])).any()
    columns = [batch["input_ids"].sum(axis=1), batch["input_mask"].sum(axis=1)]
    return {"logits": np.stack(columns, axis=1).astype(np.float32)}


@pytest.mark.parametrize("batch_size", [1, 2, 3, 100])
def test_the_logits_of_windows_are_averaged(batch_size):
    """The windows of an example are in different batches, out of order."""
    windows = [
        [window(1, 2, 3)],
        [window(10, 20, 30, 40), window(30, 40), window(5)],
        [window(7, 8), window(8, 9, 10)],
    ]
    found = classifier.predict(sums, windows, batch_size, 16)
    expected = [
        [6, 3],
        [(100 + 70 + 5) / 3, (4 + 2 + 1) / 3],
        [(15 + 27) / 2, (2 + 3) / 2],
    ]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_many_windows_against_numpy():
    rng = np.random.default_rng(0)
    windows = [
        [window(*rng.integers(1, 99, rng.integers(1, 30))) for _ in range(count)]
        for count in rng.integers(1, 6, 40)
    ]
    found = classifier.predict(sums, windows, 8, 32)
    expected = [
        np.mean([[one.input_ids.sum(), len(one.input_ids)] for one in each], axis=0)
        for each in windows
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_an_evaluation_breaks_off_between_batches():
    windows = FeatureSet([window(1), window(2), window(3)], 16, pad_features)
    evaluate = make_evaluate_rows(sums, windows, 1, len)
    answers = iter([False, True])
    assert evaluate(lambda: next(answers)) is None
    assert next(answers, None) is None
    assert evaluate() == 3
