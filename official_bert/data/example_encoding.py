"""Training instances as the bytes of `tf.train.Example`, written directly.

The Python protobuf needs several times as long for one record as it takes to
make the instance. The format is short: an Example holds one Features (field
1), that a map entry for each feature (field 1), which is the name (field 1)
and the Feature (field 2), whose int64 or float list (field 3 or 2) packs its
values into field 1. Names are in order, so the bytes equal
`tf.train.Example.SerializeToString(deterministic=True)`; a test compares them.
"""

import struct

ONE_BYTE = 0x80


def make_encoder(max_seq_length, max_predictions_per_seq, vocab_size):
    """Return a function that encodes instances of these lengths.

    Args:
      max_seq_length: S, what the sequence features are padded to.
      max_predictions_per_seq: P, what the masked features are padded to.
      vocab_size: ids are below it.

    Returns:
      function, `instances.TrainingInstance` -> bytes.
    """
    highest = max(vocab_size, max_seq_length)
    varints = [_varint(number) for number in range(highest)]
    weights = [
        _feature(b"masked_lm_weights", 2, _floats(count, max_predictions_per_seq))
        for count in range(max_predictions_per_seq + 1)
    ]
    labels = [_feature(b"next_sentence_labels", 3, varints[label]) for label in (0, 1)]

    def integers(name, values, length):
        packed = b"".join([varints[value] for value in values])
        return _feature(name, 3, packed + bytes(length - len(values)))

    def encode(instance):
        used = len(instance.input_ids)
        num_masked = len(instance.masked_lm_ids)
        padding = bytes(max_seq_length - used)
        first = instance.num_segment_a
        features = [
            integers(b"input_ids", instance.input_ids, max_seq_length),
            _feature(b"input_mask", 3, b"\1" * used + padding),
            integers(b"masked_lm_ids", instance.masked_lm_ids, max_predictions_per_seq),
            integers(
                b"masked_lm_positions",
                instance.masked_lm_positions,
                max_predictions_per_seq,
            ),
            weights[num_masked],
            labels[instance.is_random_next],
            _feature(
                b"segment_ids", 3, bytes(first) + b"\1" * (used - first) + padding
            ),
        ]
        return _field(1, b"".join(features))

    return encode


def _varint(number):
    """Encode an int >= 0: seven bits a byte, low ones first."""
    encoded = bytearray()
    while number >= ONE_BYTE:
        encoded.append(number % ONE_BYTE | ONE_BYTE)
        number //= ONE_BYTE
    encoded.append(number)
    return bytes(encoded)


def _field(number, content):
    """Encode a field that carries its length."""
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _feature(name, kind, packed):
    """Encode one entry of the map; `kind` is 2 for floats, 3 for int64."""
    feature = _field(kind, _field(1, packed))
    return _field(1, _field(1, name) + _field(2, feature))


def _floats(count, length):
    return struct.pack(f"<{length}f", *[1.0] * count, *[0.0] * (length - count))
