"""Predict with a fine-tuned classifier."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from official_bert.fine_tuning.loading import TaskPredictor
from official_bert.tables.examples import Example
from official_bert.tables.labels import MULTI_LABEL, REGRESSION
from official_bert.tasks.classifier import training
from official_bert.tasks.classifier.features import Features, encode
from official_bert.tasks.classifier.task import ARCHITECTURE, ClassifierTask, task_of


@dataclasses.dataclass(frozen=True)
class Prediction:
    """The predicted labels of one text.

    Attributes:
      label: name of the most probable label; in multi-label tasks a tuple with the
        names of all labels that apply.
      probabilities: dict of label name -> float, all labels.
    """

    label: str | tuple[str, ...]
    probabilities: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON; numbers have 6 decimal places."""
        label = list(self.label) if isinstance(self.label, tuple) else self.label
        rounded = {name: round(p, 6) for name, p in self.probabilities.items()}
        return {"label": label, "probabilities": rounded}


@dataclasses.dataclass(frozen=True)
class PredictedValue:
    """The predicted number of one text in a regression task.

    Attributes:
      value: float.
    """

    value: float

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON with the key "label"; 6 decimal places."""
        return {"label": round(self.value, 6)}


def example_of(number: int, text: str | Sequence[str]) -> Example:
    """Return the `Example` of a text or of a pair of texts.

    Raises:
      TypeError: the value is neither.
    """
    parts = tuple(text) if isinstance(text, list | tuple) else (text,)
    if len(parts) not in (1, 2) or not all(isinstance(part, str) for part in parts):
        raise TypeError(f"Text {number} is {text!r}, not a str or a pair of str.")
    return Example(number, *parts)


class ClassifierPredictor(TaskPredictor):
    """A fine-tuned classifier; see `TaskPredictor`.

    Examples are `Example`s; features are a list of windows per example; outputs are
    logits, float32 [N, C]; results are `Prediction`s, or `PredictedValue`s for
    regression.
    """

    task: ClassifierTask
    task_class = ClassifierTask
    architecture = ARCHITECTURE
    make_model = staticmethod(training.make_model)
    compile_model = staticmethod(training.compile_model)
    task_of = staticmethod(task_of)
    make_example = staticmethod(example_of)

    def predict(self, texts: Iterable[str | Sequence[str]]) -> list[Any]:
        """Return a result for each text.

        Args:
          texts: iterable of str, or of pairs (text, text).

        Returns:
          list of `Prediction`, or of `PredictedValue` for regression.

        Raises:
          TypeError: `texts` is a single text, or contains something else.
        """
        if isinstance(texts, str):
            raise TypeError("predict needs a list of texts. Put this text into a list.")
        return self.predict_all(texts)

    def features(self, examples: Sequence[Example]) -> list[list[Features]]:
        """Return the windows of examples; see `features.encode`."""
        return encode(self.task, examples, self.tokenizer)

    def outputs(
        self,
        examples: Sequence[Example],
        features: Sequence[Sequence[Features]],
        batch_size: int | None = None,
    ) -> np.ndarray:
        """Return the logits of N >= 1 examples, float32 [N, C]."""
        size, length = batch_size or self.batch_size, self.task.max_seq_length
        return training.predict(self._run_batch, features, size, length)

    def results(
        self, examples: Sequence[Example], outputs: np.ndarray
    ) -> list[Prediction | PredictedValue]:
        """Return the prediction for each row of logits [N, C]."""
        task = self.task
        predictions: list[Prediction | PredictedValue] = []
        for values in training.probabilities(task, outputs).tolist():
            if task.kind == REGRESSION:
                predictions.append(PredictedValue(values[0]))
                continue
            named = dict(zip(task.labels, values, strict=True))
            label: str | tuple[str, ...] = max(named, key=named.__getitem__)
            if task.kind == MULTI_LABEL:
                label = tuple(name for name, p in named.items() if p >= task.threshold)
            predictions.append(Prediction(label, named))
        return predictions
