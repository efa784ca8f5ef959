"""Masks drawn when a record is read, so that no two epochs have the same.

The masks of a row are a pure function of a seed and of the row's number, in
training counted from the first row of the run: row i of batch k has number
k * batch size + i. They depend neither on how the rows are shared out to
workers nor on where a run was interrupted.

The rules are those of `masking`, which makes the static masks. Shapes: B rows
of S tokens and P predictions; a row has at most S words.
"""

import dataclasses
from typing import Any

import tensorflow as tf

from official_bert.data.masking import MaskingMix

# What masks are for: each has random numbers of its own.
TRAINING, EVALUATION = 0, 1

# Random numbers are below this.
_RANGE = 2**31
# Numbers of 32 bits that Philox makes of one counter.
_OF_ONE_COUNTER = 4


@dataclasses.dataclass(frozen=True)
class MaskingRules:
    """How the records of one data set are masked.

    Attributes:
      masked_lm_prob: share of the tokens to mask.
      max_predictions_per_seq: P, most masked tokens of a row.
      do_whole_word_mask: mask whole words, which `continues_word` tells.
      mask_id: id of `[MASK]`.
      vocab_size: a random replacement is any id below it.
      masking_mix: `MaskingMix`, what the words to guess are seen as.
    """

    masked_lm_prob: float
    max_predictions_per_seq: int
    do_whole_word_mask: bool
    mask_id: int
    vocab_size: int
    masking_mix: MaskingMix = MaskingMix()

    def to_dict(self) -> dict[str, Any]:
        """Return the rules as a dict; without a mix that is the paper's."""
        rules = dataclasses.asdict(self)
        if self.masking_mix == MaskingMix():
            del rules["masking_mix"]
        return rules


def mask(
    features: dict[str, tf.Tensor],
    rules: MaskingRules,
    seed: int,
    purpose: int,
    first_row: int | tf.Tensor,
    chosen: tf.Tensor | None = None,
) -> dict[str, tf.Tensor]:
    """Mask rows whose numbers follow one another, or some of them.

    Args:
      features: dict of int32 tensors, `input_ids`, `input_mask` and
        `segment_ids` [B, S], and `continues_word` [B, S] for whole words;
        others are passed on.
      rules: `MaskingRules`.
      seed: int.
      purpose: `TRAINING` or `EVALUATION`.
      first_row: int64 scalar, number of the first row.
      chosen: bool of any shape, which of the rows from there on these B are, where
        it is true; None for all.

    Returns:
      dict, the features of static records: `input_ids` with its masks, and
      int32 `masked_lm_positions` (rising) and `masked_lm_ids`, float32
      `masked_lm_weights`, [B, P], padded with 0.
    """
    features = dict(features)
    continues = features.pop("continues_word", None)
    ids, used = features["input_ids"], tf.reduce_sum(features["input_mask"], axis=1)
    rows, length = ids.shape[0] or tf.shape(ids)[0], ids.shape[1]
    most = rules.max_predictions_per_seq
    width = length + 2 * most
    if chosen is None:
        random = random_rows(seed, purpose, first_row, rows, width)
    else:
        random = random_rows(seed, purpose, first_row, tf.size(chosen), width)
        random = tf.boolean_mask(random, tf.reshape(chosen, [-1]))
    order, kinds, others = tf.split(random, [length, most, most], axis=1)
    candidates = _candidates(used, features["segment_ids"])
    wanted = count_to_predict(used, rules)[:, tf.newaxis]
    if rules.do_whole_word_mask:
        picked = _pick_words(candidates, continues, order, wanted)
    else:
        picked = _pick_tokens(candidates, order, wanted, most)
    # The lowest P are the picked ones; the rest, if any, is `length`.
    positions = -tf.math.top_k(-picked, most).values
    real = positions < length
    positions = tf.where(real, positions, 0)
    labels = tf.where(real, tf.gather(ids, positions, batch_dims=1), 0)
    seen = tf.where(real, _replacements(labels, kinds, others, rules), 0)
    indices = tf.stack([_row_numbers(rows, most), positions], axis=-1)
    return {
        **features,
        # Adding 0, as padding does, may be done twice to one place.
        "input_ids": tf.tensor_scatter_nd_add(ids, indices, seen - labels),
        "masked_lm_positions": positions,
        "masked_lm_ids": labels,
        "masked_lm_weights": tf.cast(real, tf.float32),
    }


def random_rows(
    seed: int,
    purpose: int,
    first_row: int | tf.Tensor,
    rows: int | tf.Tensor,
    width: int,
) -> tf.Tensor:
    """Return random numbers, a row of which is a function of the row's number.

    Philox makes its numbers of a key and of a counter that goes up by one for
    every four of them, so that row n simply has the counters from n times
    their number in a row on.

    Args:
      seed: int.
      purpose: `TRAINING` or `EVALUATION`.
      first_row: int64 scalar, number of the first row.
      rows: int, how many rows.
      width: int, numbers of a row.

    Returns:
      int32 [rows, width], at least 0.
    """
    counters = -(-width // _OF_ONE_COUNTER)
    counter = tf.cast(tf.cast(first_row, tf.int64) * counters, tf.uint64)
    random = tf.raw_ops.StatelessRandomUniformFullIntV2(
        shape=[rows, counters * _OF_ONE_COUNTER],
        key=tf.constant([(2 * seed + purpose) % 2**64], tf.uint64),
        counter=tf.stack([counter, tf.constant(0, tf.uint64)]),
        alg=tf.random.Algorithm.PHILOX.value,
        dtype=tf.int32,
    )
    return tf.bitwise.bitwise_and(random, _RANGE - 1)[:, :width]


def _candidates(used, segment_ids):
    """Return bool [B, S], where there is neither `[CLS]`, `[SEP]` nor padding."""
    places = tf.range(segment_ids.shape[1])
    end = used[:, tf.newaxis]
    of_segment_a = end - tf.reduce_sum(segment_ids, axis=1, keepdims=True)
    return (places > 0) & (places < end - 1) & (places != of_segment_a - 1)


def count_to_predict(used: tf.Tensor, rules: MaskingRules) -> tf.Tensor:
    """Return how many tokens to mask at most, as `masking.count_to_predict`.

    Args:
      used: int32 [B], tokens of each row.
      rules: `MaskingRules`.

    Returns:
      int32 [B].
    """
    # In float64, as there.
    share = tf.round(tf.cast(used, tf.float64) * rules.masked_lm_prob)
    most = rules.max_predictions_per_seq
    return tf.clip_by_value(tf.cast(share, tf.int32), 1, most)


def _pick_tokens(candidates, order, wanted, most):
    """Return int32 [B, P], places drawn by lot; S where there are fewer."""
    # -1 comes behind all that are drawn from.
    scores, places = tf.math.top_k(tf.where(candidates, order, -1), most)
    real = (scores >= 0) & (tf.range(most) < wanted)
    return tf.where(real, places, candidates.shape[1])


def _pick_words(candidates, continues, order, wanted):
    """Return int32 [B, S]: places of words drawn by lot, and S elsewhere.

    As in `masking.mask_words`: words are taken in random order, and one that
    exceeds `wanted` is passed over; a rest of a word at the start of segment B
    joins the last word of A.
    """
    length = candidates.shape[1]
    words, word_lengths = _group_words(candidates, continues)
    drawn = tf.math.top_k(tf.where(word_lengths > 0, order, -1), length).indices
    taken = _take_while_room(tf.gather(word_lengths, drawn, batch_dims=1), wanted)
    # Sorting a permutation gives its inverse: when each word was drawn.
    turns = tf.gather(tf.argsort(drawn, axis=1), words, batch_dims=1)
    picked = candidates & tf.gather(taken, turns, batch_dims=1)
    return tf.where(picked, tf.range(length), length)


def _group_words(candidates, continues):
    """Return each candidate's word, counted from 0, and all words' lengths, [B, S]."""
    rows, length = tf.shape(candidates)[0], candidates.shape[1]
    ones = tf.cast(candidates, tf.int32)
    is_first = tf.cumsum(ones, axis=1) == 1
    starts = candidates & ((continues == 0) | is_first)
    words = tf.maximum(tf.cumsum(tf.cast(starts, tf.int32), axis=1) - 1, 0)
    numbers = words + _row_numbers(rows, length) * length
    lengths = tf.math.unsorted_segment_sum(ones, numbers, rows * length)
    return words, tf.reshape(lengths, [rows, length])


def _take_while_room(lengths, room):
    """Return which items, [B, W], are taken in turn; those without room are not."""

    def drop(taken, filled):
        # Room never grows, so that whatever exceeds what is left before the
        # first item that does not fit will not fit later either.
        full = filled > room
        left = room - tf.reduce_max(tf.where(full, 0, filled), axis=1, keepdims=True)
        taken = tf.where(full & (taken > left), 0, taken)
        return taken, tf.cumsum(taken, axis=1)

    start = (lengths, tf.cumsum(lengths, axis=1))
    taken, _ = tf.while_loop(
        lambda _, filled: tf.reduce_any(filled > room), drop, start
    )
    return taken > 0


def _replacements(labels, kinds, others, rules):
    """Return what is seen in place of labels, int32 [B, P]."""
    mix, kinds = rules.masking_mix, tf.cast(kinds, tf.int64)
    random = tf.math.floormod(others, rules.vocab_size)
    not_random = kinds < round((mix.mask + mix.same) / 100 * _RANGE)
    is_mask = kinds < round(mix.mask / 100 * _RANGE)
    return tf.where(is_mask, rules.mask_id, tf.where(not_random, labels, random))


def _row_numbers(rows, width):
    """Return int32 [rows, width], each number that of its row."""
    return tf.repeat(tf.range(rows)[:, tf.newaxis], width, axis=1)
