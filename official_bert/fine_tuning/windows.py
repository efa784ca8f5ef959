"""Texts longer than a model reads, read through windows.

A window is a run of the text's tokens. Windows overlap, so a token is in
several of them, and its vector or score is taken from the one in which it has
the most context on its poorer side (Devlin et al. in `run_squad.py`).
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np


class Span(NamedTuple):
    """The tokens start … start + length - 1 of a text."""

    start: int
    length: int


def make_spans(num_tokens: int, max_tokens: int, doc_stride: int) -> list[Span]:
    """Return the windows over a text, the last of which may be shorter.

    Follows the loop over `_DocSpan` in google-research/bert `run_squad.py`.

    Args:
      num_tokens: of the text; 0 makes no window.
      max_tokens: of a window, at least 1.
      doc_stride: tokens from one window's start to the next one's, at least
        1. One that is too large makes windows that touch; none leaves a gap.

    Returns:
      list of `Span`.

    Raises:
      ValueError: `max_tokens` or `doc_stride` is below 1.
    """
    if max_tokens < 1 or doc_stride < 1:
        raise ValueError(f"No windows of {max_tokens} tokens every {doc_stride}.")
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

    That is the smaller number of tokens to its left and right within the
    window, plus 0.01 for each token of the window; the first window wins a
    tie. Follows `_check_is_max_context` in google-research/bert
    `run_squad.py`.

    Args:
      spans: list of `Span` that cover the text.
      num_tokens: of the text.

    Returns:
      int array [num_tokens] of places in `spans`.
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
