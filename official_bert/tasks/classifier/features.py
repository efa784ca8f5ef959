"""Convert texts and pairs of texts with labels to the features of a classifier.

Follows `convert_single_example` in google-research/bert `run_classifier.py`, except
that features are not padded. A batch is padded only to its longest text.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from absl import logging

from official_bert.constants import WINDOW
from official_bert.errors import UserError
from official_bert.fine_tuning.windows import make_spans
from official_bert.tables.examples import Example
from official_bert.tasks.classifier.task import ClassifierTask
from official_bert.tokenization.full import FullTokenizer
from official_bert.tokenization.model_inputs import (
    check_length,
    join_texts,
    pad_rows,
    truncate_pair,
)


class Features(NamedTuple):
    """The model's inputs for one example of T tokens.

    Attributes:
      input_ids: int32 [T], `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`.
      segment_ids: int32 [T], 0 for `[CLS] a [SEP]`, 1 for `b [SEP]`.
      label_id: int, the index of the label in the task's labels; for multi-label
        tasks a tuple of C int, 1 for labels that apply; float for regression; None
        if unknown.
      num_cut: number of tokens that were cut off.
    """

    input_ids: np.ndarray
    segment_ids: np.ndarray
    label_id: int | tuple[int, ...] | float | None
    num_cut: int


def encode(
    task: ClassifierTask, examples: Iterable[Example], tokenizer: FullTokenizer
) -> list[list[Features]]:
    """Return the features of examples, in windows if the task has them.

    Args:
      task: `ClassifierTask`.
      examples: list of N `Example`.
      tokenizer: `FullTokenizer`.

    Returns:
      list of N lists of `Features`, the windows of each example. Each list has one
      item, unless `task.long_text` is `WINDOW` and the example is longer.

    Raises:
      UserError, ValueError: see `convert_examples`.
    """
    length, labels = task.max_seq_length, task.labels
    if task.long_text == WINDOW:
        return convert_windows(examples, tokenizer, length, labels)
    return [[one] for one in convert_examples(examples, tokenizer, length, labels)]


def convert_examples(
    examples: Iterable[Example],
    tokenizer: FullTokenizer,
    max_seq_length: int,
    labels: Sequence[str] = (),
) -> list[Features]:
    """Return the features of examples, in order; warn about texts that were cut.

    Args:
      examples: iterable of `Example`.
      tokenizer: `FullTokenizer`.
      max_seq_length: maximum number of tokens per example, including `[CLS]` and
        `[SEP]`; at least 3.
      labels: names of the classes in the order of their numbers; empty for
        regression. In multi-label tasks, unknown labels of an example are ignored.

    Returns:
      list of `Features`.

    Raises:
      UserError: `max_seq_length` is below 3.
      ValueError: the single label of an example is not in `labels`.
    """
    check_length(max_seq_length)
    features = [
        convert_example(example, tokenizer, max_seq_length, labels)
        for example in examples
    ]
    _warn_of_cuts(features, max_seq_length)
    return features


def _warn_of_cuts(features, max_seq_length):
    cut = [one.num_cut for one in features if one.num_cut]
    if cut:
        logging.warning(
            "%d of %d texts are longer than max_seq_length %d: %d tokens were cut "
            "off, at most %d from one text.",
            len(cut),
            len(features),
            max_seq_length,
            sum(cut),
            max(cut),
        )


def convert_example(
    example: Example,
    tokenizer: FullTokenizer,
    max_seq_length: int,
    labels: Sequence[str] = (),
) -> Features:
    """Return the `Features` of one example; see `convert_examples`."""
    ids_a = tokenizer.encode(example.text_a)
    ids_b = tokenizer.encode(example.text_b or "")
    # As in the original: the room for a second [SEP] is computed before cutting, but
    # the second [SEP] depends on the result, which may have no second text.
    room = max_seq_length - (3 if ids_b else 2)
    num_cut = max(0, len(ids_a) + len(ids_b) - room)
    ids_a, ids_b = truncate_pair(ids_a, ids_b, room)
    return _features(tokenizer, ids_a, ids_b, _label_id(example, labels), num_cut)


def _features(tokenizer, ids_a, ids_b, label_id, num_cut):
    joined = join_texts(tokenizer.vocab, ids_a, ids_b)
    input_ids, segment_ids = np.array(joined, np.int32)
    return Features(input_ids, segment_ids, label_id, num_cut)


def convert_windows(
    examples: Iterable[Example],
    tokenizer: FullTokenizer,
    max_seq_length: int,
    labels: Sequence[str] = (),
) -> list[list[Features]]:
    """Return the features of examples, long texts split into several windows.

    Windows begin half a window apart. In a pair, the longer text (the second if both
    are equally long) is split. Each window also contains the other text, cut to
    at most half of the length.

    Args:
      examples: list of N `Example`.
      tokenizer: `FullTokenizer`.
      max_seq_length: maximum number of tokens per window, including `[CLS]` and
        `[SEP]`; at least 5.
      labels: see `convert_examples`.

    Returns:
      list of N lists of `Features`, at least one each.

    Raises:
      UserError: `max_seq_length` is below 5.
      ValueError: the single label of an example is not in `labels`.
    """
    if max_seq_length < 5:
        raise UserError(
            f"max_seq_length is {max_seq_length}, but windows need at least 5 tokens."
        )
    windows = [
        _windows(example, tokenizer, max_seq_length, labels) for example in examples
    ]
    several = [len(each) for each in windows if len(each) > 1]
    if several:
        logging.info(
            "%d of %d texts are longer than max_seq_length %d: they are read in "
            "%d windows.",
            len(several),
            len(windows),
            max_seq_length,
            sum(several),
        )
    _warn_of_cuts([each[0] for each in windows], max_seq_length)
    return windows


def _windows(example, tokenizer, max_seq_length, labels):
    """Return the list of `Features` of one example."""
    ids_a = tokenizer.encode(example.text_a)
    ids_b = tokenizer.encode(example.text_b or "")
    label_id = _label_id(example, labels)
    room = max_seq_length - (3 if ids_b else 2)
    if len(ids_a) + len(ids_b) <= room:
        return [_features(tokenizer, ids_a, ids_b, label_id, 0)]
    first_is_long = len(ids_a) > len(ids_b)
    long, short = (ids_a, ids_b) if first_is_long else (ids_b, ids_a)
    num_cut = max(0, len(short) - room // 2)
    short = short[: room // 2]
    size = room - len(short)
    windows = []
    for start, length in make_spans(len(long), size, max(1, size // 2)):
        part = long[start : start + length]
        texts = (part, short) if first_is_long else (short, part)
        windows.append(_features(tokenizer, *texts, label_id, num_cut))
    return windows


def _label_id(example, labels):
    """Return the number of an example's label (or its label ids), or None."""
    if example.label is None:
        return None
    if not labels:
        return float(example.label)
    if isinstance(example.label, tuple):
        return tuple(int(name in example.label) for name in labels)
    if example.label not in labels:
        raise ValueError(
            f"{example.guid}: the label {example.label!r} is not one of "
            f"{', '.join(labels)}."
        )
    return labels.index(example.label)


def pad_features(features: Sequence[Features], length: int) -> dict[str, np.ndarray]:
    """Return features as the arrays of one batch.

    Args:
      features: sequence of B `Features`, with labels either for all or for none.
      length: S, tokens per row, at least as many as the longest example has.

    Returns:
      dict of int32 arrays [B, S] `input_ids`, `input_mask` and `segment_ids`, 0 at
      padding. If the labels are known, also `label_ids`: int32 [B]; float32 [B]
      for regression; float32 [B, C] for multi-label tasks.
    """
    batch = pad_rows(features, length)
    label_ids = [one.label_id for one in features]
    if None not in label_ids:
        dtype = np.int32 if all(isinstance(i, int) for i in label_ids) else np.float32
        batch["label_ids"] = np.array(label_ids, dtype)
    return batch
