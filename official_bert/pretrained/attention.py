"""Attention maps: how much each token of a text takes from each other one."""

import dataclasses
import os
from typing import Any

import numpy as np
import tensorflow as tf

from official_bert import files
from official_bert.checkpoints.model_directory import Bert
from official_bert.errors import UserError
from official_bert.pretrained.fill_mask import encode_pair


@dataclasses.dataclass(frozen=True)
class AttentionMaps:
    """What `attention_maps` returns.

    Attributes:
      tokens: list of S word pieces, `[CLS]` and `[SEP]` among them.
      segment_ids: list of S int, 1 for the tokens of a second text.
      probs: float32 [L, A, S, S]: of layer, head, the token that looks, and the
        token that it looks at. Each row of the last axis sums to 1.
    """

    tokens: list[str]
    segment_ids: list[int]
    probs: np.ndarray


def attention_maps(bert: Bert, text: str, text_b: str | None = None) -> AttentionMaps:
    """Return the attention probabilities of a text or a pair (Sec. 3).

    They are those by which the encoder weighs its values, softmax(QKᵀ/√D), as
    `transformer.SelfAttention` gives them, without dropout.

    Args:
      bert: `checkpoints.model_directory.Bert`, of `load` or `load_encoder`.
      text: str; `[MASK]` in it is the token.
      text_b: likewise, the second segment; None for none.

    Returns:
      `AttentionMaps`.

    Raises:
      UserError: the text is too long for the model.
    """
    input_ids, segment_ids = encode_pair(bert, text, text_b)
    encoder = getattr(bert.model, "bert", bert.model)
    features = {
        "input_ids": tf.constant([input_ids]),
        "segment_ids": tf.constant([segment_ids]),
    }
    maps = encoder(features, output_attention_probs=True)["attention_probs"]
    return AttentionMaps(
        tokens=[bert.tokenizer.inv_vocab[each] for each in input_ids],
        segment_ids=segment_ids,
        probs=np.stack([each[0] for each in maps]).astype(np.float32),
    )


def layer_number(layer: int, num_layers: int) -> int:
    """Return a layer's number from 0, where -1 stands for the last one.

    Raises:
      UserError: the model has no such layer.
    """
    if not -num_layers <= layer < num_layers:
        raise UserError(
            f"--layer is {layer}, and the model has the layers 0 to {num_layers - 1} "
            f"(or -{num_layers} to -1, from the end)."
        )
    return layer % num_layers


def save_numbers(
    path: str | os.PathLike[str], maps: AttentionMaps, layers: list[int]
) -> None:
    """Write maps as numbers: `.npz` with exact float32, or JSON with 6 decimals.

    Both have `tokens`, `segment_ids`, `layers` and `attention_probs`
    [layers, A, S, S].

    Args:
      path: ends with `.npz` or `.json`.
      maps: `AttentionMaps`.
      layers: list of the layers' numbers, from 0.
    """
    content: dict[str, Any] = {
        "tokens": maps.tokens,
        "segment_ids": maps.segment_ids,
        "layers": layers,
        "attention_probs": maps.probs[layers],
    }
    if os.fspath(path).endswith(".json"):
        rounded = np.round(content["attention_probs"].astype(np.float64), 6)
        files.write_json(path, content | {"attention_probs": rounded.tolist()})
        return
    with files.atomic_path(path) as temporary, open(temporary, "wb") as out:
        np.savez_compressed(out, **content)
