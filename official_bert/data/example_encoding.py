"""Encode training instances as the bytes of `tf.train.Example`.

The Python protobuf library needs several times as long for a record as making
the instance takes. The format is short: an Example holds one Features (field 1)
with a map entry for each feature (field 1). An entry is the name (field 1) and
the Feature (field 2), whose int64 or float list (field 3 or 2) packs its values
into field 1. Names are sorted, so the bytes equal
`tf.train.Example.SerializeToString(deterministic=True)`; a test compares them.
"""

import functools
import struct
from collections.abc import Callable

from official_bert.data.instances import TrainingInstance

ONE_BYTE = 0x80


def make_encoder(
    max_seq_length: int, max_predictions_per_seq: int, vocab_size: int
) -> Callable[[TrainingInstance], bytes]:
    """Return a function that encodes instances of these lengths.

    Args:
      max_seq_length: S, padded length of the sequence features.
      max_predictions_per_seq: P, padded length of the masked features.
      vocab_size: ids are below this number.

    Returns:
      function, `instances.TrainingInstance` -> bytes. Unmasked
      instances have no `masked_lm_…` features; for whole words they have
      `continues_word`.
    """
    highest = max(vocab_size, max_seq_length)
    varints = [_varint(number) for number in range(highest)]
    weights = [
        _feature(
            b"masked_lm_weights",
            2,
            struct.pack(f"<{count}f", *[1.0] * count)
            + bytes(4 * (max_predictions_per_seq - count)),
        )
        for count in range(max_predictions_per_seq + 1)
    ]
    labels = [_feature(b"next_sentence_labels", 3, varints[label]) for label in (0, 1)]

    def integers(name, values, length):
        packed = b"".join([varints[value] for value in values])
        return _feature(name, 3, packed + bytes(length - len(values)))

    def encode(instance):
        used, first = len(instance.input_ids), instance.num_segment_a
        padding = bytes(max_seq_length - used)
        features = [
            integers(b"input_ids", instance.input_ids, max_seq_length),
            _feature(b"input_mask", 3, b"\1" * used + padding),
        ]
        if instance.continues_word is not None:
            continues = bytes(instance.continues_word) + padding
            features.insert(0, _feature(b"continues_word", 3, continues))
        if instance.masked_lm_ids is not None:
            positions, ids = instance.masked_lm_positions, instance.masked_lm_ids
            features += [
                integers(b"masked_lm_ids", ids, max_predictions_per_seq),
                integers(b"masked_lm_positions", positions, max_predictions_per_seq),
                weights[len(ids)],
            ]
        segments = bytes(first) + b"\1" * (used - first) + padding
        features += [
            labels[instance.is_random_next],
            _feature(b"segment_ids", 3, segments),
        ]
        return _field(1, b"".join(features))

    return encode


@functools.cache
def _varint(number):
    """Encode an int >= 0: seven bits per byte, low bits first."""
    encoded = bytearray()
    while number >= ONE_BYTE:
        encoded.append(number % ONE_BYTE | ONE_BYTE)
        number //= ONE_BYTE
    encoded.append(number)
    return bytes(encoded)


def _field(number, content):
    """Encode a length-delimited field."""
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _feature(name, kind, packed):
    """Encode one entry of the map; `kind` is 2 for floats, 3 for int64."""
    return _before_values(name, kind, len(packed)) + packed


@functools.cache
def _before_values(name, kind, size):
    """Return an entry's bytes without the packed values, which come last."""
    feature = _field(kind, _field(1, bytes(size)))
    entry = _field(1, _field(1, name) + _field(2, feature))
    return entry[: len(entry) - size]
