"""Hidden states without rows for padding."""

import dataclasses

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class TokenRows:
    """Where the rows of hidden states [T, H] stand in a batch [B, S].

    Only attention looks along a text. Everything else of a block handles each row by
    itself, so rows that nothing reads need not be there.

    Attributes:
      batch: int scalar, B.
      places: int64 [T], each row's place in the flattened batch, ascending; None
        where all B * S positions have their row.
      row_of: int64 [B * S], the row of each place, T for one without; or None.
    """

    batch: tf.Tensor
    places: tf.Tensor | None = None
    row_of: tf.Tensor | None = None

    @classmethod
    def without_padding(cls, input_mask):
        """Give rows to the tokens of `input_mask` int [B, S] that are not 0."""
        real = tf.reshape(input_mask, [-1]) != 0
        places = tf.where(real)[:, 0]
        count = tf.cumsum(tf.cast(real, tf.int64), exclusive=True)
        row_of = tf.where(real, count, tf.size(places, tf.int64))
        return cls(tf.shape(input_mask)[0], places, row_of)

    def take(self, x):
        """Return the rows [T, H] of `x` [B * S, H]."""
        return x if self.places is None else _take(x, self.places, self.row_of)

    def spread(self, x):
        """Return rows [T, H] at their places, [B * S, H]; the others are 0."""
        return x if self.places is None else _spread(x, self.places, self.row_of)


# Each is the other's gradient. TensorFlow's own would add up rows one by one, since
# it cannot know that no place has two.


@tf.custom_gradient
def _take(x, places, row_of):
    return tf.gather(x, places), lambda up: (_spread(up, places, row_of), None, None)


@tf.custom_gradient
def _spread(x, places, row_of):
    with_empty = tf.concat([x, tf.zeros([1, x.shape[-1]], x.dtype)], axis=0)
    return (
        tf.gather(with_empty, row_of),
        lambda up: (_take(up, places, row_of), None, None),
    )
