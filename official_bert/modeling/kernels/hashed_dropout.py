"""Dropout that decides each element by a hash, computed where it is used."""

import tensorflow as tf

from official_bert.modeling.dropout import index_seed


def mask_key(seed: tf.Tensor, dropout_index: int) -> tf.Tensor:
    """Return the uint32 [2] key of one dropout's mask in one training step."""
    return tf.random.stateless_uniform(
        [2],
        index_seed(seed, dropout_index),
        minval=None,
        maxval=None,
        dtype=tf.uint32,
        alg="philox",  # For the reason given in `dropout`.
    )


def hashed_dropout(x: tf.Tensor, key: tf.Tensor, rate: float) -> tf.Tensor:
    """Dropout that decides each element by a hash of its position and the key.

    Random bits of a generator would be written and read, a pass each; a hash is
    computed where it is used. It is Wellons' `lowbias32`, with one half of the key
    mixed in before the first round, the other before the second, and a last
    multiplication.

    Args:
      x: float tensor of any shape.
      key: uint32 [2], see `mask_key`.
      rate: probability of zero, to 32 bits.

    Returns:
      tensor like `x`.
    """
    if not rate:
        return x
    bits = _hash(_positions(x, key), key)
    threshold = round(rate * 2**32)
    scale = 2**32 / (2**32 - threshold)
    keep = bits >= tf.constant(threshold, tf.uint32)
    # In half precision the scale itself would be rounded.
    scaled = tf.cast(tf.cast(x, tf.float32) * scale, x.dtype)
    return tf.where(keep, scaled, tf.zeros_like(x))


def _positions(x, key):
    """Return the number of each element of `x` in the flattened tensor, uint32.

    It is a sum over the axes, which begins with a 0 that is not a constant. TensorFlow
    would write the numbers of all elements into the program otherwise.
    """
    shape = tf.unstack(tf.shape(x))
    positions = tf.bitwise.bitwise_and(key[0], tf.constant(0, tf.uint32))
    step = tf.constant(1, tf.uint32)
    for axis, size in reversed(list(enumerate(shape))):
        along = step * tf.cast(tf.range(size), tf.uint32)
        positions += tf.reshape(along, [-1] + [1] * (len(shape) - 1 - axis))
        step *= tf.cast(size, tf.uint32)
    return positions


def _hash(positions, key):
    """Return uint32 shaped like `positions`, whose high bits are the random ones."""
    h = tf.bitwise.bitwise_xor(positions, key[0])
    h = _fold(h, 16) * tf.constant(0x7FEB352D, tf.uint32)
    h = tf.bitwise.bitwise_xor(h, key[1])
    h = _fold(h, 15) * tf.constant(0x846CA68B, tf.uint32)
    # That has mixed the key's second half too little for the high bits.
    return _fold(h, 16) * tf.constant(0x9E3779B1, tf.uint32)


def _fold(h, shift):
    return tf.bitwise.bitwise_xor(
        h, tf.bitwise.right_shift(h, tf.constant(shift, tf.uint32))
    )
