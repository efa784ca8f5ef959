"""Dropout with a mask from a hash, computed when it is used."""

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
        alg="philox",  # For the same reason as in `dropout`.
    )


def hashed_dropout(x: tf.Tensor, key: tf.Tensor, rate: float) -> tf.Tensor:
    """Zero each element by a hash of its index and the key; scale the rest.

    A generator would write and read random bits, one memory pass each. The hash is
    computed when it is used. It is Wellons' `lowbias32` with these changes: the two
    halves of the key are mixed in before the first and the second round, and there is
    a last multiplication.

    Args:
      x: float tensor of any shape.
      key: uint32 [2], see `mask_key`.
      rate: probability of zero, rounded to 32 bits.

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
    """Return the index of each element of `x` in the flattened tensor, uint32.

    It is a sum over the axes that starts with a 0 computed from the key. With a
    constant 0, TensorFlow would store the indices of all elements in the program.
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
    """Return hashes, uint32 shaped like `positions`; their high bits are random."""
    h = tf.bitwise.bitwise_xor(positions, key[0])
    h = _fold(h, 16) * tf.constant(0x7FEB352D, tf.uint32)
    h = tf.bitwise.bitwise_xor(h, key[1])
    h = _fold(h, 15) * tf.constant(0x846CA68B, tf.uint32)
    # `lowbias32` ends here. Its high bits depend too little on the key's second half.
    return _fold(h, 16) * tf.constant(0x9E3779B1, tf.uint32)


def _fold(h, shift):
    return tf.bitwise.bitwise_xor(
        h, tf.bitwise.right_shift(h, tf.constant(shift, tf.uint32))
    )
