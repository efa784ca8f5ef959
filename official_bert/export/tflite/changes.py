"""What a `.tflite` changes: which answers differ from Python's, and by how much."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from official_bert.errors import list_some


@dataclasses.dataclass(frozen=True)
class Answers:
    """What a model says of the examples of a set.

    Attributes:
      score: in percent.
      labels: what is answered to each example: a label, a text, a number of a choice;
        of a tagger the tag of each word. None where the answers are numbers.
      numbers: float array [N, C], of each example the probabilities of its answers, or
        the one number of a regression; None of a tagger.
    """

    score: float
    labels: Sequence[Any] | None
    numbers: np.ndarray | None


@dataclasses.dataclass(frozen=True)
class Changes:
    """How the answers of one model differ from those of another.

    Attributes:
      num_examples: how many were compared.
      labels: for each different answer (number of the example from 1, the one, the
        other, the probability of the one, that of the other; both None of a tagger).
        None where the answers are numbers.
      largest: the largest difference of any of the numbers; None without numbers.
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
        """Share of equal answers, from 0 to 1; None where the answers are numbers."""
        if self.labels is None:
            return None
        return 1 - len(self.labels) / self.num_examples

    def lines(self) -> list[str]:
        """Return sentences for people."""
        lines = []
        if self.labels is not None:
            total = self.num_examples
            lines.append(f"{len(self.labels)} of {total} answers differ from Python's.")
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
    """Return the `Changes` from one model's answers to the other's.

    Args:
      before: `Answers`, of N >= 1 examples.
      after: `Answers` to the same examples.
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
        assert before.labels is not None  # Or there is nothing to compare.
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
    """Return the probability of each answer, a list of float or None."""
    if answers.numbers is None:
        return [None] * len(answers.labels)
    return answers.numbers.max(axis=1).tolist()


def _described(change):
    number, one, other, before, after = change
    if before is None:
        return f"word {number}: {one} became {other}"
    return f"example {number}: {one!r} ({before:.3f}) became {other!r} ({after:.3f})"
