import collections
import random

import pytest

from official_bert.data import masking
from official_bert.errors import UserError

VOCAB = masking.MaskingIds(cls_id=1, sep_id=2, mask_id=3, vocab_ids=tuple(range(1000)))


@pytest.mark.parametrize("length", [*range(20), 63, 64, 65, 127, 128, 129, 509, 1030])
def test_shuffle_equals_the_standard_library_and_leaves_its_state(length):
    ours, theirs = random.Random(length), random.Random(length)
    shuffled, expected = list(range(length)), list(range(length))
    masking.shuffle(shuffled, ours)
    theirs.shuffle(expected)
    assert shuffled == expected
    assert ours.getstate() == theirs.getstate()


@pytest.mark.parametrize(
    ("num_tokens", "expected"),
    # Python 3 rounds halves to even: 4.5 -> 4, 10.5 -> 10, 16.5 -> 16.
    [(5, 1), (10, 2), (30, 4), (50, 8), (70, 10), (110, 16), (128, 19), (512, 20)],
)
def test_count_to_predict(num_tokens, expected):
    assert masking.count_to_predict(num_tokens, 0.15, 20) == expected


def _count_replacements(mask, tokens, candidates, num_to_predict, rounds):
    """Return how often a masked token became [MASK], itself, or another token."""
    rng = random.Random(5)
    seen = collections.Counter()
    for _ in range(rounds):
        ids = list(tokens)
        positions, labels = mask(ids, list(candidates), num_to_predict, VOCAB, rng)
        assert positions == sorted(set(positions))
        plain = [token & masking.ID_BITS for token in tokens]
        assert labels == [plain[position] for position in positions]
        for position, label in zip(positions, labels, strict=True):
            is_mask = ids[position] == VOCAB.mask_id
            kept = ids[position] == label
            seen["mask" if is_mask else "kept" if kept else "random"] += 1
        unmasked = set(range(len(ids))) - set(positions)
        assert all(ids[position] == plain[position] for position in unmasked)
    total = sum(seen.values())
    return {kind: count / total for kind, count in seen.items()}


def test_single_tokens_are_replaced_80_10_10():
    tokens = list(range(100, 200))
    shares = _count_replacements(masking.mask_tokens, tokens, range(100), 15, 2000)
    assert shares["mask"] == pytest.approx(0.8, abs=0.01)
    assert shares["kept"] == pytest.approx(0.1, abs=0.01)
    assert shares["random"] == pytest.approx(0.1, abs=0.01)


def test_the_tokens_of_a_word_draw_80_10_10_one_by_one():
    word = [100, 101 | masking.CONTINUES, 102 | masking.CONTINUES]
    mixed, rng = 0, random.Random(1)
    for _ in range(3000):
        ids = list(word)
        masking.mask_words(ids, [0, 1, 2], 3, VOCAB, rng)
        mixed += 0 < sum(token == VOCAB.mask_id for token in ids) < 3
    # 1 - 0.8^3 - 0.2^3 of the words; it would be 0 with one draw per word.
    assert mixed / 3000 == pytest.approx(0.48, abs=0.03)
    shares = _count_replacements(masking.mask_words, word * 20, range(60), 15, 2000)
    assert shares["mask"] == pytest.approx(0.8, abs=0.01)
    assert shares["kept"] == pytest.approx(0.1, abs=0.01)


def test_random_replacements_come_from_the_whole_vocabulary():
    rng, seen = random.Random(2), set()
    for _ in range(40000):
        ids = [5000]
        masking.mask_tokens(ids, [0], 1, VOCAB, rng)
        seen.add(ids[0])
    assert {0, 1, 2, 999} <= seen and max(seen - {5000}) == 999


def test_masked_positions_are_whole_words_and_a_long_word_is_passed_over():
    continues = masking.CONTINUES
    tokens = [10, 11 | continues, 12 | continues, 20, 30, 31 | continues, 40]
    words = [{0, 1, 2}, {3}, {4, 5}, {6}]
    rng, counts = random.Random(3), set()
    for _ in range(300):
        positions, _ = masking.mask_words(list(tokens), list(range(7)), 2, VOCAB, rng)
        assert all(
            word <= set(positions) or not word & set(positions) for word in words
        )
        assert not words[0] & set(positions)
        counts.add(len(positions))
    assert counts == {2}


def test_a_rest_of_a_word_joins_the_word_before_it_as_in_the_original():
    # Segment B (after position 2) begins inside a word; position 2 is [SEP].
    tokens = [1, 10, 2, 11 | masking.CONTINUES, 12, 2]
    for seed in range(20):
        positions, _ = masking.mask_words(
            list(tokens), [1, 3, 4], 2, VOCAB, random.Random(seed)
        )
        assert positions in ([1, 3], [4])


@pytest.mark.parametrize("kind", ["tokens", "words"])
@pytest.mark.parametrize("text", ["100/0/0", "80/0/20", "0/20/80", "0/0/100"])
def test_other_mixes(kind, text):
    """The mixes of Table 8 give their shares; 1 of 1,000 tokens is equal."""
    mix = masking.MaskingMix.parse(text)
    mask = {"tokens": masking.mask_tokens, "words": masking.mask_words}[kind]

    def mixed(*arguments):
        return mask(*arguments, mix)

    tokens = list(range(100, 200))
    shares = _count_replacements(mixed, tokens, range(100), 15, 400)
    wanted = {"mask": mix.mask, "kept": mix.same, "random": mix.random}
    for name, share in wanted.items():
        # Exact if no random token equals the mask or the token by chance.
        margin = 0 if share in (0, 100) and not mix.random else 0.03
        assert shares.get(name, 0) == pytest.approx(share / 100, abs=margin)


@pytest.mark.parametrize("text", ["80/20", "80/10/5", "a/b/c", "120/-20/0", ""])
def test_impossible_mixes(text):
    with pytest.raises(UserError, match=f"--masking_mix is {text}; it must be three"):
        masking.MaskingMix.parse(text)


def test_a_mix_is_written_as_it_is_read():
    assert str(masking.MaskingMix.parse("0/20/80")) == "0/20/80"
    assert masking.MaskingMix.parse("80/10/10") == masking.MaskingMix()
