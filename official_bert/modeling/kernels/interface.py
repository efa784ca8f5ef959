"""What a model computes with: one set of functions, plain or optimized."""

import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from official_bert.modeling import dropout, layers, losses, transformer


@dataclasses.dataclass(frozen=True)
class Kernels:
    """The functions of one pass through a model; each field is plain unless given.

    Each has the signature of its plain form and computes the same: outputs and
    gradients differ by rounding. An optimized dropout may draw other masks.

    They are an argument of a model's call, by default `choose.WITH_GRADIENTS`, and
    chosen once where a training step, a scorer or an export is built. The model does
    not hold them, since the same weights are trained, evaluated, scored and exported
    within one run, each with other kernels.

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
      pack: function: input_mask int [B, S] -> `packing.Packing`, so that training
        computes padding in attention alone; None keeps a row for each position.
        Outputs at padded positions have no meaning then; those of tokens differ by
        rounding, and by what dropout hits. Shapes depend on the data, which XLA
        cannot compile.
      masked_score: what is added to the attention scores of padding. Activations of
        8 bits need a smaller one: -10000 would take up their range.
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
