"""`EmbeddingTask`, the content of `task.json` for sentence embeddings."""

import dataclasses
from typing import Any, ClassVar, Self

from official_bert.constants import EMBEDDING, LONG_TEXT, POOLINGS, TRUNCATE, WINDOW
from official_bert.json_records import from_json


@dataclasses.dataclass(frozen=True)
class EmbeddingTask:
    """How a model computes the vector of a text; stored in `task.json`.

    Attributes:
      max_seq_length: maximum number of tokens per text, including `[CLS]` and `[SEP]`.
      pooling: one of `constants.POOLINGS`; see `modeling.embedding.model.pool`.
      normalize: whether vectors have length 1.
      size: number of leading dimensions to keep (Matryoshka); None for all.
      long_text: "truncate" cuts longer texts. "window" reads them in windows that
        start half a window apart. The text's vector is the mean of the windows'
        vectors, normalized again if `normalize`.
      metrics: names of the scores. The first one selects the best model.
    """

    TASK: ClassVar[str] = EMBEDDING

    max_seq_length: int = 128
    pooling: str = "mean"
    normalize: bool = True
    size: int | None = None
    long_text: str = TRUNCATE
    metrics: tuple[str, ...] = ("spearman", "pearson")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in a form for JSON, which `from_dict` reads."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Create a task from the result of `to_dict`.

        Raises:
          KeyError, ValueError: values are missing or wrong.
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
            raise ValueError("metrics is empty")
        return task
