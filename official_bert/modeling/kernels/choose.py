"""The choice of kernels for training and inference.

To add a kernel for a device, write a function with the signature of its plain form
in a module of this folder. Then choose it here. For example, another dropout is
`Kernels(dropout=…)` with `functools.partial(transformer.attention, dropout=…)` and
`functools.partial(layers.residual_layer_norm, dropout=…)`.
"""

import dataclasses
import functools

import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.modeling import layers
from official_bert.modeling.kernels import (
    element_wise,
    fused_layer_norm,
    gradients,
    packing,
    whole_program,
)
from official_bert.modeling.kernels.interface import PLAIN, Kernels

# A run gains more than compiling costs from this many tokens x layers x hidden size on.
LEAST_WORK = 10**9


def _with_layer_norm(layer_norm, **others):
    residual = functools.partial(layers.residual_layer_norm, layer_norm=layer_norm)
    return Kernels(layer_norm=layer_norm, residual_layer_norm=residual, **others)


# Kernels for any device, shape and precision, with or without XLA. They are the
# default of a model, for example in `fit`.
WITH_GRADIENTS = _with_layer_norm(
    gradients.layer_norm,
    gelu=gradients.gelu,
    gelu_erf=gradients.gelu_erf,
    cross_entropy=gradients.cross_entropy,
)


def for_training(
    config: BertConfig, precision: str, num_tokens: int, skip_padding: bool, xla: bool
) -> Kernels:
    """Return the `Kernels` of a training step.

    Args:
      config: `BertConfig`.
      precision: name, see `training.precision`.
      num_tokens: of all training steps of the run.
      skip_padding: whether only attention computes padding; ignored with `xla`.
      xla: whether XLA compiles the forward and backward passes as a whole, as with
        `--xla` and on every TPU.
    """
    pays_off = compiling_pays_off(config, precision, num_tokens)
    if xla:
        kernels = whole_program.kernels_for(tf.as_dtype(precision))
        return dataclasses.replace(kernels, compiles_update=pays_off)
    return training_kernels(pays_off, skip_padding)


def training_kernels(is_compiled: bool = False, skip_padding: bool = False) -> Kernels:
    """Return the `Kernels` of a training step that TensorFlow runs.

    Args:
      is_compiled: whether XLA compiles element-wise work, for float32 on CPUs. This
        changes the dropout masks.
      skip_padding: see `for_training`.
    """
    kernels, pack = WITH_GRADIENTS, packing.pack_tokens
    if is_compiled:
        kernels, pack = _in_few_passes(), packing.pack_in_groups
    return dataclasses.replace(
        kernels, pack=pack if skip_padding else None, compiles_update=is_compiled
    )


def _in_few_passes():
    compiled = element_wise.compiled
    return dataclasses.replace(
        WITH_GRADIENTS,
        attention=element_wise.attention,
        residual_layer_norm=element_wise.residual_layer_norm,
        gelu=compiled(gradients.gelu),
        gelu_erf=compiled(gradients.gelu_erf),
        cross_entropy=compiled(gradients.cross_entropy),
    )


def compiling_pays_off(config: BertConfig, precision: str, num_tokens: int) -> bool:
    """Return whether a training run becomes faster by `element_wise`.

    For the arguments see `for_training`.
    """
    work = num_tokens * config.num_hidden_layers * config.hidden_size
    devices = {device.device_type for device in tf.config.list_logical_devices()}
    return work >= LEAST_WORK and precision == "float32" and devices == {"CPU"}


def for_inference() -> Kernels:
    """Return the `Kernels` of graphs that this process runs without a gradient.

    LayerNorm takes one pass if oneDNN is available. Exports use another LayerNorm,
    which is also fast without oneDNN.
    """
    if fused_layer_norm.has_onednn() and not tf.config.list_logical_devices("GPU"):
        return _with_layer_norm(fused_layer_norm.layer_norm)
    return PLAIN
