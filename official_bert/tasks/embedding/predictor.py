"""Run a pre-trained encoder in TFLite format: one vector per text."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from official_bert.errors import UserError
from official_bert.fine_tuning.batches import FeatureSet
from official_bert.fine_tuning.loading import TaskPredictor, load_tflite
from official_bert.fine_tuning.outputs import run_examples
from official_bert.tables.examples import Example
from official_bert.tasks.classifier.features import (
    Features,
    convert_examples,
    pad_features,
)
from official_bert.tasks.classifier.predictor import example_of


class EncoderPredictor(TaskPredictor):
    """The `.tflite` file of a pre-trained model. It has no task: `task` is None."""

    make_example = staticmethod(example_of)

    def __init__(self, path: str | os.PathLike[str], batch_size: int = 32):
        """Load a model.

        Args:
          path: path of a `.tflite` file, or of its export folder.
          batch_size: ignored, because sequences are processed one by one.

        Raises:
          UserError: the file is damaged, or its model has no pooler.
        """
        self.model, self.tokenizer, self.task = load_tflite(path)
        if "pooled_output" not in self.model.outputs():
            raise UserError(
                f"{path}: the model has no pooler, so it returns vectors of tokens "
                "(sequence_output) but not of texts. Call its signatures directly."
            )
        self.global_step, self.batch_size = None, batch_size

    def predict(self, texts: Iterable[str | Sequence[str]]) -> np.ndarray:
        """Return the pooled output of each text or pair, float32 [N, H].

        Args:
          texts: iterable of str, or of pairs (text, text).

        Raises:
          TypeError: `texts` is a single text, or contains something else.
        """
        if isinstance(texts, str):
            raise TypeError("predict needs a list of texts. Put this text into a list.")
        return self.predict_all(texts)

    def predict_all(self, inputs: Iterable[str | Sequence[str]]) -> np.ndarray:
        """Return the pooled output of each text or pair, float32 [N, H]."""
        vectors = super().predict_all(inputs)
        width = self.model.outputs()["pooled_output"][1][-1]
        return np.reshape(np.array(vectors, np.float32), (-1, width))

    def features(self, examples: Sequence[Example]) -> list[Features]:
        """Return the `Features` of examples, cut to the longest signature."""
        return convert_examples(examples, self.tokenizer, self.model.lengths[-1])

    def outputs(
        self,
        examples: Sequence[Example],
        features: Sequence[Features],
        batch_size: int | None = None,
    ) -> list[dict[str, np.ndarray]]:
        """Return a dict of the model's outputs for each example."""
        feature_set = FeatureSet(features, self.model.lengths[-1], pad_features)
        return run_examples(self.model, feature_set, batch_size or self.batch_size)

    def results(
        self, examples: Sequence[Example], outputs: Iterable[Mapping[str, np.ndarray]]
    ) -> list[np.ndarray]:
        """Return the pooled output of each example, float32 [H]."""
        return [row["pooled_output"] for row in outputs]

    def to_json(self, value: str | Sequence[str], result: np.ndarray) -> dict[str, Any]:
        """Return a text and its vector as a dict for JSON."""
        rounded = [round(number, 6) for number in result.tolist()]
        return {"text": value, "pooled_output": rounded}
