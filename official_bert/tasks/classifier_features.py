"""Texts and pairs of texts with a label, as the features a classifier reads.

Follows `convert_single_example` in google-research/bert `run_classifier.py`,
except that nothing is padded here: a batch is as long as it needs to be.
"""

from typing import NamedTuple

import numpy as np
from absl import logging

from official_bert.errors import UserError
from official_bert.tasks.windows import truncate_pair


class Features(NamedTuple):
    """What the model reads of an example, T tokens of it.

    Attributes:
      input_ids: int32 [T], `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`.
      segment_ids: int32 [T], 0 and, from `b` on, 1.
      label_id: int, the place of the label among the task's labels; float for
        a regression task; None where the label is not known.
      num_cut: how many tokens did not fit and were cut off.
    """

    input_ids: np.ndarray
    segment_ids: np.ndarray
    label_id: int | float | None
    num_cut: int


def convert_examples(examples, tokenizer, max_seq_length, labels=()):
    """Return the features of examples, in order; warn of the texts it cut.

    Args:
      examples: iterable of `Example`.
      tokenizer: `FullTokenizer`.
      max_seq_length: tokens of an example at most, `[CLS]` and `[SEP]` among
        them; at least 3.
      labels: names of the classes in the order of their numbers; none for a
        regression task.

    Returns:
      list of `Features`.

    Raises:
      UserError: `max_seq_length` is below 3.
      ValueError: an example has a label that is not in `labels`.
    """
    if max_seq_length < 3:
        raise UserError(
            f"max_seq_length is {max_seq_length}: it must be at least 3, for [CLS], "
            "a token and [SEP]."
        )
    features = [
        convert_example(example, tokenizer, max_seq_length, labels)
        for example in examples
    ]
    cut = [one.num_cut for one in features if one.num_cut]
    if cut:
        logging.warning(
            "%d of %d texts are longer than max_seq_length %d: %d tokens were cut "
            "off, %d from one text at most.",
            len(cut),
            len(features),
            max_seq_length,
            sum(cut),
            max(cut),
        )
    return features


def convert_example(example, tokenizer, max_seq_length, labels=()):
    """Return the `Features` of one example; see `convert_examples`."""
    ids_a = tokenizer.encode(example.text_a)
    ids_b = tokenizer.encode(example.text_b or "")
    # Whether room is left for a second [SEP] is asked before the cut, whether
    # there is one after it: the cut may leave nothing of the second text.
    room = max_seq_length - (3 if ids_b else 2)
    num_cut = max(0, len(ids_a) + len(ids_b) - room)
    ids_a, ids_b = truncate_pair(ids_a, ids_b, room)
    first = [tokenizer.vocab["[CLS]"], *ids_a, tokenizer.vocab["[SEP]"]]
    second = [*ids_b, tokenizer.vocab["[SEP]"]] if ids_b else []
    return Features(
        np.array(first + second, np.int32),
        np.repeat(np.array([0, 1], np.int32), [len(first), len(second)]),
        _label_id(example, labels),
        num_cut,
    )


def _label_id(example, labels):
    """Return the number that stands for an example's label, or None."""
    if example.label is None:
        return None
    if not labels:
        return float(example.label)
    if example.label not in labels:
        raise ValueError(
            f"{example.guid}: the label {example.label!r} is none of "
            f"{', '.join(labels)}."
        )
    return labels.index(example.label)


def pad_features(features, length):
    """Return features as the arrays of one batch.

    Args:
      features: sequence of B `Features`; all of them have a label, or none.
      length: S, tokens of a row, at least as many as the longest has.

    Returns:
      dict of int32 arrays [B, S] `input_ids`, `input_mask` and `segment_ids`,
      0 where nothing stands, and, where the labels are known, `label_ids` [B],
      int32, or float32 for a regression task.
    """
    shape = (len(features), length)
    names = ("input_ids", "input_mask", "segment_ids")
    batch = {name: np.zeros(shape, np.int32) for name in names}
    for row, one in enumerate(features):
        size = len(one.input_ids)
        batch["input_ids"][row, :size] = one.input_ids
        batch["input_mask"][row, :size] = 1
        batch["segment_ids"][row, :size] = one.segment_ids
    label_ids = [one.label_id for one in features]
    if None not in label_ids:
        dtype = np.int32 if all(isinstance(i, int) for i in label_ids) else np.float32
        batch["label_ids"] = np.array(label_ids, dtype)
    return batch
