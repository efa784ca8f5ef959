"""A fine-tuned model that answers questions on contexts."""

import dataclasses

from official_bert.fine_tuning.loading import TaskPredictor
from official_bert.modeling.span_prediction import SpanModel
from official_bert.tasks.squad import training
from official_bert.tasks.squad.answers import decode
from official_bert.tasks.squad.features import convert_examples
from official_bert.tasks.squad.files import make_example


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer to one question.

    Attributes:
      text: context[start:end]; "" for no answer.
      start: int, its first character.
      end: int, after its last character.
      score: sum of the logits of its first and its last token; comparable
        between contexts.
      null_score: the same of "no answer"; None where the model always answers.
      probability: among the best answers.
    """

    text: str
    start: int
    end: int
    score: float
    null_score: float | None
    probability: float

    def to_dict(self):
        """Return it fit for JSON; numbers to six places."""
        record = {"answer": self.text, "start": self.start, "end": self.end}
        for name in ("score", "null_score", "probability"):
            if getattr(self, name) is not None:
                record[name] = round(getattr(self, name), 6)
        return record


class SquadPredictor(TaskPredictor):
    """A model that answers questions; see `TaskPredictor`.

    Examples are `SquadExample`s, features windows over all of them, outputs
    `SquadPrediction`s, and results `Answer`s. The batch size counts windows.
    """

    task_class = training.SquadTask
    architecture = training.ARCHITECTURE
    head = "cls/squad/output_weights"
    make_model = staticmethod(lambda config, task: SpanModel(config))
    compile_model = staticmethod(training.compile_model)
    task_of = staticmethod(training.task_of)

    def __init__(
        self, path, batch_size=32, task=None, pad_to_max_seq_length=False, **files
    ):
        """Load a model.

        Args:
          path: see `TaskPredictor`.
          batch_size: windows that go through the model together.
          task: see `TaskPredictor`.
          pad_to_max_seq_length: see `training.window_logits`.
          **files: config, vocabulary and casing, see `TaskPredictor`.
        """
        super().__init__(path, batch_size, task, **files)
        self._pad_to_max_seq_length = pad_to_max_seq_length

    def predict(self, question, context):
        """Answer one question.

        Args:
          question: str.
          context: str, of any length.

        Returns:
          `Answer`.
        """
        return self.predict_all([(question, context)])[0]

    def make_example(self, number, value):
        """Return the `SquadExample` of a (question, context)."""
        parts = value if isinstance(value, list | tuple) else (value,)
        if len(parts) != 2 or not all(isinstance(part, str) for part in parts):
            raise TypeError(
                f"Question {number} is {value!r}: not a question and a context, two "
                "str."
            )
        return make_example(*parts, qas_id=str(number))

    def features(self, examples):
        """Return the `SquadFeatures` of a list of `SquadExample`."""
        return convert_examples(examples, self.tokenizer, *self.task.lengths)

    def logits(self, features):
        """Return (start, end) logits of windows; see `training.window_logits`."""
        return training.window_logits(
            self._run_batch,
            self.task,
            features,
            self.batch_size,
            pad_to_max_seq_length=self._pad_to_max_seq_length,
        )

    def outputs(self, examples, features, logits=None):
        """Return the `SquadPrediction` of each example.

        Args:
          examples: list of `SquadExample`.
          features: list of their `SquadFeatures`.
          logits: instead of the model's own, as those of several models.
        """
        logits = logits or self.logits(features)
        return decode(examples, features, *logits, self.tokenizer, self.task.decoding)

    def results(self, examples, outputs):
        """Return the `Answer` that each `SquadPrediction` stands for."""
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
