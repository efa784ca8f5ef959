"""Fine-tune a tagger of words (Sec. 5.3): the task, the objective, the evaluation."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import keras
import numpy as np
import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.constants import FEATURE_LAYERS, IGNORED, NER
from official_bert.fine_tuning import outputs
from official_bert.fine_tuning.batches import FeatureSet
from official_bert.fine_tuning.config_labels import (
    architecture_of,
    config_with_labels,
    labels_of,
)
from official_bert.fine_tuning.job import DevSet, FineTuningJob, Start, crc32_of
from official_bert.fine_tuning.task_file import task_content
from official_bert.json_records import from_json
from official_bert.metrics import entities
from official_bert.metrics.entities import EntityScores
from official_bert.modeling.feature_based import FeatureBasedModel
from official_bert.modeling.kernels.interface import PLAIN
from official_bert.modeling.token_classification import (
    TokenClassificationModel,
    token_terms,
)
from official_bert.tasks.ner import features as ner_features
from official_bert.tasks.ner.features import NerFeatures, pad_ner_features
from official_bert.tasks.ner.sentences import Sentence
from official_bert.tokenization.full import FullTokenizer
from official_bert.training.step import Objective

LOSS = "token_loss"
METRICS = ("f1", "precision", "recall")
ARCHITECTURE = "BertForTokenClassification"
# `task.json` contains these fields only if they are True.
ONLY_IF_TRUE = ("bilstm", "words_as_columns")


@dataclasses.dataclass(frozen=True)
class NerTask:
    """How a model reads sentences, and which tags it predicts; stored in `task.json`.

    Attributes:
      tags: tuple of C str, see `ner_features.tag_names`.
      max_seq_length: maximum number of tokens per window.
      doc_stride: tokens from the start of a window to the next start; None for half
        a window.
      one_sentence: whether a window contains words of one sentence only, instead of
        as much of the document as fits.
      label_all_pieces: whether all tokens of a word are trained instead of the
        first one only.
      feature_based: None for fine-tuning; one of `constants.FEATURE_LAYERS` for a
        BiLSTM over these layers of an encoder that is not trained.
      bilstm: whether a fine-tuned model has a BiLSTM on top. `task.json` contains
        it only if True.
      words_as_columns: whether texts are split into words like "U.S.", see
        `ner_words`. `task.json` contains it only if True.
    """

    TASK: ClassVar[str] = NER
    metrics: ClassVar[tuple[str, ...]] = METRICS

    tags: tuple[str, ...]
    max_seq_length: int = 128
    doc_stride: int | None = None
    one_sentence: bool = False
    label_all_pieces: bool = False
    feature_based: str | None = None
    bilstm: bool = False
    words_as_columns: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The types of entities, a sorted tuple of str."""
        return tuple(sorted({tag[2:] for tag in self.tags if tag != entities.OUTSIDE}))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in a form for JSON, which `from_dict` reads."""
        values = dataclasses.asdict(self) | {"tags": list(self.tags)}
        return {name: v for name, v in values.items() if name not in ONLY_IF_TRUE or v}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Create a task from the result of `to_dict`.

        Raises:
          KeyError, ValueError: values are missing or wrong.
        """
        task = from_json(cls, values, optional=ONLY_IF_TRUE)
        if len(set(task.tags)) < max(2, len(task.tags)):
            raise ValueError("fewer than two tags, or a tag twice")
        for tag in task.tags:
            entities.split_tag(tag)
        lengths = (task.max_seq_length, task.doc_stride)
        if any(length is not None and length < 1 for length in lengths):
            raise ValueError("a length is not above 0")
        if task.feature_based not in (None, *FEATURE_LAYERS):
            raise ValueError("feature_based names no layers")
        return task


def make_model(
    config: BertConfig, task: NerTask, recompute: bool = False
) -> keras.Model:
    """Return the Keras model of a `NerTask`."""
    if task.feature_based:
        return FeatureBasedModel(config, len(task.tags), task.feature_based)
    return TokenClassificationModel(config, len(task.tags), recompute, task.bilstm)


def convert(
    task: NerTask,
    documents: Sequence[Sequence[Sentence]],
    tokenizer: FullTokenizer,
    with_labels: bool = True,
) -> list[NerFeatures]:
    """Return the `NerFeatures` of documents with the settings of a `NerTask`.

    Args:
      task: `NerTask`.
      documents: list of lists of `Sentence`.
      tokenizer: `FullTokenizer`.
      with_labels: whether to add labels, for training. Predictions do not need them,
        and a foreign model may lack tags of the documents, such as B-.

    Raises:
      ValueError: a sentence has a tag that the task lacks.
    """
    return ner_features.convert_documents(
        documents,
        tokenizer,
        task.max_seq_length,
        task.tags if with_labels else (),
        task.doc_stride,
        task.one_sentence,
        task.label_all_pieces,
    )


def written_config(config: BertConfig, task: NerTask) -> BertConfig:
    """Return the `BertConfig` to write with a tagger, with its tags as labels."""
    return config_with_labels(config, task.tags, architectures=[ARCHITECTURE])


def task_of(config: BertConfig) -> NerTask | None:
    """Return the `NerTask` of a Hugging Face tagger's `BertConfig`, or None."""
    if architecture_of(config) != ARCHITECTURE:
        return None
    named = NerTask(labels_of(config), config.max_position_embeddings)
    try:
        return NerTask.from_dict(named.to_dict())
    except ValueError:
        return None  # Its labels are not tags of entities.


def describe(row: Mapping[str, float]) -> str:
    """Return the loss or the scores as one line of text."""
    if "loss" in row:
        return f"loss {row['loss']:.3f}  token accuracy {row['token_accuracy']:.4f}"
    return "  ".join(f"{name} {row[name]:.4f}" for name in METRICS)


def _weights(features):
    scored = features["label_ids"] != IGNORED
    return {LOSS: tf.reduce_sum(tf.cast(scored, tf.float32))}


# A window may score no word. Then its share of the loss is 0.
OBJECTIVE = Objective({LOSS: 1e-5}, _weights, token_terms, describe)


def compile_model(
    model: keras.Model,
) -> Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]:
    """Compile the function of a batch; see `outputs_of`."""
    return outputs.compile_model(outputs_of(model))


def outputs_of(model: keras.Model) -> Callable[..., dict[str, tf.Tensor]]:
    """Return a function: features -> dict with the best `tags`, int32 [B, S]."""

    def compute(features, kernels=PLAIN):
        logits = model(features, kernels=kernels)["logits"]
        return {"tags": tf.argmax(logits, -1, tf.int32)}

    return compute


def predict(
    score: Callable[[dict[str, np.ndarray]], Mapping[str, np.ndarray]],
    task: NerTask,
    documents: Sequence[Sequence[Sentence]],
    features: Sequence[NerFeatures],
    batch_size: int,
) -> list[list[list[str]]]:
    """Return the tags of all words.

    Args:
      score: result of `compile_model`.
      task: `NerTask`.
      documents: list of lists of `Sentence`.
      features: their `NerFeatures`.
      batch_size: number of windows per batch.

    Returns:
      list of documents, each a list of sentences, each a list of str.
    """
    windows = FeatureSet(features, task.max_seq_length, pad_ner_features)
    rows = outputs.run_examples(score, windows, batch_size)
    return _word_tags(rows, task, documents, features)


def _word_tags(rows, task, documents, features):
    best = [row["tags"] for row in rows]
    return ner_features.word_tags(documents, features, best, task.tags)


def evaluate(
    documents: Sequence[Sequence[Sentence]], tags: Sequence[Sequence[Sequence[str]]]
) -> EntityScores:
    """Return the `EntityScores` of predicted tags, equal to `conlleval`'s.

    Args:
      documents: list of lists of `Sentence` with tags.
      tags: the result of `predict`.
    """
    gold: list[Any] = [sentence.tags for document in documents for sentence in document]
    return entities.score(gold, [of_one for document in tags for of_one in document])


def row_of(scores: EntityScores) -> dict[str, float]:
    """Return `EntityScores` as a dict of measures from 0 to 1."""
    row = {name: getattr(scores.overall, name) for name in METRICS}
    return row | {"word_accuracy": scores.accuracy}


def make_job(
    start: Start,
    task: NerTask,
    train_features: Sequence[NerFeatures],
    dev_documents: Sequence[Sequence[Sentence]] | None = None,
) -> FineTuningJob:
    """Return the `FineTuningJob` of a tagger.

    Args:
      start: `job.Start`.
      task: `NerTask`.
      train_features: list of `NerFeatures`.
      dev_documents: list of lists of `Sentence` with tags, which select the best
        model; None keeps the last model.
    """
    documents = dev_documents or []
    dev_features = convert(task, documents, start.tokenizer) if documents else []

    def measure(rows):
        tags = _word_tags(rows, task, documents, dev_features)
        return row_of(evaluate(documents, tags))

    def feature_set(features):
        return FeatureSet(features, task.max_seq_length, pad_ner_features)

    dev_set = None
    if dev_features:
        dev_set = DevSet(feature_set(dev_features), measure, outputs_of)

    return FineTuningJob(
        start=start,
        task=task,
        written_config=written_config(start.config, task),
        make_model=lambda recompute: make_model(start.trained_config, task, recompute),
        objective=OBJECTIVE,
        train_set=feature_set(train_features),
        fingerprint=_fingerprint(task, train_features, dev_features),
        dev_set=dev_set,
    )


def _fingerprint(task, features, dev_features):
    """Return a dict that distinguishes this task and its windows from others."""
    return {
        "task": task_content(task),
        "num_windows": len(features),
        "windows_crc32": crc32_of(
            part
            for one in [*features, *(dev_features or [])]
            for part in (one.input_ids, one.label_ids)
        ),
        "num_dev_windows": len(dev_features or []),
    }
