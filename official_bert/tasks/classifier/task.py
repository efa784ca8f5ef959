"""What a fine-tuned classifier is for; it is kept in `task.json`."""

import dataclasses
from typing import Any, ClassVar, Self

from official_bert.config import BertConfig
from official_bert.constants import CLASSIFIER, LONG_TEXT, TRUNCATE
from official_bert.fine_tuning.config_labels import (
    architecture_of,
    config_with_labels,
    labels_of,
)
from official_bert.json_records import from_json
from official_bert.metrics.glue import METRICS
from official_bert.tables.columns import Columns
from official_bert.tables.labels import KINDS, MULTI_LABEL, REGRESSION, SINGLE_LABEL

# What Hugging Face's `config.json` calls the kinds of labels.
PROBLEM_TYPES = {
    SINGLE_LABEL: "single_label_classification",
    MULTI_LABEL: "multi_label_classification",
    REGRESSION: "regression",
}
ARCHITECTURE = "BertForSequenceClassification"


@dataclasses.dataclass(frozen=True)
class ClassifierTask:
    """What a classifier tells of a text or a pair of texts.

    Attributes:
      kind: "single_label", "multi_label" or "regression".
      labels: names of the classes in the order of their numbers; none for a
        regression task.
      metrics: names of scores, see `classifier.evaluate`; by the first a model
        is the best.
      max_seq_length: tokens of a text at most.
      name: the GLUE task's; "" for a user's own data.
      long_text: `TRUNCATE` or `WINDOW`.
      threshold: from this probability on a label holds, where several may.
      label_separator: str between the labels of a cell, or None.
      columns: of a user's own files, or None.
      bilstm: whether the model has a BiLSTM on top; `task.json` says it only then.
    """

    TASK: ClassVar[str] = CLASSIFIER

    kind: str
    labels: tuple[str, ...]
    metrics: tuple[str, ...]
    max_seq_length: int
    name: str = ""
    long_text: str = TRUNCATE
    threshold: float = 0.5
    label_separator: str | None = None
    columns: Columns | None = None
    bilstm: bool = False

    @property
    def num_outputs(self) -> int:
        """C: how many scores the model gives."""
        return 1 if self.kind == REGRESSION else len(self.labels)

    def to_dict(self) -> dict[str, Any]:
        """Return what `from_dict` takes, fit for JSON."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in dataclasses.asdict(self).items()
            if name != "bilstm" or value
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Make a task of what `to_dict` returned.

        Raises:
          KeyError, ValueError: that is not what it holds.
        """
        task = from_json(cls, values, optional=("bilstm",))
        if (task.kind == REGRESSION) == bool(task.labels):
            raise ValueError("labels and kind contradict each other")
        if task.kind not in KINDS or task.long_text not in LONG_TEXT:
            raise ValueError("an unknown word")
        if not set(task.metrics) <= METRICS.keys():
            raise ValueError("an unknown score")
        if len(set(task.labels)) < len(task.labels):
            raise ValueError("a label twice")
        if not 0 < task.threshold < 1 or task.max_seq_length < 3:
            raise ValueError("a number out of range")
        return task


def written_config(config: BertConfig, task: ClassifierTask) -> BertConfig:
    """Return the `BertConfig` to write beside a classifier, with its labels.

    Args:
      config: `BertConfig`.
      task: `ClassifierTask`.
    """
    problem_type = PROBLEM_TYPES[task.kind]
    return config_with_labels(config, task.labels, problem_type=problem_type)


def task_of(config: BertConfig) -> ClassifierTask | None:
    """Return the `ClassifierTask` of a `BertConfig` that tells of one, or None.

    It tells of one if it names labels, or says that what is told is a number.
    """
    labels = labels_of(config)
    kinds: dict[str | None, str] = {name: kind for kind, name in PROBLEM_TYPES.items()}
    # One label is a number, if nothing is said; so it is with transformers.
    usual = REGRESSION if len(labels) == 1 else SINGLE_LABEL
    kind = kinds.get(config.extra.get("problem_type"), usual)
    if kind == REGRESSION:
        labels = ()
    elif not labels:
        return None
    if architecture_of(config) not in (None, ARCHITECTURE):
        return None
    return ClassifierTask(kind, labels, (), config.max_position_embeddings)
