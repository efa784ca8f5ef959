"""Multiple choice becomes features: a pair per choice, and batches of them."""

import logging

import numpy as np
import pytest

from official_bert.errors import UserError
from official_bert.tables.examples import Example
from official_bert.tasks.choice.features import convert_choices, pad_choice_features
from official_bert.tasks.choice.files import ChoiceExample, read_swag
from official_bert.tasks.classifier.features import convert_example
from official_bert.tokenization.full import FullTokenizer

ENTRIES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcde"]
PAD, UNK, CLS, SEP, _, A, B, C, D, E = range(10)
EXAMPLES = [
    ChoiceExample("one", "a b c", ("d", "e d e"), 1),
    ChoiceExample("two", "a", ("b", "c", "d"), 0),
]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    path.write_text("\n".join(ENTRIES))
    return FullTokenizer(str(path))


def ids(choices):
    return [one.input_ids.tolist() for one in choices]


def test_a_pair_for_each_choice(tokenizer):
    first, second = convert_choices(EXAMPLES, tokenizer, 20)
    assert ids(first) == [
        [CLS, A, B, C, SEP, D, SEP],
        [CLS, A, B, C, SEP, E, D, E, SEP],
    ]
    assert first[1].segment_ids.tolist() == [0] * 5 + [1] * 4
    assert ids(second) == [[CLS, A, SEP, x, SEP] for x in (B, C, D)]
    assert [one.label_id for one in first] == [1, 1]
    assert [one.label_id for one in second] == [0, 0, 0]


def test_pairs_are_cut_alone(tokenizer, caplog):
    with caplog.at_level(logging.WARNING):
        (first,) = convert_choices(EXAMPLES[:1], tokenizer, 7)
    assert ids(first) == [[CLS, A, B, C, SEP, D, SEP], [CLS, A, B, SEP, E, D, SEP]]
    assert [one.num_cut for one in first] == [0, 2]
    assert caplog.messages == [
        "1 of 2 texts are longer than max_seq_length 7: 2 tokens were cut off, "
        "at most 2 from one text."
    ]


def test_no_room(tokenizer):
    with pytest.raises(UserError, match="max_seq_length is 2"):
        convert_choices(EXAMPLES, tokenizer, 2)
    assert convert_choices([], tokenizer, 3) == []


def test_a_batch(tokenizer):
    batch = pad_choice_features(convert_choices(EXAMPLES, tokenizer, 6), 7, 4)
    first = [[CLS, A, B, SEP, D, SEP, PAD], [CLS, A, B, SEP, E, SEP, PAD]]
    second = [[CLS, A, SEP, x, SEP, PAD, PAD] for x in (B, C, D)]
    empty = [0] * 7
    assert {name: array.tolist() for name, array in batch.items()} == {
        "input_ids": [[*first, empty, empty], [*second, empty]],
        "input_mask": [
            [[1] * 6 + [0]] * 2 + [empty] * 2,
            [[1] * 5 + [0] * 2] * 3 + [empty],
        ],
        "segment_ids": [
            [[0, 0, 0, 0, 1, 1, 0]] * 2 + [empty] * 2,
            [[0, 0, 0, 1, 1, 0, 0]] * 3 + [empty],
        ],
        "choice_mask": [[1, 1, 0, 0], [1, 1, 1, 0]],
        "label_ids": [1, 0],
    }
    assert {array.dtype for array in batch.values()} == {np.dtype(np.int32)}


def test_as_many_choices_as_the_most(tokenizer):
    features = convert_choices(EXAMPLES, tokenizer, 20)
    assert pad_choice_features(features, 9)["input_ids"].shape == (2, 3, 9)
    assert pad_choice_features(features[:1], 9)["choice_mask"].tolist() == [[1, 1]]
    with pytest.raises(ValueError, match="An example has 3 choices"):
        pad_choice_features(features, 9, 2)


def test_without_labels(tokenizer):
    unknown = [ChoiceExample("", "a", ("b", "c"))]
    (features,) = convert_choices(unknown, tokenizer, 9)
    assert [one.label_id for one in features] == [None, None]
    assert set(pad_choice_features([features], 9)) == {
        "input_ids",
        "input_mask",
        "segment_ids",
        "choice_mask",
    }


def test_swag_s_sample(shared):
    vocab = shared / "data" / "vocab" / "bert-base-uncased" / "vocab.txt"
    tokenizer = FullTokenizer(str(vocab))
    examples, _ = read_swag(shared / "data" / "swag" / "sample_swag_layout.csv")
    found = convert_choices(examples, tokenizer, 32)
    assert [len(choices) for choices in found] == [4] * 10
    for example, choices in zip(examples, found, strict=True):
        for text, one in zip(example.choices, choices, strict=True):
            alone = convert_example(Example("", example.context, text), tokenizer, 32)
            np.testing.assert_array_equal(one.input_ids, alone.input_ids)
            np.testing.assert_array_equal(one.segment_ids, alone.segment_ids)
            assert one.num_cut == alone.num_cut
    assert any(one.num_cut for choices in found for one in choices)
