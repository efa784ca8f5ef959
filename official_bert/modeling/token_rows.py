"""Hidden states without rows for padding, and texts of like length for attention."""

import dataclasses
import math

import tensorflow as tf

from official_bert.modeling import element_wise

# Into how many groups texts are sorted, and what divides their lengths. Each group is
# some forty operations more in each layer, which take a while to trace.
GROUPS, LENGTH_STEP = 4, 8


@dataclasses.dataclass(frozen=True)
class TokenRows:
    """Where the rows of hidden states [T, H] stand in a batch [B, S].

    Only attention looks along a text. Everything else of a block handles each row by
    itself, so rows that nothing reads need not be there. For attention the texts may be
    sorted into groups of like length, of B_g texts and S_g tokens each.

    Attributes:
      masks: of each group, int [B_g, S_g]: not 0 for tokens.
      in_batch: `Places` of the T rows among the B * S; None where these are the rows.
      in_groups: `Places` of the T rows among those of all groups; or None.
    """

    masks: list[tf.Tensor]
    in_batch: "Places | None" = None
    in_groups: "Places | None" = None

    @classmethod
    def of_all(cls, input_mask):
        """Give a row to each place of `input_mask` [B, S], which is the one group."""
        return cls([input_mask])

    @classmethod
    def without_padding(cls, input_mask):
        """Give rows to the tokens of `input_mask` int [B, S] that are not 0.

        In runs whose element-wise work is compiled, some padding has rows too, so that
        only a few T occur, and there are `GROUPS` groups; otherwise one.
        """
        chosen = tf.reshape(input_mask, [-1]) != 0
        if not element_wise.is_compiled():
            in_batch = Places.of_chosen(chosen)
            return cls([input_mask], in_batch, in_batch)
        in_batch = Places.of_chosen(_with_some_padding(chosen))
        masks, places = _groups(input_mask)
        # From the groups' places over the batch's to the rows, and the other way.
        row_of = tf.gather(in_batch.row_of, places)
        rows = tf.size(in_batch.place_of)
        place_of = tf.tensor_scatter_nd_update(
            tf.fill([rows + 1], tf.size(places)),
            row_of[:, tf.newaxis],
            tf.range(tf.size(places)),
        )[:rows]
        return cls(masks, in_batch, Places(place_of, row_of))

    def spread(self, x):
        """Return rows [T, H] at their places, [B * S, H]; the others are 0."""
        return x if self.in_batch is None else self.in_batch.spread(x)

    def take(self, x):
        """Return the rows [T, H] of `x` [B * S, H]."""
        return x if self.in_batch is None else self.in_batch.take(x)

    def split(self, x):
        """Return rows [T, H] as [B_g, S_g, H] of each group; 0 where there is none."""
        if self.in_groups is not None:
            x = self.in_groups.spread(x)
        width = x.shape[-1]
        parts = [x]
        if len(self.masks) > 1:
            parts = tf.split(x, tf.stack([tf.size(mask) for mask in self.masks]))
        return [
            tf.reshape(part, tf.concat([tf.shape(mask), [width]], axis=0))
            for part, mask in zip(parts, self.masks, strict=True)
        ]

    def join(self, parts):
        """Return the rows [T, H] of what `split` gave."""
        flat = [tf.reshape(part, [-1, part.shape[-1]]) for part in parts]
        x = flat[0] if len(flat) == 1 else tf.concat(flat, axis=0)
        return x if self.in_groups is None else self.in_groups.take(x)


@dataclasses.dataclass(frozen=True)
class Places:
    """Which of T rows stands at which of N places.

    Attributes:
      place_of: int32 [T], a row's place; N for a row without one.
      row_of: int32 [N], a place's row; T for a place without one.
    """

    place_of: tf.Tensor
    row_of: tf.Tensor

    @classmethod
    def of_chosen(cls, chosen):
        """Give rows to the places where bool [N] is true, in their order."""
        place_of = tf.cast(tf.where(chosen)[:, 0], tf.int32)
        before = tf.cumsum(tf.cast(chosen, tf.int32), exclusive=True)
        return cls(place_of, tf.where(chosen, before, tf.size(place_of)))

    def take(self, x):
        """Return the rows [T, H] of `x` [N, H], 0 for a row without a place."""
        return _rearranged(x, self.place_of, self.row_of)

    def spread(self, x):
        """Return rows [T, H] at their places, [N, H], 0 at a place without a row."""
        return _rearranged(x, self.row_of, self.place_of)


@tf.custom_gradient
def _rearranged(x, there, back):
    """Gather rows; the gradient is gathered too, with the inverse.

    TensorFlow's own gradient would add up rows one by one, since it cannot know that
    no place has two.
    """
    with_empty = tf.concat([x, tf.zeros([1, x.shape[-1]], x.dtype)], axis=0)
    return (
        tf.gather(with_empty, there),
        lambda up: (_rearranged(up, back, there), None, None),
    )


def _with_some_padding(real):
    """Add places without a token, so that there are few numbers of places.

    Args:
      real: bool [N], whether a place holds a token.

    Returns:
      bool [N]. How many are true is N or a multiple of the power of two that is a 32nd
      to a 16th of it: 16 numbers between one power of two and the next.
    """
    count = tf.math.count_nonzero(real, dtype=tf.float32)
    step = 2.0 ** tf.floor(tf.math.log(tf.maximum(count, 16.0)) / math.log(2.0) - 4.0)
    missing = tf.cast(-count % step, tf.int32)
    padding = tf.logical_not(real)
    return real | (padding & (tf.cumsum(tf.cast(padding, tf.int32)) <= missing))


def _groups(input_mask):
    """Sort texts into groups of like length.

    Args:
      input_mask: int [B, S].

    Returns:
      (list of the groups' int [B_g, S_g]; the place in [B * S] of each of theirs,
      int32 [N], one group after the other).
    """
    batch, longest = tf.shape(input_mask)[0], tf.shape(input_mask)[1]
    columns = tf.range(longest)
    ends = tf.reduce_max(tf.where(input_mask != 0, columns + 1, 1), axis=1)
    order = tf.argsort(ends, stable=True)
    masks, places = [], []
    for number in range(GROUPS):
        texts = order[batch * number // GROUPS : batch * (number + 1) // GROUPS]
        length = tf.reduce_max(tf.concat([tf.gather(ends, texts), [1]], axis=0))
        length = tf.minimum(-(-length // LENGTH_STEP) * LENGTH_STEP, longest)
        masks.append(tf.gather(input_mask, texts)[:, :length])
        places.append(
            tf.reshape(texts[:, tf.newaxis] * longest + columns[:length], [-1])
        )
    return masks, tf.concat(places, axis=0)
