"""`Kernels`: the set of functions that a model computes with, plain or optimized."""

import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from official_bert.modeling import dropout, layers, losses, transformer


@dataclasses.dataclass(frozen=True)
class Kernels:
    """The functions of one pass through a model; the default of each field is plain.

    Each function has the signature of its plain form and computes the same values:
    outputs and gradients differ by rounding. An optimized dropout may draw other masks.

    The kernels are an argument of a model's call (default `choose.WITH_GRADIENTS`).
    They are chosen once, when a training step, a scorer or an export is built. The
    model does not store them, because one run trains, evaluates and exports the same
    weights with different kernels.

    Attributes:
      lookup: as `layers.lookup`.
      to_heads: as `transformer.project`, before attention.
      from_heads: as `transformer.project`, after attention.
      attention: as `transformer.attention`.
      dropout: as `dropout.dropout`.
      layer_norm: as `layers.layer_norm`.
      residual_layer_norm: as `layers.residual_layer_norm`.
      gelu: as `layers.gelu`.
      gelu_erf: as `layers.gelu_erf`.
      cross_entropy: as `losses.cross_entropy`.
      pack: function: input_mask int [B, S] -> `packing.Packing`. Training then
        computes padding only in attention; None computes every position. Outputs at
        padded positions are then undefined. Outputs of tokens differ by rounding and
        by their dropout masks. XLA cannot compile it, because shapes depend on data.
      masked_score: the number added to the attention scores of padding. 8-bit
        activations need a smaller one, because -10000 would take up their range.
      compiles_update: whether XLA compiles the optimizer's element-wise work.
    """

    lookup: Callable[..., tuple[tf.Tensor, tf.Tensor]] = layers.lookup
    to_heads: Callable[..., tf.Tensor] = transformer.project
    from_heads: Callable[..., tf.Tensor] = transformer.project
    attention: Callable[..., tuple[tf.Tensor, tf.Tensor | None]] = transformer.attention
    dropout: Callable[..., tf.Tensor] = dropout.dropout
    layer_norm: Callable[..., tf.Tensor] = layers.layer_norm
    residual_layer_norm: Callable[..., tf.Tensor] = layers.residual_layer_norm
    gelu: Callable[[tf.Tensor], tf.Tensor] = layers.gelu
    gelu_erf: Callable[[tf.Tensor], tf.Tensor] = layers.gelu_erf
    cross_entropy: Callable[..., tuple[tf.Tensor, tf.Tensor, tf.Tensor]] = (
        losses.cross_entropy
    )
    pack: Callable[[tf.Tensor], Any] | None = None
    masked_score: float = transformer.MASKED_SCORE
    compiles_update: bool = False

    def activation(self, name: str) -> Callable[[tf.Tensor], tf.Tensor]:
        """Return the function for a `hidden_act` of `BertConfig`."""
        return {
            "gelu": self.gelu,
            "gelu_erf": self.gelu_erf,
            "relu": tf.nn.relu,
            "tanh": tf.tanh,
            "linear": tf.identity,
        }[name]


PLAIN = Kernels()
