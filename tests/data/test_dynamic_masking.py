"""Dynamic masks: their number, positions, replacements and random numbers."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
import tensorflow as tf

from official_bert.data import dynamic_masking, masking

MASK, VOCAB_SIZE = 3, 1000
LENGTH, MOST = 32, 4
RULES = dynamic_masking.MaskingRules(0.15, MOST, False, MASK, VOCAB_SIZE)
WORDS = dynamic_masking.MaskingRules(0.15, MOST, True, MASK, VOCAB_SIZE)


def make_rows(count, length=LENGTH, seed=0, continues=0.3):
    """Return unmasked rows of any used length, `[CLS]` 1 and `[SEP]` 2."""
    rng = np.random.default_rng(seed)
    used = rng.integers(5, length + 1, (count, 1))
    first = rng.integers(3, used - 1)
    places = np.arange(length)
    ids = rng.integers(10, VOCAB_SIZE, (count, length))
    ids[:, 0] = 1
    ids[(places == first - 1) | (places == used - 1)] = 2
    inside = places < used
    features = {
        "input_ids": ids * inside,
        "input_mask": inside,
        "segment_ids": inside & (places >= first),
        "next_sentence_labels": rng.integers(0, 2, (count, 1)),
        "continues_word": (rng.random((count, length)) < continues) & (ids > 2),
    }
    return {name: values.astype(np.int32) for name, values in features.items()}


def mask(rows, rules=RULES, seed=5, first_row=0, purpose=dynamic_masking.TRAINING):
    """Return masked rows as arrays."""
    rows = {name: tf.constant(values) for name, values in rows.items()}
    if not rules.do_whole_word_mask:
        rows.pop("continues_word", None)
    masked = dynamic_masking.mask(rows, rules, seed, purpose, first_row)
    return {name: values.numpy() for name, values in masked.items()}


def words_of(rows, row):
    """Return a row's words as tuples of positions, by the rules of static masks."""
    continues = rows["continues_word"][row] * masking.CONTINUES
    places = np.flatnonzero(rows["input_ids"][row] > 2).tolist()
    return set(map(tuple, masking._group_words(continues.tolist(), places)))


@pytest.fixture(scope="module", params=[RULES, WORDS], ids=["tokens", "words"])
def rules(request):
    return request.param


@pytest.fixture(scope="module")
def rows():
    return make_rows(45_000)


@pytest.fixture(scope="module")
def masked(rows, rules):
    return mask(rows, rules)


def near(count, total, share, deviations=5):
    """Return whether a count is near the binomial mean, in standard deviations."""
    spread = math.sqrt(total * share * (1 - share))
    return abs(count - total * share) < deviations * spread


def test_features_are_those_of_static_records(rows, masked):
    assert set(masked) == {
        "input_ids",
        "input_mask",
        "segment_ids",
        "masked_lm_positions",
        "masked_lm_ids",
        "masked_lm_weights",
        "next_sentence_labels",
    }
    for name, values in masked.items():
        is_float = name == "masked_lm_weights"
        assert values.dtype == (np.float32 if is_float else np.int32), name
        if name.startswith("masked_lm"):
            assert values.shape == (len(rows["input_ids"]), MOST)
    for name in ("input_mask", "segment_ids", "next_sentence_labels"):
        np.testing.assert_array_equal(masked[name], rows[name])


def test_only_words_of_the_text_are_masked(rows, masked):
    real = masked["masked_lm_weights"] > 0
    labels = np.take_along_axis(rows["input_ids"], masked["masked_lm_positions"], 1)
    np.testing.assert_array_equal(masked["masked_lm_ids"], labels * real)
    # `[CLS]`, `[SEP]` and padding have the ids 1, 2 and 0.
    assert labels[real].min() > 2
    changed = masked["input_ids"] != rows["input_ids"]
    at = np.zeros_like(changed)
    row, slot = np.nonzero(real)
    at[row, masked["masked_lm_positions"][row, slot]] = True
    assert not (changed & ~at).any()


def test_positions_rise_and_padding_follows(masked):
    positions, weights = masked["masked_lm_positions"], masked["masked_lm_weights"]
    assert set(np.unique(weights)) == {0, 1}
    both = weights[:, 1:] > 0
    assert (np.diff(weights, axis=1) <= 0).all()
    assert (np.diff(positions, axis=1)[both] > 0).all()
    for name in ("masked_lm_positions", "masked_lm_ids"):
        assert not masked[name][weights == 0].any()


def test_each_row_has_the_static_number_of_masks(rows):
    masked = mask(rows)
    used = rows["input_mask"].sum(axis=1)
    expected = [masking.count_to_predict(int(n), 0.15, MOST) for n in used]
    np.testing.assert_array_equal(masked["masked_lm_weights"].sum(axis=1), expected)
    assert {1, MOST} < set(expected)


@pytest.mark.parametrize("share", [0.05, 0.15, 0.45])
def test_halves_are_rounded_to_even(share):
    """Halves round to even: at 30 tokens, 4.5 becomes 4 and 13.5 becomes 14."""
    rules = dynamic_masking.MaskingRules(share, 20, False, MASK, VOCAB_SIZE)
    used = tf.range(1, 500)
    found = dynamic_masking.count_to_predict(used, rules).numpy()
    expected = [masking.count_to_predict(n, share, 20) for n in used.numpy().tolist()]
    np.testing.assert_array_equal(found, expected)


def test_of_few_tokens_no_more_than_all_are_masked():
    rules = dynamic_masking.MaskingRules(0.9, 20, False, MASK, VOCAB_SIZE)
    rows = make_rows(200, length=24)
    masked = mask(rows, rules)
    words = rows["input_mask"].sum(axis=1) - 3
    wanted = np.clip(np.round(0.9 * (words + 3)), 1, 20)
    found = masked["masked_lm_weights"].sum(axis=1)
    np.testing.assert_array_equal(found, np.minimum(words, wanted))


def test_replacements_are_80_10_10(rows, masked):
    real = masked["masked_lm_weights"] > 0
    labels = masked["masked_lm_ids"][real]
    positions = masked["masked_lm_positions"]
    seen = np.take_along_axis(masked["input_ids"], positions, 1)[real]
    total = len(labels)
    assert total > 100_000
    # One random id in 1000 is the label itself, or [MASK].
    by_chance = 0.1 / VOCAB_SIZE
    assert near((seen == MASK).sum(), total, 0.8 + by_chance)
    assert near((seen == labels).sum(), total, 0.1 + by_chance)
    others = seen[(seen != MASK) & (seen != labels)]
    assert near(len(others), total, 0.1 - 2 * by_chance)


def test_random_replacements_are_of_the_whole_vocabulary(rows, masked):
    real = masked["masked_lm_weights"] > 0
    positions = masked["masked_lm_positions"]
    seen = np.take_along_axis(masked["input_ids"], positions, 1)[real]
    others = seen[(seen != MASK) & (seen != masked["masked_lm_ids"][real])]
    counts = np.bincount(others, minlength=VOCAB_SIZE)
    assert len(counts) == VOCAB_SIZE
    # Special tokens are drawn too, and none more often than others.
    mean = len(others) / (VOCAB_SIZE - 2)
    counts = np.delete(counts, MASK)
    assert counts.min() > 0
    chi_squared = ((counts - mean) ** 2 / mean).sum() / len(counts)
    assert chi_squared == pytest.approx(1, abs=0.25)


def test_every_place_is_as_likely():
    """All positions are equally likely: 29 words of a full row, 128,000 draws."""
    rows = make_rows(45_000)
    keep = rows["input_mask"].sum(axis=1) == LENGTH
    row = {name: values[keep][:1] for name, values in rows.items()}
    same = {name: np.repeat(values, 32_000, axis=0) for name, values in row.items()}
    masked = mask(same)
    real = masked["masked_lm_weights"] > 0
    counts = np.bincount(masked["masked_lm_positions"][real], minlength=LENGTH)
    words = np.flatnonzero(row["input_ids"][0] > 2)
    assert real.sum() == 32_000 * MOST
    assert set(np.flatnonzero(counts)) == set(words)
    share = MOST / len(words)
    assert all(near(counts[place], 32_000, share) for place in words)


def test_masked_words_are_whole(rows):
    rows = {name: values[:2000] for name, values in rows.items()}
    masked = mask(rows, WORDS)
    weights = masked["masked_lm_weights"] > 0
    pieces = 0
    for row in range(len(weights)):
        picked = set(masked["masked_lm_positions"][row][weights[row]].tolist())
        whole = {word for word in words_of(rows, row) if picked & set(word)}
        assert set(itertools.chain.from_iterable(whole)) == picked
        pieces += max(map(len, whole), default=0) > 1
    assert pieces > 200


def test_words_are_taken_as_the_static_rule_takes_them():
    """Words are taken in order, and words without room are skipped."""
    rng = np.random.default_rng(1)
    lengths = rng.integers(1, 7, (500, 20)).astype(np.int32)
    lengths[:, 15:] = 0
    room = rng.integers(1, 20, (500, 1)).astype(np.int32)
    found = dynamic_masking._take_while_room(tf.constant(lengths), tf.constant(room))
    expected = np.zeros_like(lengths, bool)
    for row, (items, left) in enumerate(zip(lengths, room[:, 0], strict=True)):
        for item, size in enumerate(items):
            if 0 < size <= left:
                expected[row, item] = True
                left -= size
    np.testing.assert_array_equal(found, expected)


def test_every_word_of_a_length_is_as_likely():
    rows = make_rows(40_000, seed=1)
    keep = rows["input_mask"].sum(axis=1) == LENGTH
    row = {name: values[keep][:1] for name, values in rows.items()}
    same = {name: np.repeat(values, 32_000, axis=0) for name, values in row.items()}
    masked = mask(same, WORDS)
    real = masked["masked_lm_weights"] > 0
    counts = np.bincount(masked["masked_lm_positions"][real], minlength=LENGTH)
    by_length = {}
    for word in words_of(row, 0):
        by_length.setdefault(len(word), []).append(counts[word[0]])
    assert set(by_length) >= {1, 2}
    for found in by_length.values():
        mean = np.mean(found)
        assert all(abs(count - mean) < 5 * math.sqrt(mean) for count in found)


def test_a_rest_of_a_word_joins_the_last_word_of_a():
    """A partial word after the `[SEP]` at 2 joins the last word of A."""
    row = {
        "input_ids": [1, 10, 2, 11, 12, 2, 0],
        "input_mask": [1, 1, 1, 1, 1, 1, 0],
        "segment_ids": [0, 0, 0, 1, 1, 1, 0],
        "continues_word": [0, 0, 0, 1, 0, 0, 0],
    }
    same = {name: np.array([v] * 200, np.int32) for name, v in row.items()}
    rules = dynamic_masking.MaskingRules(0.4, 2, True, MASK, VOCAB_SIZE)
    masked = mask(same, rules)
    positions = {tuple(found) for found in masked["masked_lm_positions"].tolist()}
    assert positions == {(1, 3), (4, 0)}


def test_a_row_without_a_word_that_fits_has_no_mask():
    row = {
        "input_ids": [1, 10, 11, 2, 12, 2],
        "input_mask": [1] * 6,
        "segment_ids": [0, 0, 0, 0, 1, 1],
        "continues_word": [0, 0, 1, 0, 1, 0],
    }
    masked = mask({name: np.array([v], np.int32) for name, v in row.items()}, WORDS)
    assert not masked["masked_lm_weights"].any()
    np.testing.assert_array_equal(masked["input_ids"], [row["input_ids"]])


def test_a_row_is_a_function_of_its_number(rows, rules):
    some = {name: values[:50] for name, values in rows.items()}
    whole = mask(some, rules, first_row=1000)
    for start, stop in [(0, 1), (1, 4), (17, 50)]:
        part = {name: values[start:stop] for name, values in some.items()}
        found = mask(part, rules, first_row=1000 + start)
        for name, values in found.items():
            np.testing.assert_array_equal(values, whole[name][start:stop])


def test_other_rows_seeds_and_purposes_have_other_masks(rows):
    some = {name: values[:50] for name, values in rows.items()}
    variants = [
        mask(some),
        mask(some, first_row=50),
        mask(some, first_row=2**40),
        mask(some, seed=6),
        mask(some, seed=-5),
        mask(some, seed=2**62),
        mask(some, purpose=dynamic_masking.EVALUATION),
    ]
    for one, other in itertools.combinations(variants, 2):
        same = (one["masked_lm_positions"] == other["masked_lm_positions"]).all(axis=1)
        assert same.sum() < 10


def test_neighbouring_rows_of_random_numbers_are_independent():
    random = dynamic_masking.random_rows(7, 0, 0, 20_000, 9).numpy() / 2**31
    assert random.min() >= 0 and random.max() < 1
    assert random.mean() == pytest.approx(0.5, abs=0.005)
    one, next_one = random[:-1].ravel(), random[1:].ravel()
    assert abs(np.corrcoef(one, next_one)[0, 1]) < 0.012


def test_masks_stay_from_version_to_version():
    """Masks do not change between versions; otherwise old runs could not resume."""
    masked = mask(make_rows(3), first_row=10**12)
    assert masked["masked_lm_positions"].tolist() == [
        [5, 15, 19, 22],
        [14, 18, 20, 0],
        [1, 4, 14, 0],
    ]
    seen = np.take_along_axis(
        masked["input_ids"], masked["masked_lm_positions"], axis=1
    )
    assert seen.tolist() == [[3, 3, 858, 3], [3, 3, 3, 1], [366, 3, 3, 1]]
    random = dynamic_masking.random_rows(12345, 0, 3, 2, 5)
    assert random.numpy().tolist() == [
        [1466766208, 1473008842, 1759764659, 75301213, 1725410744],
        [1869299887, 1658513836, 1938415414, 1219600888, 819951572],
    ]


@pytest.mark.parametrize("shares", [(100, 0, 0), (80, 20, 0), (0, 20, 80), (0, 0, 100)])
def test_other_mixes(shares):
    """The mixes of Table 8 give their shares; 1 of 1,000 tokens is equal."""
    rules = dataclasses.replace(RULES, masking_mix=masking.MaskingMix(*shares))
    masked = mask(make_rows(3000), rules)
    real = masked["masked_lm_weights"] > 0
    at = masked["masked_lm_positions"]
    seen = np.take_along_axis(masked["input_ids"], at, 1)[real]
    labels = masked["masked_lm_ids"][real]
    found = (seen == MASK).mean(), (seen == labels).mean()
    wanted = np.array(shares[:2]) / 100
    # Exact if no random token equals the mask or the label by chance.
    margin = 0.02 if any(0 < share < 100 for share in shares) or shares[2] else 0
    np.testing.assert_allclose(found, wanted, atol=margin)
    assert len(labels) > 5000


def test_the_papers_mix_is_not_told_apart():
    """A run from before there were other mixes resumes."""
    assert "masking_mix" not in RULES.to_dict()
    other = dataclasses.replace(RULES, masking_mix=masking.MaskingMix(100, 0, 0))
    assert other.to_dict()["masking_mix"] == {"mask": 100, "same": 0, "random": 0}
