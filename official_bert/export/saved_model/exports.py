"""Load a model's directory and prepare its export."""

import dataclasses
import functools
import os
from collections.abc import Callable, Iterable, Mapping

import numpy as np
import tensorflow as tf

from official_bert.checkpoints.model_directory import Bert
from official_bert.constants import CORE_OPS
from official_bert.errors import UserError
from official_bert.export import expected, sources
from official_bert.export.saved_model.choice import ServedChoice
from official_bert.export.saved_model.classifier import ServedClassifier
from official_bert.export.saved_model.encoder import (
    ServedEmbedding,
    ServedEncoder,
    ServedMaskedLM,
)
from official_bert.export.saved_model.ner import ServedTagger
from official_bert.export.saved_model.signatures import (
    ATTENTION,
    FILL_MASK,
    SERVING,
    Signature,
)
from official_bert.export.saved_model.squad import ServedSquad
from official_bert.fine_tuning.loading import TaskPredictor
from official_bert.tasks.choice.predictor import ChoicePredictor
from official_bert.tasks.classifier.predictor import ClassifierPredictor
from official_bert.tasks.classifier.task import ClassifierTask
from official_bert.tasks.embedding.vectors import EmbeddingPredictor
from official_bert.tasks.glue.tasks import find_task
from official_bert.tasks.ner.predictor import NerPredictor
from official_bert.tasks.squad.predictor import SquadPredictor
from official_bert.tokenization.full import FullTokenizer


@dataclasses.dataclass(frozen=True)
class Export:
    """A model and its signatures.

    Attributes:
      what: description of the task.
      module: `tf.Module` with all variables.
      keras_model: the graph's source, a function of a dict of `INPUTS` -> dict
        of outputs.
      signatures: dict of name -> `Signature`.
      answers: dict of signature name -> function that computes the expected
        outputs in Python. It takes the same inputs as lists, and returns
        a dict of arrays with the outputs' names and shapes.
      labels: names of the classes, tags or types, or ().
      tokenizer: `FullTokenizer`.
      lengths: padded row lengths, ascending.
      files: dict of name -> path of model files to copy into the export.
      tokenizer_ops: one of the constants `TOKENIZER_OPS`.
    """

    what: str
    module: tf.Module
    keras_model: Callable[..., dict[str, tf.Tensor]]
    signatures: dict[str, Signature]
    answers: Mapping[str, Callable[..., dict[str, np.ndarray]]]
    labels: tuple[str, ...]
    tokenizer: FullTokenizer
    lengths: tuple[int, ...]
    files: dict[str, str]
    tokenizer_ops: str = CORE_OPS


def open_export(
    path: str | os.PathLike[str],
    is_pair: bool | None = None,
    lengths: Iterable[int] = sources.SERVER_LENGTHS,
    max_seq_length: int | None = None,
    tokenizer_ops: str = CORE_OPS,
) -> Export:
    """Load a model of any kind and build its graph.

    Args:
      path: see `sources.predictor_of`.
      is_pair: whether a classifier takes two texts; None to follow its task, or
        one text if unknown.
      lengths: rows are padded to the smallest of these that fits.
      max_seq_length: maximum length for a pre-trained model; None for its
        limit.
      tokenizer_ops: one of the constants `TOKENIZER_OPS`.

    Returns:
      `Export`.

    Raises:
      UserError: a file or weight is missing or does not fit, or TensorFlow Text
        is needed and missing.
    """
    source: Bert | TaskPredictor
    predictor = sources.predictor_of(path, max_seq_length)
    if predictor is None:
        source, has_head, longest = sources.load_pretrained(path, max_seq_length)
        lengths = sources.up_to(lengths, longest)
        served = ServedMaskedLM if has_head else ServedEncoder
        module = served(source, lengths, tokenizer_ops)
        answers = {
            SERVING: functools.partial(expected.of_encoder, source, lengths),
            ATTENTION: functools.partial(expected.of_attention, source, lengths),
        }
        if has_head:
            answers[FILL_MASK] = functools.partial(expected.of_fill_mask, source)
        keras_model = source.encoder
    else:
        if is_pair is not None and not isinstance(predictor, ClassifierPredictor):
            raise UserError(f"{path} is not a classifier. Remove --pairs.")
        source, keras_model = predictor, predictor.model
        lengths = sources.up_to(lengths, predictor.task.max_seq_length)
        module, answer = _serve(predictor, lengths, is_pair, tokenizer_ops)
        answers = {SERVING: functools.partial(answer, predictor)}
    return Export(
        what=module.what,
        module=module,
        keras_model=keras_model,
        signatures=module.signatures(),
        answers=answers,
        labels=module.labels,
        tokenizer=source.tokenizer,
        lengths=lengths,
        files=sources.files_of(path),
        tokenizer_ops=tokenizer_ops,
    )


def _serve(predictor, lengths, is_pair, tokenizer_ops):
    """Return (`ServedModel` of a predictor, its function in `expected`)."""
    if isinstance(predictor, ClassifierPredictor):
        is_pair = takes_pairs(predictor.task) if is_pair is None else is_pair
        module = ServedClassifier(predictor, lengths, is_pair, tokenizer_ops)
        return module, expected.of_classifier
    served, answer = {
        ChoicePredictor: (ServedChoice, expected.of_choice),
        EmbeddingPredictor: (ServedEmbedding, expected.of_embedding),
        NerPredictor: (ServedTagger, expected.of_tagger),
        SquadPredictor: (ServedSquad, expected.of_squad),
    }[type(predictor)]
    return served(predictor, lengths, tokenizer_ops), answer


def takes_pairs(task: ClassifierTask) -> bool:
    """Return whether a `ClassifierTask` is known to use pairs of texts."""
    if task.columns:
        return task.columns.text_b is not None
    return bool(task.name) and find_task(task.name).layouts["train"].text_b is not None
