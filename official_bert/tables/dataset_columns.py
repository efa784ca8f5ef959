"""Choose the features of a TFDS dataset that hold the texts and the labels.

Flags decide first, then TFDS's `supervised_keys`, then names and kinds:

* texts: two features that are commonly a pair (`premise` and `hypothesis`); else the
  one called `text` or `sentence`; else the only text, or the only two, in
  alphabetical order. Row numbers (`id`, `idx`, `title_id`) are not texts;
* labels: the feature called `label` or `labels`; else the only class or sequence of
  classes; else all booleans, if there are several (multi-label); else the only
  boolean or number.
"""

import dataclasses
import re
from typing import Any

from official_bert.errors import UserError
from official_bert.tables.columns import LABEL_FLAG, TEXT_B_FLAG, TEXT_FLAG
from official_bert.tables.datasets import Dataset

TEXT, CLASS, BOOLEAN, WHOLE, NUMBER = "text", "class", "boolean", "integer", "number"
SEQUENCE = "sequence of "
OTHER = "other"
# Names of the two texts of common datasets.
PAIRS = (
    ("premise", "hypothesis"),
    ("context", "hypothesis"),
    ("sentence1", "sentence2"),
    ("question1", "question2"),
    ("text_a", "text_b"),
    ("text1", "text2"),
    ("question", "sentence"),
    ("question", "passage"),
)
_COMMON_TEXTS, _COMMON_LABELS = ("text", "sentence"), ("label", "labels")
_ROW_NUMBER = re.compile(r"(.*_)?(id|idx|index|uid|guid)", re.IGNORECASE)
# Name of the column that combines several label features.
LABELS = "labels"


@dataclasses.dataclass(frozen=True)
class DatasetColumns:
    """The features of the texts and the labels.

    Attributes:
      text: name of the feature with the (first) text.
      text_b: name of the feature with the second text, or None.
      label: names of the label features. Several names mean multi-label, one
        boolean feature per label. Empty if there are no labels.
    """

    text: str
    text_b: str | None
    label: tuple[str, ...]

    @property
    def label_column(self) -> str | None:
        """The name of the label column in `dataset_tables.read_table`, or None."""
        if not self.label:
            return None
        return self.label[0] if len(self.label) == 1 else LABELS


def is_row_number(name: str) -> bool:
    """Return whether a feature numbers the rows, by its name."""
    return bool(_ROW_NUMBER.fullmatch(name))


def kind_of(feature: Any) -> str:
    """Return the kind of a TFDS feature: `TEXT`, `CLASS`, … or `OTHER`.

    The kind of a sequence starts with `SEQUENCE`, for example `SEQUENCE + CLASS`.
    """
    import numpy as np
    import tensorflow_datasets as tfds

    if isinstance(feature, tfds.features.Sequence):
        return SEQUENCE + kind_of(feature.feature)
    if isinstance(feature, tfds.features.ClassLabel):
        return CLASS
    if isinstance(feature, tfds.features.Text):
        return TEXT
    if isinstance(feature, tfds.features.FeaturesDict) or feature.shape != ():
        return OTHER
    dtype = np.dtype(feature.np_dtype)
    if dtype.kind == "b":
        return BOOLEAN
    if dtype.kind in "iu":
        return WHOLE
    if dtype.kind == "f":
        return NUMBER
    return TEXT if dtype.kind in "OSU" else OTHER


def kinds_of(dataset: Dataset) -> dict[str, str]:
    """Return name -> kind of each feature. A translated text is a `TEXT`."""
    translated = dataset.translations
    return {
        name: TEXT if name in translated else kind_of(feature)
        for name, feature in dataset.features.items()
    }


def choose_columns(
    dataset: Dataset,
    text_column: str | None = None,
    text_b_column: str | None = None,
    label_column: str | None = None,
    needs_label: bool = True,
) -> DatasetColumns:
    """Return the features of the texts and the labels.

    Args:
      dataset: `Dataset`.
      text_column: name of the text feature; None guesses.
      text_b_column: name of the second text's feature; None guesses, unless
        `text_column` is given.
      label_column: name of the label feature, or several names separated by commas;
        None guesses.
      needs_label: whether to raise an error if no feature is a label.

    Raises:
      UserError: a feature does not exist, is used twice or has another kind; or
        the guess is ambiguous. The message lists the features.
    """
    kinds = kinds_of(dataset)
    given_labels = tuple(label_column.split(",")) if label_column else ()
    for name in (text_column, text_b_column, *given_labels):
        if name is not None and name not in kinds:
            raise UserError(
                f"--dataset={dataset.name} has no feature {name}. Its features are "
                f"{_listed(kinds)}."
            )
    text, text_b = text_column, text_b_column
    if text is None:
        text, text_b = _find_texts(dataset, kinds, {text_b, *given_labels}, text_b)
    label = given_labels or _find_label(dataset, kinds, {text, text_b}, needs_label)
    used = [name for name in (text, text_b, *label) if name is not None]
    if len(set(used)) < len(used):
        raise UserError(
            f"--dataset={dataset.name}: {TEXT_FLAG}, {TEXT_B_FLAG} and {LABEL_FLAG} "
            f"must be different features of {_listed(kinds)}."
        )
    for name in (text, text_b):
        if name is not None and kinds[name] != TEXT:
            raise UserError(
                f"--dataset={dataset.name}: {name} is not a text but {kinds[name]}. "
                f"Choose {TEXT_FLAG} from {_listed(kinds)}."
            )
    _check_label(dataset, kinds, label)
    return DatasetColumns(text, text_b, label)


def _find_texts(dataset, kinds, taken, text_b):
    """Return the names of the text and of the second text (or None)."""
    free = [
        name
        for name, kind in kinds.items()
        if kind == TEXT and name not in taken and not is_row_number(name)
    ]
    supervised = [name for name in _supervised(dataset, 0) if name in free]
    if len(supervised) == 1:
        return supervised[0], text_b
    named = [name for name in _COMMON_TEXTS if name in free]
    pairs = [pair for pair in PAIRS if {*pair} <= {*free}]
    if text_b is None and len(supervised) == 2:
        return supervised[0], supervised[1]
    if text_b is None and len(pairs) == 1:
        return pairs[0]
    if len(named) == 1 or len(free) == 1:
        return (named or free)[0], text_b
    if text_b is None and len(free) == 2:
        first, second = sorted(free)
        return first, second
    reason = "more than two features" if free else "no feature"
    raise UserError(
        f"--dataset={dataset.name}: {reason} may be the text. Choose with {TEXT_FLAG} "
        f"(and {TEXT_B_FLAG} for pairs) from {_listed(kinds)}."
    )


def _find_label(dataset, kinds, texts, needs_label):
    """Return the names of the label features, a tuple."""
    free = {
        name: kind
        for name, kind in kinds.items()
        if name not in texts and not is_row_number(name)
    }
    named = [name for name in _COMMON_LABELS if name in free]
    classes = [name for name in free if free[name] in (CLASS, SEQUENCE + CLASS)]
    booleans = tuple(name for name in free if free[name] == BOOLEAN)
    scalars = [name for name in free if free[name] in (BOOLEAN, WHOLE, NUMBER)]
    for found in ([n for n in _supervised(dataset, 1) if n in free], named, classes):
        if len(found) == 1:
            return (found[0],)
    if not classes and len(booleans) > 1:
        return booleans
    if not classes and len(scalars) == 1:
        return (scalars[0],)
    if not needs_label:
        return ()
    reason = "more than one feature" if classes or scalars else "no feature"
    raise UserError(
        f"--dataset={dataset.name}: {reason} may be the label. Choose with "
        f"{LABEL_FLAG} from {_listed(kinds)}."
    )


def _supervised(dataset, index):
    """Return the names in `supervised_keys`: index 0 is the input, 1 the label."""
    keys = dataset.builder.info.supervised_keys
    if not keys or len(keys) != 2:
        return []
    part = keys[index]
    if isinstance(part, dict):
        part = tuple(part.values())
    return [part] if isinstance(part, str) else [n for n in part if isinstance(n, str)]


def _check_label(dataset, kinds, label):
    usable = (CLASS, BOOLEAN, WHOLE, NUMBER)
    allowed = usable if len(label) > 1 else (*usable, TEXT, SEQUENCE + CLASS)
    for name in label:
        if kinds[name] not in allowed or (len(label) > 1 and kinds[name] == CLASS):
            raise UserError(
                f"--dataset={dataset.name}: {name} ({kinds[name]}) cannot be "
                f"{'one of several labels' if len(label) > 1 else 'a label'}. Choose "
                f"another {LABEL_FLAG} from {_listed(kinds)}."
            )


def _listed(kinds):
    return ", ".join(f"{name} ({kind})" for name, kind in kinds.items())
