"""Dropout whose mask is a pure function of a seed.

The mask stays the same in a restarted run, and in a layer that is computed again for
its gradient.
"""

import tensorflow as tf

# A dropout seed is int64 [2]: the run's seed, and a number whose lowest bits hold the
# dropout index. A model numbers its dropouts from 0: one in the embeddings, three in
# each block, then one before the head.
NUM_INDICES = 1024
# Attention may split a batch into several groups of texts. The dropout indices of group
# g are those of group 0 plus g * GROUP_INDICES.
MAX_GROUPS = 4
GROUP_INDICES = NUM_INDICES // MAX_GROUPS


def index_seed(seed: tf.Tensor, dropout_index: int) -> tf.Tensor:
    """Return the int64 [2] seed of one dropout (0 <= index < NUM_INDICES)."""
    return seed + tf.constant([0, dropout_index], tf.int64)


def dropout(
    x: tf.Tensor, rate: float, seed: tf.Tensor | None, dropout_index: int
) -> tf.Tensor:
    """Zero each element with probability `rate`; scale the rest by 1/(1-rate).

    The mask is a pure function of (seed, index, shape). 16 random bits decide each
    element. The actual rate is therefore `rate` rounded to a multiple of 2**-16 (0.1
    becomes 0.10001), and the scale is exact for that rate.

    Args:
      x: float tensor of any shape.
      rate: probability of zero.
      seed: int64 [2], or None for no dropout (evaluation).
      dropout_index: dropout index within the model.

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
        index_seed(seed, dropout_index),
        minval=None,
        maxval=None,
        dtype=tf.uint32,
        # XLA's default generator uses only the lower half of each number of the seed,
        # and the training step is in the upper half.
        alg="philox",
    )
    bits = tf.reshape(tf.bitcast(bits, tf.uint16), [-1])[:size]
    keep = tf.reshape(bits >= tf.constant(threshold, tf.uint16), shape)
    scale = 2**16 / (2**16 - threshold)
    return x * (tf.cast(keep, x.dtype) * tf.cast(scale, x.dtype))
