"""Parts of texts as TensorFlow ops, from the tokenizer's offsets."""

import tensorflow as tf

# Limit for (texts of a request) × (values of the longest text): about 100 MB.
MOST_CELLS = 2**22


def parts_of(
    texts: tf.Tensor, of_text: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor
) -> tf.Tensor:
    """Return parts of texts, string [M].

    Args:
      texts: string [N], UTF-8; invalid bytes are skipped.
      of_text: int32 [M], the text index of each part.
      starts: int32 [M], first character of each part.
      ends: int32 [M], the character after its last.
    """
    decoded = tf.strings.unicode_decode(texts, "UTF-8", errors="ignore")
    first = tf.gather(tf.cast(decoded.row_starts(), tf.int32), of_text)
    # Not `tf.strings.substr`, which decodes each text from its beginning.
    positions = tf.ragged.range(first + starts, first + ends)
    return tf.strings.unicode_encode(
        positions.with_values(tf.gather(decoded.values, positions.values)), "UTF-8"
    )


def per_text(
    values: tf.Tensor, of_text: tf.Tensor, number: tf.Tensor, default: str | float
) -> tf.Tensor:
    """Return values grouped by text, padded to [N, maximum count].

    Args:
      values: [M], in the order of the texts.
      of_text: int32 [M], the text index of each value.
      number: N.
      default: the value for padding.

    Raises:
      InvalidArgumentError: the padded result would have more than `MOST_CELLS`
        values.
    """
    rows = tf.RaggedTensor.from_value_rowids(
        values, tf.cast(of_text, tf.int64), tf.cast(number, tf.int64)
    )
    is_small = tf.debugging.assert_less_equal(
        rows.nrows() * rows.bounding_shape(axis=1),
        tf.constant(MOST_CELLS, tf.int64),
        "The longest text has too many values for this number of rows. "
        "Send fewer rows per request.",
    )
    # Check before the memory is allocated.
    with tf.control_dependencies([is_small]):
        return rows.to_tensor(default)
