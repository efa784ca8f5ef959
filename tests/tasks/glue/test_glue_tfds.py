"""GLUE from `tensorflow-datasets`, mostly from an imitation of it.

Names of features, splits and labels are those of its version 4.9.10.
"""

import dataclasses
import importlib.machinery
import sys
import types

import numpy as np
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
# Of each data set there: texts, names of labels (None: numbers), splits.
THERE = {
    "glue/cola": (("sentence",), ["unacceptable", "acceptable"], PLAIN),
    "glue/sst2": (("sentence",), ["negative", "positive"], PLAIN),
    "glue/mrpc": (
        ("sentence1", "sentence2"),
        ["not_equivalent", "equivalent"],
        PLAIN,
    ),
    "glue/stsb": (("sentence1", "sentence2"), None, PLAIN),
    "glue/qqp": (("question1", "question2"), ["not_duplicate", "duplicate"], PLAIN),
    "glue/mnli": (("premise", "hypothesis"), THREE, MNLI_SPLITS),
    "glue/ax": (("premise", "hypothesis"), THREE, ("test",)),
    "glue/qnli": (("question", "sentence"), ENTAILMENT, PLAIN),
    "glue/rte": (("sentence1", "sentence2"), ENTAILMENT, PLAIN),
    "glue/wnli": (("sentence1", "sentence2"), ["not_entailment", "entailment"], PLAIN),
}


@dataclasses.dataclass(frozen=True)
class Imitation:
    """What `load` was asked for, and the labels that it gives, in its order.

    Attributes:
      calls: list of (data set, split, folder).
      labels: dict of data set -> list of (idx, label).
    """

    calls: list
    labels: dict

    def load(self, name, split, data_dir=None, with_info=False):
        assert with_info
        texts, names, splits = THERE[name]
        if split not in splits:
            raise ValueError(f"Unknown split {split!r}.")
        self.calls.append((name, split, data_dir))
        dtype = np.float32 if names is None else np.int64
        rows = [
            {text: f"{text} {split} {idx} ö".encode() for text in texts}
            | {"idx": np.int32(idx), "label": dtype(label)}
            for idx, label in self.labels.get(name, [(0, 0)])
        ]
        label = types.SimpleNamespace()
        if names is not None:
            label.names = names
        return rows, types.SimpleNamespace(features={"label": label})


@pytest.fixture
def there(monkeypatch):
    """The imitation in the package's place."""
    imitation = Imitation([], {})
    module = types.ModuleType("tensorflow_datasets")
    module.__spec__ = importlib.machinery.ModuleSpec("tensorflow_datasets", None)
    module.load, module.as_numpy = imitation.load, iter
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", module)
    return imitation


def read(name, split, folder=None):
    return glue_tfds.read_examples(TASKS[name], folder, split)


@pytest.mark.parametrize("name", [name for name in TASKS if name != "xnli"])
@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_every_set_can_be_had(there, name, split):
    task = TASKS[name]
    if split not in task.layouts:
        return
    if name == "mnli-mm" and split == "train":
        assert not glue_tfds.has_examples(task, None, split)
        return
    assert glue_tfds.has_examples(task, None, split)
    (example,) = read(name, split)
    assert example.guid == f"{split}-0"
    assert (example.text_b is not None) == (name not in ("cola", "sst-2"))


@pytest.mark.parametrize("name", ["mnli", "ax"])
def test_labels_go_by_their_names(there, name):
    """Numbered there as entailment, neutral, contradiction."""
    there.labels[f"glue/{name}"] = [(0, 0), (1, 1), (2, 2)]
    found = [example.label for example in read(name, "test")]
    assert found == ["entailment", "neutral", "contradiction"]
    assert all(label in TASKS[name].labels for label in found)
    assert list(TASKS[name].labels) != THREE


@pytest.mark.parametrize("name", ["qnli", "rte"])
def test_entailment_or_not(there, name):
    there.labels[f"glue/{name}"] = [(0, 1), (1, 0)]
    found = [example.label for example in read(name, "train")]
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
    there.labels[f"glue/{there_called}"] = [(0, 1), (1, 0)]
    assert [example.label for example in read(name, "dev")] == ["1", "0"]


def test_a_number(there):
    there.labels["glue/stsb"] = [(0, 3.8), (1, 0.0), (2, 5.0)]
    found = [example.label for example in read("sts-b", "train")]
    assert found == [pytest.approx(3.8), 0.0, 5.0]
    assert {type(label) for label in found} == {float}


@pytest.mark.parametrize("name", ["cola", "sts-b", "mnli", "ax", "wnli"])
def test_hidden_labels(there, name):
    for known in THERE:
        there.labels[known] = [(0, -1), (1, -1)]
    assert [example.label for example in read(name, "test")] == [None, None]


def test_rows_are_in_glue_s_order(there):
    """The server's answers belong to rows by their number."""
    there.labels["glue/mrpc"] = [(10, 1), (2, 0), (0, 1), (1, 0)]
    assert read("mrpc", "test") == [
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
    read(name, split, "somewhere")
    read(name, split)
    data_set = "glue/rte" if name == "rte" else "glue/mnli"
    assert there.calls == [
        (data_set, expected, "somewhere"),
        (data_set, expected, None),
    ]


def test_the_first_text_is_the_first(there):
    (example,) = read("qnli", "dev")
    assert example.text_a.startswith("question ")
    assert example.text_b.startswith("sentence ")
    (example,) = read("mnli", "dev")
    assert example.text_a.startswith("premise ")
    assert example.text_b.startswith("hypothesis ")


def message_of(name, split):
    with pytest.raises(UserError) as caught:
        read(name, split)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_what_is_not_there(there):
    for name, split in (("xnli", "dev"), ("mnli-mm", "train")):
        assert not glue_tfds.has_examples(TASKS[name], None, split)
        message = message_of(name, split)
        assert f"--tfds: there is no {split} set of {name}; the tasks" in message
        assert "cola, sst-2, mrpc" in message
    assert there.calls == []


class DownloadError(Exception):
    """As the package has it: no kind of `OSError`."""


@pytest.mark.parametrize(
    "error",
    [
        OSError("No route to host"),
        ValueError("Unknown split"),
        AssertionError("Dataset glue: could not find data"),
        DownloadError("Failed to get url https://x. HTTP code: 503."),
    ],
)
def test_what_cannot_be_loaded(there, monkeypatch, error):
    def load(*_, **__):
        raise error

    monkeypatch.setattr(sys.modules["tensorflow_datasets"], "load", load)
    assert message_of("rte", "dev").startswith(
        f"--tfds: glue/rte cannot be loaded: {error}"
    )


def test_without_the_package(monkeypatch):
    find = importlib.util.find_spec

    def find_none(name, *others):
        return None if name == "tensorflow_datasets" else find(name, *others)

    monkeypatch.setattr(importlib.util, "find_spec", find_none)
    assert message_of("rte", "dev") == (
        "--tfds needs tensorflow-datasets: pip install tensorflow-datasets, or give "
        "--data_dir."
    )


@pytest.mark.comparison
@pytest.mark.parametrize("name", [name for name in TASKS if name != "xnli"])
def test_the_package_itself(name):
    """Where it is installed: its own made-up rows, in the form of the real ones."""
    tfds = pytest.importorskip("tensorflow_datasets")
    policy = tfds.testing.MockPolicy.USE_CODE
    with tfds.testing.mock_data(num_examples=3, policy=policy):
        for split in TASKS[name].layouts:
            if glue_tfds.has_examples(TASKS[name], None, split):
                found = read(name, split)
                assert len(found) == 3 and all(one.text_a for one in found)
                labels = TASKS[name].labels or [one.label for one in found]
                assert {one.label for one in found} <= {*labels, None}
