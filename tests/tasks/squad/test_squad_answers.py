"""Answers for given logits equal those of the original's `write_predictions`."""

import gzip
import json
import math
import random
import time

import numpy as np
import pytest

from official_bert.errors import UserError
from official_bert.fine_tuning.batches import FeatureSet
from official_bert.tasks.squad import answers as squad_answers
from official_bert.tasks.squad import reports as squad_reports
from official_bert.tasks.squad.answers import NO_CANDIDATE, Decoding, decode
from official_bert.tasks.squad.features import convert_examples, pad_squad_features
from official_bert.tasks.squad.files import (
    WHITESPACE,
    make_example,
    read_examples,
    split_words,
)
from official_bert.tasks.squad.training import SquadTask, window_logits
from official_bert.tokenization.full import FullTokenizer

# Normalization swaps the last two, and they are not accents.
LETTERS = "abcdefgiqAéİσςשלم王国人😀\u302e\U00016ff0"
ENTRIES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *"-,.("]
ENTRIES += [f"##{letter}" for letter in LETTERS]
# Parts of words in random texts, including characters that are dropped: accents, a
# soft hyphen, a joiner, a vowel sign, half of a surrogate pair.
PARTS = ["a", "b", "Ab", "é", "e\u0301", "\u0301", "İ", "Σ", "ΑΣ", "😀", "👩\u200d👩"]
PARTS += ["王", "国", "王国", "ש", "שָל", "م", "مُ", "\u00ad", "\u200f", "\u00a0", "½"]
EXPANDED = "\U0001d15e"  # The tokenizer reads two characters.
PARTS += [",", "-", "(", "x", "\ufffd", "क्", "\u2028", "ﬁ"]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    path.write_text("\n".join(ENTRIES), "utf-8")
    return FullTokenizer(str(path))


def answer(tokenizer, context, scores, length=64, stride=32, padded=None, **settings):
    """Return the prediction for a context and the question "q".

    Args:
      tokenizer: `FullTokenizer`.
      context: str.
      scores: dict of (window, first token, last token) -> (start logit, end logit).
        Tokens are counted in the window's part of the context; -3 is [CLS]. All
        other logits are -9.
      length: tokens per window.
      stride: tokens between the starts of windows.
      padded: length of the rows of logits.
      **settings: settings of `Decoding`.
    """
    example = make_example("q", context)
    features = convert_examples([example], tokenizer, length, stride, 1)
    sizes = [padded or len(one.input_ids) for one in features]
    starts, ends = ([np.full(size, -9.0) for size in sizes] for _ in range(2))
    for (window, first, last), (start, end) in scores.items():
        starts[window][3 + first] = start
        ends[window][3 + last] = end
    (found,) = decode(
        [example], features, starts, ends, tokenizer, Decoding(**settings)
    )
    return found


def texts(prediction):
    return [one.text for one in prediction.nbest]


def shown(context, prediction):
    return context[prediction.answer.start : prediction.answer.end]


def test_one_answer(tokenizer):
    context = "a b\n c-d"
    found = answer(tokenizer, context, {(0, 1, 3): (2, 1.5)}, n_best_size=1)
    (only,) = found.nbest
    assert found.answer == found.best_non_null == only
    assert (only.text, only.start, only.end) == ("b c-", 2, 7)
    assert shown(context, found) == "b\n c-"
    assert (only.start_logit, only.end_logit, only.score) == (2, 1.5, 3.5)
    assert (only.probability, found.null_odds, found.qas_id) == (1, None, "0")


def test_the_n_best(tokenizer):
    scores = {(0, 0, 1): (2, 1), (0, 1, 2): (1.5, 3)}
    found = answer(tokenizer, "A b c", scores, n_best_size=2)
    assert texts(found) == ["A b c", "b c"]
    scores = [one.score for one in found.nbest]
    assert scores == [5, 4.5]
    odds = math.exp(0.5)
    assert [one.probability for one in found.nbest] == [
        pytest.approx(odds / (odds + 1)),
        pytest.approx(1 / (odds + 1)),
    ]


@pytest.mark.parametrize(("longest", "text"), [(3, "a b c"), (2, "b c"), (1, "b")])
def test_max_answer_length(tokenizer, longest, text):
    scores = {(0, 0, 2): (5, 5), (0, 1, 1): (4, 3)}
    settings = {"n_best_size": 2, "max_answer_length": longest}
    assert answer(tokenizer, "a b c", scores, **settings).answer.text == text


def test_no_end_before_the_start_and_none_in_the_question(tokenizer):
    scores = {(0, 2, 0): (5, 5), (0, 1, 1): (1, 1), (0, -2, -2): (9, 9)}
    scores[0, -3, -3] = (9, 9)
    found = answer(tokenizer, "a b c", scores, n_best_size=4)
    assert texts(found) == ["b"]


def test_equal_scores_are_taken_in_order(tokenizer):
    found = answer(tokenizer, "a b c", {(0, 2, 2): (-9, -9)}, n_best_size=8)
    assert texts(found) == ["a", "a b", "a b c", "b", "b c", "c"]


def test_padding_takes_part_as_in_the_original(tokenizer):
    """On equal logits the first come first; the padding has higher ones."""
    scores = {(0, 7, 7): (9, 9), (0, 8, 8): (8, 8), (0, 0, 0): (7, 7)}
    found = answer(tokenizer, "a b", scores, padded=15, n_best_size=2)
    assert texts(found) == [squad_answers.NOTHING]
    found = answer(tokenizer, "a b", scores, padded=15, n_best_size=3)
    assert texts(found) == ["a"]


WINDOWS = "a b c d e f g"  # Windows of 4 tokens at stride 2: abcd, cdef, efg.


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ((0, 0, 3), "a b c d"),  # The end may lack maximal context,
        ((0, 3, 3), None),  # but not the start.
        ((1, 1, 1), "d"),
        ((1, 0, 1), None),
        ((1, 2, 3), "e f"),
        ((2, 1, 2), "f g"),
        ((2, 2, 2), "g"),
    ],
)
def test_answers_at_the_edges_of_windows(tokenizer, place, text):
    found = answer(tokenizer, WINDOWS, {place: (9, 9)}, 8, 2, n_best_size=1)
    assert len(convert_examples([make_example("q", WINDOWS)], tokenizer, 8, 2, 1)) == 3
    if text is not None:
        assert found.answer.text == shown(WINDOWS, found) == text
        assert found.answer.score == 18
    else:
        assert found.answer.text == squad_answers.NOTHING


def test_no_answer(tokenizer):
    scores = {(0, -3, -3): (1, 1), (1, -3, -3): (-1, 1), (2, -3, -3): (0, 5)}
    scores[1, 1, 1] = (0, 1)
    settings = {"version_2_with_negative": True, "n_best_size": 2}
    found = answer(tokenizer, WINDOWS, scores, 8, 2, **settings)
    assert found.null_odds == -1 + 1 - 0 - 1  # The window with the lowest null score.
    assert found.answer.text == "d"
    null = found.nbest[1]
    assert (null.text, null.start, null.end) == ("", 0, 0)
    assert (null.start_logit, null.end_logit) == (-1, 1)
    assert found.answer_at(-1.0).text == "d"
    assert found.answer_at(-1.01) == null
    settings["null_score_diff_threshold"] = -2
    found = answer(tokenizer, WINDOWS, scores, 8, 2, **settings)
    assert (found.answer, found.best_non_null.text) == (null, "d")


def test_no_answer_may_be_one_too_many(tokenizer):
    scores = {(0, -3, -3): (-8.5, -9), (0, 0, 0): (3, 3), (0, 1, 1): (2, 2)}
    settings = {"n_best_size": 2, "version_2_with_negative": True}
    found = answer(tokenizer, "a b", scores, **settings)
    assert texts(found) == ["a", "a b", ""]
    assert sum(one.probability for one in found.nbest) == pytest.approx(1)
    assert found.nbest[2].score == -17.5


NO_CANDIDATES = [
    ("a b", {(0, -3, -3): (5, 5), (0, -2, -2): (4, 4)}),
    ("", {}),
    ("\u200b", {}),
]


@pytest.mark.parametrize(("context", "scores"), NO_CANDIDATES)
@pytest.mark.parametrize("threshold", [0.0, -5.0, 1e7])
def test_no_answer_where_nothing_can_be_one(tokenizer, context, scores, threshold):
    """The original fails in this case."""
    settings = {"n_best_size": 2, "null_score_diff_threshold": threshold}
    found = answer(tokenizer, context, scores, version_2_with_negative=True, **settings)
    (null,) = found.nbest
    assert found.answer == null == found.answer_at(1e9)
    assert (null.text, null.start, null.end, null.probability) == ("", 0, 0, 1)
    assert (found.best_non_null, found.null_odds) == (None, NO_CANDIDATE)


@pytest.mark.parametrize(("context", "scores"), NO_CANDIDATES)
def test_an_answer_where_nothing_can_be_one(tokenizer, context, scores):
    """The file contains the original's "empty"; people see an empty text."""
    found = answer(tokenizer, context, scores, n_best_size=2)
    assert texts(found) == [found.answer.text] == ["empty"]
    assert shown(context, found) == ""
    assert (found.best_non_null, found.null_odds) == (None, None)


def test_one_best(tokenizer):
    """A second answer still exists, which is compared with "no answer"."""
    scores = {(0, 0, 0): (2, 1), (0, 1, 1): (1, 2), (0, -3, -3): (1.5, 1.5)}
    settings = {"n_best_size": 1, "version_2_with_negative": True}
    found = answer(tokenizer, "a b", scores, **settings)
    assert (texts(found), found.null_odds) == (["a b", ""], 3 - 4)
    found = answer(tokenizer, "a b", scores, n_best_size=1)
    assert texts(found) == ["a b"]


def test_texts_that_repeat_count_once(tokenizer):
    scores = {(0, 0, 0): (3, 3), (0, 2, 2): (4, 4), (0, 1, 1): (-20, -20)}
    found = answer(tokenizer, "a b a", scores, n_best_size=2)
    assert texts(found) == ["a", "a b a"]
    assert (found.answer.start, found.answer.score) == (4, 8)


@pytest.mark.parametrize(
    ("context", "tokens", "text", "shown_text"),
    [
        ("a Bé, c", (1, 2), "Bé", "Bé"),
        # Enough lone accents to make the counts differ:
        ("a (be\u0301, c", (2, 3), "(be\u0301,", "be\u0301"),
        ("a\u00adb,", (0, 1), "a\u00adb,", "a\u00adb"),
        ("(xyz) b", (1, 1), "(xyz)", "xyz"),  # [UNK]
        ("(xyz)\n\tb-c", (1, 3), "(xyz) b-c", "xyz)\n\tb"),
        ("a\u202f b", (0, 1), "a b", "a\u202f b"),
        ("王国王人", (2, 2), "王", "王"),
        ("ab-AB", (3, 4), "ab", "AB"),  # The first position with the same letters.
        ("שלש ל", (1, 3), "לש ל", "לש ל"),
        ("👩\u200d👩 a", (0, 0), "👩\u200d👩", "👩\u200d👩"),
        ("a\u0301\u0301b", (0, 0), "a\u0301\u0301b", "a\u0301\u0301"),
        ("a\u00a0b", (1, 1), "a\u00a0b", "b"),
        ("a\u302e\U00016ff0", (1, 2), "\u302e\U00016ff0", "\u302e\U00016ff0"),
    ],
)
def test_texts_and_spans(tokenizer, context, tokens, text, shown_text):
    found = answer(tokenizer, context, {(0, *tokens): (9, 9)}, n_best_size=1)
    assert (found.answer.text, shown(context, found)) == (text, shown_text)


def test_spans_in_one_long_word_of_several_windows(tokenizer):
    """Chinese has no spaces, so a window may begin anywhere in a long word."""
    context = " 王国" * 2 + "人王国b" * 9
    example = make_example("q", context)
    features = convert_examples([example], tokenizer, 11, 3, 1)
    assert len(features) > 9
    tokens = context.replace(" ", "")
    for window, one in enumerate(features):
        first = int(np.flatnonzero(one.token_is_max_context)[0]) - 3
        place = (window, first, first + 1)
        found = answer(tokenizer, context, {place: (9, 9)}, 11, 3, n_best_size=1)
        expected = tokens[one.doc_start + first : one.doc_start + first + 2]
        assert shown(context, found).replace(" ", "") == expected
        before = context[: found.answer.start].replace(" ", "")
        assert len(before) == one.doc_start + first


def plain_final_text(pieces, original, basic_tokenizer):
    """Compute `get_final_text` on complete texts, slowly."""
    wanted = " ".join(" ".join(pieces).replace(" ##", "").replace("##", "").split())
    tokens = " ".join(basic_tokenizer.tokenize(original))
    place = tokens.find(wanted)
    of_tokens, of_original = (
        [number for number, char in enumerate(text) if char != " "]
        for text in (tokens, original)
    )
    if place < 0 or len(of_tokens) != len(of_original):
        return original
    first = of_original[of_tokens.index(place)]
    last = of_original[of_tokens.index(place + len(wanted) - 1)]
    return original[first : last + 1]


def plain_nbest(example, features, starts, ends, tokenizer, decoding):
    """Return the n best answers of one SQuAD 1.1 example, one span after the other.

    Returns:
      list of (text, start logit, end logit, pieces).
    """
    found = []
    for one, start_logits, end_logits in zip(features, starts, ends, strict=True):
        best_starts, best_ends = (
            sorted(range(len(logits)), key=lambda i: (-logits[i], i))
            for logits in (start_logits.tolist(), end_logits.tolist())
        )
        words, pieces = (
            one.token_to_orig_map.tolist(),
            tokenizer.convert_ids_to_tokens(one.input_ids.tolist()),
        )
        for start in best_starts[: decoding.n_best_size]:
            for end in best_ends[: decoding.n_best_size]:
                if max(start, end) >= len(words) or -1 in (words[start], words[end]):
                    continue
                if one.token_is_max_context[start] and (
                    0 <= end - start < decoding.max_answer_length
                ):
                    covered = example.doc_tokens[words[start] : words[end] + 1]
                    inside = pieces[start : end + 1]
                    text = plain_final_text(
                        inside, " ".join(covered), tokenizer.basic_tokenizer
                    )
                    logits = float(start_logits[start]), float(end_logits[end])
                    found.append((text, *logits, inside))
    found.sort(key=lambda each: -(each[1] + each[2]))
    first_of_text = {}
    for each in found:
        first_of_text.setdefault(each[0], each)
    return list(first_of_text.values())[: decoding.n_best_size]


@pytest.mark.parametrize("do_lower_case", [True, False])
def test_random_texts(tmp_path, do_lower_case):
    path = tmp_path / "vocab.txt"
    path.write_text("\n".join(ENTRIES), "utf-8")
    tokenizer = FullTokenizer(str(path), do_lower_case)
    draw, rng = random.Random(11), np.random.default_rng(11)
    decoding = Decoding(n_best_size=6, max_answer_length=7)
    num_differing = 0
    for number in range(250):
        parts = PARTS + list(WHITESPACE) * 2 + [EXPANDED] * (number % 2)
        example = make_example("q", "".join(draw.choices(parts, k=40)))
        features = convert_examples([example], tokenizer, 20, 7, 1)
        starts, ends = rng.normal(size=(2, len(features), 20)).astype(np.float32)
        arguments = features, starts, ends, tokenizer, decoding
        (prediction,) = decode([example], *arguments)
        expected = plain_nbest(example, *arguments)
        if not expected:
            assert texts(prediction) == [squad_answers.NOTHING]
            continue
        for found, (*row, pieces) in zip(prediction.nbest, expected, strict=True):
            assert [found.text, found.start_logit, found.end_logit] == row
            span = example.context[found.start : found.end]
            assert span and span == span.strip(WHITESPACE)
            assert "[UNK]" in pieces or letters_of(span, tokenizer) == joined(pieces)
            words = " ".join(split_words(span)[0])
            num_differing += words != found.text
            if EXPANDED not in parts and words not in found.text:
                assert letters_of(words, tokenizer) == letters_of(found.text, tokenizer)
    assert num_differing > 50


def letters_of(text, tokenizer):
    # The lower case of a sigma depends on its neighbours.
    return "".join(tokenizer.basic_tokenizer.tokenize(text)).replace("σ", "ς")


def joined(pieces):
    return "".join(piece.removeprefix("##") for piece in pieces).replace("σ", "ς")


def test_each_question_gets_its_own_windows(tokenizer):
    examples = [make_example("q", text, text) for text in ("a", "", "b c", "a")]
    features = convert_examples(examples, tokenizer, 20, 7, 1)
    logits = [np.zeros(len(one.input_ids)) for one in features]
    found = decode(examples, features, logits, logits, tokenizer, Decoding())
    assert [one.qas_id for one in found] == ["a", "", "b c", "a"]
    assert [one.answer.text for one in found] == ["a", "empty", "b", "a"]


def test_what_cannot_be_decoded(tokenizer):
    for name in ("n_best_size", "max_answer_length"):
        with pytest.raises(UserError, match=f"{name} is 0, but it must be at least 1"):
            Decoding(**{name: 0})
    with pytest.raises(UserError, match="window 1000000000 are not finite"):
        answer(tokenizer, "a b", {(0, 0, 0): (math.nan, 0)})
    with pytest.raises(UserError, match="window 1000000000 are not finite"):
        answer(tokenizer, "a b", {(0, 0, 0): (0, math.inf)})
    with pytest.raises(ValueError, match="has 6 tokens, but 5 logits"):
        answer(tokenizer, "a b", {}, padded=5)
    features = convert_examples([make_example("q", "a")], tokenizer, 9, 2, 1)
    with pytest.raises(
        ValueError, match="1 windows, but 1 rows of start .* 2 rows of end"
    ):
        decode([], features, [0], [0, 1], tokenizer, Decoding())


def written(folder, examples, predictions):
    """Return the bytes of the three files; two files for SQuAD 1.1."""
    with_odds = predictions[0].null_odds is not None
    squad_reports.write(folder, examples, predictions, with_odds)
    names = ["predictions", "nbest_predictions", *["null_odds"] * with_odds]
    return [(folder / f"{name}.json").read_bytes() for name in names]


def recorded_settings(settings, version_2):
    names = ("n_best_size", "max_answer_length", "null_score_diff_threshold")
    return Decoding(
        version_2_with_negative=version_2, **{name: settings[name] for name in names}
    )


@pytest.mark.comparison
def test_mini_as_the_original(mini, tmp_path):
    packed = (mini / "squad_expected.json.gz").read_bytes()
    recorded = json.loads(gzip.decompress(packed))
    settings = recorded["settings"]
    tokenizer = FullTokenizer(str(mini / "vocab.txt"))
    examples = read_examples(mini / "squad.json", is_training=False)
    names = ("max_seq_length", "doc_stride", "max_query_length")
    lengths = [settings[name] for name in names]
    features = convert_examples(examples, tokenizer, *lengths)
    logits = [np.array(recorded[name]) for name in ("start_logits", "end_logits")]
    decoding = recorded_settings(settings, True)
    found = decode(examples, features, *logits, tokenizer, decoding)
    contents = map(json.loads, written(tmp_path, examples, found))
    for content, name in zip(
        contents, ("predictions", "nbest", "null_odds"), strict=True
    ):
        assert content == recorded[name]
        assert len(content) == 8


@pytest.mark.comparison
@pytest.mark.parametrize("version", ["1.1", "2.0"])
def test_squad_as_the_original(shared, tmp_path, version):
    """The files are equal byte for byte."""
    folder = shared / "golden" / "squad"
    settings = json.loads((folder / "settings.json").read_text())
    vocab = shared / "data" / "vocab" / settings["vocab"] / "vocab.txt"
    tokenizer = FullTokenizer(str(vocab))
    examples = read_examples(folder / f"dev-v{version}.json", is_training=False)
    names = ("max_seq_length", "doc_stride", "max_query_length")
    lengths = [settings[name] for name in names]
    features = convert_examples(examples, tokenizer, *lengths)
    with np.load(folder / f"logits_v{version}.npz") as recorded:
        logits = recorded["start_logits"], recorded["end_logits"]
    decoding = recorded_settings(settings, version == "2.0")
    found = decode(examples, features, *logits, tokenizer, decoding)
    predictions, nbest, *odds = written(tmp_path, examples, found)
    assert predictions == (folder / f"predictions_v{version}.json").read_bytes()
    packed = (folder / f"nbest_v{version}.json.gz").read_bytes()
    assert nbest == gzip.decompress(packed)
    if version == "2.0":
        assert odds == [(folder / "null_odds_v2.0.json").read_bytes()]
    differing = [
        one
        for example, each in zip(examples, found, strict=True)
        for one in each.nbest
        if one.text.split() != example.context[one.start : one.end].split()
    ]
    total = sum(len(each.nbest) for each in found)
    assert len(differing) < total / 100


@pytest.mark.comparison
@pytest.mark.parametrize("version", ["1.1", "2.0"])
def test_padding_competes_as_in_the_original(shared, tmp_path, version):
    """The recorded answers result only with --pad_to_max_seq_length."""
    folder = shared / "golden" / "squad"
    settings = json.loads((folder / "settings.json").read_text())
    vocab = shared / "data" / "vocab" / settings["vocab"] / "vocab.txt"
    tokenizer = FullTokenizer(str(vocab))
    examples = read_examples(folder / f"dev-v{version}.json", is_training=False)
    names = ("max_seq_length", "doc_stride", "max_query_length")
    decoding = recorded_settings(settings, version == "2.0")
    task = SquadTask(*(settings[name] for name in names), decoding)
    features = convert_examples(examples, tokenizer, *task.lengths)
    with np.load(folder / f"logits_v{version}.npz") as recorded:
        logits = {name: recorded[name] for name in ("start_logits", "end_logits")}

    def nbest(pad_to_max_seq_length):
        """Return the n-best file of a model with the recorded logits."""
        windows = FeatureSet(features, task.max_seq_length, pad_squad_features)
        numbers = (numbers for numbers, _ in windows.ordered_batches(8))

        def score(batch):
            rows, length = next(numbers), batch["input_ids"].shape[1]
            return {name: value[rows, :length] for name, value in logits.items()}

        found = window_logits(
            score, task, features, 8, pad_to_max_seq_length=pad_to_max_seq_length
        )
        predictions = decode(examples, features, *found, tokenizer, decoding)
        return written(tmp_path, examples, predictions)[1]

    packed = (folder / f"nbest_v{version}.json.gz").read_bytes()
    assert nbest(True) == gzip.decompress(packed)
    assert nbest(False) != gzip.decompress(packed)


def assert_quickly_decoded(examples, tokenizer):
    """Decode ten thousand questions, nearly all with an answer, quickly.

    It takes five seconds of processor time. The limit allows slow processors and noise.
    """
    assert len(examples) == 10_000
    features = convert_examples(examples, tokenizer)
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(2, len(features), 384)).astype(np.float32)
    decoding = Decoding(version_2_with_negative=True)
    started = time.process_time()
    found = decode(examples, features, *logits, tokenizer, decoding)
    assert time.process_time() - started < 25
    assert len(found) == 10_000
    assert sum(one.best_non_null is not None for one in found) > 9_500


@pytest.mark.slow
def test_ten_thousand_questions_in_seconds(mini):
    """The fixture's eight questions repeat, with windows of about a hundred tokens."""
    tokenizer = FullTokenizer(str(mini / "vocab.txt"))
    examples = read_examples(mini / "squad.json", is_training=False) * 1250
    assert_quickly_decoded(examples, tokenizer)


@pytest.mark.slow
def test_ten_thousand_questions_of_squad_in_seconds(shared):
    vocab = shared / "data" / "vocab" / "bert-base-uncased" / "vocab.txt"
    path = shared / "data" / "squad" / "dev-v1.1.json"
    examples = read_examples(path, is_training=False)[:10_000]
    assert_quickly_decoded(examples, FullTokenizer(str(vocab)))
