"""GLUE examples are read from an imitation of `tensorflow-datasets`.

Names of features, splits and labels are those of its version 4.9.10.
"""

import dataclasses
import types

import pytest

from official_bert.errors import UserError
from official_bert.tables.examples import Example
from official_bert.tasks.glue import tfds as glue_tfds
from official_bert.tasks.glue.tasks import TASKS

PLAIN = ("train", "validation", "test")
MNLI_SPLITS = (
    "train",
    "validation_matched",
    "validation_mismatched",
    "test_matched",
    "test_mismatched",
)
ENTAILMENT = ["entailment", "not_entailment"]
THREE = ["entailment", "neutral", "contradiction"]
# Dataset -> texts, names of labels (None: numbers), splits.
THERE = {
    "cola": (("sentence",), ["unacceptable", "acceptable"], PLAIN),
    "sst2": (("sentence",), ["negative", "positive"], PLAIN),
    "mrpc": (
        ("sentence1", "sentence2"),
        ["not_equivalent", "equivalent"],
        PLAIN,
    ),
    "stsb": (("sentence1", "sentence2"), None, PLAIN),
    "qqp": (("question1", "question2"), ["not_duplicate", "duplicate"], PLAIN),
    "mnli": (("premise", "hypothesis"), THREE, MNLI_SPLITS),
    "ax": (("premise", "hypothesis"), THREE, ("test",)),
    "qnli": (("question", "sentence"), ENTAILMENT, PLAIN),
    "rte": (("sentence1", "sentence2"), ENTAILMENT, PLAIN),
    "wnli": (("sentence1", "sentence2"), ["not_entailment", "entailment"], PLAIN),
}


@dataclasses.dataclass(frozen=True)
class Imitation:
    """Stands for `GlueDatasets`.

    Attributes:
      calls: list of (config, split), the splits that were read.
      labels: dict of config -> list of (idx, label), in TFDS's order.
    """

    calls: list = dataclasses.field(default_factory=list)
    labels: dict = dataclasses.field(default_factory=dict)

    def dataset(self, config):
        texts, names, splits = THERE[config]

        def rows(split):
            assert split in splits
            self.calls.append((config, split))
            for idx, label in self.labels.get(config, [(0, 0)]):
                row = {text: f"{text} {split} {idx} ö" for text in texts}
                yield row | {"idx": idx, "label": label}

        label = types.SimpleNamespace(names=names)
        return types.SimpleNamespace(features={"label": label}, rows=rows)


@pytest.fixture
def there():
    return Imitation()


def read(there, name, split):
    return glue_tfds.read_examples(TASKS[name], there, split)


@pytest.mark.parametrize("name", [name for name in TASKS if name != "xnli"])
@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_every_set_can_be_had(there, name, split):
    task = TASKS[name]
    if split not in task.layouts:
        return
    if name == "mnli-mm" and split == "train":
        assert not glue_tfds.has_examples(task, there, split)
        return
    assert glue_tfds.has_examples(task, there, split)
    (example,) = read(there, name, split)
    assert example.guid == f"{split}-0"
    assert (example.text_b is not None) == (name not in ("cola", "sst-2"))


@pytest.mark.parametrize("name", ["mnli", "ax"])
def test_labels_go_by_their_names(there, name):
    """TFDS has the order entailment, neutral, contradiction."""
    there.labels[f"{name}"] = [(0, 0), (1, 1), (2, 2)]
    found = [example.label for example in read(there, name, "test")]
    assert found == ["entailment", "neutral", "contradiction"]
    assert all(label in TASKS[name].labels for label in found)
    assert list(TASKS[name].labels) != THREE


@pytest.mark.parametrize("name", ["qnli", "rte"])
def test_entailment_or_not(there, name):
    there.labels[f"{name}"] = [(0, 1), (1, 0)]
    found = [example.label for example in read(there, name, "train")]
    assert found == ["not_entailment", "entailment"]


@pytest.mark.parametrize(
    ("name", "there_called"),
    [
        ("cola", "cola"),
        ("sst-2", "sst2"),
        ("mrpc", "mrpc"),
        ("qqp", "qqp"),
        ("wnli", "wnli"),
    ],
)
def test_classes_that_the_files_number(there, name, there_called):
    there.labels[f"{there_called}"] = [(0, 1), (1, 0)]
    assert [example.label for example in read(there, name, "dev")] == ["1", "0"]


def test_a_number(there):
    there.labels["stsb"] = [(0, 3.8), (1, 0.0), (2, 5.0)]
    found = [example.label for example in read(there, "sts-b", "train")]
    assert found == [pytest.approx(3.8), 0.0, 5.0]
    assert {type(label) for label in found} == {float}


@pytest.mark.parametrize("name", ["cola", "sts-b", "mnli", "ax", "wnli"])
def test_hidden_labels(there, name):
    for known in THERE:
        there.labels[known] = [(0, -1), (1, -1)]
    assert [example.label for example in read(there, name, "test")] == [None, None]


def test_rows_are_in_glue_s_order(there):
    """The server matches predictions to rows by their number."""
    there.labels["mrpc"] = [(10, 1), (2, 0), (0, 1), (1, 0)]
    assert read(there, "mrpc", "test") == [
        Example(
            f"test-{idx}",
            f"sentence1 test {idx} ö",
            f"sentence2 test {idx} ö",
            label,
        )
        for idx, label in ((0, "1"), (1, "0"), (2, "0"), (10, "1"))
    ]


@pytest.mark.parametrize(
    ("name", "split", "expected"),
    [
        ("mnli", "train", "train"),
        ("mnli", "dev", "validation_matched"),
        ("mnli", "test", "test_matched"),
        ("mnli-mm", "dev", "validation_mismatched"),
        ("mnli-mm", "test", "test_mismatched"),
        ("rte", "dev", "validation"),
    ],
)
def test_names_of_splits(there, name, split, expected):
    read(there, name, split)
    assert there.calls == [("rte" if name == "rte" else "mnli", expected)]


def test_the_first_text_is_the_first(there):
    (example,) = read(there, "qnli", "dev")
    assert example.text_a.startswith("question ")
    assert example.text_b.startswith("sentence ")
    (example,) = read(there, "mnli", "dev")
    assert example.text_a.startswith("premise ")
    assert example.text_b.startswith("hypothesis ")


def test_what_is_not_there(there):
    for name, split in (("xnli", "dev"), ("mnli-mm", "train"), ("ax", "train")):
        assert not glue_tfds.has_examples(TASKS[name], there, split)
        with pytest.raises(UserError) as caught:
            read(there, name, split)
        message = str(caught.value)
        assert f"TFDS has no {split} set of {name} in GLUE. Choose" in message
        assert "cola, sst-2, mrpc" in message
    assert there.calls == []
