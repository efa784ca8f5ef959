"""Entities and their scores equal hand computations, brute force and seqeval."""

import collections
import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from official_bert.metrics import entities
from official_bert.metrics.entities import BIOES, IOB1, IOB2, SCHEMES, Entity, Score

TAGS = ["O", *(f"{letter}-{label}" for letter in "BIES" for label in ("X", "Y"))]
SENTENCES = st.lists(st.sampled_from(TAGS), max_size=8)


def words(text):
    return text.split()


def spans(tags):
    return [tuple(entity) for entity in entities.to_spans(words(tags))]


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("", []),
        ("O O", []),
        ("B-X I-X O", [(0, 2, "X")]),
        ("I-X I-X", [(0, 2, "X")]),
        ("O I-X O", [(1, 2, "X")]),
        ("I-X B-X I-X", [(0, 1, "X"), (1, 3, "X")]),
        ("B-X B-X", [(0, 1, "X"), (1, 2, "X")]),
        # A new type always begins a new entity.
        ("B-X I-Y I-Y", [(0, 1, "X"), (1, 3, "Y")]),
        ("B-X I-Y I-X", [(0, 1, "X"), (1, 2, "Y"), (2, 3, "X")]),
        ("S-X S-X B-X I-X E-X", [(0, 1, "X"), (1, 2, "X"), (2, 5, "X")]),
        ("B-X E-X B-X E-X", [(0, 2, "X"), (2, 4, "X")]),
        ("B-X E-X I-X", [(0, 2, "X"), (2, 3, "X")]),
        ("E-X E-X", [(0, 1, "X"), (1, 2, "X")]),
        ("S-X I-X", [(0, 1, "X"), (1, 2, "X")]),
        ("O E-X", [(1, 2, "X")]),
        ("B-X O E-X", [(0, 1, "X"), (2, 3, "X")]),
        ("B-X I-X S-X", [(0, 2, "X"), (2, 3, "X")]),
        ("U-X B-X I-X L-X", [(0, 1, "X"), (1, 4, "X")]),
        ("B I O B", [(0, 2, ""), (3, 4, "")]),
        ("B-a-b I-a-b I-a", [(0, 2, "a-b"), (2, 3, "a")]),
    ],
)
def test_entities_by_hand(tags, expected):
    assert spans(tags) == expected


@pytest.mark.parametrize("tag", ["", "PER", "o", "O-X", "B-", "-", "b-PER", "BI-X"])
def test_what_is_no_tag(tag):
    with pytest.raises(ValueError, match="is not a tag. Tags look like O, B-PER"):
        entities.to_spans(["O", tag])


def test_tags_of_each_scheme():
    found = [Entity(1, 2, "X"), Entity(2, 5, "X"), Entity(5, 7, "Y")]
    expected = {
        IOB1: "O I-X B-X I-X I-X I-Y I-Y O",
        IOB2: "O B-X B-X I-X I-X B-Y I-Y O",
        BIOES: "O S-X B-X I-X E-X B-Y E-Y O",
    }
    for scheme, tags in expected.items():
        assert entities.to_tags(reversed(found), 8, scheme) == tags.split()
        for other in SCHEMES:
            converted = entities.convert_tags(tags.split(), other)
            assert converted == expected[other].split()


def test_from_iob1_to_iob2():
    tags = words("I-X I-X B-X O I-Y I-X")
    assert entities.convert_tags(tags, IOB2) == words("B-X I-X B-X O B-Y B-X")
    assert entities.convert_tags(["I", "B", "O"], IOB2) == ["B", "B", "O"]


@pytest.mark.parametrize(
    "bad", [[(0, 0, "X")], [(1, 4, "X")], [(0, 2, "X"), (1, 3, "Y")], [(-1, 1, "X")]]
)
def test_spans_that_fit_no_sentence(bad):
    with pytest.raises(ValueError, match="overlaps another one, or extends"):
        entities.to_tags(bad, 3)


def test_an_unknown_scheme():
    with pytest.raises(ValueError, match="Choose one of IOB1, IOB2, BIOES"):
        entities.to_tags([], 3, "IOB3")


# Letters on both sides of a border between entities of one type.
CUTS = "BB IB EB SB BS IS ES SS EI SI EE SE OB OI OE OS BO IO EO SO"


def slow_spans(tags):
    """Return the runs of words with a border at both ends and none inside."""
    cuts = {0, len(tags)}
    for place, (left, right) in enumerate(itertools.pairwise(tags), 1):
        if left[0] + right[0] in CUTS or left[2:] != right[2:]:
            cuts.add(place)
    runs = itertools.pairwise(sorted(cuts))
    return [(i, j, tags[i][2:]) for i, j in runs if j > i and tags[i] != "O"]


@settings(deadline=None)
@given(SENTENCES)
def test_entities_as_by_brute_force(tags):
    assert entities.to_spans(tags) == slow_spans(tags)


@settings(deadline=None)
@given(SENTENCES, st.sampled_from(SCHEMES))
def test_no_entity_is_lost_on_the_way_through_a_scheme(tags, scheme):
    converted = entities.convert_tags(tags, scheme)
    assert entities.to_spans(converted) == entities.to_spans(tags)
    assert entities.convert_tags(converted, scheme) == converted


PAIRS = st.lists(
    st.lists(st.tuples(st.sampled_from(TAGS), st.sampled_from(TAGS)), max_size=6),
    max_size=6,
).map(lambda rows: [[list(tags) for tags in zip(*row, strict=True)] for row in rows])


def unzip(pairs):
    pairs = [pair for pair in pairs if pair]
    return [gold for gold, _ in pairs], [found for _, found in pairs]


@settings(deadline=None)
@given(PAIRS)
def test_scores_as_by_brute_force(pairs):
    gold, predicted = unzip(pairs)
    found = entities.score(gold, predicted)
    counts = collections.defaultdict(lambda: [0, 0, 0])
    for tags, guesses in zip(gold, predicted, strict=True):
        for entity in slow_spans(tags):
            counts[entity[2]][0] += 1
            counts[entity[2]][2] += entity in slow_spans(guesses)
        for entity in slow_spans(guesses):
            counts[entity[2]][1] += 1
    assert found.types == {label: Score(*three) for label, three in counts.items()}
    totals = [sum(column) for column in zip(*counts.values(), strict=True)]
    assert found.overall == Score(*(totals or [0, 0, 0]))
    flat = [a == b for pair in pairs if pair for a, b in zip(*pair, strict=True)]
    assert (found.num_words, found.num_right_words) == (len(flat), sum(flat))


@settings(deadline=None)
@given(PAIRS)
def test_scores_as_seqeval_s(pairs):
    seqeval = pytest.importorskip("seqeval.metrics")
    gold, predicted = unzip(pairs)
    found = entities.score(gold, predicted)
    if not found.types:
        return
    report = seqeval.classification_report(
        gold, predicted, output_dict=True, zero_division=0
    )
    for label, of_type in {**found.types, "micro avg": found.overall}.items():
        assert of_type.precision == pytest.approx(report[label]["precision"])
        assert of_type.recall == pytest.approx(report[label]["recall"])
        assert of_type.f1 == pytest.approx(report[label]["f1-score"])
        assert of_type.num_gold == report[label]["support"]
    assert found.accuracy == pytest.approx(seqeval.accuracy_score(gold, predicted))


def random_tags(tags):
    """Return gold and predicted tags of 300 sentences, many of them malformed."""
    rng, gold, predicted = random.Random(7), [], []
    for _ in range(300):
        known = [rng.choice(tags) for _ in range(rng.randint(1, 12))]
        gold.append(known)
        predicted.append([t if rng.random() < 0.7 else rng.choice(tags) for t in known])
    return gold, predicted


# Recorded with conlleval 0.2 from PyPI, a port of the script. Precision, recall and F1
# equal seqeval 1.2.2.
IOB_REPORT = """\
processed 2052 tokens with 1164 phrases; found: 1151 phrases; correct: 846.
accuracy:  77.97%; precision:  73.50%; recall:  72.68%; FB1:  73.09
              LOC: precision:  73.58%; recall:  73.74%; FB1:  73.66  458
              ORG: precision:  69.27%; recall:  69.59%; FB1:  69.43  218
              PER: precision:  75.37%; recall:  73.06%; FB1:  74.20  475
"""
BIOES_REPORT = """\
processed 1971 tokens with 1372 phrases; found: 1376 phrases; correct: 1043.
accuracy:  74.02%; precision:  75.80%; recall:  76.02%; FB1:  75.91
              LOC: precision:  78.37%; recall:  76.26%; FB1:  77.30  578
              PER: precision:  73.93%; recall:  75.84%; FB1:  74.87  798
"""


@pytest.mark.comparison
@pytest.mark.parametrize(
    ("tags", "report"),
    [
        ("O O O B-PER I-PER B-LOC I-LOC I-ORG", IOB_REPORT),
        ("O O B-PER I-PER E-PER S-PER B-LOC E-LOC S-LOC", BIOES_REPORT),
    ],
)
def test_the_reports_of_others(tags, report):
    found = entities.score(*random_tags(words(tags)))
    assert entities.conlleval_table(found) == report


GOLD = [words("B-PER I-PER O B-LOC"), words("O B-ORG I-ORG"), words("B-LOC O")]
FOUND = [words("B-PER I-PER O B-ORG"), words("O B-ORG O"), words("I-LOC B-PER")]


def test_scores_by_hand():
    """The first person and the last location are correct, with any letters."""
    found = entities.score(GOLD, FOUND)
    assert found.overall == Score(4, 5, 2)
    assert found.types == {
        "LOC": Score(2, 1, 1),
        "ORG": Score(1, 2, 0),
        "PER": Score(1, 2, 1),
    }
    assert list(found.types) == ["LOC", "ORG", "PER"]
    assert found.overall.precision == 0.4 and found.overall.recall == 0.5
    assert found.overall.f1 == pytest.approx(4 / 9)
    assert found.accuracy == pytest.approx(5 / 9)


def test_the_table_of_conlleval():
    assert entities.conlleval_table(entities.score(GOLD, FOUND)) == (
        "processed 9 tokens with 4 phrases; found: 5 phrases; correct: 2.\n"
        "accuracy:  55.56%; precision:  40.00%; recall:  50.00%; FB1:  44.44\n"
        "              LOC: precision: 100.00%; recall:  50.00%; FB1:  66.67  1\n"
        "              ORG: precision:   0.00%; recall:   0.00%; FB1:   0.00  2\n"
        "              PER: precision:  50.00%; recall: 100.00%; FB1:  66.67  2\n"
    )


def test_an_entity_ends_with_its_sentence():
    together = entities.score([["B-X", "I-X"]], [["B-X", "I-X"]])
    apart = entities.score([["B-X"], ["I-X"]], [["B-X"], ["I-X"]])
    assert (together.overall.num_gold, apart.overall.num_gold) == (1, 2)


def test_nothing_to_find_is_no_division_by_zero():
    nothing = entities.score([], [])
    assert nothing.accuracy == nothing.overall.f1 == 0.0
    assert entities.conlleval_table(nothing).count("\n") == 1
    quiet = entities.score([["O", "B-X"]], [["O", "O"]])
    assert quiet.overall.precision == quiet.overall.f1 == 0.0
    assert quiet.accuracy == 0.5
    loud = entities.score([["O"]], [["S-X"]])
    assert loud.types == {"X": Score(0, 1, 0)} and loud.overall.recall == 0.0
    assert entities.score([[]], [[]]).num_words == 0


def test_predictions_must_fit():
    with pytest.raises(ValueError, match="has 2 sentences, but `predicted` has 1"):
        entities.score([["O"], ["O"]], [["O"]])
    with pytest.raises(ValueError, match="Sentence 1 .*has 2 words, but 1 predicted"):
        entities.score([["O"], ["O", "O"]], [["O"], ["O"]])
