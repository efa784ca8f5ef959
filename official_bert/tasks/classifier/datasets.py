"""Convert a TFDS dataset to tables, which are read like files of a user."""

import dataclasses
from collections.abc import Container

from absl import logging

from official_bert.errors import UserError
from official_bert.tables import dataset_tables
from official_bert.tables.dataset_columns import choose_columns
from official_bert.tables.datasets import DEV, TEST, TRAIN, Dataset
from official_bert.tables.labels import REGRESSION
from official_bert.tasks.classifier.data import OwnFiles


def as_own_files(dataset: Dataset, own: OwnFiles, wanted: Container[str]) -> OwnFiles:
    """Return `OwnFiles` with the tables of a dataset instead of paths.

    Args:
      dataset: `Dataset`.
      own: `OwnFiles` with the user's columns, label kind and other settings, but
        without files.
      wanted: the needed sets: "train", "dev", "test". If there is no split for
        "dev", `read_own` splits rows off the training set.

    Raises:
      UserError: a split is missing, or the columns are ambiguous.
    """
    columns = choose_columns(
        dataset,
        own.text_column,
        own.text_b_column,
        own.label_column,
        needs_label=TRAIN in wanted or DEV in wanted,
    )

    logging.info(
        "%s: texts are %s, labels are %s (change with --text_column, "
        "--text_b_column and --label_column).",
        dataset.name,
        " and ".join(filter(None, (columns.text, columns.text_b))),
        ", ".join(columns.label) or "missing",
    )

    def table(part):
        split = dataset.find_split(part)
        if part not in wanted or (part == DEV and split is None and TRAIN in wanted):
            return None
        return dataset_tables.read_table(
            dataset, split or _missing(dataset, part), columns
        )

    kind = own.label_kind
    names: tuple[str, ...] = ()
    if columns.label:
        kind = kind or dataset_tables.label_kind(dataset, columns.label)
        names = dataset_tables.label_names(dataset, columns.label)
    return dataclasses.replace(
        own,
        train_file=table(TRAIN),
        dev_file=table(DEV),
        test_file=table(TEST),
        text_column=columns.text,
        text_b_column=columns.text_b,
        label_column=columns.label_column,
        label_kind=kind,
        label_names=() if kind == REGRESSION else names,
    )


def _missing(dataset, part):
    """Raise the `UserError` about a split that does not exist."""
    if part == DEV and dataset.find_split(TRAIN):
        raise UserError(
            f"--dataset={dataset.name} has no validation split. --do_train with "
            "--do_eval splits one off the training set; --do_predict scores the test "
            "set."
        )
    return dataset.require_split(part)
