"""The task of a fine-tuned classifier, stored in `task.json`."""

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

# Kind of labels -> `problem_type` in Hugging Face's `config.json`.
PROBLEM_TYPES = {
    SINGLE_LABEL: "single_label_classification",
    MULTI_LABEL: "multi_label_classification",
    REGRESSION: "regression",
}
ARCHITECTURE = "BertForSequenceClassification"


@dataclasses.dataclass(frozen=True)
class ClassifierTask:
    """The labels and settings of a classifier of texts or pairs of texts.

    Attributes:
      kind: "single_label", "multi_label" or "regression".
      labels: names of the classes in the order of their numbers; empty for
        regression.
      metrics: names of scores, see `classifier.evaluate`. The first one selects
        the best model.
      max_seq_length: maximum number of tokens per text.
      name: name of the GLUE task; "" for a user's data.
      long_text: `TRUNCATE` or `WINDOW`.
      threshold: in multi-label tasks, the minimum probability of a predicted label.
      label_separator: str between the labels of a cell, or None.
      columns: `Columns` of a user's files, or None.
      bilstm: whether the model has a BiLSTM on top. `task.json` contains it only if
        True.
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
        """C: the number of outputs of the model."""
        return 1 if self.kind == REGRESSION else len(self.labels)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in a form for JSON, which `from_dict` reads."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in dataclasses.asdict(self).items()
            if name != "bilstm" or value
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Create a task from the result of `to_dict`.

        Raises:
          KeyError, ValueError: values are missing or wrong.
        """
        task = from_json(cls, values, optional=("bilstm",))
        if (task.kind == REGRESSION) == bool(task.labels):
            raise ValueError("labels and kind contradict each other")
        if task.kind not in KINDS or task.long_text not in LONG_TEXT:
            raise ValueError("unknown kind or long_text")
        if not set(task.metrics) <= METRICS.keys():
            raise ValueError("an unknown score")
        if len(set(task.labels)) < len(task.labels):
            raise ValueError("a label twice")
        if not 0 < task.threshold < 1 or task.max_seq_length < 3:
            raise ValueError("a number out of range")
        return task


def written_config(config: BertConfig, task: ClassifierTask) -> BertConfig:
    """Return the `BertConfig` to write with a classifier, with its labels.

    Args:
      config: `BertConfig`.
      task: `ClassifierTask`.
    """
    problem_type = PROBLEM_TYPES[task.kind]
    return config_with_labels(config, task.labels, problem_type=problem_type)


def task_of(config: BertConfig) -> ClassifierTask | None:
    """Return the `ClassifierTask` that a `BertConfig` describes, or None.

    It describes one if it names labels, or if its `problem_type` is regression.
    """
    labels = labels_of(config)
    kinds: dict[str | None, str] = {name: kind for kind, name in PROBLEM_TYPES.items()}
    # As in transformers: with one label the default is regression.
    usual = REGRESSION if len(labels) == 1 else SINGLE_LABEL
    kind = kinds.get(config.extra.get("problem_type"), usual)
    if kind == REGRESSION:
        labels = ()
    elif not labels:
        return None
    if architecture_of(config) not in (None, ARCHITECTURE):
        return None
    return ClassifierTask(kind, labels, (), config.max_position_embeddings)
