"""Measure how the predictions of a `.tflite` differ from Python's."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from official_bert.errors import list_some


@dataclasses.dataclass(frozen=True)
class Answers:
    """A model's predictions for a set of examples.

    Attributes:
      score: in percent.
      labels: the prediction for each example: a label, a text, the number of a
        choice, or (taggers) the tag of each word. None if predictions are
        numbers.
      numbers: float array [N, C], for each example the probabilities of its
        predictions, or one regression value; None for taggers.
    """

    score: float
    labels: Sequence[Any] | None
    numbers: np.ndarray | None


@dataclasses.dataclass(frozen=True)
class Changes:
    """Differences between the predictions of two models.

    Attributes:
      num_examples: number of compared examples.
      labels: for each different prediction (example number from 1, first
        model's prediction, second model's, first model's probability, second
        model's; taggers: probabilities are None). None if predictions are
        numbers.
      largest: the largest difference of any number; None without numbers.
      mean: the mean of these differences.
      largest_at: number of its example, from 1.
    """

    num_examples: int
    labels: tuple[tuple[int, Any, Any, float | None, float | None], ...] | None
    largest: float | None = None
    mean: float | None = None
    largest_at: int | None = None

    @property
    def share_same(self) -> float | None:
        """Share of equal predictions, from 0 to 1; None if predictions are numbers."""
        if self.labels is None:
            return None
        return 1 - len(self.labels) / self.num_examples

    def lines(self) -> list[str]:
        """Return the differences as sentences."""
        lines = []
        if self.labels is not None:
            total = self.num_examples
            lines.append(
                f"{len(self.labels)} of {total} predictions differ from Python's."
            )
            if self.labels:
                shown = list_some(map(_described, self.labels), 5, "; ")
                lines[-1] = f"{lines[-1][:-1]}: {shown}."
        if self.largest is not None:
            what = "Probabilities" if self.labels is not None else "Numbers"
            lines.append(
                f"{what} differ by {self.largest:.4f} at most (example "
                f"{self.largest_at}) and by {self.mean:.4f} on average."
            )
        return lines


def compare(before: Answers, after: Answers) -> Changes:
    """Return the `Changes` from one model's predictions to another's.

    Args:
      before: `Answers` for N >= 1 examples.
      after: `Answers` for the same examples.
    """
    labels, numbers = None, before.numbers
    if before.labels is not None and after.labels is not None:
        confidences = [_confidences(one) for one in (before, after)]
        rows = zip(before.labels, after.labels, *confidences, strict=True)
        labels = tuple(
            (number, one, other, *of_both)
            for number, (one, other, *of_both) in enumerate(rows, 1)
            if one != other
        )
    if numbers is None or after.numbers is None:
        assert before.labels is not None  # Otherwise nothing could be compared.
        return Changes(len(before.labels), labels)
    differences = np.abs(numbers - after.numbers)
    largest_at = int(differences.max(axis=1).argmax())
    return Changes(
        len(numbers),
        labels,
        float(differences.max()),
        float(differences.mean()),
        largest_at + 1,
    )


def _confidences(answers):
    """Return the probability of each prediction, a list of float or None."""
    if answers.numbers is None:
        return [None] * len(answers.labels)
    return answers.numbers.max(axis=1).tolist()


def _described(change):
    number, one, other, before, after = change
    if before is None:
        return f"word {number}: {one} became {other}"
    return f"example {number}: {one!r} ({before:.3f}) became {other!r} ({after:.3f})"
