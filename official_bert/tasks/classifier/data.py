"""Read the data of a classifier, from GLUE, from a dataset or from a user's files."""

import dataclasses
import os
from collections.abc import Container, Sequence
from typing import Any

from absl import logging

from official_bert.errors import UserError, list_some
from official_bert.tables import dev_split
from official_bert.tables.columns import Columns
from official_bert.tables.datasets import DEV, TEST, TRAIN, Dataset
from official_bert.tables.examples import Example
from official_bert.tables.labels import (
    MULTI_LABEL,
    REGRESSION,
    SINGLE_LABEL,
    Labels,
)
from official_bert.tables.table_files import Table
from official_bert.tables.user_data import (
    read_examples,
    read_training_examples,
)
from official_bert.tasks.classifier.task import ClassifierTask
from official_bert.tasks.glue import files as glue_files
from official_bert.tasks.glue import tfds as glue_tfds
from official_bert.tasks.glue.tasks import GlueTask, find_task
from official_bert.tasks.glue.tfds import GlueDatasets

# Scores of a user's data. The first one selects the best model.
OWN_METRICS = {
    SINGLE_LABEL: ("accuracy", "macro_f1"),
    MULTI_LABEL: ("f1", "accuracy"),
    REGRESSION: ("pearson", "spearman"),
}
# --seed of the training does not change the dev set that is split off.
SPLIT_SEED = 0


@dataclasses.dataclass(frozen=True)
class ClassifierData:
    """The examples of a command.

    Attributes:
      task: `ClassifierTask` of the examples.
      train: list of `Example`, or None without training.
      dev: dict of a set's name -> list of `Example`. The first set selects the best
        model.
      test: dict of a set's name -> list of `Example`.
      datasets: datasets of `tensorflow-datasets` from which the examples come.
    """

    task: ClassifierTask
    train: list[Example] | None
    dev: dict[str, list[Example]]
    test: dict[str, list[Example]]
    datasets: tuple[Dataset, ...] = ()


@dataclasses.dataclass(frozen=True)
class OwnFiles:
    """A user's files, and the flags that describe them. None means: guess it.

    Attributes:
      train_file, dev_file, test_file: paths, or None; or `Table`s of a dataset.
      text_column, text_b_column, label_column: names or numbers of columns.
      label_kind: one of `labels.KINDS`.
      label_separator: str between the labels of a cell.
      has_header: bool.
      dev_fraction: fraction of the training rows that becomes the dev set if there
        is no dev file.
      label_names: the labels in their order, if a dataset defines them.
    """

    train_file: str | Table | None
    dev_file: str | Table | None
    test_file: str | Table | None
    text_column: str | None = None
    text_b_column: str | None = None
    label_column: str | None = None
    label_kind: str | None = None
    label_separator: str | None = None
    has_header: bool | None = None
    dev_fraction: float = 0.1
    label_names: tuple[str, ...] = ()


def glue_classifier_task(
    glue_task: GlueTask, max_seq_length: int, long_text: str
) -> ClassifierTask:
    """Return the `ClassifierTask` of a `GlueTask`."""
    return ClassifierTask(
        REGRESSION if glue_task.label_range else SINGLE_LABEL,
        glue_task.labels,
        glue_task.metrics,
        max_seq_length,
        glue_task.name,
        long_text,
    )


def read_glue(
    glue_task: GlueTask,
    data_dir: str | os.PathLike[str] | GlueDatasets,
    max_seq_length: int,
    long_text: str,
    wanted: Container[str],
) -> ClassifierData:
    """Read the sets of a GLUE task and of its companion tasks.

    MNLI has a second dev set and three test sets: matched, mismatched and the
    diagnostic one. Companions are read if their files exist.

    Args:
      glue_task: `GlueTask`.
      data_dir: see `glue.files.read_examples`, or the `GlueDatasets`.
      max_seq_length: for the `ClassifierTask`.
      long_text: for the `ClassifierTask`.
      wanted: the needed sets: "train", "dev", "test".

    Returns:
      `ClassifierData`, whose sets have the names of their tasks.

    Raises:
      UserError: a set of the task itself is missing, or a file cannot be read.
    """
    source: Any = glue_files
    if isinstance(data_dir, GlueDatasets):
        source = glue_tfds

    def read_all(split):
        if split not in wanted:
            return {}
        sets = {glue_task.name: source.read_examples(glue_task, data_dir, split)}
        for other in map(find_task, glue_task.companions):
            if split in other.layouts and source.has_examples(other, data_dir, split):
                sets[other.name] = source.read_examples(other, data_dir, split)
        return sets

    task = glue_classifier_task(glue_task, max_seq_length, long_text)
    train = None
    if TRAIN in wanted:
        train = source.read_examples(glue_task, data_dir, TRAIN)
    dev, test = read_all(DEV), read_all(TEST)
    datasets = data_dir.opened if isinstance(data_dir, GlueDatasets) else {}
    return ClassifierData(task, train, dev, test, tuple(datasets.values()))


def read_own(
    own: OwnFiles, max_seq_length: int, long_text: str, wanted: Container[str]
) -> ClassifierData:
    """Read a user's training file, and the dev and test files that go with it.

    Logs the guesses, the rows left out, the split, and the number of rows per label.

    Args:
      own: `OwnFiles` with a `train_file`.
      max_seq_length: for the `ClassifierTask`.
      long_text: for the `ClassifierTask`.
      wanted: the needed sets: "train", "dev", "test".

    Returns:
      `ClassifierData`, whose sets are named "dev" and "test".

    Raises:
      UserError: a file cannot be used. The message names the rows.
    """
    assert own.train_file is not None
    train, columns, labels, notes = read_training_examples(
        own.train_file,
        own.text_column,
        own.text_b_column,
        own.label_column,
        own.label_kind,
        own.label_separator,
        own.has_header,
        own.label_names,
    )
    _log(notes)
    task = ClassifierTask(
        labels.kind,
        labels.names,
        OWN_METRICS[labels.kind],
        max_seq_length,
        long_text=long_text,
        label_separator=labels.separator,
        columns=columns,
    )
    num_rows, dev, test = len(train), {}, {}
    if DEV in wanted and own.dev_file:
        dev[DEV] = _read(own.dev_file, columns, labels, "--dev_file")
    elif DEV in wanted:
        train, dev[DEV] = dev_split.split_off_dev(
            train, labels.kind, SPLIT_SEED, own.dev_fraction
        )
        hint, path = "--dev_file names another dev set", own.train_file
        if isinstance(path, Table):
            hint, path = "--dev_fraction changes how many", path.path
        logging.info(
            "%s: %d of %d rows were split off as the dev set (%s).",
            path,
            len(dev[DEV]),
            num_rows,
            hint,
        )
    if TEST in wanted:
        test[TEST] = _read(own.test_file, columns, labels, "--test_file", is_test=True)
    _warn_of_shared_texts(train, dev | test)
    _log(dev_split.class_balance({TRAIN: train} | dev | test, labels))
    return ClassifierData(task, train if TRAIN in wanted else None, dev, test)


def read_own_for(
    task: ClassifierTask,
    own: OwnFiles,
    max_seq_length: int,
    long_text: str,
    wanted: Container[str],
    dev_flag: str = "--dev_file",
) -> ClassifierData:
    """Read the dev and test files for a model that is already fine-tuned.

    Args:
      task: its `ClassifierTask`.
      own: `OwnFiles`.
      max_seq_length: may differ from the one of the fine-tuning.
      long_text: may differ from the one of the fine-tuning.
      wanted: the needed sets: "dev", "test".
      dev_flag: the flag that named the dev file, for messages.

    Returns:
      `ClassifierData`; see `read_own`.

    Raises:
      UserError: see `read_own`.
    """
    columns = _columns_of(
        own,
        task.columns,
        "--text_column (also --text_b_column and --label_column, if they exist)",
    )
    labels = Labels(task.kind, task.labels, own.label_separator or task.label_separator)
    dev, test = {}, {}
    if DEV in wanted:
        dev[DEV] = _read(own.dev_file, columns, labels, dev_flag)
    if TEST in wanted:
        test[TEST] = _read(own.test_file, columns, labels, "--test_file", is_test=True)
    task = dataclasses.replace(task, max_seq_length=max_seq_length, long_text=long_text)
    return ClassifierData(task, None, dev, test)


def read_texts(task: ClassifierTask, own: OwnFiles, flag: str) -> list[Example]:
    """Read the texts of a table for a fine-tuned model, and ignore labels.

    Args:
      task: the model's `ClassifierTask`.
      own: `OwnFiles`. Only `test_file` is read. Its columns replace those of the
        training.
      flag: the flag that named the file, for messages.

    Returns:
      list of `Example` without labels, one per row.

    Raises:
      UserError: the file cannot be used. The message names the rows.
    """
    flags = "--text_column (also --text_b_column, if it exists)"
    columns = dataclasses.replace(_columns_of(own, task.columns, flags), label=None)
    labels = Labels(task.kind, task.labels, task.label_separator)
    return _read(own.test_file, columns, labels, flag, is_test=True)


def _columns_of(own, known, flags):
    """Return the `Columns` that `own` names, or else `known`, those of the training."""
    if known is None and own.text_column is None:
        raise UserError(f"The model was not fine-tuned on a table. Add {flags}.")
    known = known or Columns("", None, None, own.has_header)
    has_header = own.has_header
    # A column name implies a header. With column numbers, the file may differ from the
    # training file, so its first row decides.
    if has_header is None and not (own.text_column or "").isdecimal():
        has_header = known.has_header
    return Columns(
        own.text_column or known.text,
        own.text_b_column or known.text_b,
        own.label_column or known.label,
        has_header,
    )


def in_order_of(glue_task: GlueTask, labels: Sequence[str]) -> GlueTask:
    """Return a `GlueTask` with its labels in the model's order.

    Hugging Face numbers MNLI's labels in another order than the original.

    Args:
      glue_task: `GlueTask`.
      labels: the model's label names, tuple of str. If they differ from the task's
        labels (ignoring case), the task's order is kept.
    """
    names = {name.lower(): name for name in glue_task.labels}
    ordered: tuple[Any, ...] = tuple(names.get(label.lower()) for label in labels)
    if set(ordered) != set(glue_task.labels) or len(ordered) != len(glue_task.labels):
        return glue_task
    return dataclasses.replace(glue_task, labels=ordered)


def check_same_answers(
    model_task: ClassifierTask, task: ClassifierTask, path: str | os.PathLike[str]
) -> None:
    """Raise `UserError` unless the model's labels are those of the task.

    Args:
      model_task: the model's `ClassifierTask`.
      task: the `ClassifierTask` of the data.
      path: path of the model, for the message.
    """
    if (model_task.kind, model_task.labels) != (task.kind, task.labels):
        has, needs = (
            f"the labels {list_some(one.labels)}" if one.labels else "numbers"
            for one in (model_task, task)
        )
        raise UserError(
            f"{path} was fine-tuned for {has}, but {task.name} has {needs}. Choose "
            "another model, or train one (--do_train)."
        )


def _read(path, columns, labels, flag, is_test=False):
    examples, notes = read_examples(path, columns, labels, flag, is_test)
    _log(notes)
    return examples


def _warn_of_shared_texts(train, sets):
    for name, examples in sets.items():
        shared = dev_split.count_shared_texts(examples, train)
        if shared:
            logging.warning(
                "%d of %d %s texts are also in the training set, so their scores say "
                "little about new texts.",
                shared,
                len(examples),
                name,
            )


def _log(lines):
    for line in lines:
        logging.info("%s", line)
