"""Packed hidden states without padding, and attention in groups of similar length."""

import dataclasses
import math
from typing import Self

import tensorflow as tf

from official_bert.modeling.dropout import GROUP_INDICES, MAX_GROUPS
from official_bert.modeling.kernels.interface import Kernels

# The number of groups of texts, and the number that divides each group's length. A
# group adds about forty operations to each layer, which take time to trace.
GROUPS, LENGTH_STEP = MAX_GROUPS, 8


@dataclasses.dataclass(frozen=True)
class Packing:
    """Positions of the packed tokens (hidden states [T, H]) in a batch [B, S].

    Only attention combines the tokens of a text. The rest of a block computes each
    token by itself, so it can skip padding. For attention the texts may be sorted into
    groups of similar length, with B_g texts of S_g tokens each.

    Attributes:
      masks: one int [B_g, S_g] per group; not 0 for tokens.
      in_batch: `Positions` of the T tokens among the B * S.
      in_groups: `Positions` of the T tokens among those of all groups.
    """

    masks: list[tf.Tensor]
    in_batch: "Positions"
    in_groups: "Positions"

    def pack(self, x: tf.Tensor) -> tf.Tensor:
        """Return the tokens [T, H] of `x` [B * S, H]."""
        return self.in_batch.pack(x)

    def unpack(self, x: tf.Tensor) -> tf.Tensor:
        """Return tokens [T, H] at their positions, [B * S, H]; 0 elsewhere."""
        return self.in_batch.unpack(x)

    def wrap(self, kernels: Kernels) -> Kernels:
        """Return `Kernels` whose attention takes packed tokens.

        Its bias is a list with one entry per group. It returns no probabilities. Each
        group has its own dropout indices.
        """

        def attend(query, key, value, biases, *settings):
            *others, dropout_index = settings
            parts = zip(*map(self._split, (query, key, value)), biases, strict=True)
            contexts = []
            for number, part in enumerate(parts):
                index = dropout_index + number * GROUP_INDICES
                context, _ = kernels.attention(*part, *others, index)
                contexts.append(context)  # [B_g * S_g, H]
            context = contexts[0] if len(contexts) == 1 else tf.concat(contexts, axis=0)
            return self.in_groups.pack(context), None

        return dataclasses.replace(kernels, attention=attend)

    def _split(self, x):
        """Return tokens [T, H] as one [B_g * S_g, H] per group; padding is 0."""
        x = self.in_groups.unpack(x)
        if len(self.masks) == 1:
            return [x]
        return tf.split(x, tf.stack([tf.size(mask) for mask in self.masks]))


@dataclasses.dataclass(frozen=True)
class Positions:
    """The mapping between T packed tokens and N positions.

    Attributes:
      position_of: int32 [T], a token's position; N for a token without one.
      token_of: int32 [N], a position's token; T for a position without one.
    """

    position_of: tf.Tensor
    token_of: tf.Tensor

    @classmethod
    def where(cls, chosen: tf.Tensor) -> Self:
        """Map the positions where bool [N] is true, in their order."""
        position_of = tf.cast(tf.where(chosen)[:, 0], tf.int32)
        before = tf.cumsum(tf.cast(chosen, tf.int32), exclusive=True)
        return cls(position_of, tf.where(chosen, before, tf.size(position_of)))

    def pack(self, x: tf.Tensor) -> tf.Tensor:
        """Return the tokens [T, H] of `x` [N, H], 0 for a token without a position."""
        return _rearranged(x, self.position_of, self.token_of)

    def unpack(self, x: tf.Tensor) -> tf.Tensor:
        """Return tokens [T, H] at their positions, [N, H]; 0 elsewhere."""
        return _rearranged(x, self.token_of, self.position_of)


@tf.custom_gradient
def _rearranged(x, there, back):
    """Gather rows, and gather their gradient with the inverse mapping.

    TensorFlow's own gradient would add up rows one by one, because it does not know
    that each row is gathered only once.
    """
    with_empty = tf.concat([x, tf.zeros([1, x.shape[-1]], x.dtype)], axis=0)
    return (
        tf.gather(with_empty, there),
        lambda up: (_rearranged(up, back, there), None, None),
    )


def pack_tokens(input_mask: tf.Tensor) -> Packing:
    """Return the `Packing` of the tokens of `input_mask` int [B, S], as one group."""
    in_batch = Positions.where(tf.reshape(input_mask, [-1]) != 0)
    return Packing([input_mask], in_batch, in_batch)


def pack_in_groups(input_mask: tf.Tensor) -> Packing:
    """Return the `Packing` of `input_mask` int [B, S], for compiled shapes.

    Some padding is packed too, so that T takes few values. There are `GROUPS` groups.
    """
    chosen = _with_some_padding(tf.reshape(input_mask, [-1]) != 0)  # [B * S]
    in_batch = Positions.where(chosen)
    masks, positions = _groups(input_mask)
    # Compose the mappings groups' positions -> batch positions -> tokens, and back.
    token_of = tf.gather(in_batch.token_of, positions)
    num_tokens = tf.size(in_batch.position_of)
    position_of = tf.tensor_scatter_nd_update(
        tf.fill([num_tokens + 1], tf.size(positions)),
        token_of[:, tf.newaxis],
        tf.range(tf.size(positions)),
    )[:num_tokens]
    return Packing(masks, in_batch, Positions(position_of, token_of))


def _with_some_padding(real):
    """Add padding positions, so that the number of positions takes few values.

    Args:
      real: bool [N], whether a position holds a token.

    Returns:
      bool [N]. The number of true elements is N or a multiple of the power of two that
      is 1/32 to 1/16 of it: 16 values between one power of two and the next.
    """
    count = tf.math.count_nonzero(real, dtype=tf.float32)
    step = 2.0 ** tf.floor(tf.math.log(tf.maximum(count, 16.0)) / math.log(2.0) - 4.0)
    missing = tf.cast(-count % step, tf.int32)
    padding = tf.logical_not(real)
    return real | (padding & (tf.cumsum(tf.cast(padding, tf.int32)) <= missing))


def _groups(input_mask):
    """Sort texts into groups of similar length.

    Args:
      input_mask: int [B, S].

    Returns:
      (list of the groups' masks int [B_g, S_g]; int32 [N], the index in [B * S] of
      each of their positions, group after group).
    """
    batch, longest = tf.shape(input_mask)[0], tf.shape(input_mask)[1]
    columns = tf.range(longest)
    ends = tf.reduce_max(tf.where(input_mask != 0, columns + 1, 1), axis=1)  # [B]
    order = tf.argsort(ends, stable=True)
    masks, positions = [], []
    for number in range(GROUPS):
        texts = order[batch * number // GROUPS : batch * (number + 1) // GROUPS]
        length = tf.reduce_max(tf.concat([tf.gather(ends, texts), [1]], axis=0))
        length = tf.minimum(-(-length // LENGTH_STEP) * LENGTH_STEP, longest)
        masks.append(tf.gather(input_mask, texts)[:, :length])  # [B_g, S_g]
        positions.append(
            tf.reshape(texts[:, tf.newaxis] * longest + columns[:length], [-1])
        )
    return masks, tf.concat(positions, axis=0)
