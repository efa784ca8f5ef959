"""Convert texts to the features of an embedding model.

Legend: `B` examples per batch, `K` texts per example, `R` rows (windows of texts) per
example, `S` tokens per row.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from official_bert.constants import INPUTS, SIMCSE, WINDOW, WINDOW_WEIGHTS
from official_bert.fine_tuning.batches import FeatureSet
from official_bert.tables.examples import Example
from official_bert.tasks.classifier.features import (
    Features,
    convert_examples,
    convert_windows,
    pad_features,
)
from official_bert.tasks.embedding.files import EmbeddingExample
from official_bert.tasks.embedding.search import unit
from official_bert.tasks.embedding.task import EmbeddingTask
from official_bert.tokenization.full import FullTokenizer

# Batches store text numbers as float32, which is exact below this number.
_MOST_NUMBERS = 2**24


class TrainingFeatures(NamedTuple):
    """The model's inputs for one example with K texts.

    Attributes:
      rows: `Features` of the windows of all texts, text by text.
      numbers: int of each text; equal for texts with the same meaning.
      score: similarity of the first two texts; 0 if unknown.
      counts: number of windows of each text; () if each text has one row.
    """

    rows: tuple[Features, ...]
    numbers: tuple[int, ...]
    score: float
    counts: tuple[int, ...] = ()


def convert_training(
    examples: Sequence[EmbeddingExample],
    tokenizer: FullTokenizer,
    task: EmbeddingTask,
    loss: str,
) -> list[TrainingFeatures]:
    """Return the features of examples, in order; warn about texts that were cut.

    With `SIMCSE` each first text is its own positive: the two copies differ in dropout.

    Args:
      examples: list of `EmbeddingExample`.
      tokenizer: `FullTokenizer`.
      task: `EmbeddingTask`, which limits the length and may have windows.
      loss: one of `constants.EMBEDDING_LOSSES`.

    Raises:
      UserError: the length is below 3, or below 5 with windows.
    """
    texts = [
        (example.texts[0],) * 2 if loss == SIMCSE else example.texts
        for example in examples
    ]
    flat = (text for each in texts for text in each)
    windows = iter(convert_texts(flat, tokenizer, task))
    known: dict[tuple[str, str], int] = {}

    def number(text, group):
        key = ("text", text) if group is None else ("group", group)
        return known.setdefault(key, len(known)) % _MOST_NUMBERS

    def convert(example, own):
        parts = [next(windows) for _ in own]
        counts = tuple(map(len, parts)) if task.long_text == WINDOW else ()
        return TrainingFeatures(
            tuple(row for part in parts for row in part),
            tuple(number(text, example.group) for text in own),
            example.score or 0.0,
            counts,
        )

    return [convert(example, own) for example, own in zip(examples, texts, strict=True)]


def length_of(example: TrainingFeatures) -> int:
    """Return the number of tokens of an example's longest row."""
    return max(len(row.input_ids) for row in example.rows)


def num_rows_of(example: TrainingFeatures) -> int:
    """Return the number of rows of an example."""
    return len(example.rows)


def pad_training(
    features: Sequence[TrainingFeatures], length: int, num_texts: int
) -> dict[str, np.ndarray]:
    """Return features as the arrays of one batch.

    Args:
      features: sequence of B `TrainingFeatures`.
      length: S, at least the number of tokens of the longest row.
      num_texts: K, at least the largest number of texts of an example.

    Returns:
      dict: `INPUTS` int32 [B, K, S], or [B, R, S] with windows; `text_mask` int32
      [B, K], 1 for existing texts; `text_numbers` int32 [B, K]; `scores` float32 [B].
      With windows also `WINDOW_WEIGHTS` float32 [B, K, R]: 1 / (number of windows) for
      the rows of a text, else 0. A missing row has one token, because attention needs
      at least one.
    """
    has_windows = any(each.counts for each in features)
    num_rows = max(map(num_rows_of, features)) if has_windows else num_texts
    shape = (len(features), num_texts)
    rows = (len(features), num_rows, length)
    batch = {name: np.zeros(rows, np.int32) for name in INPUTS}
    batch["input_mask"][:, :, 0] = 1
    batch["text_mask"] = np.zeros(shape, np.int32)
    batch["text_numbers"] = np.full(shape, -1, np.int32)
    for index, example in enumerate(features):
        count = len(example.numbers)
        for name, value in pad_features(example.rows, length).items():
            batch[name][index, : len(example.rows)] = value
        batch["text_mask"][index, :count] = 1
        batch["text_numbers"][index, :count] = example.numbers
    batch["scores"] = np.array([each.score for each in features], np.float32)
    if has_windows:
        batch[WINDOW_WEIGHTS] = np.stack(
            [_weights(each.counts, num_texts, num_rows) for each in features]
        )
    return batch


def _weights(counts, num_texts, num_rows):
    """Return the share of each row in each text of an example, float32 [K, R]."""
    weights = np.zeros((num_texts, num_rows), np.float32)
    first = 0
    for text, count in enumerate(counts):
        weights[text, first : first + count] = 1 / count
        first += count
    return weights


def convert_texts(
    texts: Iterable[str], tokenizer: FullTokenizer, task: EmbeddingTask
) -> list[list[Features]]:
    """Return the rows of texts: one each, or the windows of a long text.

    Args:
      texts: iterable of N str.
      tokenizer: `FullTokenizer`.
      task: `EmbeddingTask`.

    Returns:
      list of N lists of `Features`, at least one each.
    """
    examples = [Example(0, text) for text in texts]
    if task.long_text == WINDOW:
        return convert_windows(examples, tokenizer, task.max_seq_length)
    rows = convert_examples(examples, tokenizer, task.max_seq_length)
    return [[row] for row in rows]


def rows_of(windows: Sequence[Sequence[Features]], max_seq_length: int) -> FeatureSet:
    """Return the windows of all texts as a `FeatureSet`, a row each."""
    flat = [row for each in windows for row in each]
    return FeatureSet(flat, max_seq_length, pad_features)


def vectors_of_texts(
    rows: Sequence[Mapping[str, np.ndarray]],
    windows: Sequence[Sequence[Features]],
    normalize: bool,
) -> np.ndarray:
    """Return one vector per text: the mean of its windows' vectors.

    Args:
      rows: outputs of the model for each window of all texts, with `embedding`
        float32 [size].
      windows: see `convert_texts`.
      normalize: whether the vectors have length 1.

    Returns:
      float32 [N, size].
    """
    vectors = np.stack([row["embedding"] for row in rows])
    counts = np.array([len(each) for each in windows])
    if (counts == 1).all():
        return vectors
    starts = np.cumsum(counts) - counts
    means = np.add.reduceat(vectors, starts) / counts[:, np.newaxis].astype(np.float32)
    several = (counts > 1)[:, np.newaxis]
    return np.where(several & normalize, unit(means), means)
