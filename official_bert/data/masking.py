"""Masked words: which positions a BERT has to guess, and what it sees there."""

import dataclasses
import itertools
from collections.abc import Mapping, MutableSequence
from random import Random
from typing import Any, Self

from official_bert.errors import UserError

# In whole-word mode a token is its id, plus this bit when it continues the
# word before it. One list then carries both through cutting and joining.
CONTINUES = 1 << 24
ID_BITS = CONTINUES - 1
_IMPOSSIBLE_MIX = (
    "--masking_mix is {}: it must be three whole numbers that add up to 100, for "
    "[MASK], the same and a random token, as 80/10/10."
)


@dataclasses.dataclass(frozen=True)
class MaskingMix:
    """What is seen in place of the tokens to guess, in per cent (App. C.2, Table 8).

    Attributes:
      mask: share of them seen as `[MASK]`.
      same: share seen as they are.
      random: share seen as a random token.
    """

    mask: int = 80
    same: int = 10
    random: int = 10

    def __post_init__(self) -> None:
        shares = dataclasses.astuple(self)
        if min(shares) < 0 or sum(shares) != 100:
            raise UserError(_IMPOSSIBLE_MIX.format(self))

    def __str__(self) -> str:
        return "/".join(map(str, dataclasses.astuple(self)))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the mix that a text as "80/10/10" stands for; or a `UserError`."""
        shares = text.split("/")
        if len(shares) != 3 or not all(map(str.isdecimal, shares)):
            raise UserError(_IMPOSSIBLE_MIX.format(text))
        return cls(*map(int, shares))


@dataclasses.dataclass(frozen=True)
class MaskingIds:
    """The ids that making instances needs from a vocabulary.

    Attributes:
      cls_id: id of `[CLS]`.
      sep_id: id of `[SEP]`.
      mask_id: id of `[MASK]`.
      vocab_ids: the ids of all entries in the vocabulary's order; a random
        replacement is one of them, special entries included.
    """

    cls_id: int
    sep_id: int
    mask_id: int
    vocab_ids: tuple[int, ...]

    @classmethod
    def of(cls, vocab: Mapping[str, int]) -> Self:
        """Take the ids from an ordered dict, token -> id."""
        return cls(
            vocab["[CLS]"], vocab["[SEP]"], vocab["[MASK]"], tuple(vocab.values())
        )


def shuffle(items: MutableSequence[Any], rng: Random) -> None:
    """Shuffle a list in place, exactly as `rng.shuffle(items)` would.

    The standard library draws each index with a call of its own. Here the
    draws of one bit length come from one running iterator, which consumes the
    same bits in the same order in a third of the time.

    Args:
      items: list.
      rng: `random.Random`; left in the state `rng.shuffle` leaves it in.
    """
    last = len(items) - 1
    while last > 0:
        bits = (last + 1).bit_length()
        lowest = (1 << (bits - 1)) - 1
        for pick in map(rng.getrandbits, itertools.repeat(bits)):
            if pick <= last:
                items[last], items[pick] = items[pick], items[last]
                last -= 1
                if last < lowest:
                    break


def count_to_predict(
    num_tokens: int, masked_lm_prob: float, max_predictions_per_seq: int
) -> int:
    """Return how many tokens of a sequence to mask, at least 1.

    Args:
      num_tokens: length of the sequence, `[CLS]` and `[SEP]` included.
      masked_lm_prob: share to mask.
      max_predictions_per_seq: upper bound.
    """
    # `round` goes to even, so 30 tokens at 0.15 give 4.
    return min(max_predictions_per_seq, max(1, int(round(num_tokens * masked_lm_prob))))


def mask_tokens(
    ids: list[int],
    candidates: list[int],
    num_to_predict: int,
    vocab: MaskingIds,
    rng: Random,
    mix: MaskingMix = MaskingMix(),
) -> tuple[list[int], list[int]]:
    """Mask single tokens: 80 % `[MASK]`, 10 % unchanged, 10 % random.

    Follows `create_masked_lm_predictions` in google-research/bert
    `create_pretraining_data.py` without whole words.

    Args:
      ids: list of int, the sequence; changed in place.
      candidates: list of int, the positions that may be masked; shuffled.
      num_to_predict: how many to mask.
      vocab: `MaskingIds`.
      rng: `random.Random`.
      mix: `MaskingMix`, if other shares than these are wanted.

    Returns:
      (masked_lm_positions, masked_lm_ids): lists of int by rising position;
      the ids are the original ones.
    """
    shuffle(candidates, rng)
    picked = candidates[:num_to_predict]
    return _replace(ids, picked, vocab, rng, mix)


def mask_words(
    tokens: list[int],
    candidates: list[int],
    num_to_predict: int,
    vocab: MaskingIds,
    rng: Random,
    mix: MaskingMix = MaskingMix(),
) -> tuple[list[int], list[int]]:
    """Mask whole words; each of their tokens draws its own 80/10/10.

    Follows `create_masked_lm_predictions` in google-research/bert
    `create_pretraining_data.py` with `do_whole_word_mask`. A word that would
    exceed `num_to_predict` is passed over, not cut. Where truncation left
    segment B starting inside a word, its rest joins the last word of A, as in
    the original.

    Args:
      tokens: list of int, ids with the bit `CONTINUES`; changed in place to
        plain ids.
      candidates: as for `mask_tokens`.
      num_to_predict: as for `mask_tokens`.
      vocab: `MaskingIds`.
      rng: `random.Random`.
      mix: as for `mask_tokens`.

    Returns:
      (masked_lm_positions, masked_lm_ids), as `mask_tokens`.
    """
    words = _group_words(tokens, candidates)
    tokens[:] = [token & ID_BITS for token in tokens]
    shuffle(words, rng)
    picked: list[int] = []
    for word in words:
        if len(picked) >= num_to_predict:
            break
        if len(picked) + len(word) <= num_to_predict:
            picked += word
    return _replace(tokens, picked, vocab, rng, mix)


def _group_words(tokens, candidates):
    """Return the positions of each word, a list of lists.

    WordPiece marks a token that continues a word (`##…`), not the one that begins
    it, so a marked token joins the positions before it. If single pieces were
    masked, the others of the word would mostly give the answer away. The task
    itself stays: each piece is predicted for itself, from all of the vocabulary.
    """
    words: list[list[int]] = []
    for position in candidates:
        if words and tokens[position] & CONTINUES:
            words[-1].append(position)
        else:
            words.append([position])
    return words


def _replace(ids, picked, vocab, rng, mix):
    """Replace the tokens at `picked`, drawing in that order."""
    random = rng.random
    mask_share = mix.mask / 100
    # Of those that are no `[MASK]`.
    same_share = mix.same / ((mix.same + mix.random) or 1)
    labels = {}
    for position in picked:
        labels[position] = ids[position]
        if random() < mask_share:
            ids[position] = vocab.mask_id
        elif random() >= same_share:
            pick = rng.randint(0, len(vocab.vocab_ids) - 1)
            ids[position] = vocab.vocab_ids[pick]
    positions = sorted(labels)
    return positions, [labels[position] for position in positions]
