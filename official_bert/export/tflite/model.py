"""A model in the form for devices: rows of ids in, results out."""

import dataclasses
import functools
import os
from collections.abc import Callable, Iterable, Mapping

import keras
import tensorflow as tf

from official_bert.checkpoints.model_directory import Bert
from official_bert.config import BertConfig
from official_bert.errors import UserError
from official_bert.export import sources
from official_bert.export.saved_model.signatures import FILL_MASK
from official_bert.export.tflite.converter import FixedLengths
from official_bert.fine_tuning.loading import TaskPredictor
from official_bert.modeling.kernels.interface import PLAIN, Kernels
from official_bert.tables.labels import MULTI_LABEL, REGRESSION
from official_bert.tasks.choice import training as choice
from official_bert.tasks.choice.predictor import ChoicePredictor
from official_bert.tasks.embedding.vectors import EmbeddingPredictor
from official_bert.tasks.ner.predictor import NerPredictor
from official_bert.tasks.squad.predictor import SquadPredictor
from official_bert.tokenization.full import FullTokenizer


@dataclasses.dataclass(frozen=True)
class DeviceModel:
    """A model to convert to a `.tflite`.

    Attributes:
      what: description of the task.
      compute: function: (dict of `INPUTS` int32 [B, S]; `Kernels` as `kernels`) -> dict
        of tensors [B, …].
      keras_model: the model with the weights.
      tokenizer: `FullTokenizer`.
      labels: names of the classes or tags, in the order of their numbers; or ().
      lengths: row lengths, ascending.
      predictor: the model's predictor; None for a pre-trained model.
      others: additional signatures, see `FixedLengths`.
    """

    what: str
    compute: Callable[..., dict[str, tf.Tensor]]
    keras_model: keras.Model
    tokenizer: FullTokenizer
    labels: tuple[str, ...]
    lengths: tuple[int, ...]
    predictor: TaskPredictor | None = None
    others: Mapping[str, Callable[..., dict[str, tf.Tensor]]] = dataclasses.field(
        default_factory=dict
    )

    @property
    def config(self) -> BertConfig:
        """Return the encoder's `BertConfig`."""
        return self.keras_model.config

    def with_fixed_lengths(self, kernels: Kernels = PLAIN) -> FixedLengths:
        """Return the model as `FixedLengths`, for the converter."""
        compute = functools.partial(self.compute, kernels=kernels)
        return FixedLengths(
            compute, self.keras_model.weights, self.lengths, self.others
        )


def open_device_model(
    path: str | os.PathLike[str],
    lengths: Iterable[int] = sources.LENGTHS,
    max_seq_length: int | None = None,
) -> DeviceModel:
    """Load a model of any kind for conversion.

    Args:
      path: see `sources.predictor_of`.
      lengths: row lengths; those above the model's limit are skipped.
      max_seq_length: maximum length for a pre-trained model; None for its
        limit.

    Returns:
      `DeviceModel`.

    Raises:
      UserError: a file or weight is missing or does not fit.
    """
    predictor = sources.predictor_of(path, max_seq_length)
    loaded: Bert | TaskPredictor
    others = {}
    if predictor is None:
        loaded, has_head, longest = sources.load_pretrained(path, max_seq_length)
        what, compute, labels = "pre-trained encoder", loaded.outputs, ()
        if has_head:
            others[FILL_MASK] = _masked_lm(loaded)
    else:
        loaded = predictor
        what, compute, labels = _fine_tuned(predictor)
        longest = predictor.task.max_seq_length
    lengths = sources.up_to(lengths, longest)
    return DeviceModel(
        what,
        compute,
        loaded.model,
        loaded.tokenizer,
        labels,
        lengths,
        predictor,
        others,
    )


def _masked_lm(bert):
    """Return the masked-LM head of a `Bert` as a `tf.function`.

    It takes one row of `sequence_output`, not a whole text. The scores of all
    tokens would need S times the computation, and most texts have one mask.
    """
    model, size = bert.model, len(bert.tokenizer.vocab)
    spec = tf.TensorSpec([1, model.config.hidden_size], tf.float32, "vector")

    @tf.function(input_signature=[spec], autograph=False)
    def fill_mask(vector):
        logits = model.cls.predictions(
            vector[None], tf.zeros([1, 1], tf.int32), model.bert.embedding_table
        )
        return {"token_logits": logits[0, :, :size]}

    return fill_mask


def _fine_tuned(predictor):
    """Return `what`, `compute` and `labels` of a `DeviceModel`."""
    task, model = predictor.task, predictor.model
    if isinstance(predictor, SquadPredictor):
        return "question answering", model, ()
    if isinstance(predictor, ChoicePredictor):
        return "multiple choice", choice.outputs_of(model), ()
    if isinstance(predictor, EmbeddingPredictor):
        return "sentence embeddings", model.embedding, ()
    is_tagger = isinstance(predictor, NerPredictor)
    if task.bilstm or (is_tagger and task.feature_based):
        raise UserError(
            "A model with a BiLSTM has no fixed shapes and cannot become a "
            ".tflite. Fine-tune without --bilstm and --feature_based."
        )

    def compute(features, kernels=PLAIN):
        logits = model(features, kernels=kernels)["logits"]
        if is_tagger:
            return {"tags": tf.argmax(logits, -1, tf.int32), "tag_logits": logits}
        if task.kind == REGRESSION:
            return {"logits": logits}
        of_kind = tf.nn.sigmoid if task.kind == MULTI_LABEL else tf.nn.softmax
        return {"logits": logits, "probabilities": of_kind(logits)}

    if is_tagger:
        return "entity tagger", compute, task.tags
    return f"{task.kind.replace('_', '-')} classifier", compute, task.labels
