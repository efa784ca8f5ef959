"""Unpack packed batches, and pack given sequences."""

import dataclasses

import numpy as np
import tensorflow as tf
from record_files import stacked

from official_bert.data.packed_rows import RowPacking
from official_bert.data.record_parsing import RecordFormat


def pack(records, length=32, predictions=5, **format_options):
    """Return records, dicts of numbers, as (packed features, their unpacked order).

    The unpacked order is the numbers of the records, row by row.
    """
    features = {name: tf.constant(values) for name, values in stacked(records).items()}
    record_format = RecordFormat({}, {}, {}, **format_options)
    packing = RowPacking(record_format, length, predictions)
    lengths = features["input_mask"].numpy().sum(axis=1)
    words = (features["masked_lm_weights"].numpy() > 0).sum(axis=1)
    numbers = packing.share_rows(lengths, words)
    order = numbers[numbers >= 0]
    ordered = {name: tf.gather(value, order) for name, value in features.items()}
    return packing.join(ordered, tf.constant(numbers >= 0)), order


def unpack(batch):
    """Return the sequences of a packed batch of arrays as records, row by row."""
    records = []
    for row in range(len(batch["input_ids"])):
        values = {name: value[row] for name, value in batch.items()}
        held = values["next_sentence_weights"] > 0
        assert sorted(set(values["sequence_numbers"]) - {0}) == [
            *range(1, held.sum() + 1)
        ]
        for slot in range(held.sum()):
            records.append(_sequence(values, slot))
    return records


def _sequence(row, slot):
    """Return one sequence of a row as the original record."""
    own = row["sequence_numbers"] == slot + 1
    (places,) = np.nonzero(own)
    used, length = len(places), len(own)
    assert (np.diff(places) == 1).all()
    np.testing.assert_array_equal(row["position_ids"][own], np.arange(used))
    assert row["pooled_positions"][slot] == places[0]
    positions, weights = row["masked_lm_positions"], row["masked_lm_weights"]
    words = (weights > 0) & own[positions]

    def padded(values, to):
        return np.pad(values, [(0, to - len(values))]).tolist()

    most = len(positions)
    return {
        "input_ids": padded(row["input_ids"][own], length),
        "input_mask": padded(np.ones(used, int), length),
        "segment_ids": padded(row["segment_ids"][own], length),
        "masked_lm_positions": padded(positions[words] - places[0], most),
        "masked_lm_ids": padded(row["masked_lm_ids"][words], most),
        "masked_lm_weights": padded(weights[words], most),
        "next_sentence_labels": [int(row["next_sentence_labels"][slot])],
    }


def number_of(record):
    """Return the index of a record in `record_files.short`."""
    return (record["input_ids"][1] - 10) * 100 + record["input_ids"][2] - 10


def without_dropout(config):
    """Return the same model without dropout."""
    return dataclasses.replace(
        config, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
