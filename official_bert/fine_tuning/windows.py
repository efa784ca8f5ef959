"""Read texts that are longer than the model's maximum length in windows.

A window is a contiguous part of the text's tokens. Windows overlap, so a token may be
in several of them. Its vector or score comes from the window in which its shorter
context, left or right, is longest (Devlin et al. in `run_squad.py`).
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np


class Span(NamedTuple):
    """The tokens start … start + length - 1 of a text."""

    start: int
    length: int


def make_spans(num_tokens: int, max_tokens: int, doc_stride: int) -> list[Span]:
    """Return the windows of a text. The last window may be shorter.

    Follows the loop over `_DocSpan` in google-research/bert `run_squad.py`.

    Args:
      num_tokens: tokens of the text; 0 gives no window.
      max_tokens: tokens of a window, at least 1.
      doc_stride: tokens from the start of a window to the start of the next one, at
        least 1. If it is larger than `max_tokens`, windows do not overlap, but they
        never leave a gap.

    Returns:
      list of `Span`.

    Raises:
      ValueError: `max_tokens` or `doc_stride` is below 1.
    """
    if max_tokens < 1 or doc_stride < 1:
        raise ValueError(
            f"max_tokens ({max_tokens}) and doc_stride ({doc_stride}) must be at "
            "least 1."
        )
    spans, start = [], 0
    while start < num_tokens:
        length = min(num_tokens - start, max_tokens)
        spans.append(Span(start, length))
        if start + length == num_tokens:
            break
        start += min(length, doc_stride)
    return spans


def best_spans(spans: Iterable[Span], num_tokens: int) -> np.ndarray:
    """Return, for each token, the window in which it has maximal context.

    Context is the smaller number of tokens to the left and right within the window,
    plus 0.01 for each token of the window. On a tie the first window wins. Follows
    `_check_is_max_context` in google-research/bert `run_squad.py`.

    Args:
      spans: list of `Span` that cover the text.
      num_tokens: tokens of the text.

    Returns:
      int array [num_tokens] of indexes into `spans`.
    """
    best = np.zeros(num_tokens, np.int64)
    best_score = np.full(num_tokens, -np.inf)
    for number, (start, length) in enumerate(spans):
        left = np.arange(length)
        score = np.minimum(left, length - 1 - left) + 0.01 * length
        inside = slice(start, start + length)
        better = score > best_score[inside]
        best[inside][better] = number
        best_score[inside][better] = score[better]
    return best
