"""Windows and truncation of long texts equal the original's code."""

import gzip
import json

import numpy as np
import pytest
from record_files import MINI

from official_bert.fine_tuning.windows import Span, best_spans, make_spans
from official_bert.tokenization.full import FullTokenizer
from official_bert.tokenization.model_inputs import truncate_pair

SIZES = [(1, 1, 1), (5, 5, 2), (6, 5, 2), (17, 5, 3), (40, 9, 4), (40, 9, 1)]


def test_spans_by_hand():
    assert make_spans(10, 4, 3) == [Span(0, 4), Span(3, 4), Span(6, 4)]
    assert make_spans(11, 4, 3) == [Span(0, 4), Span(3, 4), Span(6, 4), Span(9, 2)]
    assert make_spans(4, 4, 1) == [Span(0, 4)]
    assert make_spans(3, 4, 1) == [Span(0, 3)]
    assert make_spans(0, 4, 1) == []


def test_a_stride_beyond_the_window_leaves_no_gap():
    assert make_spans(5, 2, 9) == [Span(0, 2), Span(2, 2), Span(4, 1)]


@pytest.mark.parametrize(("size", "stride"), [(0, 1), (-1, 1), (1, 0), (1, -1)])
def test_windows_that_would_never_end(size, stride):
    with pytest.raises(ValueError, match="must be at least 1"):
        make_spans(5, size, stride)


@pytest.mark.parametrize(("num_tokens", "size", "stride"), SIZES)
def test_windows_cover_the_text(num_tokens, size, stride):
    spans = make_spans(num_tokens, size, stride)
    covered = {place for start, n in spans for place in range(start, start + n)}
    assert covered == set(range(num_tokens))
    assert all(length <= size for _, length in spans)


def slow_best(spans, position):
    """Return the first of the windows with the highest score, by the rule."""
    scores = []
    for start, length in spans:
        left, right = position - start, start + length - 1 - position
        inside = left >= 0 and right >= 0
        scores.append(min(left, right) + 0.01 * length if inside else -1.0)
    return scores.index(max(scores))


@pytest.mark.parametrize(("num_tokens", "size", "stride"), SIZES)
def test_best_window_of_each_token(num_tokens, size, stride):
    spans = make_spans(num_tokens, size, stride)
    best = best_spans(spans, num_tokens)
    assert best.tolist() == [slow_best(spans, place) for place in range(num_tokens)]


def test_the_first_window_wins_a_tie():
    """Token 3 has one token of context in both windows, 0-4 and 2-6."""
    spans = [Span(0, 5), Span(2, 5)]
    assert best_spans(spans, 7).tolist() == [0, 0, 0, 0, 1, 1, 1]


def test_a_longer_window_wins_where_context_is_equal():
    """Token 3 has 2 and 0 neighbours in windows 1-5 and 3-9, token 4 has 1 and 1."""
    spans = [Span(1, 5), Span(3, 7)]
    assert best_spans(spans, 10)[3:6].tolist() == [0, 1, 1]


def test_a_long_text_is_the_same_in_no_time():
    spans = make_spans(30_000, 382, 128)
    best = best_spans(spans, 30_000)
    places = np.random.default_rng(0).integers(0, 30_000, 50)
    assert best[places].tolist() == [slow_best(spans, place) for place in places]


@pytest.mark.comparison
def test_maximal_context_as_the_original_recorded_it():
    """`token_is_max_context` is equal for each window of each question."""
    with gzip.open(MINI / "squad_expected.json.gz") as recorded:
        features = json.load(recorded)["dev"]
    questions = {}
    for feature in features:
        questions.setdefault(feature["example_index"], []).append(feature)
    compared = 0
    for windows in questions.values():
        firsts = [min(map(int, w["token_is_max_context"])) for w in windows]
        sizes = [len(w["token_is_max_context"]) for w in windows]
        # The recording has length 64, including [CLS] and two [SEP].
        room = 64 - firsts[0] - 1
        spans = make_spans(24 * (len(windows) - 1) + sizes[-1], room, 24)
        assert [span.length for span in spans] == sizes
        best = best_spans(spans, spans[-1].start + spans[-1].length)
        for place, (span, window) in enumerate(zip(spans, windows, strict=True)):
            for token, is_best in window["token_is_max_context"].items():
                token = int(token) - firsts[place] + span.start
                assert (best[token] == place) == is_best
                compared += 1
    assert compared > 3000


@pytest.mark.comparison
def test_truncation_as_the_original_recorded_it():
    """The pairs come from `run_classifier.py`; `extract_features.py` has the same
    rule."""
    tokenizer = FullTokenizer(str(MINI / "vocab.txt"))
    cls, sep = tokenizer.vocab["[CLS]"], tokenizer.vocab["[SEP]"]
    cut = 0
    for row in json.loads((MINI / "classifier_features.json").read_text()):
        if row["text_b"] is None:
            continue
        a, b = tokenizer.encode(row["text_a"]), tokenizer.encode(row["text_b"])
        room = row["max_seq_length"] - 3
        cut += len(a) + len(b) > room
        a, b = truncate_pair(a, b, room)
        used = sum(row["input_mask"])
        assert [cls, *a, sep, *b, sep] == row["input_ids"][:used]
    assert cut > 0


@pytest.mark.parametrize(
    ("sizes", "room", "left"),
    [
        ((3, 4), 7, (3, 4)),
        ((3, 4), 6, (3, 3)),
        ((3, 3), 5, (3, 2)),
        ((9, 2), 6, (4, 2)),
        ((2, 9), 3, (2, 1)),
        ((4, 0), 2, (2, 0)),
        ((1, 1), 0, (0, 0)),
    ],
)
def test_truncation_by_hand(sizes, room, left):
    a, b = list(range(sizes[0])), list(range(sizes[1]))
    assert truncate_pair(a, b, room) == (a[: left[0]], b[: left[1]])
    assert (len(a), len(b)) == sizes
