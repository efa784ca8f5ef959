"""Define the flags that name a `tensorflow-datasets` dataset instead of local files."""

import os
from collections.abc import Iterable

from absl import flags

from official_bert.command_line.flag_values import locate
from official_bert.errors import UserError
from official_bert.tables.dataset_opening import open_dataset, require_tfds
from official_bert.tables.datasets import Dataset, parse_name

FLAGS = flags.FLAGS

HELP_TITLE = "Datasets by name"

flags.DEFINE_string(
    "dataset",
    None,
    "Dataset of tensorflow-datasets, instead of local files: glue/mrpc, squad/v1.1, "
    "conll2003, imdb_reviews, … (docs/how_to/classification.md).",
)
flags.DEFINE_string(
    "data_dir",
    None,
    "With --dataset: folder of tensorflow-datasets. Default: TFDS_DATA_DIR, or the "
    "folder that tensorflow-datasets uses.",
)


def check(others: Iterable[str]) -> bool:
    """Return whether --dataset names the data.

    Args:
      others: names of the other flags that can name data.

    Raises:
      UserError: two flags name data, the dataset name is malformed, or
        tensorflow-datasets is not installed.
    """
    if not FLAGS.dataset:
        return False
    given = [f"--{name}" for name in others if FLAGS[name].value]
    if given:
        raise UserError(
            f"--dataset={FLAGS.dataset} and {' and '.join(given)} both name the "
            "data. Use only one of them."
        )
    parse_name(FLAGS.dataset)
    require_tfds()
    check_data_dir()
    return True


def check_data_dir() -> None:
    """Raise `UserError` if --data_dir is a file."""
    if FLAGS.data_dir and os.path.isfile(FLAGS.data_dir):
        raise UserError(
            f"--data_dir={FLAGS.data_dir} is a file. Give the folder of "
            "tensorflow-datasets."
        )


def check_unused_data_dir() -> None:
    """Raise `UserError` if --data_dir is given without --dataset."""
    if FLAGS.data_dir and not FLAGS.dataset:
        raise UserError("--data_dir needs --dataset. Leave it out.")


def opened() -> Dataset | None:
    """Return the opened dataset of --dataset, or None; see `open_dataset`."""
    if not FLAGS.dataset:
        return None
    return open_dataset(parse_name(FLAGS.dataset), locate(FLAGS.data_dir))
