"""Map variables to Google's names; no other module does.

Layers nest and are named so that a variable's path *is* the TensorFlow 1 name
(`bert/encoder/layer_3/attention/self/query/kernel`); what differs is listed
here.
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
GLOBAL_STEP = "global_step"
# What our training remembers beside them.
TRAINING = "training/"
# What a finished model's files are called, in a release and in ours.
MODEL_PREFIX = "bert_model.ckpt"
# Ends the name of the list of a remote checkpoint's parts.
PARTS = ".parts.json"

# The classifier's weights have no scope in the original, and every Keras layer
# has one.
CLASSIFIER = "classifier/"


def google_name(variable: "keras.Variable") -> str:
    """Return the TensorFlow 1 name of a Keras variable."""
    return variable.path.removeprefix(CLASSIFIER)


def is_weight(name: str) -> bool:
    """Whether a name in a checkpoint is a model's, not the optimizer's."""
    leaf = name.rsplit("/", 1)[-1]
    of_optimizer = leaf in (FIRST_MOMENT, SECOND_MOMENT, *LAMB_MOMENTS, GLOBAL_STEP)
    return not of_optimizer and not name.startswith(TRAINING)


def numbered_checkpoints(directory: str | os.PathLike[str]) -> list[int]:
    """Return the steps N of the files `model.ckpt-N.index`, ascending.

    In an object store a checkpoint counts if it has its list of parts, which is
    written last (`google.write_checkpoint`).
    """
    ending = PARTS if files.is_remote(directory) else ".index"
    numbers = [
        os.path.basename(name)[len("model.ckpt-") : -len(ending)]
        for name in files.find_in(directory, f"model.ckpt-*{ending}")
    ]
    return sorted(int(number) for number in numbers if number.isdigit())


def leaves_of(layer: str) -> tuple[str, str]:
    """Return what the variables of a dense or LayerNorm layer are called."""
    return ("gamma", "beta") if layer.endswith("LayerNorm") else ("kernel", "bias")


def without_heads(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return Google's shape for a tensor that may have an axis for the heads.

    In attention kernels are [H, A, D] elsewhere and, after it, [A, D, H], biases
    [A, D]. Shapes without that axis, and of other tensors, stay.
    """
    if "/attention/" not in name:
        return shape
    if name.endswith("/output/dense/kernel"):
        return math.prod(shape[:-1]), shape[-1]
    if name.endswith("/kernel"):
        return shape[0], math.prod(shape[1:])
    return (math.prod(shape),) if name.endswith("/bias") else shape
