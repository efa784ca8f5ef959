"""Find entities in texts with a fine-tuned tagger."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from official_bert.fine_tuning.loading import TaskPredictor
from official_bert.tasks.ner import training
from official_bert.tasks.ner.features import NerFeatures
from official_bert.tasks.ner.sentences import Sentence, text_entities, text_sentence


@dataclasses.dataclass(frozen=True)
class FoundEntity:
    """An entity that was found in a text.

    Attributes:
      text: the text from `start` to `end`.
      start: int, index of the first character.
      end: int, index after the last character.
      label: type of the entity.
    """

    text: str
    start: int
    end: int
    label: str


class NerPredictor(TaskPredictor):
    """A model that finds entities; see `TaskPredictor`.

    Examples are documents, lists of `Sentence`; features are windows over all of
    them; outputs are the tags of each document's sentences; results are the
    `FoundEntity`s of each document's only sentence.
    """

    task: training.NerTask
    task_class = training.NerTask
    architecture = training.ARCHITECTURE
    make_model = staticmethod(training.make_model)
    compile_model = staticmethod(training.compile_model)
    task_of = staticmethod(training.task_of)

    def predict(self, texts: str | Iterable[str]) -> list[Any]:
        """Find entities.

        Args:
          texts: str of any length; or an iterable of such texts.

        Returns:
          list of `FoundEntity` in their order; for several texts a list of such lists.

        Raises:
          TypeError: a text is not a str.
        """
        if isinstance(texts, str):
            return self.predict_all([texts])[0]
        if isinstance(texts, (dict, bytes)) or not isinstance(texts, Iterable):
            raise TypeError(f"{texts!r} is neither a str nor a list of str.")
        return self.predict_all(texts)

    def make_example(self, number: int, value: str) -> list[Sentence]:
        """Return the document of a text."""
        if not isinstance(value, str):
            raise TypeError(f"Text {number} is {value!r}, not a str.")
        return [text_sentence(value, as_columns=self.task.words_as_columns)]

    def features(self, examples: Sequence[Sequence[Sentence]]) -> list[NerFeatures]:
        """Return the `NerFeatures` of documents, without labels."""
        return training.convert(self.task, examples, self.tokenizer, with_labels=False)

    def outputs(
        self,
        examples: Sequence[Sequence[Sentence]],
        features: Sequence[NerFeatures],
        batch_size: int | None = None,
    ) -> list[list[list[str]]]:
        """Return the tags of all words; see `training.predict`."""
        size = batch_size or self.batch_size
        return training.predict(self._run_batch, self.task, examples, features, size)

    def results(
        self,
        examples: Sequence[Sequence[Sentence]],
        outputs: Sequence[Sequence[Sequence[str]]],
    ) -> list[list[FoundEntity]]:
        """Return the `FoundEntity`s of documents with one sentence each, as lists."""
        return [
            [FoundEntity(**entity) for entity in text_entities(sentence, tags)]
            for (sentence,), (tags,) in zip(examples, outputs, strict=True)
        ]

    def to_json(self, value: str, result: Iterable[FoundEntity]) -> dict[str, Any]:
        """Return a text and its entities as a dict for JSON."""
        entities = [
            {"start": e.start, "end": e.end, "label": e.label, "text": e.text}
            for e in result
        ]
        return {"text": value, "entities": entities}
