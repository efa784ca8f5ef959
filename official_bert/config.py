"""Define `BertConfig`, the hyperparameters of a BERT, and the released sizes."""

import dataclasses
import difflib
import json
import os
from collections.abc import Mapping
from typing import Any, Self

from official_bert import files
from official_bert.errors import UserError

# `hidden_act` as the original spells it. The original's last version computes "gelu"
# with tanh. Its first version, and Hugging Face's "gelu", use erf.
HIDDEN_ACTIVATIONS = ("gelu", "gelu_erf", "relu", "tanh", "linear")

# Epsilon of `tf.contrib.layers.layer_norm`.
ORIGINAL_EPSILON = 1e-12


@dataclasses.dataclass(frozen=True)
class BertConfig:
    """The hyperparameters of a BERT (Devlin et al., Sec. 3; `bert_config.json`).

    Follows `BertConfig` in google-research/bert `modeling.py`, including default
    values.

    Attributes:
      vocab_size: V, tokens of the WordPiece vocabulary.
      hidden_size: H, width of the encoder.
      num_hidden_layers: L, Transformer blocks.
      num_attention_heads: A; H must be divisible by A.
      intermediate_size: width of the feed-forward layer, 4H in the paper.
      hidden_act: "gelu" (tanh form), "gelu_erf", "relu", "tanh" or "linear".
      hidden_dropout_prob: dropout of embeddings and of each sub-layer output.
      attention_probs_dropout_prob: dropout of the attention probabilities.
      max_position_embeddings: longest sequence the model can read.
      type_vocab_size: number of segment types; 2 in all released models.
      initializer_range: standard deviation of the truncated normal initializer.
      layer_norm_eps: ε of each LayerNorm. The original has no such key. It is written
        to a file only if it differs from the original's 1e-12.
      causal_attention: whether a token attends only to itself and earlier tokens, the
        left-to-right model of Sec. 5.1. It is written to a file only if true.
      extra: keys of a released file that the model does not use. They are kept, so that
        reading and writing a file loses nothing.
    """

    vocab_size: int
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 16
    initializer_range: float = 0.02
    layer_norm_eps: float = ORIGINAL_EPSILON
    causal_attention: bool = False
    extra: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if field.name != "extra":
                _check_value(field, getattr(self, field.name))
        if self.hidden_size % self.num_attention_heads:
            raise UserError(
                f"hidden_size={self.hidden_size} is not a multiple of "
                f"num_attention_heads={self.num_attention_heads}."
            )

    @property
    def head_size(self) -> int:
        """Return D = H / A, the width of one attention head."""
        return self.hidden_size // self.num_attention_heads

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Build a config from a dict with the keys of `bert_config.json`.

        Raises:
          UserError: a value is impossible, or a key looks misspelled.
        """
        known = [f.name for f in dataclasses.fields(cls) if f.name != "extra"]
        extra = {key: value for key, value in values.items() if key not in known}
        for key in extra:
            close = difflib.get_close_matches(key, known, n=1, cutoff=0.9)
            if close and close[0] not in values:
                raise UserError(f"Unknown key {key!r}. Did you mean {close[0]!r}?")
        if "vocab_size" not in values:
            raise UserError("The key 'vocab_size' is missing.")
        own = {key: values[key] for key in known if key in values}
        return cls(**own, extra=extra)

    @classmethod
    def of(cls, config: Self | dict[str, Any]) -> Self:
        """Return a config for a `BertConfig` or its `to_dict()`, which Keras saves."""
        return cls.from_dict(config) if isinstance(config, dict) else config

    @classmethod
    def from_json_file(cls, path: str | os.PathLike[str]) -> Self:
        """Read a `bert_config.json`; a `UserError` names the file."""
        try:
            return cls.from_dict(files.read_json(path, "a BERT config"))
        except UserError as error:
            if str(path) in str(error):
                raise
            raise UserError(f"{path}: {error}") from error

    def without_dropout(self) -> Self:
        """Return the config of a model that trains without dropout."""
        return dataclasses.replace(
            self, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a plain dict with the keys of `bert_config.json`."""
        values = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name != "extra"
        }
        if self.layer_norm_eps == ORIGINAL_EPSILON:
            del values["layer_norm_eps"]
        if not self.causal_attention:
            del values["causal_attention"]
        return {**values, **self.extra}

    def to_json_string(self) -> str:
        """Serialize byte for byte as the original's `to_json_string`."""
        return json.dumps(self.to_dict(), indent=2, sort_keys=True) + "\n"

    @classmethod
    def named(cls, size: str, vocab_size: int = 30522) -> Self:
        """Return the released config with the name `size` (a key of `SIZES`)."""
        if size not in SIZES:
            raise UserError(f"Unknown size {size!r}. Choose from {', '.join(SIZES)}.")
        layers, hidden, heads = SIZES[size]
        return cls(
            vocab_size=vocab_size,
            hidden_size=hidden,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            intermediate_size=4 * hidden,
            type_vocab_size=2,
        )


# Name -> (L, H, A). Base and large are from the paper (Sec. 3). The others are the
# "smaller BERT models" that google-research/bert released.
SIZES = {
    "tiny": (2, 128, 2),
    "mini": (4, 256, 4),
    "small": (4, 512, 8),
    "medium": (8, 512, 8),
    "base": (12, 768, 12),
    "large": (24, 1024, 16),
}


def _check_value(field, value):
    """Raise `UserError` unless `value` is possible for the config's field."""
    # In Python, a bool is also an int.
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if field.name == "hidden_act":
        is_possible = value in HIDDEN_ACTIVATIONS
        remedy = f"choose from {', '.join(HIDDEN_ACTIVATIONS)}"
    elif field.type is bool:
        is_possible, remedy = isinstance(value, bool), "it must be true or false"
    elif field.type is int:
        is_possible = is_number and isinstance(value, int) and value >= 1
        remedy = "it must be a whole number above 0"
    elif not is_number:
        is_possible, remedy = False, "it must be a number"
    elif field.name in ("initializer_range", "layer_norm_eps"):
        is_possible, remedy = 0 < value < float("inf"), "it must be above 0"
    else:
        is_possible, remedy = 0 <= value < 1, "it must be at least 0 and below 1"
    if not is_possible:
        raise UserError(f"{field.name}={value!r} is invalid: {remedy}.")
