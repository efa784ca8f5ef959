"""`Predictor` runs a fine-tuned model of any task, in any program."""

import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from official_bert.checkpoints import any_format
from official_bert.checkpoints.checkpoint import Checkpoint
from official_bert.checkpoints.hub.find import find_model
from official_bert.checkpoints.huggingface import sentence_files
from official_bert.checkpoints.huggingface.config_json import architecture
from official_bert.errors import UserError
from official_bert.fine_tuning.config_labels import architecture_of
from official_bert.fine_tuning.loading import TaskPredictor
from official_bert.fine_tuning.task_file import Task, has_task, read_task
from official_bert.fine_tuning.tflite_model import carried_files, find_file
from official_bert.tasks.choice.predictor import ChoicePredictor
from official_bert.tasks.classifier.predictor import ClassifierPredictor
from official_bert.tasks.embedding.predictor import EncoderPredictor
from official_bert.tasks.embedding.vectors import EmbeddingPredictor
from official_bert.tasks.ner.predictor import NerPredictor
from official_bert.tasks.squad.predictor import SquadPredictor

_PREDICTORS = (
    ChoicePredictor,
    ClassifierPredictor,
    EmbeddingPredictor,
    NerPredictor,
    SquadPredictor,
)
_BY_TASK: dict[type[Task], type[TaskPredictor]] = {
    each.task_class: each for each in _PREDICTORS
}
_BY_ARCHITECTURE: dict[str, type[TaskPredictor]] = {
    each.architecture: each for each in _PREDICTORS if each.architecture
}


class Predictor:
    """A fine-tuned model, loaded once. Its `task.json` says which task it has.

    Several threads may call `predict` at the same time. The first call compiles the
    model, and texts of other lengths or numbers never compile it again.

    Attributes:
      task_predictor: the `TaskPredictor` of the model's task, see `load`.
      task: the model's task; None for a pre-trained encoder.
    """

    def __init__(self, path: str | os.PathLike[str], batch_size: int = 32):
        """Load a model; see `load`."""
        self.task_predictor = load(path, batch_size)
        self.task = self.task_predictor.task

    def predict(self, *texts: Any) -> Any:
        """Run the model.

        Args:
          *texts: classifier: a list of texts or of pairs (text, text). Tagger: a text,
            or a list of texts. SQuAD: a question and a context. Multiple choice: a
            prompt and a list of choices. Embeddings: a list of texts.

        Returns:
          classifier: list of `Prediction`, or of `PredictedValue` for regression.
          Tagger: list of `FoundEntity`, or a list of such lists. SQuAD: an `Answer`.
          Multiple choice: a `ChoiceAnswer`. Embeddings: vectors, float32 [N, H].

        Raises:
          TypeError: the texts do not match the task.
        """
        return self.task_predictor.predict(*texts)

    def vectors(self, texts: Iterable[str]) -> np.ndarray:
        """Return the vectors of texts from an embedding model, float32 [N, size].

        Raises:
          UserError: the model has another task.
          TypeError: `texts` is a single text, or contains something else.
        """
        return self._embedding().vectors(texts)

    def similarity(self, texts: Iterable[str], others: Iterable[str]) -> np.ndarray:
        """Return the cosines of all texts with all others, float32 [N, M].

        Raises:
          UserError, TypeError: see `vectors`.
        """
        return self._embedding().similarity(texts, others)

    def _embedding(self):
        if not isinstance(self.task_predictor, EmbeddingPredictor):
            name = self.task.TASK if self.task else "none"
            raise UserError(
                f"Only models of the task 'embedding' have vectors and similarity, but "
                f"the task of this model is {name!r}. Use predict."
            )
        return self.task_predictor


def load(path: str | os.PathLike[str], batch_size: int = 32) -> TaskPredictor:
    """Load the predictor of a model's task.

    Args:
      path: output directory of a finished fine-tuning. Or a `.tflite` file exported
        from one. Or a Hugging Face model; the config of a classifier or tagger must
        name its labels. Or a sentence-transformers model. Or a SQuAD model trained
        with the original. A name of such a model also works; see `find_model`.
      batch_size: number of texts per batch.

    Returns:
      `ChoicePredictor`, `ClassifierPredictor`, `EmbeddingPredictor`, `NerPredictor` or
      `SquadPredictor`; `EncoderPredictor` for a `.tflite` file without a task.

    Raises:
      UserError: a file is missing, or files do not match.
      ValueError: `batch_size` is below 1.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}, but it must be at least 1.")
    path = find_model(path).path
    predictor_class: type[TaskPredictor]
    if tflite_file := find_file(path):
        with carried_files(tflite_file) as folder:
            predictor_class = _class_of_task(folder) or EncoderPredictor
    elif not has_task(path) and sentence_files.has_files(path):
        predictor_class = EmbeddingPredictor
    elif not (predictor_class := _class_of_task(path)):
        with any_format.opened(path) as checkpoint:
            # Task unknown: the classifier predictor raises the error that says what
            # is missing.
            predictor_class = class_of(checkpoint) or ClassifierPredictor
    return predictor_class(path, batch_size)


def _class_of_task(directory):
    """Return the predictor class for a `task.json`; None if it does not exist."""
    if has_task(directory):
        return _BY_TASK[type(read_task(directory, *_BY_TASK)[0])]
    return None


def class_of(checkpoint: Checkpoint) -> type[TaskPredictor] | None:
    """Return the predictor class of a checkpoint that has no `task.json`.

    Args:
      checkpoint: `Checkpoint`.

    Returns:
      a class, see `load`; None if its weights and config do not determine a task.
    """
    config = checkpoint.config
    if config is None:
        return None
    name = architecture(checkpoint.shapes, architecture_of(config))
    predictor = _BY_ARCHITECTURE.get(name) if name else None
    return predictor if predictor and predictor.task_of(config) else None
