"""Features of texts and pairs equal those of the original's `run_classifier.py`."""

import json
import logging

import numpy as np
import pytest
import tensorflow as tf

from official_bert.errors import UserError
from official_bert.tables.examples import Example
from official_bert.tasks.classifier.features import (
    convert_example,
    convert_examples,
    pad_features,
)
from official_bert.tasks.glue.files import read_examples
from official_bert.tasks.glue.tasks import TASKS
from official_bert.tokenization.full import FullTokenizer

ENTRIES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcde"]
PAD, UNK, CLS, SEP, _, A, B, C, D, E = range(10)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    path.write_text("\n".join(ENTRIES))
    return FullTokenizer(str(path))


def convert(tokenizer, length, *texts, label=None, labels=()):
    return convert_example(Example("dev-0", *texts, label), tokenizer, length, labels)


def ids_and_segments(features):
    return features.input_ids.tolist(), features.segment_ids.tolist()


@pytest.mark.parametrize("text_b", [None, "", " \t"])
def test_one_text(tokenizer, text_b):
    found = convert(tokenizer, 5, "a b c", text_b)
    assert ids_and_segments(found) == ([CLS, A, B, C, SEP], [0] * 5)
    assert found.num_cut == 0
    assert found.input_ids.dtype == found.segment_ids.dtype == np.int32
    found = convert(tokenizer, 5, "a b c d e", text_b)
    assert ids_and_segments(found) == ([CLS, A, B, C, SEP], [0] * 5)
    assert found.num_cut == 2


def test_two_texts(tokenizer):
    found = convert(tokenizer, 8, "a b c", "d e")
    assert ids_and_segments(found) == (
        [CLS, A, B, C, SEP, D, E, SEP],
        [0, 0, 0, 0, 0, 1, 1, 1],
    )
    assert found.num_cut == 0


@pytest.mark.parametrize(
    ("length", "ids"),
    [
        (7, [CLS, A, B, SEP, D, E, SEP]),  # The longer text is cut,
        (6, [CLS, A, B, SEP, D, SEP]),  # or the second if both are equally long,
        (5, [CLS, A, SEP, D, SEP]),
        (4, [CLS, A, SEP]),  # until nothing is left, not even [SEP].
        (3, [CLS, SEP]),
    ],
)
def test_pairs_cut(tokenizer, length, ids):
    found = convert(tokenizer, length, "a b c", "d e")
    assert found.input_ids.tolist() == ids
    assert found.num_cut == 8 - length


def test_no_text_at_all(tokenizer):
    assert ids_and_segments(convert(tokenizer, 3, "")) == ([CLS, SEP], [0, 0])
    found = convert(tokenizer, 4, "", "a")
    assert ids_and_segments(found) == ([CLS, SEP, A, SEP], [0, 0, 1, 1])


def test_labels(tokenizer):
    labels = ("contradiction", "entailment", "neutral")
    found = convert(tokenizer, 9, "a", None, label="neutral", labels=labels)
    assert found.label_id == 2
    assert convert(tokenizer, 9, "a", None, labels=labels).label_id is None
    found = convert(tokenizer, 9, "a", None, label=3.25)
    assert found.label_id == 3.25
    with pytest.raises(
        ValueError, match="dev-0: the label 'maybe' is not one of contr"
    ):
        convert(tokenizer, 9, "a", None, label="maybe", labels=labels)


def test_what_was_cut_is_told(tokenizer, caplog):
    examples = [Example("", "a b c d e"), Example("", "a"), Example("", "a b", "c d")]
    with caplog.at_level(logging.WARNING):
        found = convert_examples(examples, tokenizer, 5)
    assert [one.num_cut for one in found] == [2, 0, 2]
    assert caplog.messages == [
        "2 of 3 texts are longer than max_seq_length 5: 4 tokens were cut off, "
        "at most 2 from one text."
    ]
    caplog.clear()
    convert_examples(examples, tokenizer, 7)
    assert not caplog.records


def test_no_room(tokenizer):
    with pytest.raises(UserError, match="max_seq_length is 2: it must be at least 3"):
        convert_examples([], tokenizer, 2)


def test_padding(tokenizer):
    examples = [Example("", "a b", "c", "x"), Example("", "a", None, "y")]
    batch = pad_features(convert_examples(examples, tokenizer, 9, ("y", "x")), 7)
    expected = {
        "input_ids": [[CLS, A, B, SEP, C, SEP, PAD], [CLS, A, SEP] + [PAD] * 4],
        "input_mask": [[1] * 6 + [0], [1, 1, 1, 0, 0, 0, 0]],
        "segment_ids": [[0, 0, 0, 0, 1, 1, 0], [0] * 7],
        "label_ids": [1, 0],
    }
    assert {name: array.tolist() for name, array in batch.items()} == expected
    assert {array.dtype for array in batch.values()} == {np.dtype(np.int32)}


def test_padding_of_scores_and_without_labels(tokenizer):
    scored = convert_examples([Example("", "a", None, 3.0)], tokenizer, 9)
    batch = pad_features(scored, 3)
    assert batch["label_ids"].dtype == np.float32
    assert batch["label_ids"].tolist() == [3.0]
    unlabelled = convert_examples([Example("", "a")], tokenizer, 9)
    assert "label_ids" not in pad_features(unlabelled, 3)


@pytest.mark.comparison
def test_mini_as_the_original(mini):
    tokenizer = FullTokenizer(str(mini / "vocab.txt"))
    recorded = json.loads((mini / "classifier_features.json").read_text("utf-8"))
    assert len(recorded) == 8
    for row in recorded:
        example = Example("", row["text_a"], row["text_b"], row["label"])
        length = row["max_seq_length"]
        batch = pad_features(
            [convert_example(example, tokenizer, length, ("0", "1"))], length
        )
        for name in ("input_ids", "input_mask", "segment_ids"):
            assert batch[name].tolist() == [row[name]]
        assert batch["label_ids"].tolist() == [row["label_id"]]


def real_features(shared, name):
    """Return the padded dev features of a task, for BERT-Base Uncased."""
    vocab = shared / "data" / "vocab" / "bert-base-uncased" / "vocab.txt"
    examples = read_examples(TASKS[name], str(shared / "data" / "glue"), "dev")
    tokenizer = FullTokenizer(str(vocab))
    features = convert_examples(examples[:408], tokenizer, 128, TASKS[name].labels)
    return pad_features(features, 128)


@pytest.mark.comparison
@pytest.mark.parametrize("name", ["CoLA", "MRPC", "MNLI"])
def test_glue_as_the_original(shared, name):
    found = real_features(shared, name.lower())
    with np.load(shared / "golden" / "glue" / f"{name}_dev_128.npz") as recorded:
        assert set(recorded) == set(found)
        for feature in recorded:
            assert len(recorded[feature]) == 400
            np.testing.assert_array_equal(found[feature][:400], recorded[feature])


@pytest.mark.comparison
def test_mrpc_as_in_a_real_run_of_the_original(shared):
    found = real_features(shared, "mrpc")
    path = shared / "golden" / "original_runs" / "mrpc_eval.tf_record"
    records = list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator())
    assert len(records) == len(found["input_ids"]) == 408
    for row, record in enumerate(records):
        features = tf.train.Example.FromString(record).features.feature
        for name, array in found.items():
            recorded = list(features[name].int64_list.value)
            assert recorded == np.atleast_1d(array[row]).tolist()
