"""A small model directory in Google's format, with every head."""

import dataclasses

import numpy as np
from record_files import MINI, MINI_CONFIG

from official_bert.checkpoints import google
from official_bert.checkpoints.checkpoint import Checkpoint
from official_bert.modeling.pretraining import PretrainingModel

VOCAB = MINI / "vocab.txt"
WIDTH = MINI_CONFIG.hidden_size
PRETRAINING_HEADS = ("cls/predictions", "cls/seq_relationship")


def tensors(config=MINI_CONFIG, seed=0):
    """Return random weights of the encoder and all heads: name -> float32."""
    rng = np.random.default_rng(seed)
    shapes = {v.path: v.shape for v in PretrainingModel(config).trainable_variables}
    shapes |= {
        "output_weights": (3, config.hidden_size),
        "output_bias": (3,),
        "cls/squad/output_weights": (2, config.hidden_size),
        "cls/squad/output_bias": (2,),
    }
    return {
        name: rng.normal(size=shape).astype(np.float32)
        for name, shape in shapes.items()
    }


def checkpoint(config=MINI_CONFIG, heads=True, do_lower_case=True):
    """Return a `Checkpoint` of these weights."""
    values = tensors(config)
    if not heads:
        values = {n: v for n, v in values.items() if n.startswith("bert/")}
    return Checkpoint(
        path="tiny",
        format="google",
        shapes={name: value.shape for name, value in values.items()},
        read=values.__getitem__,
        config=config,
        vocab_file=str(VOCAB),
        do_lower_case=do_lower_case,
    )


def write(directory, hidden_act="gelu", **changes):
    """Write a model directory; return it."""
    directory.mkdir(exist_ok=True)
    config = dataclasses.replace(MINI_CONFIG, hidden_act=hidden_act, **changes)
    google.write_model(str(directory), checkpoint(config))
    return directory
