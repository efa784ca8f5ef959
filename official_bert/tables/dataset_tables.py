"""Read a TFDS dataset as a `Table`, like a file of the user."""

from collections.abc import Sequence

from official_bert.errors import UserError
from official_bert.tables.columns import LABEL_FLAG
from official_bert.tables.dataset_columns import (
    BOOLEAN,
    CLASS,
    NUMBER,
    SEQUENCE,
    TEXT,
    DatasetColumns,
    kind_of,
)
from official_bert.tables.datasets import Dataset
from official_bert.tables.delimited import Row
from official_bert.tables.labels import MULTI_LABEL, SINGLE_LABEL
from official_bert.tables.table_files import JSON_LINES, Table


def read_table(dataset: Dataset, split: str, columns: DatasetColumns) -> Table:
    """Return a split as a `Table`. Its rows are numbered from 1.

    A class becomes its name, several labels become a list of names, numbers become
    text, and a hidden label becomes an empty cell.

    Args:
      dataset: `Dataset`.
      split: the name of the split.
      columns: `DatasetColumns`.

    Raises:
      UserError: see `Dataset.rows`; or the split has no rows; or one of several label
        features is neither 0 nor 1.
    """
    names = [columns.text, columns.text_b, columns.label_column]
    where = f"{dataset.name} ({split})"
    rows = []
    for number, row in enumerate(dataset.rows(split), 1):
        cells = [row[name] for name in names[:2] if name is not None]
        if columns.label:
            cells.append(
                _label_cell(dataset, columns.label, row, f"{where}: row {number}")
            )
        rows.append(Row(number, tuple(cells)))
    if not rows:
        raise UserError(f"{where} has no rows. Choose another dataset.")
    present = tuple(name for name in names if name is not None)
    return Table(where, JSON_LINES, present, True, rows)


def label_kind(dataset: Dataset, label: Sequence[str]) -> str | None:
    """Return one of `labels.KINDS`, or None if it depends on the values."""
    kind = kind_of(dataset.features[label[0]])
    if len(label) > 1 or kind.startswith(SEQUENCE):
        return MULTI_LABEL
    return SINGLE_LABEL if kind in (CLASS, BOOLEAN) else None


def label_names(dataset: Dataset, label: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the labels in TFDS's order; () if TFDS has no names."""
    feature = dataset.features[label[0]]
    kind = kind_of(feature)
    if len(label) > 1:
        return tuple(label)
    if kind == BOOLEAN:
        return ("false", "true")
    if kind == SEQUENCE + CLASS:
        feature = feature.feature
    return tuple(feature.names) if kind.endswith(CLASS) else ()


def _label_cell(dataset, label, row, where):
    """Return the label cell of a row; see `read_table`."""
    if len(label) > 1:
        for name in label:
            if row[name] not in (0, 1):
                raise UserError(
                    f"{where}: {name} is {row[name]}, but if there are several labels, "
                    f"each must be 0 or 1. Choose another {LABEL_FLAG}."
                )
        return [name for name in label if row[name]]
    value, feature = row[label[0]], dataset.features[label[0]]
    kind = kind_of(feature)
    if kind == CLASS:
        return feature.names[value] if value >= 0 else ""
    if kind == SEQUENCE + CLASS:
        return [feature.feature.names[each] for each in value]
    if kind == BOOLEAN:
        return "true" if value else "false"
    if kind == NUMBER and value.is_integer():
        value = int(value)
    return value if kind == TEXT else repr(value)
