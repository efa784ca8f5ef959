"""Dropout whose mask is a pure function of a seed.

A restarted run, and a layer that is computed a second time for its gradient, see the
same mask.
"""

import tensorflow as tf

from official_bert.modeling import element_wise

# A dropout seed is int64 [2]: the run's seed, and a number whose lowest bits
# tell the sites of one model apart (see `site_seed`).
SITES = 1024


def site_seed(seed, site):
    """Return the int64 [2] seed of one dropout site (0 <= site < SITES)."""
    return seed + tf.constant([0, site], tf.int64)


def dropout(x, rate, seed, site):
    """Zero each element with probability `rate`, scale the rest by 1/(1-rate).

    The mask is a pure function of (seed, site, shape). Each element is decided by 16
    random bits, so the realised rate is `rate` rounded to a multiple of 2**-16 (0.1
    becomes 0.10001), and the scale is exact for it.

    Args:
      x: float tensor of any shape.
      rate: probability of zero.
      seed: int64 [2], or None for no dropout (evaluation).
      site: number of this dropout within the model.

    Returns:
      tensor like `x`.
    """
    threshold = round(rate * 2**16)
    if seed is None or not threshold:
        return x
    shape = tf.shape(x)
    size = tf.reduce_prod(shape)
    bits = tf.random.stateless_uniform(
        [(size + 1) // 2],
        site_seed(seed, site),
        minval=None,
        maxval=None,
        dtype=tf.uint32,
        # The generator that is fast where this runs: on CPUs and GPUs Philox, compiled
        # by XLA or not.
        alg="auto_select",
    )
    bits = tf.reshape(tf.bitcast(bits, tf.uint16), [-1])[:size]
    keep = tf.reshape(bits >= tf.constant(threshold, tf.uint16), shape)
    scale = 2**16 / (2**16 - threshold)
    return x * (tf.cast(keep, x.dtype) * tf.cast(scale, x.dtype))


def mask_key(seed, site):
    """Return the uint32 [2] key of one site's mask in one update."""
    return tf.random.stateless_uniform(
        [2], site_seed(seed, site), minval=None, maxval=None, dtype=tf.uint32
    )


@element_wise.in_one_pass
def hashed_dropout(x, key, rate):
    """Dropout that decides each element by a hash of its place and the key.

    Random bits of a generator would be written and read, a pass each; a hash is
    computed where it is used. It is Wellons' `lowbias32`, with one half of the key
    mixed in before the first round, the other before the second, and a last
    multiplication.

    Args:
      x: float32 tensor of any shape.
      key: uint32 [2], see `mask_key`.
      rate: probability of zero, to 32 bits.

    Returns:
      tensor like `x`.
    """
    if not rate:
        return x
    shape = tf.shape(x)
    places = tf.reshape(tf.range(tf.size(x)), shape)
    bits = _hash(tf.cast(places, tf.uint32), key)
    threshold = round(rate * 2**32)
    scale = 2**32 / (2**32 - threshold)
    keep = bits >= tf.constant(threshold, tf.uint32)
    return tf.where(keep, x * scale, tf.zeros_like(x))


def _hash(places, key):
    """Return uint32 of the shape of `places`, whose high bits are the random ones."""
    h = tf.bitwise.bitwise_xor(places, key[0])
    h = _fold(h, 16) * tf.constant(0x7FEB352D, tf.uint32)
    h = tf.bitwise.bitwise_xor(h, key[1])
    h = _fold(h, 15) * tf.constant(0x846CA68B, tf.uint32)
    # That has mixed the key's second half too little for the high bits.
    return _fold(h, 16) * tf.constant(0x9E3779B1, tf.uint32)


def _fold(h, shift):
    return tf.bitwise.bitwise_xor(
        h, tf.bitwise.right_shift(h, tf.constant(shift, tf.uint32))
    )
