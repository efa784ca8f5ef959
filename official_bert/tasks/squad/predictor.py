"""A fine-tuned model that answers questions on contexts."""

import dataclasses

from official_bert.fine_tuning import loading as fine_tuned
from official_bert.modeling.span_prediction import SpanModel
from official_bert.tasks.squad import answers as squad_answers
from official_bert.tasks.squad import features as squad_features
from official_bert.tasks.squad import files as squad_files
from official_bert.tasks.squad import training as squad
from official_bert.tasks.squad.training import SquadTask


@dataclasses.dataclass(frozen=True)
class Answer:
    """What is answered to one question.

    Attributes:
      text: context[start:end]; "" for no answer.
      start: int, its first character.
      end: int, behind its last character.
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


class SquadPredictor:
    """A model that answers questions, loaded once; see `Predictor`.

    Attributes:
      model: the Keras model, or a `TfliteModel`.
      task: `SquadTask`.
      tokenizer: `FullTokenizer`.
      global_step: the updates that the model has had; None where not known.
    """

    def __init__(self, path, batch_size=8, task=None, **files):
        """Load a model; see `fine_tuned.load` for the arguments."""
        found = fine_tuned.load(
            path,
            SquadTask,
            lambda config, task: SpanModel(config),
            squad.make_scorer,
            "cls/squad/output_weights",
            task,
            squad.task_of,
            **files,
        )
        self.model, self.task, self.tokenizer = found.model, found.task, found.tokenizer
        self.global_step, self.batch_size = found.global_step, batch_size
        self._score = found.score

    def predict(self, question, context):
        """Answer one question.

        Args:
          question: str.
          context: str, of any length.

        Returns:
          `Answer`.
        """
        return self.predict_all([(question, context)])[0]

    def predict_all(self, pairs):
        """Answer questions.

        Args:
          pairs: iterable of (question, context), str.

        Returns:
          list of `Answer`.

        Raises:
          TypeError: something in it is no pair of str.
        """
        examples = [_example(number, pair) for number, pair in enumerate(pairs)]
        found = self.decode(examples, self.features(examples))
        return [
            _answer(one, example.context)
            for one, example in zip(found, examples, strict=True)
        ]

    def features(self, examples):
        """Return the `SquadFeatures` of a list of `SquadExample`."""
        return squad_features.convert_examples(
            examples, self.tokenizer, *self.task.lengths
        )

    def logits(self, features):
        """Return (start, end) logits of windows; see `squad.window_logits`."""
        return squad.window_logits(self._score, self.task, features, self.batch_size)

    def decode(self, examples, features, logits=None):
        """Return the `SquadPrediction` of each example.

        Args:
          examples: list of `SquadExample`.
          features: list of their `SquadFeatures`.
          logits: instead of the model's own, as those of several models.
        """
        return squad_answers.decode(
            examples,
            features,
            *(logits or self.logits(features)),
            self.tokenizer,
            self.task.decoding,
        )


def _example(number, pair):
    parts = tuple(pair) if isinstance(pair, list | tuple) else (pair,)
    if len(parts) != 2 or not all(isinstance(part, str) for part in parts):
        raise TypeError(
            f"Question {number} is {pair!r}: not a question and a context, two str."
        )
    return squad_files.make_example(*parts, qas_id=str(number))


def _answer(prediction, context):
    answer, null_score = prediction.answer, None
    if prediction.null_odds is not None:
        nothing = next(each for each in prediction.nbest if not each.text)
        null_score = nothing.score
    return Answer(
        context[answer.start : answer.end],
        answer.start,
        answer.end,
        answer.score,
        null_score,
        answer.probability,
    )
