"""A fine-tuned tagger that finds entities in texts."""

import dataclasses
from collections.abc import Iterable

from official_bert.fine_tuning import loading as fine_tuned
from official_bert.tasks.ner import training as ner
from official_bert.tasks.ner.sentences import text_entities, text_sentence
from official_bert.tasks.ner.training import NerTask


@dataclasses.dataclass(frozen=True)
class FoundEntity:
    """An entity in a text.

    Attributes:
      text: the text from `start` to `end`.
      start: int, its first character.
      end: int, behind its last character.
      label: its type.
    """

    text: str
    start: int
    end: int
    label: str


class NerPredictor:
    """A model that finds entities, loaded once; see `Predictor`.

    Attributes:
      model: the Keras model, or a `TfliteModel`.
      task: `NerTask`.
      tokenizer: `FullTokenizer`.
      global_step: the updates that the model has had; None where not known.
    """

    def __init__(self, path, batch_size=8, task=None, **files):
        """Load a model; see `fine_tuned.load` for the arguments."""
        found = fine_tuned.load(
            path,
            NerTask,
            ner.make_model,
            ner.make_scorer,
            "output_weights",
            task,
            ner.task_of,
            **files,
        )
        self.model, self.task, self.tokenizer = found.model, found.task, found.tokenizer
        self.global_step, self.batch_size = found.global_step, batch_size
        self._score = found.score

    def predict(self, texts):
        """Find entities.

        Args:
          texts: str, of any length; or an iterable of them.

        Returns:
          list of `FoundEntity` in their order; for several a list of such lists.

        Raises:
          TypeError: something in it is no str.
        """
        if isinstance(texts, str):
            return self.predict([texts])[0]
        if isinstance(texts, (dict, bytes)) or not isinstance(texts, Iterable):
            raise TypeError(f"{texts!r} is neither a str nor a list of them.")
        texts = list(texts)
        for number, text in enumerate(texts):
            if not isinstance(text, str):
                raise TypeError(f"Text {number} is {text!r}, not a str.")
        as_columns = self.task.words_as_columns
        sentences = [text_sentence(text, as_columns=as_columns) for text in texts]
        tags = self.tags([[sentence] for sentence in sentences])
        return [
            [FoundEntity(**entity) for entity in text_entities(sentence, found)]
            for sentence, (found,) in zip(sentences, tags, strict=True)
        ]

    def tags(self, documents):
        """Return the tags of all words; see `ner.predict`.

        Args:
          documents: list of lists of `Sentence`.
        """
        features = ner.convert(self.task, documents, self.tokenizer, with_labels=False)
        if not features:
            return [[[] for _ in document] for document in documents]
        return ner.predict(self._score, self.task, documents, features, self.batch_size)
