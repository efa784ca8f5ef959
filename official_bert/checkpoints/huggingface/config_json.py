"""`config.json` of Hugging Face, read and written.

Of its many keys those of `BertConfig` are read, and in `extra` what a later
`config.json` could not be written without: labels, the kind of head where the
weights do not show it, and settings that are not the usual ones. How to generate
text, versions of software and the like are left out.
"""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from official_bert import files
from official_bert.config import BertConfig
from official_bert.errors import UserError

CONFIG_FILE = "config.json"
# Of pytorch-pretrained-bert, before it was called transformers.
OLDEST_CONFIG_FILE = "bert_config.json"

# Hugging Face's name of an activation -> ours. Its "gelu" computes with erf;
# the others that begin so differ in how they are written, not in the formula.
ACTIVATIONS = {
    "gelu": "gelu_erf",
    "gelu_python": "gelu_erf",
    "gelu_new": "gelu",
    "gelu_pytorch_tanh": "gelu",
    "gelu_python_tanh": "gelu",
    "gelu_accurate": "gelu",
    "gelu_fast": "gelu",
    "relu": "relu",
    "tanh": "tanh",
    "linear": "linear",
}
WRITTEN_ACTIVATIONS = {"gelu": "gelu_new", "gelu_erf": "gelu"}

# Where its defaults are not those of the original.
DEFAULTS: dict[str, Any] = {
    "vocab_size": 30522,
    "type_vocab_size": 2,
    "hidden_act": "gelu",
}

# What goes into `extra`, unless the value is null or the usual one. The last
# six are Google's own, in the configs of the multilingual and Chinese models.
KEPT = (
    "problem_type",
    "classifier_dropout",
    "pad_token_id",
    "tie_word_embeddings",
    "directionality",
    "pooler_fc_size",
    "pooler_num_attention_heads",
    "pooler_num_fc_layers",
    "pooler_size_per_head",
    "pooler_type",
)
LABELS = ("id2label", "label2id")
USUAL = {"pad_token_id": 0, "tie_word_embeddings": True}

# This name shows what a model is for, even if its labels have numbers for names.
CLASSIFIER = "BertForSequenceClassification"
# Architecture -> the weights that its heads have. Of those that fit a
# checkpoint, the first is meant where no config says which.
HEADS = {
    CLASSIFIER: {"output_weights"},
    "BertForTokenClassification": {"output_weights"},
    "BertForMultipleChoice": {"output_weights"},
    "BertForQuestionAnswering": {"cls/squad/output_weights"},
    "BertForPreTraining": {
        "cls/predictions/output_bias",
        "cls/seq_relationship/output_weights",
    },
    "BertForMaskedLM": {"cls/predictions/output_bias"},
    "BertForNextSentencePrediction": {"cls/seq_relationship/output_weights"},
    "BertModel": set(),
}
# Those with one output for each label of `id2label`.
LABELED = {
    CLASSIFIER: "output_weights",
    "BertForTokenClassification": "output_weights",
    "BertForQuestionAnswering": "cls/squad/output_weights",
}


def read(
    directory: str | os.PathLike[str],
) -> tuple[str, dict[str, Any]] | tuple[None, None]:
    """Read the config of a model's directory.

    Returns:
      (path, dict in the file); (None, None) if the directory has none.

    Raises:
      UserError: it is no JSON, or of another model than BERT.
    """
    for name in (CONFIG_FILE, OLDEST_CONFIG_FILE):
        path = os.path.join(directory, name)
        if os.path.isfile(path):
            return path, _require_bert(files.read_json(path, "a config"), path)
    return None, None


def _require_bert(values, path):
    """Return a config; raise `UserError` unless it is of an encoder as BERT's."""
    kind = values.get("model_type")
    stated = _stated_architecture(values)
    if kind not in (None, "bert") or not (kind or stated.startswith("Bert")):
        what = f"model_type {kind!r}" if kind else f"architecture {stated!r}"
        raise UserError(f"{path}: {what} is no BERT; give the checkpoint of a BERT.")
    for key in ("is_decoder", "add_cross_attention"):
        if values.get(key):
            raise UserError(
                f"{path}: {key} is true, which makes it a decoder; only BERT as an "
                "encoder can be read."
            )
    kind = values.get("position_embedding_type") or "absolute"
    if kind != "absolute":
        raise UserError(
            f"{path}: position_embedding_type is {kind!r}; only BERT with "
            "'absolute' positions can be read."
        )
    if values.get("pruned_heads"):
        raise UserError(
            f"{path}: pruned_heads is not empty; only a BERT with all its attention "
            "heads can be read."
        )
    return values


def _stated_architecture(values):
    """Return what a config calls its architecture; without one, "BertModel"."""
    stated = values.get("architectures") or ["BertModel"]
    return str(stated[0]).removeprefix("TF")


def from_dict(
    values: dict[str, Any], path: str, shapes: Mapping[str, tuple[int, ...]]
) -> BertConfig:
    """Return the `BertConfig` of the dict in a `config.json`.

    Args:
      values: the dict.
      path: of the file, for messages.
      shapes: dict of Google's name -> shape, of the weights it came with.

    Raises:
      UserError: a value is impossible, or the activation unknown.
    """
    values = DEFAULTS | values
    if str(values["hidden_act"]) not in ACTIVATIONS:
        raise UserError(
            f"{path}: hidden_act is {values['hidden_act']!r}; the activations that "
            f"can be computed are {', '.join(ACTIVATIONS)}."
        )
    known = [field.name for field in dataclasses.fields(BertConfig)]
    own = {key: values[key] for key in known if key in values and key != "extra"}
    own["hidden_act"] = ACTIVATIONS[values["hidden_act"]]
    try:
        return BertConfig(**own, extra=_extra(values, shapes))
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def _extra(values, shapes):
    """Return what to keep of a config's other keys, and no more."""
    extra = {
        key: values[key]
        for key in KEPT
        if values.get(key) is not None and values[key] != USUAL.get(key)
    }
    meant = architecture(shapes, _stated_architecture(values))
    if meant != architecture(shapes):
        extra["architectures"] = [meant]
    labels = values.get("id2label")
    if isinstance(labels, dict) and labels != _default_labels(len(labels))["id2label"]:
        extra |= {key: values[key] for key in LABELS if key in values}
    elif meant == _stated_architecture(values) == CLASSIFIER:
        # What transformers calls them, which writes no file with names for two.
        extra |= _default_labels(shapes[LABELED[meant]][0])
    return extra


def architecture(
    shapes: Mapping[str, tuple[int, ...]], stated: str | None = None
) -> str:
    """Return the name of the class that a checkpoint is one of.

    Args:
      shapes: dict of Google's name -> shape.
      stated: what a config says; it counts if the weights agree, since the
        config may be older than a head.
    """
    fitting = [name for name, heads in HEADS.items() if heads <= shapes.keys()]
    return stated if stated in fitting and stated != "BertModel" else fitting[0]


def to_dict(
    config: BertConfig, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, Any]:
    """Return what to write as `config.json` for weights of these Google's shapes."""
    meant = architecture(shapes, _stated_architecture(config.extra))
    values = config.to_dict() | {
        "architectures": [meant],
        "hidden_act": WRITTEN_ACTIVATIONS.get(config.hidden_act, config.hidden_act),
        "layer_norm_eps": config.layer_norm_eps,
        "model_type": "bert",
    }
    if meant in LABELED:
        count = shapes[LABELED[meant]][0]
        if len(values.get("id2label") or ()) != count:
            values |= _default_labels(count)
    return dict(sorted(values.items()))


def _default_labels(count):
    """Return `id2label` and `label2id` as transformers makes them up."""
    labels = {str(index): f"LABEL_{index}" for index in range(count)}
    numbers = {label: int(index) for index, label in labels.items()}
    return dict(zip(LABELS, (labels, numbers), strict=True))
