"""Load checkpoint weights into a model, strictly and with a report."""

import collections
import dataclasses
import difflib
import os
import re
from collections.abc import Mapping

import keras

from official_bert.checkpoints import any_format, names
from official_bert.checkpoints.checkpoint import Checkpoint
from official_bert.config import BertConfig
from official_bert.errors import UserError

# The layer of a task. A different size means different labels.
TASK_HEAD = ("output_weights", "output_bias")
# A checkpoint must contain all of these variables.
ENCODER = ("bert/embeddings/", "bert/encoder/")


@dataclasses.dataclass(frozen=True)
class Report:
    """The result for each variable name.

    Attributes:
      path: path of the checkpoint, as the user gave it.
      loaded: variables that were loaded.
      new: variables of heads that are missing in the checkpoint; they keep
        their initial values.
      unused: weights of the checkpoint that the model does not have.
      notes: sentences about the checkpoint.
    """

    path: str
    loaded: list[str]
    new: list[str]
    unused: list[str]
    notes: list[str]

    def __str__(self) -> str:
        # Number of variables for each pair of first two name parts.
        parts = collections.Counter("/".join(n.split("/")[:2]) for n in self.loaded)
        counts = ", ".join(f"{part} ({count})" for part, count in parts.items())
        lines = [
            f"Initialized {len(self.loaded)} variables from {self.path}: {counts}."
        ]
        if self.new:
            lines.append(
                "Not in the checkpoint, so newly initialized (kernels random, "
                f"biases 0): {', '.join(self.new)}."
            )
        if self.unused:
            lines.append(f"Unused weights of the checkpoint: {', '.join(self.unused)}.")
        return "\n".join([*lines, *self.notes])


def load_weights(
    model: keras.Model | keras.layers.Layer, path: str | os.PathLike[str]
) -> Report:
    """Load a model's variables from a checkpoint of any format.

    Optimizer slots and the global step are not loaded: the new run starts at
    step 0 (`init_checkpoint` of the original).

    Args:
      model: a Keras model or layer of this package.
      path: see `any_format.opened`.

    Returns:
      `Report`.

    Raises:
      UserError: the checkpoint or an encoder variable is missing, or a shape
        differs. A classifier of another size is not an error; it is newly
        initialized. On errors the model is unchanged.
    """
    with any_format.opened(path) as checkpoint:
        return load_opened(model, checkpoint)


def load_opened(
    model: keras.Model | keras.layers.Layer, checkpoint: Checkpoint
) -> Report:
    """Load variables like `load_weights`, from an open `Checkpoint`."""
    shapes = checkpoint.shapes
    wanted = {names.google_name(v): v for v in model.weights}
    notes = [*checkpoint.notes, *_check_config(checkpoint, model.config)]
    check_size(checkpoint, model.config)
    _check_names(checkpoint, wanted)
    others = [name for name in TASK_HEAD if name in wanted]
    if all(shapes.get(n, wanted[n].shape) == wanted[n].shape for n in others):
        others = []
    else:
        notes.append(
            "The checkpoint's classifier has another size "
            f"({list(shapes[others[0]])}), so it is not used."
        )
    loaded = [name for name in wanted if name in shapes and name not in others]
    values = {name: checkpoint.read(name) for name in loaded}
    for name, value in values.items():
        wanted[name].assign(value)
    return Report(
        checkpoint.path,
        loaded,
        new=[name for name in wanted if name not in loaded],
        unused=sorted(name for name in shapes if name not in wanted),
        notes=notes,
    )


def _check_config(checkpoint, config):
    """Compare settings that shapes do not show; return notes on allowed differences."""
    stated = checkpoint.config
    if stated is None:
        return []
    if stated.num_attention_heads != config.num_attention_heads:
        raise UserError(
            f"{checkpoint.path} does not fit the model: num_attention_heads is "
            f"{stated.num_attention_heads} in the checkpoint's config and "
            f"{config.num_attention_heads} in the model's. Correct the model's "
            "bert_config.json."
        )
    return [
        f"Note: {name} is {getattr(stated, name)!r} in the checkpoint's config "
        f"and {getattr(config, name)!r} in the model's. The model's value is "
        "used."
        for name in ("hidden_act", "layer_norm_eps", "causal_attention")
        if getattr(stated, name) != getattr(config, name)
    ]


def sizes(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Return the `bert_config.json` values that a checkpoint's shapes show.

    The argument is a dict of Google's name -> shape; the result, of key -> int.
    """
    axes = {
        "vocab_size": ("bert/embeddings/word_embeddings", 0),
        "hidden_size": ("bert/embeddings/word_embeddings", 1),
        "max_position_embeddings": ("bert/embeddings/position_embeddings", 0),
        "type_vocab_size": ("bert/embeddings/token_type_embeddings", 0),
        "intermediate_size": ("bert/encoder/layer_0/intermediate/dense/kernel", 1),
    }
    sizes = {
        key: shapes[name][axis]
        for key, (name, axis) in axes.items()
        if len(shapes.get(name, ())) == 2
    }
    numbers = re.findall(r"bert/encoder/layer_(\d+)/", "\n".join(shapes))
    if numbers:
        sizes["num_hidden_layers"] = max(map(int, numbers)) + 1
    return sizes


def check_size(checkpoint: Checkpoint, config: BertConfig) -> None:
    """Raise `UserError`, naming the config keys, if the model sizes differ."""
    different = [
        f"{key} is {size} in the checkpoint and {getattr(config, key)} in the model"
        for key, size in sizes(checkpoint.shapes).items()
        if size != getattr(config, key)
    ]
    if different:
        raise UserError(
            f"{checkpoint.path} does not fit the model: {'; '.join(different)}. "
            "Give the bert_config.json that came with the checkpoint."
        )


def _check_names(checkpoint, wanted):
    """Raise `UserError` for a missing variable or a wrong shape."""
    shapes = checkpoint.shapes
    for name, variable in wanted.items():
        if name in TASK_HEAD:
            continue
        if name in shapes and tuple(shapes[name]) != tuple(variable.shape):
            raise UserError(
                f"{checkpoint.path} does not fit the model: {name} is "
                f"{list(shapes[name])} in the checkpoint and "
                f"{list(variable.shape)} in the model."
            )
    missing = [n for n in wanted if n.startswith(ENCODER) and n not in shapes]
    if missing:
        free = [name for name in shapes if name not in wanted]
        close = difflib.get_close_matches(missing[0], free, n=1)
        hint = f" (similar name in the checkpoint: {close[0]})" if close else ""
        raise UserError(
            f"{checkpoint.path} does not fit the model: {len(missing)} "
            f"variables are missing, the first is {missing[0]}{hint}. Give a "
            "BERT checkpoint."
        )
