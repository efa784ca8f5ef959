"""The inputs of every model: rows of tokens, padded to the arrays of a batch."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from official_bert.constants import INPUTS
from official_bert.errors import UserError


def pad_rows(rows: Sequence[Any], length: int) -> dict[str, np.ndarray]:
    """Return rows of tokens as the arrays of one batch.

    Args:
      rows: sequence of B features, with `input_ids` and `segment_ids`, int [T].
      length: S, tokens per row, at least the length of the longest row.

    Returns:
      dict of the `INPUTS`, int32 arrays [B, S], 0 for padding.
    """
    batch = {name: np.zeros((len(rows), length), np.int32) for name in INPUTS}
    for index, row in enumerate(rows):
        size = len(row.input_ids)
        batch["input_ids"][index, :size] = row.input_ids
        batch["input_mask"][index, :size] = 1
        batch["segment_ids"][index, :size] = row.segment_ids
    return batch


def truncate_pair(
    tokens_a: list[int], tokens_b: list[int], max_tokens: int
) -> tuple[list[int], list[int]]:
    """Truncate two lists until both together have at most `max_tokens`.

    The longer list loses its last token, repeatedly; the second list if both are
    equally long. Follows `_truncate_seq_pair` in google-research/bert
    `run_classifier.py` and `extract_features.py`.

    Args:
      tokens_a: list.
      tokens_b: list.
      max_tokens: int >= 0.

    Returns:
      (tokens_a, tokens_b), new lists.
    """
    length_a, length_b = len(tokens_a), len(tokens_b)
    while length_a + length_b > max_tokens:
        if length_a > length_b:
            length_a -= 1
        else:
            length_b -= 1
    return tokens_a[:length_a], tokens_b[:length_b]


def join_texts(
    vocab: Mapping[str, int], ids_a: Sequence[int], ids_b: Sequence[int] = ()
) -> tuple[list[int], list[int]]:
    """Return ids and segments of `[CLS] a [SEP]`, or of `[CLS] a [SEP] b [SEP]`.

    Args:
      vocab: dict of token -> id.
      ids_a: list of int.
      ids_b: list of int; empty if there is only one text.

    Returns:
      (input_ids, segment_ids), lists of T int.
    """
    first = [vocab["[CLS]"], *ids_a, vocab["[SEP]"]]
    second = [*ids_b, vocab["[SEP]"]] if ids_b else []
    return first + second, [0] * len(first) + [1] * len(second)


def check_length(max_seq_length: int) -> None:
    """Raise `UserError` if the length leaves no room for a token of a text."""
    if max_seq_length < 3:
        raise UserError(
            f"max_seq_length is {max_seq_length}: it must be at least 3, for [CLS], "
            "one token and [SEP]."
        )
