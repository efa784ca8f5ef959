"""Sample texts to test an export: everyday text, and text that breaks tokenizers."""

import itertools
from collections.abc import Container, Iterable
from typing import Any

from official_bert.export.saved_model.signatures import ATTENTION, FILL_MASK, SERVING

TEXTS = (
    "The train left on time, and we had the carriage to ourselves.",
    "Zoë's café in São Paulo — closed on Mondays, isn't it?",
    "Großbritannien und İstanbul, ΟΔΥΣΣΕΥΣ, naïve façade.",
    "我们明天早上八点在车站见面。",
    "Привет! कैसे हो? שלום עולם, مرحبا 😀👍🏽",
    "x" * 201 + " antidisestablishmentarianism 3.14159 foo@bar.example",
    "tabs\tand\nnew lines\u00a0and\u200bnothing",
    "Yes.",
    "",
)
QUESTION = "When did the train leave?"
MASKED = (
    "The train left on [MASK].",
    "[MASK] is the capital of [MASK].",
)


def rows_of(
    signature: str, specs: Container[str], lengths: Iterable[int]
) -> list[dict[str, Any]]:
    """Return sample rows for a signature, some for each padded length.

    Returns:
      list of dict: input name -> str, list of str or int.
    """
    if signature == FILL_MASK:
        return [{"text": text} for text in MASKED]
    if signature == ATTENTION:
        sizes = zip((*MASKED, TEXTS[1]), (0, -1, 0), (-1, 0, 0), strict=True)
        return [{"text": text, "layer": n, "head": m} for text, n, m in sizes]
    texts = [*TEXTS, *(TEXTS[0] * (1 + length // 16) for length in lengths)]
    others = itertools.cycle(reversed(TEXTS))
    rows: list[dict[str, Any]] = []
    for text in texts:
        if "choices" in specs:
            rows.append({"prompt": text, "choices": [TEXTS[0], TEXTS[3], next(others)]})
        elif "context" in specs:
            rows.append({"question": QUESTION, "context": text})
        elif "text_b" in specs:
            rows.append({"text": text, "text_b": next(others)})
        else:
            rows.append({"text": text})
    return rows


def first_row(specs: Container[str]) -> dict[str, str | list[str]]:
    """Return one plain row, as an example request to `SERVING`."""
    row = rows_of(SERVING, specs, ())[0]
    if "text_b" in row:
        row["text_b"] = "Nobody sat beside us on the train."
    if "choices" in row:
        row["choices"] = ["Then we went to sleep.", "Then the train was eaten."]
    return row
