"""Rows of ids and parts of texts in a graph equal Python's."""

import itertools
import random

import keras
import numpy as np
import pytest
import tensorflow as tf

from official_bert.constants import INPUTS
from official_bert.export.saved_model import rows
from official_bert.export.saved_model.row_model import RowModel
from official_bert.export.saved_model.texts import parts_of, per_text
from official_bert.fine_tuning import windows
from official_bert.tasks.classifier.features import Features, pad_features
from official_bert.tokenization import model_inputs

STRINGS = tf.TensorSpec([None], tf.string)
NUMBERS = tf.TensorSpec([None], tf.int32)
RAGGED = tf.RaggedTensorSpec([None, None], tf.int32)


def ragged(lists):
    lengths = [len(row) for row in lists]
    values = [value for row in lists for value in row]
    return tf.RaggedTensor.from_row_lengths(
        tf.constant(values, tf.int32, [len(values)]),
        tf.constant(lengths, tf.int64, [len(lengths)]),
    )


def compiled(function, *specs):
    return tf.function(function, input_signature=specs, autograph=False)


def numbers(draw, size, low, high):
    return [draw.randrange(low, high) for _ in range(size)]


def ids(draw, lengths):
    return [numbers(draw, length, 1, 1000) for length in lengths]


# Batch size -> number of random batches.
BATCHES = [(0, 1), (1, 20), (7, 30)]
truncate = compiled(rows.truncate_pairs, RAGGED, RAGGED, NUMBERS)


@pytest.mark.parametrize(("size", "times"), BATCHES)
def test_truncate_pairs(size, times):
    draw = random.Random(1)
    for _ in range(times):
        room = numbers(draw, size, 0, 30)
        pairs = [ids(draw, numbers(draw, size, 0, 40)) for _ in range(2)]
        found = truncate(*map(ragged, pairs), tf.constant(room, tf.int32))
        wanted = list(map(model_inputs.truncate_pair, *pairs, room))
        assert list(zip(*(each.to_list() for each in found), strict=True)) == wanted


def test_truncate_all_small_pairs():
    cases = list(itertools.product(range(6), range(6), range(9)))
    first = [list(range(size)) for size, _, _ in cases]
    second = [list(range(size)) for _, size, _ in cases]
    room = [case[2] for case in cases]
    found = truncate(ragged(first), ragged(second), tf.constant(room))
    wanted = list(map(model_inputs.truncate_pair, first, second, room))
    assert list(zip(*(each.to_list() for each in found), strict=True)) == wanted


@tf.function(input_signature=[NUMBERS] * 3, autograph=False)
def windows_of(num_tokens, room, stride):
    found = rows.make_windows(num_tokens, room, stride)
    return (found.rows, found.starts, found.lengths), rows.best_positions(
        found, num_tokens
    )


@pytest.mark.parametrize(("size", "times"), BATCHES)
def test_windows_and_best_positions(size, times):
    draw = random.Random(2)
    for _ in range(times):
        num_tokens = numbers(draw, size, 0, 60)
        room, stride = numbers(draw, size, 1, 20), numbers(draw, size, 1, 25)
        parts = [tf.constant(each, tf.int32) for each in (num_tokens, room, stride)]
        found, best = windows_of(*parts)
        spans, places = [], []
        for row, each in enumerate(zip(num_tokens, room, stride, strict=True)):
            of_row = windows.make_spans(*each)
            places += [
                (len(spans) + window, token - of_row[window].start)
                for token, window in enumerate(windows.best_spans(of_row, each[0]))
            ]
            spans += [(row, *span) for span in of_row]
        assert list(zip(*(one.numpy() for one in found), strict=True)) == spans
        assert list(zip(*(one.numpy() for one in best), strict=True)) == places


def test_windows_by_hand():
    found, best = windows_of([5, 0, 3], [3, 3, 3], [2, 1, 9])
    assert [one.numpy().tolist() for one in found] == [[0, 0, 2], [0, 2, 0], [3, 3, 3]]
    assert best[0].numpy().tolist() == [0, 0, 0, 1, 1, 2, 2, 2]
    assert best[1].numpy().tolist() == [0, 1, 2, 1, 2, 0, 1, 2]


@pytest.mark.parametrize(("size", "times"), BATCHES)
def test_slice_rows(size, times):
    draw = random.Random(3)
    for _ in range(times):
        lists = ids(draw, numbers(draw, size, 0, 20))
        of_rows = numbers(draw, 5, 0, size) if size else []
        bounds = [sorted(numbers(draw, 2, 0, len(lists[row]) + 1)) for row in of_rows]
        starts = [first for first, _ in bounds]
        lengths = [behind - first for first, behind in bounds]
        parts = [tf.constant(each, tf.int32) for each in (starts, lengths, of_rows)]
        found = rows.slice_rows(ragged(lists), *parts).to_list()
        pairs = zip(of_rows, bounds, strict=True)
        assert found == [lists[row][slice(*bound)] for row, bound in pairs]


def test_slice_all_rows():
    found = rows.slice_rows(ragged([[1, 2, 3], [], [4]]), [1, 0, 0], [2, 0, 1])
    assert found.to_list() == [[2, 3], [], [4]]
    assert rows.row_lengths(found).numpy().tolist() == [2, 0, 1]
    assert rows.no_tokens(2).to_list() == [[], []]
    assert rows.no_tokens(0).to_list() == []


LAYOUT = rows.Layout({"[CLS]": 1001, "[SEP]": 1002}, (8, 16, 40))
lay_out = compiled(LAYOUT.lay_out, RAGGED, RAGGED)


def padded(firsts, seconds, length):
    """Return Python's model inputs for the ids of pairs."""
    features = []
    for first, second in zip(firsts, seconds, strict=True):
        head = [1001, *first, 1002]
        tail = [*second, 1002] if second else []
        segments = [0] * len(head) + [1] * len(tail)
        features.append(Features(np.array(head + tail), np.array(segments), None, 0))
    batch = pad_features(features, length)
    return {name: batch[name] for name in INPUTS}


@pytest.mark.parametrize(("size", "times"), BATCHES)
def test_lay_out(size, times):
    draw = random.Random(4)
    lengths = set()
    for _ in range(times):
        longest = draw.choice((4, 8, 19))
        pairs = [ids(draw, numbers(draw, size, 0, longest)) for _ in range(2)]
        found = lay_out(*map(ragged, pairs))
        total = max(
            (len(a) + len(b) + 2 + bool(b) for a, b in zip(*pairs, strict=True)),
            default=0,
        )
        length = next(n for n in (8, 16, 40) if n >= total)
        lengths.add(length)
        wanted = padded(*pairs, length)
        assert list(found) == list(wanted)
        for name, value in found.items():
            assert value.dtype == tf.int32
            np.testing.assert_array_equal(value, wanted[name], name)
    assert lengths == ({8} if size == 0 else {8, 16, 40})


@pytest.mark.parametrize(
    ("tokens", "length"), [(0, 8), (6, 8), (7, 16), (14, 16), (15, 40), (38, 40)]
)
def test_the_first_length_that_fits(tokens, length):
    pairs = ragged([[5] * tokens, []]), ragged([[], []])
    assert lay_out(*pairs)["input_ids"].shape == (2, length)


def test_a_row_is_placed_where_it_shall_be():
    found = rows.placed(ragged([[1, 2], [], [3]]), tf.constant([0, 2, 1]), 3)
    assert found.numpy().tolist() == [[1, 2, 0], [0, 0, 0], [0, 3, 0]]


def make_row_model(sizes):
    """Return a `RowModel` of 3 rows at a time that records its batch sizes."""
    weight = keras.Variable([[10]], dtype="int32", trainable=False)

    def compute(inputs):
        size = tf.py_function(
            lambda n: sizes.append(int(n)) or n, [tf.shape(inputs["x"])[0]], tf.int32
        )
        with tf.control_dependencies([size]):
            doubled = inputs["x"] * weight.value
        return {"z": doubled, "a": tf.cast(inputs["y"], tf.float32) / 2}

    specs = {
        "x": tf.TensorSpec([None, None], tf.int32, "x"),
        "y": tf.TensorSpec([None], tf.int32, "y"),
    }
    return RowModel(compute, [weight], specs, rows_at_once=3)


@pytest.mark.parametrize(
    ("number", "parts"),
    [(0, [0]), (1, [1]), (3, [3]), (4, [3, 1]), (6, [3, 3]), (11, [3, 3, 3, 2])],
)
def test_a_few_rows_at_a_time(number, parts):
    sizes = []
    model = make_row_model(sizes)

    @tf.function(autograph=False)
    def ask():
        x = tf.reshape(tf.range(number * 2), [number, 2])
        return model({"y": tf.range(number), "x": x})

    found = ask()
    assert sizes == parts
    assert found["z"].shape == (number, 2)
    x = np.arange(number * 2).reshape(number, 2)
    assert found["z"].numpy().tolist() == (x * 10).tolist()
    assert found["a"].numpy().tolist() == (np.arange(number) / 2).tolist()


TEXTS = ["né \U0001f600x", "", "e\u0301\u8001", "abc"]
parts = compiled(parts_of, STRINGS, NUMBERS, NUMBERS, NUMBERS)


def test_all_parts_of_texts():
    cases = [
        (number, start, end)
        for number, text in enumerate(TEXTS)
        for start in range(len(text) + 1)
        for end in range(start, len(text) + 1)
    ]
    random.Random(5).shuffle(cases)
    found = parts(TEXTS, *map(list, zip(*cases, strict=True))).numpy()
    wanted = [TEXTS[number][start:end] for number, start, end in cases]
    assert [part.decode() for part in found] == wanted


def test_bytes_that_are_none_do_not_count():
    texts = [b"a\xffb\xe2\x82c\xc3\xa9", b"\xf0\x9f", b"\xed\xa0\x80on"]
    found = parts(texts, [0, 0, 0, 1, 2], [0, 1, 2, 0, 0], [1, 3, 4, 0, 2])
    assert found.numpy().tolist() == [b"a", b"bc", "cé".encode(), b"", b"on"]


def test_no_parts_of_no_texts():
    nothing = tf.zeros([0], tf.int32)
    for texts in (tf.constant([], tf.string), tf.constant(TEXTS)):
        assert parts(texts, nothing, nothing, nothing).shape == (0,)


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_what_was_found_in_each_text(dtype):
    of_text = tf.constant([1, 1, 3], dtype)
    found = per_text(tf.constant(["a", "b", "c"]), of_text, 5, "")
    assert found.numpy().tolist() == [
        [b"", b""],
        [b"a", b"b"],
        [b"", b""],
        [b"c", b""],
        [b"", b""],
    ]
    vectors = per_text(tf.ones([3, 2]), of_text, 4, 0.0)
    assert vectors.shape == (4, 2, 2)
    assert vectors.numpy().sum(axis=(1, 2)).tolist() == [0, 4, 0, 2]
    nothing = per_text(tf.zeros([0], tf.int32), tf.zeros([0], dtype), 2, -1)
    assert nothing.shape == (2, 0)
    assert per_text(tf.zeros([0], tf.int32), tf.zeros([0], dtype), 0, -1).shape == (
        0,
        0,
    )


@pytest.mark.parametrize(
    ("ids", "where", "wanted"),
    [
        ([[1, 2], [], [3], []], [True, True, False, False], [[1, 2, 9], [9], [3], []]),
        ([[], [4]], [False, True], [[], [4, 9]]),
        ([], [], []),
    ],
)
def test_with_token(ids, where, wanted):
    ragged = tf.ragged.constant(ids, tf.int32, ragged_rank=1, row_splits_dtype=tf.int32)
    found = rows.with_token(ragged, tf.constant(where, tf.bool), 9)
    assert found.to_list() == wanted
    assert found.dtype == tf.int32 and found.row_splits.dtype == tf.int32


def test_a_token_is_added_without_transposing():
    specs = [
        tf.RaggedTensorSpec([None, None], tf.int32, 1, tf.int32),
        tf.TensorSpec([None], tf.bool),
    ]
    add = tf.function(rows.with_token).get_concrete_function(*specs, 9)
    assert "Transpose" not in {one.type for one in add.graph.get_operations()}
