"""Read texts that belong together from a TFDS dataset, such as `glue/stsb`.

The features are read like the columns of a file; see `files`. In addition:

* texts: if no features have the usual names, the only one or two texts. Row numbers
  (`idx`) are not texts.
* score: if no feature has a usual name, a `label` that is a number, a boolean, or one
  of two classes. The second class has the score 1 and the first one 0. It is the
  other way round if the second name negates the first (`not_entailment`).
"""

import dataclasses

from official_bert.errors import UserError
from official_bert.tables.dataset_columns import (
    BOOLEAN,
    CLASS,
    NUMBER,
    PAIRS,
    SEQUENCE,
    TEXT,
    WHOLE,
    is_row_number,
    kind_of,
    kinds_of,
)
from official_bert.tables.datasets import Dataset
from official_bert.tables.delimited import Row
from official_bert.tables.table_files import JSON_LINES, Table
from official_bert.tasks.embedding.files import (
    GROUPS,
    SCORES,
    USUAL,
    WHOLE_GROUP,
    ColumnNames,
    EmbeddingExample,
    convert_table,
    find_pair,
)

_LABEL = "label"
_NUMBERS = (BOOLEAN, WHOLE, NUMBER)
_READ = (TEXT, CLASS, SEQUENCE + TEXT, *_NUMBERS)
_NEGATIONS = ("not_", "non_", "no_", "un")


def read_dataset(
    dataset: Dataset,
    split: str,
    columns: ColumnNames = USUAL,
    with_scores: bool = True,
) -> list[EmbeddingExample]:
    """Return the examples of a split, in order. Their guids are row numbers from 1.

    Args:
      dataset: `Dataset`.
      split: the name of the split.
      columns: `ColumnNames`, names of features.
      with_scores: whether to read scores. Test sets may hide them.

    Raises:
      UserError: the dataset does not have these features or cannot be read, its label
        is not a score, or see `files.read_examples`.
    """
    kinds = {name: kind for name, kind in kinds_of(dataset).items() if kind in _READ}
    texts = _texts(kinds, columns)
    score = columns.score
    if score is None and not columns.group and len(texts) == 2:
        score = _score(dataset, kinds, texts, is_chosen=bool(columns.texts))
    is_class = score is not None and kinds.get(score) == CLASS
    if is_class and not _has_two_classes(dataset, score):
        raise UserError(
            f"--score_column: {score} of {dataset.name} does not have two classes. "
            "Name a number, or a feature with two classes."
        )
    if not with_scores:
        kinds = {name: kind for name, kind in kinds.items() if name != score}
        score = None
    columns = dataclasses.replace(columns, texts=texts, score=score)
    table = _table(dataset, split, tuple(kinds))
    return convert_table(table, columns)


def _texts(kinds, columns):
    """Return the names of the texts; () to let `files` recognize them."""
    taken = {columns.score, columns.group}
    free = [
        name
        for name, kind in kinds.items()
        if kind == TEXT and name not in taken and not is_row_number(name)
    ]
    if columns.texts or WHOLE_GROUP in kinds:
        return columns.texts
    has_group = columns.group or {name.lower() for name in kinds} & {*GROUPS}
    if len(free) == 1 or has_group:
        return tuple(free) if len(free) == 1 else ()
    if any(name.lower().startswith("negative") for name in free):
        return ()
    pairs = [find_pair(free), *(pair for pair in PAIRS if {*pair} <= {*free})]
    found = next(filter(None, pairs), None)
    return found or (tuple(sorted(free)) if len(free) == 2 else ())


def _score(dataset, kinds, texts, is_chosen):
    """Return the name of the label if it is a score, else None."""
    if _LABEL not in kinds or {name.lower() for name in kinds} & {*SCORES}:
        return None
    kind = kinds[_LABEL]
    if kind in _NUMBERS or (kind == CLASS and _has_two_classes(dataset, _LABEL)):
        return _LABEL
    if not is_chosen:
        raise UserError(
            f"--dataset={dataset.name}: the feature {_LABEL} ({kind}) is not a score, "
            "because it is not a number and does not have two classes. To use all "
            f"rows as pairs with the same meaning, add --text_columns={texts[0]},"
            f"{texts[1]}. Otherwise choose another dataset."
        )
    return None


def _has_two_classes(dataset, name):
    return dataset.features[name].num_classes == 2


def _table(dataset, split, names):
    """Return the features of a split as a `Table`, as if read from JSON lines."""
    where = f"{dataset.name} ({split})"
    features = dataset.features
    rows = [
        Row(number, tuple(_cell(row[name], features[name]) for name in names))
        for number, row in enumerate(dataset.rows(split), 1)
    ]
    if not rows:
        raise UserError(f"{where} has no rows. Choose another dataset.")
    return Table(where, JSON_LINES, names, True, rows)


def _cell(value, feature):
    """Return a cell. Numbers become text; a hidden class becomes an empty cell."""
    if isinstance(value, str | list):
        return value
    if kind_of(feature) != CLASS:
        return repr(float(value))
    if value < 0:
        return ""
    if feature.num_classes != 2:
        return feature.int2str(value)
    first, second = map(feature.int2str, (0, 1))
    is_reversed = any(second == f"{prefix}{first}" for prefix in _NEGATIONS)
    return "1" if bool(value) != is_reversed else "0"
