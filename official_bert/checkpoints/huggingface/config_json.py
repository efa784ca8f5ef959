"""Read and write Hugging Face's `config.json`.

The keys of `BertConfig` are read. `extra` keeps other values needed to write
the file again: labels, an ambiguous kind of head, and unusual settings. Keys
for text generation, software versions and the like are left out.
"""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from official_bert import files
from official_bert.config import BertConfig
from official_bert.errors import UserError

CONFIG_FILE = "config.json"
# From pytorch-pretrained-bert, the predecessor of transformers.
OLDEST_CONFIG_FILE = "bert_config.json"

# Hugging Face's activation name -> ours. Its "gelu" uses erf; the other names
# starting with "gelu" are implementations of the same two formulas.
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

# Values where Hugging Face's defaults differ from the original's.
DEFAULTS: dict[str, Any] = {
    "vocab_size": 30522,
    "type_vocab_size": 2,
    "hidden_act": "gelu",
}

# Keys kept in `extra`, unless null or the usual value. The last six are
# Google's, from the configs of the multilingual and Chinese models.
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

# This name identifies a classifier even if its labels are only numbers.
CLASSIFIER = "BertForSequenceClassification"
# Architecture -> weights of its heads. If the config states no architecture,
# the first that fits the checkpoint is used.
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
# Architectures with one output per label of `id2label`.
LABELED = {
    CLASSIFIER: "output_weights",
    "BertForTokenClassification": "output_weights",
    "BertForQuestionAnswering": "cls/squad/output_weights",
}


def read(
    directory: str | os.PathLike[str],
) -> tuple[str, dict[str, Any]] | tuple[None, None]:
    """Read the config of a model directory.

    Returns:
      (path, dict in the file); (None, None) if the directory has none.

    Raises:
      UserError: the file is not JSON, or describes another model than BERT.
    """
    for name in (CONFIG_FILE, OLDEST_CONFIG_FILE):
        path = os.path.join(directory, name)
        if os.path.isfile(path):
            return path, _require_bert(files.read_json(path, "a config"), path)
    return None, None


def _require_bert(values, path):
    """Return a config; raise `UserError` unless it describes a BERT encoder."""
    kind = values.get("model_type")
    stated = _stated_architecture(values)
    if kind not in (None, "bert") or not (kind or stated.startswith("Bert")):
        what = f"model_type {kind!r}" if kind else f"architecture {stated!r}"
        raise UserError(f"{path}: {what} is not a BERT model. Give a BERT checkpoint.")
    for key in ("is_decoder", "add_cross_attention"):
        if values.get(key):
            raise UserError(
                f"{path}: {key} is true, so the model is a decoder. Only BERT "
                "encoders are supported."
            )
    kind = values.get("position_embedding_type") or "absolute"
    if kind != "absolute":
        raise UserError(
            f"{path}: position_embedding_type is {kind!r}. Only BERT models "
            "with 'absolute' positions are supported."
        )
    if values.get("pruned_heads"):
        raise UserError(
            f"{path}: pruned_heads is not empty. Only BERT models with all "
            "attention heads are supported."
        )
    return values


def _stated_architecture(values):
    """Return the architecture that a config states; default: "BertModel"."""
    stated = values.get("architectures") or ["BertModel"]
    return str(stated[0]).removeprefix("TF")


def from_dict(
    values: dict[str, Any], path: str, shapes: Mapping[str, tuple[int, ...]]
) -> BertConfig:
    """Return the `BertConfig` of the dict in a `config.json`.

    Args:
      values: the dict.
      path: the file, for messages.
      shapes: dict of Google's name -> shape of the model's weights.

    Raises:
      UserError: a value is invalid, or the activation is unknown.
    """
    values = DEFAULTS | values
    if str(values["hidden_act"]) not in ACTIVATIONS:
        raise UserError(
            f"{path}: hidden_act is {values['hidden_act']!r}. Supported "
            f"activations: {', '.join(ACTIVATIONS)}."
        )
    known = [field.name for field in dataclasses.fields(BertConfig)]
    own = {key: values[key] for key in known if key in values and key != "extra"}
    own["hidden_act"] = ACTIVATIONS[values["hidden_act"]]
    try:
        return BertConfig(**own, extra=_extra(values, shapes))
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def _extra(values, shapes):
    """Return the config's other keys that must be kept."""
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
        # The default names in transformers, which writes no names for two
        # labels.
        extra |= _default_labels(shapes[LABELED[meant]][0])
    return extra


def architecture(
    shapes: Mapping[str, tuple[int, ...]], stated: str | None = None
) -> str:
    """Return the transformers class name of a checkpoint.

    Args:
      shapes: dict of Google's name -> shape.
      stated: the config's architecture. It counts only if the weights agree,
        since the config may be older than a head.
    """
    fitting = [name for name, heads in HEADS.items() if heads <= shapes.keys()]
    return stated if stated in fitting and stated != "BertModel" else fitting[0]


def to_dict(
    config: BertConfig, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, Any]:
    """Return the content of `config.json` for weights with Google's names."""
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
    """Return `id2label` and `label2id` with the default names of transformers."""
    labels = {str(index): f"LABEL_{index}" for index in range(count)}
    numbers = {label: int(index) for index, label in labels.items()}
    return dict(zip(LABELS, (labels, numbers), strict=True))
