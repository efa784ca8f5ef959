"""A fine-tuned model that chooses among answers or continuations."""

import dataclasses

from official_bert.fine_tuning import loading as fine_tuned
from official_bert.modeling.multiple_choice import MultipleChoiceModel
from official_bert.tasks.choice import features as choice_features
from official_bert.tasks.choice import training as choice
from official_bert.tasks.choice.files import ChoiceExample
from official_bert.tasks.choice.training import ChoiceTask


@dataclasses.dataclass(frozen=True)
class ChoiceAnswer:
    """What is chosen for one prompt.

    Attributes:
      index: int, the place of the most probable choice, from 0.
      choice: its text.
      probabilities: tuple of C float, of all choices in their order.
    """

    index: int
    choice: str
    probabilities: tuple[float, ...]


class ChoicePredictor:
    """A model that chooses, loaded once; see `Predictor`.

    Attributes:
      model: the Keras model, or a `TfliteModel`.
      task: `ChoiceTask`.
      tokenizer: `FullTokenizer`.
      global_step: the updates that the model has had; None where not known.
    """

    def __init__(self, path, batch_size=32, task=None, **files):
        """Load a model; see `fine_tuned.load` for the arguments.

        The batch size counts choices.
        """
        found = fine_tuned.load(
            path,
            ChoiceTask,
            lambda config, task: MultipleChoiceModel(config),
            choice.make_scorer,
            "output_weights",
            task,
            choice.task_of,
            **files,
        )
        self.model, self.task, self.tokenizer = found.model, found.task, found.tokenizer
        self.global_step, self.batch_size = found.global_step, batch_size
        self._score = found.score

    def predict(self, prompt, choices):
        """Choose for one prompt.

        Args:
          prompt: str, a question or the beginning of a text.
          choices: list or tuple of C str, C >= 2: answers, or continuations.

        Returns:
          `ChoiceAnswer`.

        Raises:
          TypeError: these are not a prompt and its choices.
        """
        return self.predict_all([(prompt, choices)])[0]

    def predict_all(self, pairs):
        """Choose for each of several prompts.

        Args:
          pairs: iterable of (prompt, choices), as `predict` takes them; not all
            of them need have as many choices.

        Returns:
          list of `ChoiceAnswer`, in the order of the pairs.

        Raises:
          TypeError: something in it is no such pair.
        """
        examples = [_example(number, pair) for number, pair in enumerate(pairs)]
        if not examples:
            return []
        return self.name(self.logits(self.features(examples)), examples)

    def features(self, examples):
        """Return the features of a list of `ChoiceExample`, a list for each."""
        return choice_features.convert_choices(
            examples, self.tokenizer, self.task.max_seq_length
        )

    def logits(self, features):
        """Return the logits of examples, float32 [N, C]; see `choice.predict`."""
        length = self.task.max_seq_length
        return choice.predict(self._score, features, self.batch_size, length)

    def name(self, logits, examples):
        """Return the `ChoiceAnswer` that each row of logits stands for.

        Args:
          logits: float32 [N, C].
          examples: list of N `ChoiceExample`.
        """
        places = logits.argmax(axis=1).tolist()
        rows = choice.probabilities(logits).tolist()
        return [
            ChoiceAnswer(
                place, example.choices[place], tuple(row[: len(example.choices)])
            )
            for place, row, example in zip(places, rows, examples, strict=True)
        ]


def _example(number, pair):
    parts = tuple(pair) if isinstance(pair, list | tuple) else (pair,)
    if len(parts) != 2 or not isinstance(parts[0], str):
        raise TypeError(
            f"Question {number} is {pair!r}: not a prompt, a str, and its choices."
        )
    prompt, choices = parts
    if not isinstance(choices, list | tuple) or not all(
        isinstance(text, str) for text in choices
    ):
        raise TypeError(
            f"The choices of question {number} are {choices!r}: not a list of str."
        )
    if len(choices) < 2:
        raise TypeError(
            f"The choices of question {number} are {choices!r}: give two or more."
        )
    return ChoiceExample(number, prompt, tuple(choices))
