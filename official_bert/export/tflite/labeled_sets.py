"""Read a labeled file of any task, to score or calibrate a model."""

import dataclasses
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from official_bert.errors import UserError
from official_bert.export.tflite.changes import Answers
from official_bert.fine_tuning.loading import TaskPredictor
from official_bert.tables.labels import REGRESSION
from official_bert.tasks.choice import files as choice_files
from official_bert.tasks.choice import training as choice
from official_bert.tasks.choice.predictor import ChoicePredictor
from official_bert.tasks.classifier import data as classifier_data
from official_bert.tasks.classifier import training as classifier
from official_bert.tasks.classifier.data import DEV, OwnFiles
from official_bert.tasks.classifier.predictor import ClassifierPredictor
from official_bert.tasks.embedding import files as embedding_files
from official_bert.tasks.embedding.evaluation import of_examples
from official_bert.tasks.embedding.vectors import EmbeddingPredictor
from official_bert.tasks.glue import files as glue_files
from official_bert.tasks.glue.tasks import find_task
from official_bert.tasks.ner import files as ner_files
from official_bert.tasks.ner import training as ner
from official_bert.tasks.ner.predictor import NerPredictor
from official_bert.tasks.squad import files as squad_files
from official_bert.tasks.squad.evaluation import evaluate_predictions
from official_bert.tasks.squad.predictor import SquadPredictor


@dataclasses.dataclass(frozen=True)
class LabeledSet:
    """Labeled examples.

    Attributes:
      metric: name of the score that selects the best model in training.
      features: list of model inputs, with `input_ids` and `segment_ids`, int
        arrays [T].
      evaluate: function: predictor -> its `Answers`.
    """

    metric: str
    features: list[Any]
    evaluate: Callable[[Any], Answers]


def read(
    predictor: TaskPredictor, path: str | os.PathLike[str], flag: str
) -> LabeledSet:
    """Return the `LabeledSet` from a file in the format of the model's training data.

    The formats are: a table with the training columns, or a file of the GLUE
    task; a SQuAD file; CoNLL columns or JSON lines; SWAG's CSV, or JSON lines
    with the keys of SWAG or ARC; pairs of texts. Messages name `flag`.

    Raises:
      UserError: the file cannot be read, has no labels, or has no text.
    """
    reading = {
        ChoicePredictor: _read_choices,
        ClassifierPredictor: _read_texts,
        EmbeddingPredictor: _read_pairs,
        NerPredictor: _read_documents,
        SquadPredictor: _read_questions,
    }
    labeled_set = reading[type(predictor)](predictor, path, flag)
    if not labeled_set.features:
        raise UserError(
            f"{flag}: the texts of {path} are empty. Give texts like those that "
            "the model will get."
        )
    return labeled_set


def _read_texts(predictor, path, flag):
    task = predictor.task
    if not task.name and not task.columns:
        raise UserError(
            f"{flag}: the model does not state its training columns, so it "
            "cannot be scored here. Remove the flag."
        )
    if task.name:
        examples = glue_files.read_file(path, find_task(task.name), DEV)
    else:
        own = OwnFiles(None, path, None)
        data = classifier_data.read_own_for(
            task, own, task.max_seq_length, task.long_text, (DEV,), flag
        )
        examples = data.dev[DEV]
    windows = predictor.features(examples)

    def evaluate(predictor):
        logits = predictor.outputs(examples, windows)
        score = 100 * classifier.evaluate(task, logits, windows)[task.metrics[0]]
        numbers = classifier.probabilities(task, logits)
        if task.kind == REGRESSION:
            return Answers(score, None, numbers)
        labels = [one.label for one in predictor.results(examples, logits)]
        return Answers(score, labels, numbers)

    return LabeledSet(task.metrics[0], _flat(windows), evaluate)


def _read_questions(predictor, path, flag):
    decoding = predictor.task.decoding
    examples = squad_files.read_examples(
        path, False, decoding.version_2_with_negative, flag
    )
    gold_answers = squad_files.read_gold_answers(path, flag)
    if gold_answers is None:
        raise UserError(
            f"{flag}: the questions of {path} have no answers. Give a file with "
            "answers."
        )
    features = predictor.features(examples)

    def evaluate(predictor):
        predictions = predictor.outputs(examples, features)
        score = evaluate_predictions(decoding, predictions, gold_answers)["f1"]
        probabilities = [[one.answer.probability] for one in predictions]
        texts = [one.answer.text for one in predictions]
        return Answers(score, texts, np.array(probabilities, np.float32))

    return LabeledSet("f1", features, evaluate)


def _read_documents(predictor, path, flag):
    documents = ner_files.read_ner_file(path, flag, predictor.task.labels).documents
    features = predictor.features(documents)

    def evaluate(predictor):
        tags = predictor.outputs(documents, features)
        score = ner.row_of(ner.evaluate(documents, tags))["f1"]
        return Answers(100 * score, _flat(_flat(tags)), None)

    return LabeledSet("f1", features, evaluate)


def _read_choices(predictor, path, flag):
    examples, _ = choice_files.read_swag(path, flag)
    features = predictor.features(examples)

    def evaluate(predictor):
        logits = predictor.outputs(examples, features)
        score = choice.evaluate(logits, features)["accuracy"]
        exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
        probabilities = exponentials / exponentials.sum(axis=1, keepdims=True)
        return Answers(100 * score, logits.argmax(axis=1).tolist(), probabilities)

    return LabeledSet("accuracy", _flat(features), evaluate)


def _read_pairs(predictor, path, flag):
    evaluation = of_examples(embedding_files.read_examples(path, flag), flag)
    examples = [(text,) for text in evaluation.texts]
    features = predictor.features(examples)
    metric = evaluation.metrics[0]

    def evaluate(predictor):
        vectors = predictor.outputs(examples, features)
        return None, 100 * evaluation.measure(vectors)[metric]

    return LabeledSet(metric, _flat(features), evaluate)


def _flat(lists):
    return [one for each in lists for one in each]
