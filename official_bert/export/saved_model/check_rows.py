"""Read a user's rows for the comparison of an export with Python."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from official_bert import files
from official_bert.errors import UserError
from official_bert.tables.table_files import parse_object

if TYPE_CHECKING:
    import tensorflow as tf

WHAT = "a file of rows to compare"


def read(
    path: str | os.PathLike[str], specs: Mapping[str, "tf.TensorSpec"]
) -> list[dict[str, str | list[str]]]:
    """Return the rows of a file.

    Args:
      path: JSON lines file with lines such as {"text": "…"}, a value for each
        of `specs`.
      specs: dict of name -> `tf.TensorSpec`, string [B] or [B, C].

    Returns:
      list of dict: name -> str or list of str.

    Raises:
      UserError: the file cannot be read, or a line is invalid.
    """
    rows = []
    for number, line in enumerate(files.read_text(path, WHAT).split("\n"), 1):
        if line.strip():
            try:
                rows.append(_row(line, specs))
            except ValueError as error:
                raise UserError(f"{path}, line {number} {error}.") from error
    return rows


def _row(line, specs):
    row = parse_object(line, numbers_as_text=False)
    if set(row) != set(specs):
        raise ValueError(f"must have exactly the keys {' and '.join(specs)}")
    for name, spec in specs.items():
        is_list = spec.shape.rank > 1
        texts = row[name] if is_list else [row[name]]
        if not isinstance(texts, list) or not texts:
            raise ValueError(f"needs a list of texts for {name}")
        if not all(isinstance(text, str) for text in texts):
            raise ValueError(f"has a value for {name} that is not text")
    return row
