"""Re-initialize the top layers of a pre-trained encoder before fine-tuning."""

from collections.abc import Mapping

import keras
import numpy as np

from official_bert.config import BertConfig
from official_bert.errors import UserError


def initial_values(
    model: keras.Model, config: BertConfig, count: int
) -> dict[str, np.ndarray]:
    """Return path -> random initial value of the pooler and the top layers.

    Take them before the checkpoint is loaded (Zhang et al., 2021).

    Args:
      model: a new Keras model with Google's names.
      config: its `BertConfig`.
      count: number of top layers; 0 for none, and then not the pooler either.

    Raises:
      UserError: the model has fewer layers.
    """
    layers = config.num_hidden_layers
    if count > layers:
        raise UserError(
            f"--reinit_layers={count} is too large. Give at most {layers}, the number "
            "of layers of the model."
        )
    if not count:
        return {}
    parts = [f"bert/encoder/layer_{layer}/" for layer in range(layers - count, layers)]
    prefixes = ("bert/pooler/", *parts)
    return {
        variable.path: variable.numpy()
        for variable in model.trainable_variables
        if variable.path.startswith(prefixes)
    }


def assign(model: keras.Model, values: Mapping[str, np.ndarray]) -> None:
    """Assign values from `initial_values` to a model, and report them."""
    for variable in model.trainable_variables:
        if variable.path in values:
            variable.assign(values[variable.path])
    if values:
        # Paths look like "bert/encoder/layer_0/…" and "bert/pooler/…".
        paths = [path.removeprefix("bert/").removeprefix("encoder/") for path in values]
        parts = sorted({path.split("/")[0] for path in paths})
        print(f"Re-initialized (--reinit_layers): {', '.join(parts)}.", flush=True)
