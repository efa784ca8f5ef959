import itertools
import random

import pytest

from official_bert.data import instances, masking, planned_instances
from official_bert.data.instances import InstanceSettings

SETTINGS = InstanceSettings(max_seq_length=32, max_predictions_per_seq=5)
IDS = masking.MaskingIds(1, 2, 3, tuple(range(3000)))


def _corpus(number):
    """Return documents whose tokens show their position: 100 * document + position."""
    rng = random.Random(number)
    documents = []
    for document in range(number):
        lengths = [rng.randint(1, 9) for _ in range(rng.randint(1, 8))]
        tokens = iter(range(10 + 100 * document, 10 + 100 * (document + 1)))
        documents.append([list(itertools.islice(tokens, n)) for n in lengths])
    return documents


def _starts(document, base=0):
    return list(itertools.accumulate(map(len, document), initial=base))


def _plans(documents, settings, pass_number=0):
    return [
        plan
        for number, document in enumerate(documents)
        for plan in planned_instances.plan_document(
            _starts(document), number, len(documents), pass_number, settings
        )
    ]


def _finish(documents, plan, settings):
    own = documents[plan.document]
    tokens_a = sum(own[plan.start : plan.a_end], [])
    tokens_b = sum(own[plan.a_end : plan.end], [])
    if plan.other != planned_instances.NEXT:
        other = documents[plan.other]
        first, end = planned_instances.sentences_of_b(_starts(other), plan)
        tokens_b = sum(other[first:end], [])
    return planned_instances.finish(plan, tokens_a, tokens_b, settings, IDS)


def test_plans_cover_each_document_in_order():
    documents = _corpus(200)
    for number, document in enumerate(documents):
        plans = _plans(documents, SETTINGS)
        own = [plan for plan in plans if plan.document == number]
        assert [plan.number for plan in own] == list(range(len(own)))
        ends = [p.a_end if p.is_random_next else p.end for p in own]
        assert [0, *ends] == [plan.start for plan in own] + [len(document)]
        break
    for plan in _plans(documents, SETTINGS):
        assert plan.start < plan.a_end <= plan.end
        assert (plan.other == planned_instances.NEXT) != plan.is_random_next
        assert plan.other != plan.document
        assert plan.is_random_next or plan.end > plan.a_end


def test_a_plan_needs_no_more_than_lengths_and_the_number_of_documents():
    documents = _corpus(50)
    alone = planned_instances.plan_document(_starts(documents[7]), 7, 50, 2, SETTINGS)
    in_block = planned_instances.plan_document(
        _starts(documents[7], base=9999), 7, 50, 2, SETTINGS
    )
    assert alone == in_block
    assert alone == [p for p in _plans(documents, SETTINGS, 2) if p.document == 7]
    passes = {tuple(_plans(documents[7:8], SETTINGS, n)) for n in range(5)}
    assert len(passes) == 5


def test_an_instance_is_finished_by_itself():
    documents = _corpus(50)
    plans = _plans(documents, SETTINGS)
    made = [_finish(documents, plan, SETTINGS) for plan in plans]
    again = [_finish(documents, plan, SETTINGS) for plan in reversed(plans)]
    assert made == again[::-1]


def test_each_instance_has_masks_of_its_own():
    plan = planned_instances.PairPlan(0, 0, 0, 0, 1, 2, False, 9, -1, 0.0)
    plans = [
        plan,
        plan._replace(number=1),
        plan._replace(pass_number=1),
        plan._replace(document=1),
    ]
    made = [
        planned_instances.finish(p, list(range(90, 140)), [70] * 60, SETTINGS, IDS)
        for p in plans
    ]
    assert len({tuple(instance.masked_lm_positions) for instance in made}) == 4


def test_random_texts_are_where_the_plan_says():
    plan = planned_instances.PairPlan(0, 0, 0, 0, 1, 1, True, 7, 1, 0.5)
    starts = [100, 103, 105, 109, 110]
    assert planned_instances.sentences_of_b(starts, plan) == (2, 4)
    assert planned_instances.sentences_of_b(starts, plan._replace(room=4)) == (2, 3)
    assert planned_instances.sentences_of_b(starts, plan._replace(room=-3)) == (2, 3)
    assert planned_instances.sentences_of_b(starts, plan._replace(fraction=0.999)) == (
        3,
        4,
    )


@pytest.mark.parametrize("whole_words", [False, True])
def test_the_shares_are_those_of_the_exact_mode(whole_words):
    settings = InstanceSettings(
        max_seq_length=32, max_predictions_per_seq=5, do_whole_word_mask=whole_words
    )
    documents = _corpus(1500)
    rng = random.Random(1)
    exact = [
        instance
        for _ in range(3)
        for number in range(len(documents))
        for instance in instances.create_instances_from_document(
            documents, number, settings, IDS, rng
        )
    ]
    ours = [
        _finish(documents, plan, settings)
        for number in range(3)
        for plan in _plans(documents, settings, number)
    ]
    assert len(ours) == pytest.approx(len(exact), rel=0.02)
    for share, difference in [
        (lambda i: i.is_random_next, 0.015),
        (lambda i: len(i.input_ids) < 20, 0.015),
        (lambda i: len(i.input_ids) == 32, 0.015),
        (lambda i: i.num_segment_a > 16, 0.015),
        (lambda i: len(i.masked_lm_ids), 0.05),
        (lambda i: sum(i.input_ids[p] == 3 for p in i.masked_lm_positions), 0.05),
    ]:
        means = [sum(map(share, made)) / len(made) for made in (ours, exact)]
        assert means[0] == pytest.approx(means[1], abs=difference)


def test_random_texts_come_from_everywhere():
    documents = _corpus(40)
    plans = [p for n in range(100) for p in _plans(documents, SETTINGS, n)]
    random_ones = [plan for plan in plans if plan.is_random_next]
    counts = [sum(p.other == n for p in random_ones) for n in range(40)]
    expected = len(random_ones) / 40
    assert max(abs(count - expected) for count in counts) < 5 * expected**0.5
    fractions = sorted(plan.fraction for plan in random_ones)
    middle = fractions[len(fractions) // 2]
    first, last = fractions[0], fractions[-1]
    assert 0 <= first < 0.01 < 0.45 < middle < 0.55 < 0.99 < last < 1


def test_one_document_gives_texts_of_itself_or_with_the_fix_none():
    documents = _corpus(3)[2:]
    plans = _plans(documents, SETTINGS)
    assert {p.other for p in plans if p.is_random_next} == {0}
    fixed = InstanceSettings(
        max_seq_length=32, max_predictions_per_seq=5, next_sentence_fix=True
    )
    assert not any(plan.is_random_next for plan in _plans(documents, fixed))
    assert _plans([[[5]]], fixed) == []
    two = [_plans(_corpus(2), fixed, n) for n in range(50)]
    assert all(p.other != p.document for plans in two for p in plans)


def test_without_next_sentence_prediction_b_always_follows():
    settings = InstanceSettings(
        max_seq_length=32, max_predictions_per_seq=5, next_sentence_prediction=False
    )
    plans = _plans(_corpus(20), settings)
    assert len(plans) > 10 and not any(plan.is_random_next for plan in plans)
    assert all(plan.start < plan.a_end < plan.end for plan in plans)
