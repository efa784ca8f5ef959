"""GLUE's sets from `tensorflow-datasets` (TFDS).

Columns and labels are found by their names, because TFDS orders MNLI's labels
differently from the original.
"""

import dataclasses
import os

from official_bert.errors import UserError
from official_bert.tables.dataset_opening import open_dataset
from official_bert.tables.datasets import Dataset, DatasetName
from official_bert.tables.examples import Example
from official_bert.tasks.glue.tasks import GlueTask, find_task

GLUE = "glue"
# Task -> its config in TFDS, and the one or two text columns.
_SETS = {
    "cola": ("cola", ("sentence",)),
    "sst-2": ("sst2", ("sentence",)),
    "mrpc": ("mrpc", ("sentence1", "sentence2")),
    "sts-b": ("stsb", ("sentence1", "sentence2")),
    "qqp": ("qqp", ("question1", "question2")),
    "mnli": ("mnli", ("premise", "hypothesis")),
    "mnli-mm": ("mnli", ("premise", "hypothesis")),
    "ax": ("ax", ("premise", "hypothesis")),
    "qnli": ("qnli", ("question", "sentence")),
    "rte": ("rte", ("sentence1", "sentence2")),
    "wnli": ("wnli", ("sentence1", "sentence2")),
}
_SPLITS = {"train": "train", "dev": "validation", "test": "test"}
_HALVES = {"mnli": "_matched", "mnli-mm": "_mismatched"}
# Label of a set with hidden labels.
_HIDDEN = -1


@dataclasses.dataclass(frozen=True)
class GlueDatasets:
    """GLUE's datasets in TFDS. Each one is opened when it is first read.

    Attributes:
      data_dir: folder in which TFDS stores datasets; None for its default.
      version: version of the datasets, or None for the newest.
      opened: config -> `Dataset`, the datasets opened so far.
    """

    data_dir: str | os.PathLike[str] | None = None
    version: str | None = None
    opened: dict[str, Dataset] = dataclasses.field(default_factory=dict)

    def dataset(self, config: str) -> Dataset:
        """Return the dataset of a config; see `open_dataset` for the errors."""
        if config not in self.opened:
            name = DatasetName(GLUE, config, self.version)
            self.opened[config] = open_dataset(name, self.data_dir)
        return self.opened[config]


def task_of(name: DatasetName) -> GlueTask | None:
    """Return the task of a dataset, or None if the dataset does not belong to GLUE.

    Raises:
      UserError: GLUE has no such config, or it is part of another config.
    """
    if name.dataset != GLUE:
        return None
    for task, (config, _) in _SETS.items():
        if name.config == config and task not in _HALVES or name.config == task:
            return find_task(task)
    configs = sorted({config for config, _ in _SETS.values()})
    raise UserError(
        f"--dataset={name}: GLUE's datasets are glue/{', glue/'.join(configs)}. "
        "glue/mnli has both dev sets, matched and mismatched."
    )


def has_examples(task: GlueTask, datasets: GlueDatasets, split: str) -> bool:
    """Return whether TFDS has this set of a task, without opening a dataset."""
    if task.name not in _SETS or split not in task.layouts:
        return False
    return task.name != "mnli-mm" or split != "train"


def read_examples(task: GlueTask, datasets: GlueDatasets, split: str) -> list[Example]:
    """Return the examples of one split of a task.

    Args:
      task: `GlueTask`.
      datasets: `GlueDatasets`.
      split: "train", "dev" or "test".

    Returns:
      list of `Example` in the order of GLUE's row numbers, with labels as in
      `files.read_examples`.

    Raises:
      UserError: the set does not exist, or cannot be opened or read.
    """
    if not has_examples(task, datasets, split):
        raise UserError(
            f"TFDS has no {split} set of {task.name} in GLUE. Choose one of "
            f"{', '.join(_SETS)}."
        )
    config, texts = _SETS[task.name]
    dataset = datasets.dataset(config)
    half = _HALVES.get(task.name, "") if split != "train" else ""
    rows = sorted(dataset.rows(_SPLITS[split] + half), key=lambda row: row["idx"])
    label = dataset.features["label"]
    return [
        Example(
            f"{split}-{row['idx']}",
            row[texts[0]],
            row[texts[1]] if len(texts) > 1 else None,
            _label(row["label"], label, task),
        )
        for row in rows
    ]


def _label(value, feature, task):
    """Return a label's name in `task.labels`, a float, or None."""
    if task.label_range:
        return float(value) if value >= 0 else None
    if value == _HIDDEN:
        return None
    if set(task.labels) <= set(feature.names):
        return feature.names[value]
    # Classes that are numbers in GLUE's files but names in TFDS.
    return task.labels[value]
