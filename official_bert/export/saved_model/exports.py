"""From a model's directory to all that is exported of it."""

import dataclasses
import functools
from collections.abc import Callable

import tensorflow as tf

from official_bert.errors import UserError
from official_bert.export import expected, sources
from official_bert.export.saved_model import signatures
from official_bert.export.saved_model.choice import ServedChoice
from official_bert.export.saved_model.classifier import ServedClassifier
from official_bert.export.saved_model.encoder import ServedEncoder, ServedMaskedLM
from official_bert.export.saved_model.ner import ServedTagger
from official_bert.export.saved_model.signatures import (
    EXAMPLES,
    FILL_MASK,
    SERVING,
    TOKENS,
)
from official_bert.export.saved_model.squad import ServedSquad
from official_bert.tasks.choice.predictor import ChoicePredictor
from official_bert.tasks.classifier.predictor import ClassifierPredictor
from official_bert.tasks.glue.tasks import find_task
from official_bert.tasks.ner.predictor import NerPredictor
from official_bert.tasks.squad.predictor import SquadPredictor


@dataclasses.dataclass(frozen=True)
class Export:
    """A model and how it is asked.

    Attributes:
      what: the task, for people.
      module: `tf.Module` that holds all variables.
      keras_model: what the graph was made of: dict of `INPUTS` -> dict of outputs.
      signatures: dict of name -> `Signature`.
      answers: dict of name of a signature -> function: the same inputs, lists of str
        -> what Python answers, a dict of arrays with names and shapes of outputs.
      labels: names of the classes, tags or types, or ().
      tokenizer: `FullTokenizer`.
      lengths: of rows, rising.
      files: dict of name -> path: of a model's own files that go along.
    """

    what: str
    module: tf.Module
    keras_model: Callable
    signatures: dict
    answers: dict[str, Callable]
    labels: tuple[str, ...]
    tokenizer: object
    lengths: tuple[int, ...]
    files: dict[str, str]


def open_export(path, is_pair=None, lengths=sources.LENGTHS, max_seq_length=None):
    """Load a model of any kind and make its graph.

    Args:
      path: see `sources.predictor_of`.
      is_pair: of a classifier, whether it takes two texts; None for what its task
        tells, or else one.
      lengths: rows are padded to the first of these that fits.
      max_seq_length: of a pre-trained model; None for all that it reads.

    Returns:
      `Export`.

    Raises:
      UserError: something is missing or does not fit.
    """
    files = sources.files_of(path)
    predictor = sources.predictor_of(path, max_seq_length)
    if predictor is None:
        return _of_pretrained(path, lengths, max_seq_length, files)
    if is_pair is not None and not isinstance(predictor, ClassifierPredictor):
        raise UserError(f"{path} is no classifier; leave --pairs out.")
    lengths = sources.up_to(lengths, predictor.task.max_seq_length)
    make = {
        ChoicePredictor: _of_choice,
        ClassifierPredictor: functools.partial(_of_classifier, is_pair=is_pair),
        NerPredictor: _of_tagger,
        SquadPredictor: _of_squad,
    }[type(predictor)]
    return Export(
        **make(predictor, lengths),
        keras_model=predictor.model,
        tokenizer=predictor.tokenizer,
        lengths=lengths,
        files=files,
    )


def _signatures(module):
    """Return the signatures of a model that takes texts, `module.text_names`."""
    return {
        SERVING: signatures.of_strings(module.of_text, module.text_names),
        TOKENS: signatures.of_tokens(module.of_tokens),
        EXAMPLES: signatures.of_examples(module.of_tokens),
    }


def _of_classifier(predictor, lengths, is_pair):
    task = predictor.task
    is_pair = takes_pairs(task) if is_pair is None else is_pair
    module = ServedClassifier(predictor, is_pair, lengths)
    return {
        "what": f"{task.kind.replace('_', '-')} classifier",
        "module": module,
        "signatures": _signatures(module),
        "answers": {SERVING: functools.partial(expected.of_classifier, predictor)},
        "labels": task.labels,
    }


def takes_pairs(task):
    """Tell whether a `ClassifierTask` is known to be of pairs of texts."""
    if task.columns:
        return task.columns.text_b is not None
    return bool(task.name) and find_task(task.name).layouts["train"].text_b is not None


def _of_squad(predictor, lengths):
    module = ServedSquad(predictor, lengths)
    return {
        "what": "question answering",
        "module": module,
        "signatures": _signatures(module),
        "answers": {SERVING: functools.partial(expected.of_squad, predictor)},
        "labels": (),
    }


def _of_tagger(predictor, lengths):
    module = ServedTagger(predictor, lengths)
    return {
        "what": "entity tagger",
        "module": module,
        "signatures": _signatures(module),
        "answers": {SERVING: functools.partial(expected.of_tagger, predictor)},
        "labels": predictor.task.tags,
    }


def _of_choice(predictor, lengths):
    module = ServedChoice(predictor, lengths)
    texts = signatures.of_strings(module.of_text, ("prompt",), ("choices",))
    # A record has no place for several rows, so there is no signature for records.
    tokens = signatures.of_tokens(module.of_tokens, rank=3)
    return {
        "what": "multiple choice",
        "module": module,
        "signatures": {SERVING: texts, TOKENS: tokens},
        "answers": {SERVING: functools.partial(expected.of_choice, predictor)},
        "labels": (),
    }


def _of_pretrained(path, lengths, max_seq_length, files):
    bert, has_head, longest = sources.load_pretrained(path, max_seq_length)
    lengths = sources.up_to(lengths, longest)
    answers = {SERVING: functools.partial(expected.of_encoder, bert, lengths)}
    if has_head:
        module = ServedMaskedLM(bert, lengths)
        fill = {FILL_MASK: signatures.of_strings(module.fill_mask, ("text",))}
        answers[FILL_MASK] = functools.partial(expected.of_fill_mask, bert)
    else:
        module, fill = ServedEncoder(bert, lengths), {}
    return Export(
        what="pre-trained encoder",
        module=module,
        keras_model=getattr(bert.model, "bert", bert.model),
        signatures=_signatures(module) | fill,
        answers=answers,
        labels=(),
        tokenizer=bert.tokenizer,
        lengths=lengths,
        files=files,
    )
