"""A fine-tuned classifier that answers."""

import dataclasses

from official_bert.fine_tuning import loading as fine_tuned
from official_bert.tables.examples import Example
from official_bert.tables.labels import MULTI_LABEL, REGRESSION
from official_bert.tasks.classifier import features as classifier_features
from official_bert.tasks.classifier import training as classifier
from official_bert.tasks.classifier.task import ClassifierTask, task_of


@dataclasses.dataclass(frozen=True)
class Prediction:
    """What a classifier tells of one text.

    Attributes:
      label: name of the most probable label; a tuple of the names of all that
        hold, where several may; the number of a regression task.
      probabilities: dict of every label's name -> float; empty for a
        regression task.
    """

    label: str | tuple[str, ...] | float
    probabilities: dict[str, float]


class ClassifierPredictor:
    """A fine-tuned classifier, loaded once.

    `predict` may be called from several threads at a time. The model is compiled
    with the first call, and never again, whatever the texts' lengths and number.

    Attributes:
      model: the Keras model, or a `TfliteModel`.
      task: `ClassifierTask`, what it tells.
      tokenizer: `FullTokenizer`.
      global_step: the updates that the model has had; None where not known.
    """

    def __init__(
        self,
        path,
        batch_size=32,
        task=None,
        config_file=None,
        vocab_file=None,
        do_lower_case=None,
    ):
        """Load a model.

        Args:
          path: output directory of a finished `run_classifier.py`; a classifier
            of Hugging Face whose config names its labels; with `task`, any
            checkpoint that has a classifier's weights, as the original's.
          batch_size: texts that go through the model together.
          task: `ClassifierTask`; None reads the directory's `task.json`.
          config_file: a `bert_config.json`; by default the checkpoint's own.
          vocab_file: a `vocab.txt`, likewise.
          do_lower_case: bool, likewise.

        Raises:
          UserError: something is missing or does not fit.
        """
        found = fine_tuned.load(
            path,
            task_class=ClassifierTask,
            make_model=classifier.make_model,
            make_scorer=classifier.make_scorer,
            head="output_weights",
            task=task,
            task_of=task_of,
            config_file=config_file,
            vocab_file=vocab_file,
            do_lower_case=do_lower_case,
        )
        self.model, self.task, self.tokenizer = found.model, found.task, found.tokenizer
        self.global_step, self.batch_size = found.global_step, batch_size
        self._score = found.score

    def predict(self, texts):
        """Tell the label of each text.

        Args:
          texts: iterable of str, or of pairs (str, str).

        Returns:
          list of `Prediction`, in the order of the texts.

        Raises:
          TypeError: `texts` is one text, or something in it is none.
        """
        if isinstance(texts, str):
            raise TypeError("predict takes a list of texts; put this one into a list.")
        examples = [example_of(number, text) for number, text in enumerate(texts)]
        if not examples:
            return []
        windows = classifier_features.encode(self.task, examples, self.tokenizer)
        return self.name(self.logits(windows))

    def logits(self, windows):
        """Return the scores of features.

        Args:
          windows: list of N lists of `Features`, N >= 1, as of
            `classifier_features.encode`.

        Returns:
          float32 [N, C].
        """
        length = self.task.max_seq_length
        return classifier.predict(self._score, windows, self.batch_size, length)

    def name(self, logits):
        """Return the `Prediction` that each row of logits [N, C] stands for."""
        rows = classifier.probabilities(self.task, logits)
        return [self._name(row.tolist()) for row in rows]

    def _name(self, row):
        task = self.task
        if task.kind == REGRESSION:
            return Prediction(row[0], {})
        named = dict(zip(task.labels, row, strict=True))
        if task.kind == MULTI_LABEL:
            holding = tuple(name for name, p in named.items() if p >= task.threshold)
            return Prediction(holding, named)
        return Prediction(max(named, key=named.get), named)


def example_of(number, text):
    """Return the `Example` of a text, or of a pair of them.

    Raises:
      TypeError: it is neither.
    """
    parts = tuple(text) if isinstance(text, list | tuple) else (text,)
    if len(parts) not in (1, 2) or not all(isinstance(part, str) for part in parts):
        raise TypeError(f"Text {number} is {text!r}: neither a str nor a pair of str.")
    return Example(number, *parts)
