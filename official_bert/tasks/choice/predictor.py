"""Choose among answers or continuations with a fine-tuned model."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from official_bert.fine_tuning.loading import TaskPredictor
from official_bert.modeling.multiple_choice import MultipleChoiceModel
from official_bert.tasks.choice import training
from official_bert.tasks.choice.features import convert_choices
from official_bert.tasks.choice.files import ChoiceExample
from official_bert.tasks.classifier.features import Features


@dataclasses.dataclass(frozen=True)
class ChoiceAnswer:
    """The choice for one prompt.

    Attributes:
      index: int, index of the most probable choice, from 0.
      choice: its text.
      probabilities: tuple of C float, of all choices in their order.
    """

    index: int
    choice: str
    probabilities: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON; probabilities have 6 decimal places."""
        rounded = [round(value, 6) for value in self.probabilities]
        return {"index": self.index, "choice": self.choice, "probabilities": rounded}


class ChoicePredictor(TaskPredictor):
    """A model that chooses; see `TaskPredictor`. The batch size counts choices.

    Examples are `ChoiceExample`s; features are a list per example; outputs are logits,
    float32 [N, C]; results are `ChoiceAnswer`s.
    """

    task: training.ChoiceTask
    task_class = training.ChoiceTask
    architecture = training.ARCHITECTURE
    make_model = staticmethod(lambda config, task: MultipleChoiceModel(config))
    compile_model = staticmethod(training.compile_model)
    task_of = staticmethod(training.task_of)

    def predict(self, prompt: str, choices: Sequence[str]) -> ChoiceAnswer:
        """Choose among the choices of one prompt.

        Args:
          prompt: str, a question or the beginning of a text.
          choices: list or tuple of C str, C >= 2: answers, or continuations.

        Returns:
          `ChoiceAnswer`.

        Raises:
          TypeError: the arguments are not a prompt and its choices.
        """
        return self.predict_all([(prompt, choices)])[0]

    def make_example(self, number: int, value: Sequence[Any]) -> ChoiceExample:
        """Return the `ChoiceExample` of a (prompt, choices)."""
        parts = tuple(value) if isinstance(value, list | tuple) else (value,)
        if len(parts) != 2 or not isinstance(parts[0], str):
            raise TypeError(
                f"Question {number} is {value!r}, not a prompt and its choices."
            )
        prompt, choices = parts
        message = f"The choices of question {number} are {choices!r}"
        is_list = isinstance(choices, list | tuple)
        if not is_list or not all(isinstance(text, str) for text in choices):
            raise TypeError(f"{message}, not a list of str.")
        if len(choices) < 2:
            raise TypeError(f"{message}. Give at least two.")
        return ChoiceExample(number, prompt, tuple(choices))

    def features(self, examples: Sequence[ChoiceExample]) -> list[list[Features]]:
        """Return the features of a list of `ChoiceExample`, a list for each."""
        return convert_choices(examples, self.tokenizer, self.task.max_seq_length)

    def outputs(
        self,
        examples: Sequence[ChoiceExample],
        features: Sequence[Sequence[Features]],
        batch_size: int | None = None,
    ) -> np.ndarray:
        """Return the logits of examples, float32 [N, C]; see `training.predict`."""
        size, length = batch_size or self.batch_size, self.task.max_seq_length
        return training.predict(self._run_batch, features, size, length)

    def results(
        self, examples: Sequence[ChoiceExample], outputs: np.ndarray
    ) -> list[ChoiceAnswer]:
        """Return the `ChoiceAnswer` of each row of logits [N, C]."""
        best = outputs.argmax(axis=1).tolist()
        rows = training.probabilities(outputs).tolist()
        return [
            ChoiceAnswer(
                index, example.choices[index], tuple(row[: len(example.choices)])
            )
            for index, row, example in zip(best, rows, examples, strict=True)
        ]
