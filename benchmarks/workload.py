"""The common work of all compared libraries: the same shapes and batches."""

import json
import pathlib

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent

LENGTH, PREDICTIONS = 128, 20
# Tokens of the shortest sequences of a training step; a quarter of all
# positions is padding.
SHORTEST = 64
# Rows and columns of the matrices in the ceiling's product.
PRODUCT_SIZE = 1536


def size_of(name):
    """Return `configs/bert_<name>.json` as a dict."""
    return json.loads((ROOT / "configs" / f"bert_{name}.json").read_text())


def predictions_of(length):
    """Return the number of masked positions per sequence, in the paper's ratio."""
    return round(PREDICTIONS * length / LENGTH)


def pretraining_batch(vocab_size, batch, shortest=SHORTEST, length=LENGTH, seed=0):
    """Return a batch of random records with padding and masked positions.

    Args:
      vocab_size: number of tokens in the vocabulary.
      batch: sequences.
      shortest: tokens of the shortest sequences.
      length: padded length, and maximum length of a sequence.
      seed: seed of the random numbers.

    Returns:
      dict of int32 and float32 arrays [batch, …], named as in the records.
    """
    rng = np.random.default_rng(seed)
    places = np.arange(length)
    mask = places < rng.integers(shortest, length + 1, (batch, 1))
    ids = rng.integers(1000, vocab_size, (batch, length)) * mask
    shape = (batch, predictions_of(length))
    return {
        "input_ids": ids.astype(np.int32),
        "input_mask": mask.astype(np.int32),
        "segment_ids": ((places > length // 3) & mask).astype(np.int32),
        "masked_lm_positions": rng.integers(1, shortest, shape).astype(np.int32),
        "masked_lm_ids": rng.integers(1000, vocab_size, shape).astype(np.int32),
        "masked_lm_weights": np.ones(shape, np.float32),
        "next_sentence_labels": rng.integers(0, 2, (batch, 1)).astype(np.int32),
    }


def full_batch(vocab_size, batch, length=LENGTH):
    """Return (ids, mask, segment ids), int32 [batch, length], without padding."""
    ids = np.random.default_rng(0).integers(1000, vocab_size, (batch, length))
    segments = np.broadcast_to(np.arange(length) > length // 3, ids.shape)
    return tuple(value.astype(np.int32) for value in (ids, np.ones_like(ids), segments))


def random_row(length, vocab_size):
    """Return ids of two segments as a dict of name -> list of `length` ints."""
    ids = np.random.default_rng(length).integers(vocab_size, size=length)
    return {
        "input_ids": ids.tolist(),
        "input_mask": [1] * length,
        "segment_ids": [int(place >= length // 2) for place in range(length)],
    }


def row_calls(compute, dtype, lengths, vocab_size, output_dir=None):
    """Return a function that computes a random row of each length.

    Args:
      compute: function: dict of name -> array [1, S] -> dict of name -> array.
      dtype: dtype of its ids.
      lengths: list of int.
      vocab_size: tokens of the vocabulary.
      output_dir: folder for the outputs, `{length}.npz`; None to write none.
    """
    inputs = {
        length: {
            name: np.array([ids], dtype)
            for name, ids in random_row(length, vocab_size).items()
        }
        for length in lengths
    }
    if output_dir:
        for length, row in inputs.items():
            np.savez(f"{output_dir}/{length}.npz", **compute(row))

    def compute_all():
        for row in inputs.values():
            compute(row)

    return compute_all


def write_texts(path, texts):
    """Write texts of any lengths for `read_texts`.

    Args:
      path: an `.npz` file.
      texts: list of (ids, segment ids, label), two int sequences [T] and a number.
    """
    ids, segments, labels = zip(*texts, strict=True)
    np.savez(
        path,
        ids=np.concatenate(ids).astype(np.int32),
        segments=np.concatenate(segments).astype(np.int32),
        labels=np.array(labels),
        lengths=np.array(list(map(len, ids))),
    )


def read_texts(path):
    """Return the texts written by `write_texts`, with int32 arrays [T]."""
    with np.load(path) as found:
        ends = np.cumsum(found["lengths"])[:-1]
        ids, segments = (np.split(found[name], ends) for name in ("ids", "segments"))
        return list(zip(ids, segments, found["labels"].tolist(), strict=True))


def read_lines(path):
    """Return the non-empty lines of a text."""
    with open(path, encoding="utf-8") as text:
        return [line for line in text.read().split("\n") if line]
