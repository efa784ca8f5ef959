"""Compute attention maps: how much each token of a text attends to each other one."""

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
    """The result of `attention_maps`.

    Attributes:
      tokens: list of S WordPiece tokens, including `[CLS]` and `[SEP]`.
      segment_ids: list of S int, 1 for the tokens of a second text.
      probs: float32 [L, A, S, S]: layer, head, query token, key token. Each row of the
        last axis sums to 1.
    """

    tokens: list[str]
    segment_ids: list[int]
    probs: np.ndarray


def attention_maps(bert: Bert, text: str, text_b: str | None = None) -> AttentionMaps:
    """Return the attention probabilities of a text or a pair (Sec. 3).

    They are the weights of the values, softmax(QKᵀ/√D), as `transformer.SelfAttention`
    computes them, without dropout.

    Args:
      bert: `checkpoints.model_directory.Bert`, from `load` or `load_encoder`.
      text: str; `[MASK]` in it is the mask token.
      text_b: str, the second segment, or None.

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
    """Return a layer's number from 0; -1 means the last layer.

    Raises:
      UserError: the model has no such layer.
    """
    if not -num_layers <= layer < num_layers:
        raise UserError(
            f"--layer={layer} does not exist. The model has the layers 0 to "
            f"{num_layers - 1} (or -{num_layers} to -1, from the end)."
        )
    return layer % num_layers


def save_numbers(
    path: str | os.PathLike[str], maps: AttentionMaps, layers: list[int]
) -> None:
    """Write maps as numbers: `.npz` with exact float32, or JSON with 6 decimals.

    Both contain `tokens`, `segment_ids`, `layers` and `attention_probs` [layers, A, S,
    S].

    Args:
      path: ends with `.npz` or `.json`.
      maps: `AttentionMaps`.
      layers: list of layer numbers, from 0.
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
