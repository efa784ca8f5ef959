"""Read multiple choice from a TFDS dataset.

It must have one of these sets of features:

* `sent1`, `sent2`, `ending0`, … and `label`, as in SWAG's files;
* `context` (or `question`), `endings` (or `choices`), a sequence of texts, and
  `label`, counted from 0, as in `hellaswag`;
* `question`, `choices` with `text` and `label`, and `answerKey`, as in `ai2_arc`.

TFDS does not contain SWAG. A dataset `swag` is one that the user has prepared.
"""

from typing import Any

from official_bert.errors import UserError
from official_bert.tables.dataset_columns import CLASS, kind_of
from official_bert.tables.datasets import Dataset
from official_bert.tasks.choice.files import (
    ENDING,
    GOLD_SOURCE,
    LABEL,
    SENTENCE,
    START,
    ChoiceExample,
    read_records,
)

_QUESTIONS, _CHOICES = ("question", "context"), ("choices", "endings")
_ANSWER_KEY = "answerKey"


def read_dataset(
    dataset: Dataset,
    split: str,
    is_test: bool = False,
    leave_out_generated: bool = False,
    leave_out_damaged: bool = False,
) -> tuple[list[ChoiceExample], list[str]]:
    """Return the examples of a split, and notes on rows that were left out.

    Args:
      dataset: `Dataset`.
      split: the name of the split.
      is_test: whether rows may lack answers.
      leave_out_generated: see `files.read_swag`; needs the feature `gold-source`.
      leave_out_damaged: see `files.read_choices`.

    Raises:
      UserError: the dataset has other features, or see `files.read_records`.
    """
    features = dataset.features
    if not (
        {SENTENCE, START, f"{ENDING}0", f"{ENDING}1", LABEL} <= {*features}
        or (
            any(name in features for name in _QUESTIONS)
            and any(name in features for name in _CHOICES)
            and (LABEL in features or _ANSWER_KEY in features)
        )
    ):
        raise UserError(
            f"--dataset={dataset.name} is not multiple choice like SWAG, hellaswag or "
            f"ai2_arc. Its features are {', '.join(features)}. Choose another dataset, "
            "or write JSON lines."
        )
    if leave_out_generated and GOLD_SOURCE not in features:
        raise UserError(
            f"--leave_out_generated: {dataset.name} has no feature {GOLD_SOURCE}. "
            "Leave the flag out."
        )
    records = [_record(row, features) for row in dataset.rows(split)]
    return read_records(
        f"{dataset.name} ({split})",
        records,
        is_test,
        leave_out_generated,
        leave_out_damaged,
    )


def _record(row, features):
    """Convert a row to a JSON lines record: numbers are text, classes their names."""
    record: dict[str, Any] = {
        name: _cell(value, features[name]) for name, value in row.items()
    }
    if SENTENCE in record:
        return record
    for name in _CHOICES:
        if name in record:
            record["choices"] = _choices(record[name], features[name])
    return record


def _choices(choices, feature):
    """Return `choices` with the names of their labels, or as a list of texts."""
    if not isinstance(choices, dict):
        return choices
    labels = feature.feature["label"]
    if kind_of(labels) == CLASS:
        names = [labels.names[number] for number in choices["label"]]
        return {"text": choices["text"], "label": names}
    return choices


def _cell(value, feature):
    if isinstance(value, str | list | dict):
        return value
    if isinstance(value, int) and value < 0:  # A hidden answer.
        return ""
    return feature.names[value] if kind_of(feature) == CLASS else str(value)
