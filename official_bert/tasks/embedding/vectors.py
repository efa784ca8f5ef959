"""Compute vectors of texts, and their similarity, with an embedding model."""

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from official_bert.checkpoints.initialize import load_opened
from official_bert.errors import UserError
from official_bert.fine_tuning.loading import TaskPredictor
from official_bert.fine_tuning.outputs import run_examples
from official_bert.fine_tuning.task_file import has_task
from official_bert.fine_tuning.tflite_model import find_file
from official_bert.tasks.classifier.features import Features
from official_bert.tasks.embedding import training
from official_bert.tasks.embedding.directories import described_task
from official_bert.tasks.embedding.features import (
    convert_texts,
    rows_of,
    vectors_of_texts,
)
from official_bert.tasks.embedding.search import unit
from official_bert.tasks.embedding.task import EmbeddingTask


class EmbeddingPredictor(TaskPredictor):
    """A model that computes a vector per text; see `TaskPredictor`.

    Examples are tuples of one or two texts; features are a list of windows per text;
    outputs are vectors, float32 [texts, size]. The result for one text is its vector,
    for two texts their cosine.
    """

    task: EmbeddingTask
    task_class = EmbeddingTask
    # These models have no task head. Every encoder has these weights.
    head = "bert/embeddings/word_embeddings"
    make_model = staticmethod(training.make_model)
    compile_model = staticmethod(training.compile_model)
    task_of = staticmethod(lambda config: None)

    def __init__(
        self,
        path: str | os.PathLike[str],
        batch_size: int = 32,
        task: EmbeddingTask | None = None,
        config_file: str | None = None,
        vocab_file: str | None = None,
        do_lower_case: bool | None = None,
    ):
        """Load a model; see `TaskPredictor`.

        A sentence-transformers directory needs no task, because its files describe it.
        """
        if task is None and not find_file(path) and not has_task(path):
            task = described_task(path)
        super().__init__(path, batch_size, task, config_file, vocab_file, do_lower_case)

    def _load_weights(self, path, checkpoint):
        unused = () if self.task.pooling == "pooler" else ("bert/pooler/",)
        missing = [
            name
            for name in load_opened(self.model, checkpoint).new
            if not (unused and name.startswith(unused))
        ]
        if missing:
            raise UserError(
                f"{path} lacks {', '.join(missing)}, which --pooling="
                f"{self.task.pooling} needs. Give a complete model, or another pooling."
            )
        width = self.model.config.hidden_size
        if self.task.size is not None and self.task.size > width:
            raise UserError(
                f"{path}: the vectors have {width} dimensions, but size is "
                f"{self.task.size}. Choose a smaller size."
            )

    def predict(self, texts: Iterable[str]) -> np.ndarray:
        """Return the vector of each text; see `vectors`."""
        return self.vectors(texts)

    def vectors(self, texts: Iterable[str]) -> np.ndarray:
        """Return the vectors of texts, float32 [N, size].

        Raises:
          TypeError: `texts` is a single text, or contains something else.
        """
        if isinstance(texts, str):
            raise TypeError("vectors needs a list of texts. Put this text into a list.")
        texts = list(texts)
        for number, text in enumerate(texts):
            if not isinstance(text, str):
                raise TypeError(f"Text {number} is {text!r}, which is not a str.")
        if not texts:
            width = self.task.size or self._width()
            return np.empty((0, width), np.float32)
        examples = [(text,) for text in texts]
        return self.outputs(examples, self.features(examples))

    def similarity(self, texts: Iterable[str], others: Iterable[str]) -> np.ndarray:
        """Return the cosines of all texts with all others, float32 [N, M].

        Raises:
          TypeError: see `vectors`.
        """
        return unit(self.vectors(texts)) @ unit(self.vectors(others)).T

    def _width(self):
        if hasattr(self.model, "config"):
            return self.model.config.hidden_size
        return self.model.outputs()["embedding"][1][-1]

    def make_example(self, number: int, value: str | Sequence[str]) -> tuple[str, ...]:
        """Return one text or two as a tuple.

        Raises:
          TypeError: the value is neither a text nor a pair of texts.
        """
        parts = (value,) if isinstance(value, str) else tuple(value or ())
        if len(parts) not in (1, 2) or not all(isinstance(each, str) for each in parts):
            raise TypeError(f"Text {number} is {value!r}, not a str or a pair of str.")
        return parts

    def features(self, examples: Sequence[tuple[str, ...]]) -> list[list[Features]]:
        """Return the windows of each text of all examples."""
        texts = [text for example in examples for text in example]
        return convert_texts(texts, self.tokenizer, self.task)

    def outputs(
        self,
        examples: Sequence[tuple[str, ...]],
        features: Sequence[Sequence[Features]],
        batch_size: int | None = None,
    ) -> np.ndarray:
        """Return the vector of each text of all examples, float32 [texts, size]."""
        rows = run_examples(
            self._run_batch,
            rows_of(features, self.task.max_seq_length),
            batch_size or self.batch_size,
        )
        return vectors_of_texts(rows, features, self.task.normalize)

    def results(
        self, examples: Sequence[tuple[str, ...]], outputs: np.ndarray
    ) -> list[Any]:
        """Return the vector float32 [size] of one text, or the cosine of two."""
        found: list[Any] = []
        rows = iter(outputs)
        for example in examples:
            vectors = [next(rows) for _ in example]
            if len(vectors) == 1:
                found.append(vectors[0])
            else:
                first, second = unit(np.stack(vectors))
                found.append(float(first @ second))
        return found

    def to_json(self, value: str | Sequence[str], result: Any) -> dict[str, Any]:
        """Return one text with its vector, or two with their cosine, for JSON."""
        if isinstance(result, float):
            pair = dict(zip(("text", "text_b"), value, strict=True))
            return {**pair, "similarity": round(result, 6)}
        return {
            "text": value,
            "vector": [round(number, 6) for number in result.tolist()],
        }
