import random

import pytest

from official_bert.data import instances, masking
from official_bert.errors import UserError

VOCAB = masking.MaskingIds(cls_id=1, sep_id=2, mask_id=3, vocab_ids=tuple(range(100)))


def _documents(*shapes):
    """Return documents whose tokens show their position: 1000 * document + position."""
    documents = []
    for number, lengths in enumerate(shapes, 1):
        places = iter(range(1000 * number, 1000 * number + sum(lengths)))
        documents.append([[next(places) for _ in range(n)] for n in lengths])
    return documents


def _unmasked(instance):
    """Return A and B without masks."""
    ids = list(instance.input_ids)
    for position, label in zip(
        instance.masked_lm_positions, instance.masked_lm_ids, strict=True
    ):
        ids[position] = label
    return ids[1 : instance.num_segment_a - 1], ids[instance.num_segment_a : -1]


def _make(documents, index=0, seed=0, **settings):
    settings = instances.InstanceSettings(**settings)
    return list(
        instances.create_instances_from_document(
            documents, index, settings, VOCAB, random.Random(seed)
        )
    )


def test_form_of_an_instance():
    documents = _documents([7] * 40, [5] * 30, [11] * 20)
    for seed in range(30):
        for made in _make(documents, seed=seed, max_seq_length=40):
            ids, first = made.input_ids, made.num_segment_a
            assert len(ids) <= 40
            specials = {0, first - 1, len(ids) - 1}
            assert [ids[place] for place in sorted(specials)] == [1, 2, 2]
            assert not specials & set(made.masked_lm_positions)
            a, b = _unmasked(made)
            assert a and b
            assert {token // 1000 for token in a} == {1}
            assert len({token // 1000 for token in b}) == 1
            assert (b[0] // 1000 != 1) == made.is_random_next


def test_the_next_text_goes_on_where_a_ends_unless_tokens_were_cut():
    documents = _documents([5] * 60, [5] * 60)
    seen = 0
    for seed in range(20):
        for made in _make(documents, seed=seed, max_seq_length=43, short_seq_prob=0.0):
            a, b = _unmasked(made)
            if not made.is_random_next and len(a) + len(b) == 40:
                seen += 1
                assert b[0] == a[-1] + 1
    assert seen > 20


def test_sentences_that_a_random_text_displaced_are_used_again():
    documents = _documents([5] * 60, [5] * 60)
    made = _make(documents, seed=1, max_seq_length=43, short_seq_prob=0.0)
    assert any(one.is_random_next for one in made)
    used = set()
    for one in made:
        a, b = _unmasked(one)
        used.update(a if one.is_random_next else a + b)
    # Only truncated tokens are missing, and 8 sentences fit a chunk exactly.
    assert len(used) > 270


def test_fifteen_percent_are_masked():
    documents = _documents([9] * 80, [8] * 90)
    made = _make(documents, max_seq_length=128)
    made += _make(documents, index=1, seed=4, max_seq_length=128)
    masked = sum(len(one.masked_lm_ids) for one in made)
    assert masked / sum(len(one.input_ids) for one in made) == pytest.approx(
        0.15, abs=0.004
    )


def test_short_sequences_have_their_share():
    documents = _documents([4] * 90, [4] * 90)
    longest = [
        max(len(one.input_ids) for one in _make(documents, seed=seed, short_seq_prob=p))
        for p in (0.0, 1.0)
        for seed in range(40)
    ]
    assert min(longest[:40]) > 110
    assert sum(length < 100 for length in longest[40:]) > 20


def test_short_sequences_aim_at_two_tokens_and_more():
    settings = instances.InstanceSettings(
        max_seq_length=20, max_predictions_per_seq=3, short_seq_prob=1.0
    )
    rng = random.Random(1)
    drawn = {instances.draw_target_length(settings, rng) for _ in range(2000)}
    assert drawn == set(range(2, 18))


def test_ten_draws_look_for_another_document():
    class Recording(random.Random):
        def randint(self, a, b):
            drawn.append((a, b))
            return super().randint(a, b)

    drawn = []
    documents = _documents([50, 50])
    settings = instances.InstanceSettings(max_seq_length=20, max_predictions_per_seq=3)
    made = instances.create_instances_from_document(
        documents, 0, settings, VOCAB, Recording(1)
    )
    assert len(list(made)) == 2
    assert drawn.count((0, 0)) == 2 * 10


def test_one_document_is_mislabelled_as_in_the_original_and_fixed_by_the_flag():
    documents = _documents([6, 3, 9, 4] * 15)
    original = [one for seed in range(10) for one in _make(documents, seed=seed)]
    assert any(one.is_random_next for one in original)
    fixed = [
        one
        for seed in range(10)
        for one in _make(
            documents, seed=seed, next_sentence_fix=True, max_seq_length=200
        )
    ]
    assert fixed and not any(one.is_random_next for one in fixed)
    whole = [one for one in fixed if len(one.input_ids) < 200]
    assert whole
    for one in whole:
        a, b = _unmasked(one)
        assert b[0] == a[-1] + 1


def test_fixed_single_sentences_have_no_pair():
    assert _make(_documents([50]), next_sentence_fix=True) == []


def test_random_text_of_the_same_document_only_without_the_fix():
    # Two documents: ten draws miss the other once in 1024 times.
    documents = _documents([200] * 4, [5])

    def count_wrong(fix):
        wrong = 0
        for seed in range(2500):
            for one in _make(documents, seed=seed, next_sentence_fix=fix):
                same = _unmasked(one)[1][0] // 1000 == 1
                wrong += same and one.is_random_next
        return wrong

    assert count_wrong(fix=False) > 0
    assert count_wrong(fix=True) == 0


def test_the_fix_changes_nothing_where_nothing_was_wrong():
    documents = _documents([7] * 20, [5] * 20, [3] * 20, [4] * 9)
    assert _make(documents, next_sentence_fix=True) == _make(documents)


def _truncate_token_by_token(a, b, most, rng):
    a, b = list(a), list(b)
    while len(a) + len(b) > most:
        longer = a if len(a) > len(b) else b
        longer.pop(0 if rng.random() < 0.5 else -1)
    return a, b


@pytest.mark.parametrize("lengths", [(3, 4), (30, 5), (5, 30), (20, 20), (60, 61)])
def test_truncation_cuts_the_longer_at_either_end(lengths):
    a, b = list(range(lengths[0])), list(range(100, 100 + lengths[1]))
    for seed in range(20):
        ours, theirs = random.Random(seed), random.Random(seed)
        cut = instances.truncate_seq_pair(a, b, 21, ours)
        assert cut == _truncate_token_by_token(a, b, 21, theirs)
        assert ours.getstate() == theirs.getstate()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_seq_length", 4),
        ("max_predictions_per_seq", 126),
        ("max_predictions_per_seq", 0),
        ("dupe_factor", 0),
        ("masked_lm_prob", 0.0),
        ("masked_lm_prob", 1.5),
        ("short_seq_prob", -0.1),
    ],
)
def test_impossible_settings_name_the_flag(name, value):
    with pytest.raises(UserError, match=f"--{name} is {value}"):
        instances.InstanceSettings(**{name: value})


def test_without_next_sentence_prediction_b_always_follows():
    documents = _documents([7] * 40, [5] * 30, [60] * 3, [11])
    made = []
    for index in range(4):
        settings = {"next_sentence_prediction": False, "short_seq_prob": 0.3}
        own = [
            one
            for seed in range(20)
            for one in _make(documents, index, seed, max_seq_length=90, **settings)
        ]
        # A single sentence has no next sentence.
        assert bool(own) == (index < 3)
        made += own
    assert not any(one.is_random_next for one in made)
    whole = [_unmasked(one) for one in made if len(one.input_ids) < 90]
    assert len(whole) > 50
    assert all(b[0] == a[-1] + 1 for a, b in whole)
