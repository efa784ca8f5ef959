"""Measure the Rust `tokenizers`, on one thread. See `benchmarks/contender.py`."""

import os

# Both must be set before the library is loaded.
os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import tokenizers

from benchmarks import workload

BATCH = 1000


def versions():
    """Return library -> version."""
    return {"tokenizers": tokenizers.__version__}


def tokenization(lines_file, vocab_file):
    """Return a function that computes the ids of all lines, in small batches."""
    lines = workload.read_lines(lines_file)
    tokenizer = tokenizers.BertWordPieceTokenizer(vocab_file, lowercase=True)

    def encode_all():
        for start in range(0, len(lines), BATCH):
            some = lines[start : start + BATCH]
            tokenizer.encode_batch(some, add_special_tokens=False)

    return encode_all
