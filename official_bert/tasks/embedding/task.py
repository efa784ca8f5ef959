"""`EmbeddingTask`: what `task.json` keeps of a model of sentence vectors."""

import dataclasses
from typing import Any, ClassVar, Self

from official_bert.constants import EMBEDDING, LONG_TEXT, POOLINGS, TRUNCATE, WINDOW
from official_bert.json_records import from_json


@dataclasses.dataclass(frozen=True)
class EmbeddingTask:
    """How a model makes a vector of a text; kept in `task.json`.

    Attributes:
      max_seq_length: tokens of a text at most, `[CLS]` and `[SEP]` included.
      pooling: one of `constants.POOLINGS`; see `modeling.embedding.model.pool`.
      normalize: whether vectors have length 1.
      size: how many of the first numbers of a vector are kept (Matryoshka); None for
        all.
      long_text: what becomes of longer texts: "truncate" cuts them. "window" reads
        them through windows, half a window apart; the text's vector is the mean of
        the windows' vectors, normalized again if `normalize`.
      metrics: names of the scores; the first decides which model is the best.
    """

    TASK: ClassVar[str] = EMBEDDING

    max_seq_length: int = 128
    pooling: str = "mean"
    normalize: bool = True
    size: int | None = None
    long_text: str = TRUNCATE
    metrics: tuple[str, ...] = ("spearman", "pearson")

    def to_dict(self) -> dict[str, Any]:
        """Return what `from_dict` takes, fit for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Make a task of what `to_dict` returned.

        Raises:
          KeyError, ValueError: a value is missing or impossible.
        """
        task = from_json(cls, values)
        if task.max_seq_length < (5 if task.long_text == WINDOW else 3):
            raise ValueError("max_seq_length is too small")
        if task.pooling not in POOLINGS:
            raise ValueError(f"pooling is {task.pooling!r}")
        if task.long_text not in LONG_TEXT:
            raise ValueError(f"long_text is {task.long_text!r}")
        if task.size is not None and task.size < 1:
            raise ValueError(f"size is {task.size}")
        if not task.metrics:
            raise ValueError("there are no metrics")
        return task
