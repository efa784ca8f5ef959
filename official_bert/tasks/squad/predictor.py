"""Answer questions about contexts with a fine-tuned model."""

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from official_bert.fine_tuning.loading import TaskPredictor
from official_bert.modeling.span_prediction import SpanModel
from official_bert.tasks.squad import training
from official_bert.tasks.squad.answers import SquadPrediction, decode
from official_bert.tasks.squad.features import SquadFeatures, convert_examples
from official_bert.tasks.squad.files import SquadExample, make_example


@dataclasses.dataclass(frozen=True)
class Answer:
    """The predicted answer to one question.

    Attributes:
      text: context[start:end]; "" for no answer.
      start: int, index of the first character.
      end: int, index after the last character.
      score: sum of the start logit of the first token and the end logit of the last
        one; comparable between contexts.
      null_score: the same sum for "no answer"; None in SQuAD 1.1.
      probability: probability among the n best answers.
    """

    text: str
    start: int
    end: int
    score: float
    null_score: float | None
    probability: float

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON; numbers have 6 decimal places."""
        record = {"answer": self.text, "start": self.start, "end": self.end}
        for name in ("score", "null_score", "probability"):
            if getattr(self, name) is not None:
                record[name] = round(getattr(self, name), 6)
        return record


class SquadPredictor(TaskPredictor):
    """A model that answers questions; see `TaskPredictor`.

    Examples are `SquadExample`s; features are windows over all of them; outputs are
    `SquadPrediction`s; results are `Answer`s. The batch size counts windows.
    """

    task: training.SquadTask
    task_class = training.SquadTask
    architecture = training.ARCHITECTURE
    head = "cls/squad/output_weights"
    make_model = staticmethod(lambda config, task: SpanModel(config))
    compile_model = staticmethod(training.compile_model)
    task_of = staticmethod(training.task_of)

    def __init__(
        self,
        path: str | os.PathLike[str],
        batch_size: int = 32,
        task: training.SquadTask | None = None,
        pad_to_max_seq_length: bool = False,
        **files: Any,
    ):
        """Load a model.

        Args:
          path: see `TaskPredictor`.
          batch_size: number of windows per batch.
          task: see `TaskPredictor`.
          pad_to_max_seq_length: see `training.window_logits`.
          **files: config, vocabulary and casing, see `TaskPredictor`.
        """
        super().__init__(path, batch_size, task, **files)
        self._pad_to_max_seq_length = pad_to_max_seq_length

    def predict(self, question: str, context: str) -> Answer:
        """Answer one question.

        Args:
          question: str.
          context: str, of any length.

        Returns:
          `Answer`.
        """
        return self.predict_all([(question, context)])[0]

    def make_example(self, number: int, value: Sequence[str]) -> SquadExample:
        """Return the `SquadExample` of a (question, context)."""
        parts = value if isinstance(value, list | tuple) else (value,)
        if len(parts) != 2 or not all(isinstance(part, str) for part in parts):
            raise TypeError(
                f"Question {number} is {value!r}, not a pair of str: a question and a "
                "context."
            )
        question, context = parts
        return make_example(question, context, str(number))

    def features(self, examples: Sequence[SquadExample]) -> list[SquadFeatures]:
        """Return the `SquadFeatures` of a list of `SquadExample`."""
        return convert_examples(examples, self.tokenizer, *self.task.lengths)

    def logits(
        self, features: Sequence[SquadFeatures]
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return (start, end) logits of windows; see `training.window_logits`."""
        return training.window_logits(
            self._run_batch,
            self.task,
            features,
            self.batch_size,
            pad_to_max_seq_length=self._pad_to_max_seq_length,
        )

    def outputs(
        self,
        examples: Sequence[SquadExample],
        features: Sequence[SquadFeatures],
        logits: Sequence[Sequence[np.ndarray]] | None = None,
    ) -> list[SquadPrediction]:
        """Return the `SquadPrediction` of each example.

        Args:
          examples: list of `SquadExample`.
          features: list of their `SquadFeatures`.
          logits: replace the model's logits, for example those of an ensemble.
        """
        start_logits, end_logits = logits or self.logits(features)
        return decode(
            examples,
            features,
            start_logits,
            end_logits,
            self.tokenizer,
            self.task.decoding,
        )

    def results(
        self, examples: Sequence[SquadExample], outputs: Sequence[SquadPrediction]
    ) -> list[Answer]:
        """Return the `Answer` of each `SquadPrediction`."""
        answers = []
        for prediction, example in zip(outputs, examples, strict=True):
            answer, null_score = prediction.answer, None
            if prediction.null_odds is not None:
                null_score = next(one for one in prediction.nbest if not one.text).score
            start, end, score = answer.start, answer.end, answer.score
            text = example.context[start:end]
            answers.append(
                Answer(text, start, end, score, null_score, answer.probability)
            )
        return answers
