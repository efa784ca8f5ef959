"""A small text with many blocks and pieces."""

import random

from official_bert.corpus import text_blocks
from official_bert.corpus.report import figure
from official_bert.engines import record_pieces

WORDS = ["the", "a", "of", "fish", "river", "stone", "walked", "quiet", ",", "was"]


def documents():
    """Return 60 texts of one to nine lines, always the same."""
    rng = random.Random(5)
    return [
        "\n".join(
            " ".join(rng.choices(WORDS, k=rng.randint(2, 12)))
            for _ in range(rng.randint(1, 9))
        )
        for _ in range(60)
    ]


def make_small(monkeypatch):
    """Make blocks and pieces so small that these texts have many."""
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", 1500)
    monkeypatch.setattr(record_pieces, "PIECE_BYTES", 30000)


def leave_out_pictures(monkeypatch):
    """Draw no figures, which take longest and have their own tests."""
    monkeypatch.setattr(figure, "draw", lambda statistics, path: False)
