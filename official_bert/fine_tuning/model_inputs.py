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
    for place, row in enumerate(rows):
        size = len(row.input_ids)
        batch["input_ids"][place, :size] = row.input_ids
        batch["input_mask"][place, :size] = 1
        batch["segment_ids"][place, :size] = row.segment_ids
    return batch


def check_length(max_seq_length):
    """Raise `UserError` for rows that hold no token of a text."""
    if max_seq_length < 3:
        raise UserError(
            f"max_seq_length is {max_seq_length}: it must be at least 3, for [CLS], "
            "a token and [SEP]."
        )
