"""The original's recordings of small BERTs, and our models with their weights.

`tests/fixtures/modeling/README.md` describes the files.
"""

import functools
import json
import pathlib

import numpy as np

from official_bert.config import BertConfig

FOLDER = pathlib.Path(__file__).parent / "fixtures" / "modeling"
HEAD = FOLDER / "original_head"
SETTINGS = json.loads((HEAD / "settings.json").read_text())

# The recording of the original's first version has no config.
ERF_CONFIG = BertConfig(
    vocab_size=15,
    hidden_size=4,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=16,
    hidden_act="gelu_erf",
    max_position_embeddings=16,
    type_vocab_size=2,
)


def head_config():
    return BertConfig.from_json_file(HEAD / "checkpoint" / "bert_config.json")


@functools.cache
def recording(name="original_head/pretraining.npz"):
    """Return a recording as a dict of arrays."""
    with np.load(FOLDER / name) as arrays:
        return dict(arrays)


def features(arrays, step=0):
    """Return the inputs of one step under the records' names."""
    prefix = f"in_{step}_"
    return {
        key.removeprefix(prefix): value
        for key, value in arrays.items()
        if key.startswith(prefix)
    }


def weights(arrays, prefix="init_"):
    """Return variable name -> array, without Adam's slots and the step."""
    return {
        key.removeprefix(prefix).replace("|", "/"): value
        for key, value in arrays.items()
        if key.startswith(prefix)
        and not key.endswith(("|adam_m", "|adam_v", "global_step"))
    }


def assign(model, arrays):
    """Assign the recorded initial weights to a model; the names must agree."""
    recorded = weights(arrays)
    assert {v.path for v in model.trainable_variables} == set(recorded)
    for variable in model.trainable_variables:
        variable.assign(recorded[variable.path])
