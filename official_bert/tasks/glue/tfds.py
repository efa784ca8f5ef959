"""GLUE's sets from `tensorflow-datasets`, which downloads them once.

Columns and labels are found by their names, as the order of MNLI's labels there
is another than the original's.
"""

import importlib.util
import os

from official_bert.errors import UserError
from official_bert.tables.examples import Example
from official_bert.tasks.glue.tasks import GlueTask

# Of each task: the data set there, and the columns of its text or of the two.
_SETS = {
    "cola": ("glue/cola", ("sentence",)),
    "sst-2": ("glue/sst2", ("sentence",)),
    "mrpc": ("glue/mrpc", ("sentence1", "sentence2")),
    "sts-b": ("glue/stsb", ("sentence1", "sentence2")),
    "qqp": ("glue/qqp", ("question1", "question2")),
    "mnli": ("glue/mnli", ("premise", "hypothesis")),
    "mnli-mm": ("glue/mnli", ("premise", "hypothesis")),
    "ax": ("glue/ax", ("premise", "hypothesis")),
    "qnli": ("glue/qnli", ("question", "sentence")),
    "rte": ("glue/rte", ("sentence1", "sentence2")),
    "wnli": ("glue/wnli", ("sentence1", "sentence2")),
}
_SPLITS = {"train": "train", "dev": "validation", "test": "test"}
_HALVES = {"mnli": "_matched", "mnli-mm": "_mismatched"}
# Of a set whose labels are not told.
_HIDDEN = -1


def require_tfds() -> None:
    """Raise `UserError` unless `tensorflow-datasets` is installed."""
    if importlib.util.find_spec("tensorflow_datasets") is None:
        raise UserError(
            "--tfds needs tensorflow-datasets: pip install tensorflow-datasets, or "
            "give --data_dir."
        )


def has_examples(
    task: GlueTask, data_dir: str | os.PathLike[str] | None, split: str
) -> bool:
    """Return whether a task has such a set there, wherever it is kept."""
    return task.name in _SETS and (task.name != "mnli-mm" or split != "train")


def read_examples(
    task: GlueTask, data_dir: str | os.PathLike[str] | None, split: str
) -> list[Example]:
    """Return the examples of one split of a task.

    Args:
      task: `GlueTask`.
      data_dir: where data sets are kept; None for the package's default.
      split: "train", "dev" or "test".

    Returns:
      list of `Example` in the order of GLUE's own numbers, labeled as those of
      `files.read_examples`.

    Raises:
      UserError: there is no such set, or it cannot be had.
    """
    require_tfds()
    if not has_examples(task, data_dir, split):
        raise UserError(
            f"--tfds: there is no {split} set of {task.name}; the tasks there are "
            f"{', '.join(_SETS)}."
        )
    import tensorflow_datasets as tfds

    name, texts = _SETS[task.name]
    half = _HALVES.get(task.name, "") if split != "train" else ""
    try:
        rows, info = tfds.load(
            name, split=_SPLITS[split] + half, data_dir=data_dir, with_info=True
        )
        rows = sorted(tfds.as_numpy(rows), key=lambda row: int(row["idx"]))
    # Its errors about downloads have no other class in common.
    except Exception as error:
        raise UserError(f"--tfds: {name} cannot be loaded: {error}") from error
    label = info.features["label"]
    return [
        Example(
            f"{split}-{int(row['idx'])}",
            row[texts[0]].decode("utf-8"),
            row[texts[1]].decode("utf-8") if len(texts) > 1 else None,
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
    # Two classes that GLUE's files number, and that have names there.
    return task.labels[value]
