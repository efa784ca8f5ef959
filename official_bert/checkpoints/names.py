"""Map variables to Google's names; no other module does.

Layers are nested and named so that a variable's path *is* the TensorFlow 1 name
(`bert/encoder/layer_3/attention/self/query/kernel`). This module lists the
exceptions.
"""

import math
import os
from typing import TYPE_CHECKING

from official_bert import files

if TYPE_CHECKING:
    import keras

# Google's optimizer slots are `<variable>/adam_m` and `<variable>/adam_v`.
FIRST_MOMENT, SECOND_MOMENT = "adam_m", "adam_v"
LAMB_MOMENTS = ("lamb_m", "lamb_v")
# Slots of the recipes: momentum of Muon, and average - weights.
MUON_MOMENTUM, AVERAGE_OFFSET = "muon_m", "average_offset"
_SLOTS = (FIRST_MOMENT, SECOND_MOMENT, *LAMB_MOMENTS, MUON_MOMENTUM, AVERAGE_OFFSET)
GLOBAL_STEP = "global_step"
# Prefix of other training state in a checkpoint.
TRAINING = "training/"
# Prefix of a finished model's checkpoint files, in Google's releases and ours.
MODEL_PREFIX = "bert_model.ckpt"
# Name ending of the list of a remote checkpoint's parts.
PARTS = ".parts.json"

# The original's classifier weights have no scope, but every Keras layer has
# one.
CLASSIFIER = "classifier/"


def google_name(variable: "keras.Variable") -> str:
    """Return the TensorFlow 1 name of a Keras variable."""
    return variable.path.removeprefix(CLASSIFIER)


def is_weight(name: str) -> bool:
    """Return whether a checkpoint entry belongs to the model, not the optimizer."""
    leaf = name.rsplit("/", 1)[-1]
    of_optimizer = leaf in (*_SLOTS, GLOBAL_STEP)
    return not of_optimizer and not name.startswith(TRAINING)


def numbered_checkpoints(directory: str | os.PathLike[str]) -> list[int]:
    """Return the steps N of the files `model.ckpt-N.index`, ascending.

    In an object store a checkpoint counts if its list of parts exists, which is
    written last (`google.write_checkpoint`).
    """
    ending = PARTS if files.is_remote(directory) else ".index"
    numbers = [
        os.path.basename(name)[len("model.ckpt-") : -len(ending)]
        for name in files.find_in(directory, f"model.ckpt-*{ending}")
    ]
    return sorted(int(number) for number in numbers if number.isdigit())


def leaves_of(layer: str) -> tuple[str, str]:
    """Return the names of the variables of a dense or LayerNorm layer."""
    return ("gamma", "beta") if layer.endswith("LayerNorm") else ("kernel", "bias")


def without_heads(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return Google's shape for a tensor that may have an axis for heads.

    Elsewhere, attention kernels are [H, A, D], output kernels [A, D, H], and
    biases [A, D]. Other shapes and tensors are returned unchanged.
    """
    if "/attention/" not in name:
        return shape
    if name.endswith("/output/dense/kernel"):
        return math.prod(shape[:-1]), shape[-1]
    if name.endswith("/kernel"):
        return shape[0], math.prod(shape[1:])
    return (math.prod(shape),) if name.endswith("/bias") else shape
