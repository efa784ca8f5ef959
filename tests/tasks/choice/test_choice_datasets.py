"""Multiple choice by name reads SWAG's, hellaswag's and ai2_arc's features."""

import numpy as np
import pytest
from named_datasets import opened, prepare_rows, tfds

from official_bert.errors import UserError
from official_bert.tasks.choice.datasets import read_dataset
from official_bert.tasks.choice.files import ChoiceExample, read_swag

TEXT = tfds.features.Text()
SWAG = {
    **{name: TEXT for name in ("video-id", "sent1", "sent2", "gold-source")},
    **{f"ending{number}": TEXT for number in range(4)},
    "label": tfds.features.ClassLabel(num_classes=4),
}


def swag_row(number, label, source="gold"):
    endings = {f"ending{n}": f"sings {number} {n}." for n in range(4)}
    texts = {"sent1": f"Anna is in {number}.", "sent2": "She"}
    return {**texts, **endings, "video-id": "v", "gold-source": source, "label": label}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("choice")
    splits = {
        "train": [swag_row(n, n, "gen" if n == 1 else "gold") for n in range(4)],
        "test": [swag_row(5, -1)],
    }
    prepare_rows("swag", folder, SWAG, splits)
    return folder


def by_context(examples):
    return {one.context: (one.choices, one.label) for one in examples}


def test_swag_is_read_like_its_file(prepared, tmp_path):
    dataset = opened("swag", prepared)
    found, notes = read_dataset(dataset, "train")
    rows = [swag_row(n, n) for n in range(4)]
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    (tmp_path / "swag.csv").write_text("\n".join(lines) + "\n")
    wanted, _ = read_swag(tmp_path / "swag.csv")
    assert by_context(found) == by_context(wanted) and len(found) == 4
    assert notes == []
    assert by_context(found)["Anna is in 2."][1] == 2
    assert by_context(found)["Anna is in 2."][0][0] == "She sings 2 0."


def test_generated_endings_are_left_out(prepared):
    found, notes = read_dataset(
        opened("swag", prepared), "train", leave_out_generated=True
    )
    assert {one.label for one in found} == {0, 2, 3}
    assert notes == [
        "swag (train): 1 of 4 rows were left out, because a language model "
        "wrote their correct ending."
    ]


def test_hidden_answers(prepared):
    dataset = opened("swag", prepared)
    ((only,), _) = read_dataset(dataset, "test", is_test=True)
    assert only.label is None and len(only.choices) == 4
    with pytest.raises(UserError, match=r"swag \(test\): 1 row .*line 1 has no answer"):
        read_dataset(dataset, "test")


def test_hellaswag(tmp_path):
    features = {
        "context": TEXT,
        "endings": tfds.features.Sequence(TEXT),
        "label": np.int32,
        "source_id": TEXT,
    }
    row = {
        "context": "Anna",
        "endings": ["sings.", "is."],
        "label": 0,
        "source_id": "s",
    }
    rows = {"train": [row], "test": [{**row, "label": -1}]}
    prepare_rows("endings", tmp_path, features, rows)
    dataset = opened("endings", tmp_path)
    assert read_dataset(dataset, "train")[0] == [
        ChoiceExample(1, "Anna", ("sings.", "is."), 0)
    ]
    assert read_dataset(dataset, "test", is_test=True)[0][0].label is None
    with pytest.raises(UserError, match="has no feature gold-source"):
        read_dataset(dataset, "train", leave_out_generated=True)


def test_ai2_arc(tmp_path):
    letters = tfds.features.ClassLabel(names=list("ABCDE"))
    features = {
        "id": TEXT,
        "question": TEXT,
        "choices": tfds.features.Sequence({"text": TEXT, "label": letters}),
        "answerKey": letters,
    }
    good = {
        "id": "x7",
        "question": "Who?",
        "choices": {"text": ["Anna", "Bob", "Eve"], "label": ["A", "B", "C"]},
        "answerKey": "B",
    }
    damaged = {**good, "choices": {"text": ["Anna"], "label": ["A"]}}
    prepare_rows("questions", tmp_path, features, {"train": [good, damaged]})
    dataset = opened("questions", tmp_path)
    with pytest.raises(UserError, match="has 1 choice"):
        read_dataset(dataset, "train")
    found, notes = read_dataset(dataset, "train", leave_out_damaged=True)
    assert found == [ChoiceExample("x7", "Who?", ("Anna", "Bob", "Eve"), 1)]
    assert "1 of 2 rows cannot be used" in notes[0]


def test_datasets_of_tfds_have_these_features():
    """TFDS's random rows are damaged, but the features are accepted."""
    with tfds.testing.mock_data(num_examples=1):
        for name in ("hellaswag", "ai2_arc/ARC-Easy"):
            with pytest.raises(UserError, match="cannot be used: line 1 has"):
                read_dataset(opened(name, None), "train")


def test_other_features(tmp_path):
    prepare_rows("texts", tmp_path, {"text": TEXT}, {"train": [{"text": "a"}]})
    with pytest.raises(
        UserError, match="is not multiple choice like SWAG, hellaswag or"
    ):
        read_dataset(opened("texts", tmp_path), "train")
