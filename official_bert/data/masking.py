"""Static masking: choose the masked positions and their input tokens."""

import dataclasses
import itertools
from collections.abc import Mapping, MutableSequence
from random import Random
from typing import Any, Self

from official_bert.errors import UserError

# In whole-word mode a token is its id, plus this bit if it continues the word
# before it. Truncating and joining then handle only one list.
CONTINUES = 1 << 24
ID_BITS = CONTINUES - 1
_IMPOSSIBLE_MIX = (
    "--masking_mix is {}; it must be three integers with the sum 100, for "
    "[MASK], same and random tokens, such as 80/10/10."
)


@dataclasses.dataclass(frozen=True)
class MaskingMix:
    """Input tokens at masked positions, in percent (App. C.2, Table 8).

    Attributes:
      mask: share of `[MASK]` tokens.
      same: share of unchanged tokens.
      random: share of random tokens.
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
        """Return the mix for a text such as "80/10/10"; reject invalid text."""
        shares = text.split("/")
        if len(shares) != 3 or not all(map(str.isdecimal, shares)):
            raise UserError(_IMPOSSIBLE_MIX.format(text))
        return cls(*map(int, shares))


@dataclasses.dataclass(frozen=True)
class MaskingIds:
    """The ids of a vocabulary that are needed for instances.

    Attributes:
      cls_id: id of `[CLS]`.
      sep_id: id of `[SEP]`.
      mask_id: id of `[MASK]`.
      vocab_ids: the ids of all entries in the vocabulary's order; a random
        replacement may be any of them, including special tokens.
    """

    cls_id: int
    sep_id: int
    mask_id: int
    vocab_ids: tuple[int, ...]

    @classmethod
    def of(cls, vocab: Mapping[str, int]) -> Self:
        """Return the ids for an ordered dict, token -> id."""
        return cls(
            vocab["[CLS]"], vocab["[SEP]"], vocab["[MASK]"], tuple(vocab.values())
        )


def shuffle(items: MutableSequence[Any], rng: Random) -> None:
    """Shuffle a list in place, exactly like `rng.shuffle(items)`.

    The standard library draws each index with a separate call. Here, draws with
    the same number of bits come from one iterator, which consumes the same bits
    in the same order in a third of the time.

    Args:
      items: list.
      rng: `random.Random`; its final state is the same as after `rng.shuffle`.
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
    """Return the number of tokens to mask in a sequence, at least 1.

    Args:
      num_tokens: length of the sequence, including `[CLS]` and `[SEP]`.
      masked_lm_prob: share to mask.
      max_predictions_per_seq: upper bound.
    """
    # `round` rounds half to even, so 30 tokens at 0.15 give 4.
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
      num_to_predict: number of tokens to mask.
      vocab: `MaskingIds`.
      rng: `random.Random`.
      mix: `MaskingMix`, the shares; default: the above.

    Returns:
      (masked_lm_positions, masked_lm_ids): lists of int by ascending position,
      with the original ids.
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
    exceed `num_to_predict` is skipped, not split. If truncation made segment B
    start inside a word, the partial word joins the last word of A, as in the
    original.

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

    WordPiece marks tokens that continue a word (`##…`), not the first token of
    a word. A marked token therefore joins the positions before it. If single
    tokens were masked, the word's other tokens would usually reveal the answer.
    The task is the same: each token is predicted separately from the full
    vocabulary.
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
    # Share among tokens that do not become `[MASK]`.
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
