"""What every model reads: rows of tokens, padded to the arrays of a batch."""

import numpy as np

from official_bert.constants import INPUTS
from official_bert.errors import UserError


def pad_rows(rows, length):
    """Return rows of tokens as the arrays of one batch.

    Args:
      rows: sequence of B features, with `input_ids` and `segment_ids`, int [T].
      length: S, tokens of a row, at least as many as the longest has.

    Returns:
      dict of the `INPUTS`, int32 arrays [B, S], 0 where nothing stands.
    """
    batch = {name: np.zeros((len(rows), length), np.int32) for name in INPUTS}
    for index, row in enumerate(rows):
        size = len(row.input_ids)
        batch["input_ids"][index, :size] = row.input_ids
        batch["input_mask"][index, :size] = 1
        batch["segment_ids"][index, :size] = row.segment_ids
    return batch


def join_texts(vocab, ids_a, ids_b=()):
    """Return ids and segments of `[CLS] a [SEP]`, or of `[CLS] a [SEP] b [SEP]`.

    Args:
      vocab: dict of token -> id.
      ids_a: list of int.
      ids_b: list of int; empty for no second text.

    Returns:
      (input_ids, segment_ids), lists of T int.
    """
    first = [vocab["[CLS]"], *ids_a, vocab["[SEP]"]]
    second = [*ids_b, vocab["[SEP]"]] if ids_b else []
    return first + second, [0] * len(first) + [1] * len(second)


def check_length(max_seq_length):
    """Raise `UserError` for rows that hold no token of a text."""
    if max_seq_length < 3:
        raise UserError(
            f"max_seq_length is {max_seq_length}: it must be at least 3, for [CLS], "
            "a token and [SEP]."
        )
