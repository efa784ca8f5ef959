"""Parts of texts as TensorFlow ops, by the offsets that the tokenizer gives."""

import tensorflow as tf

# Of the longest text, for each text of a request: some 100 MB.
MOST_CELLS = 2**22


def parts_of(
    texts: tf.Tensor, of_text: tf.Tensor, starts: tf.Tensor, ends: tf.Tensor
) -> tf.Tensor:
    """Return parts of texts, string [M].

    Args:
      texts: string [N], UTF-8; bytes that are none do not count.
      of_text: int32 [M], the numbers of the texts.
      starts: int32 [M], in decoded characters.
      ends: int32 [M], likewise.
    """
    decoded = tf.strings.unicode_decode(texts, "UTF-8", errors="ignore")
    first = tf.gather(tf.cast(decoded.row_starts(), tf.int32), of_text)
    # Not `tf.strings.substr`, which reads each text from its beginning.
    positions = tf.ragged.range(first + starts, first + ends)
    return tf.strings.unicode_encode(
        positions.with_values(tf.gather(decoded.values, positions.values)), "UTF-8"
    )


def per_text(
    values: tf.Tensor, of_text: tf.Tensor, number: tf.Tensor, default: str | float
) -> tf.Tensor:
    """Return values by text, [N, the most of one text], padded.

    Args:
      values: [M], in the order of the texts.
      of_text: int32 [M], the number of the text of each.
      number: N.
      default: the value for padding.

    Raises:
      InvalidArgumentError: that are more than `MOST_CELLS`, of texts of unlike length.
    """
    rows = tf.RaggedTensor.from_value_rowids(
        values, tf.cast(of_text, tf.int64), tf.cast(number, tf.int64)
    )
    is_small = tf.debugging.assert_less_equal(
        rows.nrows() * rows.bounding_shape(axis=1),
        tf.constant(MOST_CELLS, tf.int64),
        "The answer has too many values for its longest text; ask for fewer rows.",
    )
    # Before so much memory is taken.
    with tf.control_dependencies([is_small]):
        return rows.to_tensor(default)
