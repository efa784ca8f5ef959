"""Draw masks when a record is read, so that each epoch has new masks.

The masks of a row are a pure function of a seed and of the row's number. In
training, the number counts from the first row of the run: row i of batch k has
number k * batch size + i. Masks do not depend on the distribution of rows to
workers or on interruptions.

The rules are those of `masking`, which makes the static masks. Shapes: B rows
of S tokens and P predictions; a row has at most S words.
"""

import dataclasses
from typing import Any, Self

import tensorflow as tf

from official_bert.data.masking import MaskingMix
from official_bert.errors import UserError

# Purposes of masks; each has its own random numbers.
TRAINING, EVALUATION = 0, 1

# Random numbers are below this limit.
_RANGE = 2**31
# Philox makes this many 32-bit numbers from one counter.
_OF_ONE_COUNTER = 4


@dataclasses.dataclass(frozen=True)
class MaskingRules:
    """Masking settings for the records of a data set.

    Attributes:
      masked_lm_prob: share of the tokens to mask.
      max_predictions_per_seq: P, maximum number of masked tokens in a row.
      do_whole_word_mask: mask whole words, which `continues_word` marks.
      mask_id: id of `[MASK]`.
      vocab_size: a random replacement is any id below this.
      masking_mix: `MaskingMix`, the input tokens at masked positions.
    """

    masked_lm_prob: float
    max_predictions_per_seq: int
    do_whole_word_mask: bool
    mask_id: int
    vocab_size: int
    masking_mix: MaskingMix = MaskingMix()

    def to_dict(self) -> dict[str, Any]:
        """Return the rules as a dict; the paper's default mix is omitted."""
        rules = dataclasses.asdict(self)
        if self.masking_mix == MaskingMix():
            del rules["masking_mix"]
        return rules


@dataclasses.dataclass(frozen=True)
class MaskingRate:
    """The share of masked tokens in training, which may change over the run.

    The rate is a pure function of the training step, so that a resumed run draws the
    same masks. Sources: a constant rate up to 0.4, Wettig et al. (2023); a decreasing
    rate, Ankner et al. (2023).

    Attributes:
      start: the rate at step 0.
      end: the rate after the last step.
      num_train_steps: number of steps from `start` to `end`.
    """

    start: float
    end: float
    num_train_steps: int

    @classmethod
    def parse(cls, text: str, num_train_steps: int) -> Self:
        """Return the rate for "0.4" (constant) or "0.30:0.15" (linear).

        Raises:
          UserError: the text is neither of the two, or a rate is not between 0 and 1.
        """
        parts = text.split(":")
        try:
            rates = [float(part) for part in parts]
        except ValueError:
            rates = []
        if len(rates) not in (1, 2) or not all(0 < rate < 1 for rate in rates):
            raise UserError(
                f"--masked_lm_prob={text} is invalid. Give one rate between 0 and 1, "
                "such as 0.4, or the first and the last rate, such as 0.30:0.15."
            )
        return cls(rates[0], rates[-1], num_train_steps)

    def __str__(self) -> str:
        ends = [self.start] if self.start == self.end else [self.start, self.end]
        return ":".join(map(str, ends))

    @property
    def highest(self) -> float:
        """The highest rate of the run."""
        return max(self.start, self.end)

    def at(self, step: int | tf.Tensor) -> float | tf.Tensor:
        """Return the rate of the batch of a step (from 0): a float64 scalar."""
        if self.start == self.end:
            return self.start
        share = tf.cast(step, tf.float64) / self.num_train_steps
        return self.start + (self.end - self.start) * tf.minimum(share, 1.0)

    def widest(self, rules: MaskingRules, max_seq_length: int) -> MaskingRules:
        """Return rules with room for the masked tokens of the highest rate.

        Args:
          rules: `MaskingRules` of the records.
          max_seq_length: S.
        """
        return dataclasses.replace(
            rules,
            masked_lm_prob=self.highest,
            max_predictions_per_seq=self.most_predictions(max_seq_length),
        )

    def most_predictions(self, max_seq_length: int) -> int:
        """Return the masked tokens of a full sequence at the highest rate.

        Args:
          max_seq_length: S.
        """
        return max(1, round(max_seq_length * self.highest))


def mask(
    features: dict[str, tf.Tensor],
    rules: MaskingRules,
    seed: int,
    purpose: int,
    first_row: int | tf.Tensor,
    chosen: tf.Tensor | None = None,
    masked_lm_prob: float | tf.Tensor | None = None,
) -> dict[str, tf.Tensor]:
    """Mask rows with consecutive numbers, or some of them.

    Args:
      features: dict of int32 tensors, `input_ids`, `input_mask` and
        `segment_ids` [B, S], and `continues_word` [B, S] for whole words. Other
        features are returned unchanged.
      rules: `MaskingRules`.
      seed: int.
      purpose: `TRAINING` or `EVALUATION`.
      first_row: int64 scalar, number of the first row.
      chosen: bool of any shape, true for the B consecutive row numbers to use,
        counted from `first_row`; None for all.
      masked_lm_prob: share of the tokens to mask; by default that of the rules.

    Returns:
      dict with the features of static records: `input_ids` with masks, and
      int32 `masked_lm_positions` (ascending) and `masked_lm_ids`, float32
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
    wanted = count_to_predict(used, rules, masked_lm_prob)[:, tf.newaxis]
    if rules.do_whole_word_mask:
        picked = _pick_words(candidates, continues, order, wanted)
    else:
        picked = _pick_tokens(candidates, order, wanted, most)
    # The lowest P are the picked positions; missing ones have the value
    # `length`.
    positions = -tf.math.top_k(-picked, most).values
    real = positions < length
    positions = tf.where(real, positions, 0)
    labels = tf.where(real, tf.gather(ids, positions, batch_dims=1), 0)
    seen = tf.where(real, _replacements(labels, kinds, others, rules), 0)
    indices = tf.stack([_row_numbers(rows, most), positions], axis=-1)
    return {
        **features,
        # Padding adds 0, which may happen several times at one position.
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
    """Return random numbers; each row is a function of the row's number.

    Philox computes four numbers from a key and a counter. Row n uses the
    counters starting at n times the number of counters per row.

    Args:
      seed: int.
      purpose: `TRAINING` or `EVALUATION`.
      first_row: int64 scalar, number of the first row.
      rows: int, number of rows.
      width: int, numbers per row.

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
    """Return bool [B, S], false at `[CLS]`, `[SEP]` and padding."""
    places = tf.range(segment_ids.shape[1])
    end = used[:, tf.newaxis]
    of_segment_a = end - tf.reduce_sum(segment_ids, axis=1, keepdims=True)
    return (places > 0) & (places < end - 1) & (places != of_segment_a - 1)


def count_to_predict(
    used: tf.Tensor,
    rules: MaskingRules,
    masked_lm_prob: float | tf.Tensor | None = None,
) -> tf.Tensor:
    """Return the maximum number of tokens to mask, like `masking.count_to_predict`.

    Args:
      used: int32 [B], tokens of each row.
      rules: `MaskingRules`.
      masked_lm_prob: share of the tokens to mask; by default that of the rules.

    Returns:
      int32 [B].
    """
    # float64, as in `masking.count_to_predict`.
    prob = rules.masked_lm_prob if masked_lm_prob is None else masked_lm_prob
    share = tf.round(tf.cast(used, tf.float64) * prob)
    most = rules.max_predictions_per_seq
    return tf.clip_by_value(tf.cast(share, tf.int32), 1, most)


def _pick_tokens(candidates, order, wanted, most):
    """Return int32 [B, P], randomly drawn positions; S if there are fewer."""
    # -1 sorts after all candidates.
    scores, places = tf.math.top_k(tf.where(candidates, order, -1), most)
    real = (scores >= 0) & (tf.range(most) < wanted)
    return tf.where(real, places, candidates.shape[1])


def _pick_words(candidates, continues, order, wanted):
    """Return int32 [B, S]: positions of randomly drawn words, and S elsewhere.

    As in `masking.mask_words`, words are taken in random order, and a word that
    exceeds `wanted` is skipped. A partial word at the start of segment B joins
    the last word of A.
    """
    length = candidates.shape[1]
    words, word_lengths = _group_words(candidates, continues)
    drawn = tf.math.top_k(tf.where(word_lengths > 0, order, -1), length).indices
    taken = _take_while_room(tf.gather(word_lengths, drawn, batch_dims=1), wanted)
    # Sorting a permutation gives its inverse: the draw order of each word.
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
    """Return which items, [B, W], fit when taken in order; skip the others."""

    def drop(taken, filled):
        # The room never grows. Items larger than the room before the first item
        # that does not fit will not fit later either.
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
    """Return the input tokens for the masked positions, int32 [B, P]."""
    mix, kinds = rules.masking_mix, tf.cast(kinds, tf.int64)
    random = tf.math.floormod(others, rules.vocab_size)
    not_random = kinds < round((mix.mask + mix.same) / 100 * _RANGE)
    is_mask = kinds < round(mix.mask / 100 * _RANGE)
    return tf.where(is_mask, rules.mask_id, tf.where(not_random, labels, random))


def _row_numbers(rows, width):
    """Return int32 [rows, width], filled with each row's number."""
    return tf.repeat(tf.range(rows)[:, tf.newaxis], width, axis=1)
