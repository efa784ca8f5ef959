"""GLUE by name has the same features as GLUE's files, which TFDS's code reads."""

import numpy as np
import pytest
from marks import slow
from named_datasets import prepare_glue, write_glue
from places import MINI, SHARED

from official_bert.errors import UserError
from official_bert.tables.datasets import parse_name
from official_bert.tasks.classifier.data import read_glue
from official_bert.tasks.classifier.features import encode
from official_bert.tasks.glue.tasks import TASKS
from official_bert.tasks.glue.tfds import GlueDatasets, task_of
from official_bert.tokenization.full import FullTokenizer

CONFIGS = {
    "cola": "cola",
    "sst-2": "sst2",
    "mrpc": "mrpc",
    "sts-b": "stsb",
    "qqp": "qqp",
    "mnli": "mnli",
    "qnli": "qnli",
    "rte": "rte",
    "wnli": "wnli",
}
ALL = ("train", "dev", "test")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Return (folder of GLUE's files, folder of TFDS, which each test fills)."""
    folder = tmp_path_factory.mktemp("glue")
    write_glue(folder / "files")
    return folder / "files", folder / "tfds"


def sets_of(task, source, wanted=ALL):
    """Return name -> examples of all sets, and the `ClassifierTask`."""
    data = read_glue(TASKS[task], source, 128, "truncate", wanted)
    sets = {f"dev {name}": found for name, found in data.dev.items()}
    sets |= {f"test {name}": found for name, found in data.test.items()}
    return sets | ({"train": data.train} if data.train else {}), data.task


def as_read_by_the_model(features):
    label = features.label_id
    return np.float32(label) if isinstance(label, float) else label


def assert_same(task, files, datasets, wanted=ALL):
    tokenizer = FullTokenizer(str(MINI / "vocab.txt"))
    from_files, classifier_task = sets_of(task, files, wanted)
    from_tfds, same_task = sets_of(task, datasets, wanted)
    assert classifier_task == same_task
    assert from_files.keys() == from_tfds.keys()
    for name in from_files:
        found, expected = (
            encode(classifier_task, sets[name], tokenizer)
            for sets in (from_tfds, from_files)
        )
        assert len(found) == len(expected) > 0, name
        for windows, others in zip(found, expected, strict=True):
            for one, other in zip(windows, others, strict=True):
                np.testing.assert_array_equal(one.input_ids, other.input_ids)
                np.testing.assert_array_equal(one.segment_ids, other.segment_ids)
                assert as_read_by_the_model(one) == as_read_by_the_model(other)


# All other tasks have the layout of RTE.
@pytest.mark.parametrize(
    "task",
    [
        *("cola", "sst-2", "mrpc", "sts-b", "rte"),
        *map(slow, ("qqp", "qnli", "wnli")),
    ],
)
def test_features_are_those_of_the_files(prepared, task):
    prepare_glue(CONFIGS[task], *prepared)
    assert_same(task, prepared[0], GlueDatasets(prepared[1]))


def test_mnli_has_all_its_sets(prepared, capsys):
    for config in ("mnli", "ax"):
        prepare_glue(config, *prepared)
    assert_same("mnli", prepared[0], GlueDatasets(prepared[1]))
    capsys.readouterr()
    datasets = GlueDatasets(prepared[1], "2.0.0")
    sets, _ = sets_of("mnli", datasets)
    assert set(sets) == {
        *("train", "dev mnli", "dev mnli-mm"),
        *("test mnli", "test mnli-mm", "test ax"),
    }
    labels = [one.label for one in sets["dev mnli"]]
    assert labels[:3] == ["contradiction", "entailment", "neutral"]
    assert {one.label for one in sets["test ax"]} == {None}
    # Each dataset is opened once only.
    printed = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in printed] == [
        "Dataset glue/mnli",
        "Dataset glue/ax",
    ]


@pytest.mark.comparison
@pytest.mark.parametrize("task", ["mrpc", *map(slow, ("rte", "sts-b"))])
def test_all_of_a_task(tmp_path, task):
    folder = SHARED / "data" / "glue"
    if not folder.is_dir():
        pytest.skip("needs GLUE in ../shared")
    if task == "mrpc":
        # Its train.tsv has rows that Microsoft's file, which TFDS reads, does not have.
        for name in ("msr_paraphrase_train.txt", "msr_paraphrase_test.txt"):
            (tmp_path / name).symlink_to(folder / "MRPC" / name)
        (tmp_path / "dev_ids.tsv").symlink_to(folder / "MRPC" / "dev_ids.tsv")
    prepare_glue(CONFIGS[task], folder, tmp_path / "tfds")
    files = tmp_path if task == "mrpc" else folder
    assert_same(task, files, GlueDatasets(tmp_path / "tfds"), ("dev", "test"))


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("glue/mrpc", "mrpc"),
        ("glue/sst2:2.0.0", "sst-2"),
        ("glue/sst-2", "sst-2"),
        ("glue/stsb", "sts-b"),
        ("glue/mnli", "mnli"),
        ("glue/mnli-mm", "mnli-mm"),
        ("glue/ax", "ax"),
    ],
)
def test_the_task_of_a_name(name, task):
    assert task_of(parse_name(name)) is TASKS[task]


def test_other_names():
    assert task_of(parse_name("imdb_reviews")) is None
    for name in ("glue", "glue/mnli_matched", "glue/xnli"):
        with pytest.raises(UserError, match="GLUE's datasets are glue/ax, glue/cola"):
            task_of(parse_name(name))
