"""Convert between KerasHub's `BertBackbone` in memory and a `Checkpoint`.

Its attention kernels have an axis for heads; the other variables differ only in
name. It always computes the tanh GELU, even if the model was trained with
another activation.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from official_bert.checkpoints import google, names
from official_bert.checkpoints.checkpoint import Checkpoint
from official_bert.config import ORIGINAL_EPSILON, BertConfig
from official_bert.errors import UserError

if TYPE_CHECKING:
    import keras
    import keras_hub

# `BertConfig` -> `BertBackbone`. `dropout` also applies to the attention.
SIZES = {
    "vocab_size": "vocabulary_size",
    "hidden_size": "hidden_dim",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "intermediate_size": "intermediate_dim",
    "hidden_dropout_prob": "dropout",
    "max_position_embeddings": "max_sequence_length",
    "type_vocab_size": "num_segments",
}

POOLER = ("bert/pooler/dense/kernel", "bert/pooler/dense/bias")


def from_backbone(backbone: "keras_hub.models.BertBackbone") -> Checkpoint:
    """Return a `Checkpoint` that reads a `keras_hub.models.BertBackbone`.

    Values are read from the backbone on access.

    Raises:
      UserError: the argument is another model.
    """
    import keras_hub

    if not isinstance(backbone, keras_hub.models.BertBackbone):
        raise UserError(
            f"{type(backbone).__name__} is not a keras_hub.models.BertBackbone. "
            "Give the backbone of a BERT model."
        )
    config = config_from(backbone.get_config(), "The BertBackbone")
    return checkpoint_of("the BertBackbone", config, encoder_variables(backbone))


def to_backbone(checkpoint: Checkpoint) -> "keras_hub.models.BertBackbone":
    """Return a `keras_hub.models.BertBackbone` with a checkpoint's encoder.

    If the checkpoint has no pooler, the backbone's pooler is 0.

    Raises:
      UserError: KerasHub cannot compute this encoder (activation other than
        GELU, another epsilon), or a tensor is missing or does not fit the
        config.
    """
    _require_possible(checkpoint)
    assert checkpoint.config is not None
    backbone = new_backbone(checkpoint.config)
    variables = encoder_variables(backbone)
    for name in POOLER:
        if name not in checkpoint.shapes:
            variable = variables.pop(name)
            variable.assign(np.zeros(variable.shape, np.float32))
    assign(variables, checkpoint)
    return backbone


def _require_possible(checkpoint):
    """Raise `UserError` for a model that KerasHub cannot compute."""
    config = checkpoint.config
    if config is None:
        raise UserError(
            f"{checkpoint.path} has no config, which a KerasHub model needs. "
            f"Put its {google.CONFIG_FILE} into the same folder."
        )
    for is_refused, setting, computed in (
        (
            config.hidden_act not in ("gelu", "gelu_erf"),
            f"hidden_act {config.hidden_act!r}",
            "only gelu",
        ),
        (config.causal_attention, "causal_attention", "no left-to-right model"),
        (
            config.layer_norm_eps != ORIGINAL_EPSILON,
            f"layer_norm_eps {config.layer_norm_eps}",
            f"only {ORIGINAL_EPSILON}",
        ),
    ):
        if is_refused:
            raise UserError(
                f"{checkpoint.path} has {setting}, but KerasHub's BERT computes "
                f"{computed}. Choose another format."
            )


def config_from(values: Mapping[str, Any], where: str) -> BertConfig:
    """Return the `BertConfig` for a `BertBackbone`'s config."""
    missing = [theirs for theirs in SIZES.values() if theirs not in values]
    if missing:
        raise UserError(
            f"{where} has no {missing[0]}, so it is not the config of a BertBackbone."
        )
    sizes = {ours: values[theirs] for ours, theirs in SIZES.items()}
    try:
        return BertConfig(**sizes, attention_probs_dropout_prob=values["dropout"])
    except UserError as error:
        raise UserError(f"{where}: {error}") from error


def new_backbone(config: BertConfig) -> "keras_hub.models.BertBackbone":
    """Return a `BertBackbone` with random weights, in the sizes of a `BertConfig`."""
    import keras_hub

    sizes = {theirs: getattr(config, ours) for ours, theirs in SIZES.items()}
    return keras_hub.models.BertBackbone(**sizes, dtype="float32", name="bert_backbone")


def encoder_variables(
    backbone: "keras_hub.models.BertBackbone",
) -> dict[str, "keras.Variable"]:
    """Return Google's name -> variable of a `BertBackbone`, in KerasHub's shape."""
    scope = "bert/embeddings/"
    variables = {
        scope + "word_embeddings": backbone.token_embedding.embeddings,
        scope + "token_type_embeddings": backbone.segment_embedding.embeddings,
        scope + "position_embeddings": backbone.position_embedding.position_embeddings,
    }
    layers = {scope + "LayerNorm": backbone.embeddings_layer_norm}
    for index, block in enumerate(backbone.transformer_layers):
        scope, attention = f"bert/encoder/layer_{index}/", block._self_attention_layer
        layers |= {
            scope + "attention/self/query": attention.query_dense,
            scope + "attention/self/key": attention.key_dense,
            scope + "attention/self/value": attention.value_dense,
            scope + "attention/output/dense": attention.output_dense,
            scope + "attention/output/LayerNorm": block._self_attention_layer_norm,
            scope + "intermediate/dense": block._feedforward_intermediate_dense,
            scope + "output/dense": block._feedforward_output_dense,
            scope + "output/LayerNorm": block._feedforward_layer_norm,
        }
    layers["bert/pooler/dense"] = backbone.pooled_dense
    return variables | layer_variables(layers)


def layer_variables(
    layers: Mapping[str, "keras.layers.Layer"],
) -> dict[str, "keras.Variable"]:
    """Return Google's name -> variable for named dense and LayerNorm layers."""
    return {
        f"{name}/{leaf}": getattr(layer, leaf)
        for name, layer in layers.items()
        for leaf in names.leaves_of(name)
    }


def _google_shape(name, variable):
    """Return Google's shape for a KerasHub variable.

    KerasHub's attention has an axis for heads; a classifier's kernel is [H, C].
    """
    shape = tuple(variable.shape)
    if name == "output_weights":
        return shape[::-1]
    return names.without_heads(name, shape)


def checkpoint_of(
    path: str,
    config: BertConfig,
    variables: Mapping[str, "keras.Variable"],
    others: Mapping[str, np.ndarray] | None = None,
    vocab_file: str | None = None,
    casing: bool | None = None,
    notes: Iterable[str] = (),
) -> Checkpoint:
    """Return a `Checkpoint` of KerasHub variables and other arrays.

    `variables` is a dict of Google's name -> variable, `others` a dict of name
    -> float32 array. The other arguments are attributes of `Checkpoint`.
    """
    from keras import ops

    arrays = {n: v for n, v in (others or {}).items() if n not in variables}
    shapes = {name: _google_shape(name, one) for name, one in variables.items()}

    def read(name):
        if name in arrays:
            return arrays[name]
        value = np.asarray(ops.convert_to_numpy(variables[name]), np.float32)
        if name == "output_weights":
            return np.ascontiguousarray(value.T)
        return value.reshape(shapes[name])

    shapes |= {name: value.shape for name, value in arrays.items()}
    return Checkpoint(
        path, "keras_hub", shapes, read, config, vocab_file, casing, tuple(notes)
    )


def assign(variables: Mapping[str, "keras.Variable"], checkpoint: Checkpoint) -> None:
    """Set KerasHub variables from a checkpoint; on errors, change none."""
    for name, variable in variables.items():
        expected = _google_shape(name, variable)
        shape = checkpoint.shapes.get(name)
        if shape is None:
            raise UserError(
                f"{checkpoint.path} has no {name}, so it is not a complete BERT "
                "checkpoint."
            )
        if tuple(shape) != expected:
            raise UserError(
                f"{checkpoint.path} does not fit its config: {name} is "
                f"{list(shape)}, expected {list(expected)}."
            )
    for name, variable in variables.items():
        value = checkpoint.read(name)
        if name == "output_weights":
            value = value.T
        variable.assign(np.reshape(value, variable.shape))
