"""The corpus report: its numbers and warnings do not depend on the order."""

import json
import random
import re
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from official_bert.corpus.report import figure
from official_bert.corpus.report import report as corpus_report
from official_bert.corpus.report import statistics as statistics_module
from official_bert.corpus.report.statistics import CorpusStatistics, HashSample
from official_bert.data import pretraining_data
from official_bert.data.instances import InstanceSettings
from official_bert.data.records import examples

UNKNOWN = 1
SMALL = {"different_lines": 8, "any_lines": 4, "lines_with_unknown": 2}


def _statistics(documents, first=0, max_seq_length=32, expected_lines=0):
    """Count documents of lines; a word is a token, and `?` an unknown one."""
    corpus = CorpusStatistics(UNKNOWN, max_seq_length, expected_lines)
    for number, lines in enumerate(documents, first):
        ids = [[UNKNOWN if w == "?" else 7 for w in line.split()] for line in lines]
        corpus.add_document(lines, ids, number)
    return corpus


def _documents(num_documents, lines_each, make_line):
    numbers = iter(range(num_documents * lines_each))
    return [
        [make_line(next(numbers)) for _ in range(lines_each)]
        for _ in range(num_documents)
    ]


def _text(corpus, tokenizer):
    return "\n".join(corpus_report.report_lines(corpus, tokenizer))


def _warnings(corpus, tokenizer):
    return " ".join(_text(corpus, tokenizer).partition("Warnings:")[2].split())


# 64-bit keys that collide sometimes, with different values.
things = st.tuples(st.integers(0, 31).map(lambda n: n << 59), st.integers(0, 3))


@settings(deadline=None)
@given(st.lists(st.lists(things, max_size=12), min_size=1, max_size=6), st.randoms())
def test_a_sample_of_parts_is_that_of_the_whole(parts, rng):
    def sample(things):
        made = HashSample(4)
        for key, value in things:
            made.add(key, (value,))
        return made

    whole = sample([thing for part in parts for thing in part])
    samples = [sample(part) for part in parts]
    while len(samples) > 1:
        rng.shuffle(samples)
        other = samples.pop()
        samples[rng.randrange(len(samples))].merge(other)
    assert samples[0].to_list() == whole.to_list()
    assert len(whole.counts) <= 4
    kept = [key for part in parts for key, _ in part if key < whole.limit]
    assert whole.counts == {key: kept.count(key) for key in kept}


lines = st.lists(st.sampled_from(["a b", "c ?", "d", "", "e f g", "? ?"]), max_size=4)


@settings(deadline=None)
@given(st.lists(lines, max_size=12), st.integers(1, 8), st.randoms())
def test_workers_do_not_matter(mini_tokenizer, documents, num_workers, rng):
    with mock.patch.dict(statistics_module.CAPACITIES, SMALL):
        whole = _statistics(documents, max_seq_length=8)
        parts = [CorpusStatistics(UNKNOWN, 8) for _ in range(num_workers)]
        for number, document in enumerate(documents):
            parts[rng.randrange(num_workers)].merge(
                _statistics([document], number, max_seq_length=8)
            )
        for length in (3, 8, 8, 5):
            whole.sequence_lengths[length] += 1
            rng.choice(parts).sequence_lengths[length] += 1
        rng.shuffle(parts)
        merged = CorpusStatistics(UNKNOWN, 8)
        for part in parts:
            saved = json.loads(json.dumps(part.to_dict()))
            merged.merge(CorpusStatistics.from_dict(saved))
        assert json.dumps(merged.to_dict()) == json.dumps(whole.to_dict())
        assert _text(merged, mini_tokenizer) == _text(whole, mini_tokenizer)


def test_a_guess_of_the_size_changes_nothing_when_it_is_right():
    documents = _documents(20, 20, lambda n: f"line {n}")
    with mock.patch.dict(statistics_module.CAPACITIES, SMALL):
        guessed = _statistics(documents, expected_lines=400)
        assert guessed.to_dict() == _statistics(documents).to_dict()
        part = _statistics(documents[:1], expected_lines=400)
        assert len(part.different_lines.counts) < len(
            _statistics(documents[:1]).different_lines.counts
        )


def test_every_count_of_a_small_corpus():
    corpus = _statistics([["a b c", "a b c", ""], ["d ?"], [""], ["e " * 40, "f"]])
    corpus.counts["cut_documents"] += 2
    for length in (32, 16):
        corpus.sequence_lengths[length] += 1
    assert corpus_report.summary(corpus) == {
        "documents": 3,
        "one_line_documents": 1,
        "cut_documents": 2,
        "lines": 7,
        "lines_without_tokens": 2,
        "long_lines": 1,
        "tokens": 49,
        "tokens_too_many": 11,
        "unknown_tokens": 1,
        "repeated_lines": 2,
        "repeated_lines_exact": True,
        "sequences": 2,
        "padding_share": 0.25,
    }


def test_a_clean_corpus_has_no_warning(mini_tokenizer):
    corpus = _statistics(_documents(100, 5, lambda n: f"line {n}"))
    for _ in range(10):
        corpus.sequence_lengths[32] += 1
    text = _text(corpus, mini_tokenizer)
    assert text.endswith("Warnings: none")
    assert re.search("repeated lines +0\n", text)


def test_a_third_of_the_lines_repeated_is_a_warning_with_counts(mini_tokenizer):
    documents = _documents(100, 10, lambda n: "A stub." if n % 10 < 3 else f"line {n}")
    corpus = _statistics(documents)
    assert "Of 1,000 lines 299 (30 %) repeat" in _warnings(corpus, mini_tokenizer)
    assert '  300  "A stub."\n' in _text(corpus, mini_tokenizer)


def test_many_lines_twice_are_a_warning(mini_tokenizer):
    corpus = _statistics(_documents(100, 10, lambda n: f"line {min(n, n % 900)}"))
    assert "Of 1,000 lines 100 (10 %) repeat" in _warnings(corpus, mini_tokenizer)


def test_one_line_a_hundred_times_is_a_warning(mini_tokenizer):
    documents = _documents(
        100, 100, lambda n: "A stub." if n % 100 == 0 else f"line {n}"
    )
    corpus = _statistics(documents)
    assert "Of 10,000 lines 99 (0.99 %) rep" in _warnings(corpus, mini_tokenizer)


@pytest.mark.parametrize(
    ("num_documents", "share"), [(800, 0.0), (800, 0.3), (800, 0.9), (1, 0.3)]
)
def test_a_large_corpus_is_estimated(mini_tokenizer, num_documents, share):
    """Repeated lines are estimated: one has 5 %, others occur 20 times."""
    rng = random.Random(0)

    def line(number):
        draw = rng.random()
        if draw < share - 0.05:
            return f"again {rng.randrange(int(1000 * share))}"
        return "A stub." if draw < share else f"line {number}"

    documents = _documents(num_documents, 20000 // num_documents, line)
    lines = [line for document in documents for line in document]
    small = {"different_lines": 2048, "any_lines": 2048}
    with mock.patch.dict(statistics_module.CAPACITIES, small):
        corpus = _statistics(documents)
    facts = corpus_report.summary(corpus)
    assert not facts["repeated_lines_exact"]
    repeated = 1 - len(set(lines)) / len(lines)
    assert facts["repeated_lines"] / len(lines) == pytest.approx(repeated, abs=0.05)
    if not share:
        assert corpus_report.frequent_lines(corpus) == []
        return
    first = corpus_report.frequent_lines(corpus)[0]
    assert first.text == '"A stub."'
    assert first.count == pytest.approx(lines.count("A stub."), rel=0.35)
    assert "lines about" in _warnings(corpus, mini_tokenizer)


def test_too_few_documents(mini_tokenizer):
    one = _statistics(_documents(1, 50, lambda n: f"line {n}"))
    few = _statistics(_documents(7, 50, lambda n: f"line {n}"))
    assert "There is only one document" in _warnings(one, mini_tokenizer)
    assert "There are only 7 documents" in _warnings(few, mini_tokenizer)


def test_documents_of_one_line(mini_tokenizer):
    corpus = _statistics(
        _documents(150, 1, lambda n: f"line {n}")
        + _documents(50, 2, lambda n: f"text {n}")
    )
    assert "75 % of the documents (150 of 200) have one line" in _warnings(
        corpus, mini_tokenizer
    )


def test_long_lines_and_lines_that_are_paragraphs(mini_tokenizer):
    long = _statistics(_documents(100, 5, lambda n: f"{n} " * 58))
    warnings = _warnings(long, mini_tokenizer)
    assert "500 lines have more tokens than a sequence of 32 can hold; 50 %" in warnings
    paragraphs = _statistics(
        _documents(100, 5, lambda n: f"{n} " * 90), max_seq_length=512
    )
    warnings = _warnings(paragraphs, mini_tokenizer)
    assert "Lines have 90 tokens on average" in warnings


def test_cut_documents_and_padding(mini_tokenizer):
    corpus = _statistics(_documents(100, 5, lambda n: f"line {n}"))
    corpus.counts["cut_documents"] += 12
    for _ in range(4):
        corpus.sequence_lengths[16] += 1
    text = _text(corpus, mini_tokenizer)
    assert "12 documents were larger than a block" in text
    assert "50 % of all positions are padding" in text
    assert "  13-16  100.0 % " + 16 * "#" in text


def _encoded(documents, tokenizer):
    corpus = CorpusStatistics(tokenizer.vocab["[UNK]"], 32)
    for number, lines in enumerate(documents):
        corpus.add_document(lines, [tokenizer.encode(x) for x in lines], number)
    return corpus


def test_unknown_words_are_told(mini_tokenizer):
    documents = [["the bread 🍞 of\tthe crust 🍞", "a Ω🍞, a zeBra"]] * 3
    corpus = _encoded(documents, mini_tokenizer)
    words, characters = corpus_report.unknown_words(corpus, mini_tokenizer)
    assert words == [
        ('"🍞" U+1F35E BREAD', 6, True),
        ('"zeBra"', 3, True),
        ('"Ω🍞"', 3, True),
    ]
    assert characters == [
        ('"🍞" U+1F35E BREAD', 9, True),
        ('"z" U+007A LATIN SMALL LETTER Z', 3, True),
        ('"Ω" U+03A9 GREEK CAPITAL LETTER OMEGA', 3, True),
    ]
    total, tokens = corpus.counts["unknown_tokens"], corpus.counts["tokens"]
    expected = f"({total} of {tokens}) are [UNK], most often"
    assert expected in _warnings(corpus, mini_tokenizer)


def test_a_word_without_end_is_cut(mini_tokenizer):
    corpus = _encoded([["Ω" * 31]], mini_tokenizer)
    (found, *_), _ = corpus_report.unknown_words(corpus, mini_tokenizer)
    assert found.text == f'"{"Ω" * 30}…"'


def test_of_many_unknown_words_a_sample_is_told(mini_tokenizer):
    documents = [["Ω", "the water"] if n % 4 else ["🍞"] for n in range(4000)]
    corpus = _encoded(documents, mini_tokenizer)
    (first, second), _ = corpus_report.unknown_words(corpus, mini_tokenizer)
    assert not first.exact
    assert first.count == pytest.approx(3000, rel=0.1)
    assert second.count == pytest.approx(1000, rel=0.2)


def test_an_unknown_word_far_behind_in_a_line(mini_tokenizer):
    corpus = _encoded([["water " * 200 + "Ω"]], mini_tokenizer)
    corpus.counts["unknown_tokens"] = 100
    assert corpus_report.unknown_words(corpus, mini_tokenizer)[0] == []
    assert "[UNK]; the model" in _warnings(corpus, mini_tokenizer)


@pytest.fixture
def no_matplotlib(monkeypatch):
    monkeypatch.setattr(figure.importlib.util, "find_spec", lambda name: None)


def test_odd_lines_can_be_written(mini_tokenizer, tmp_path, no_matplotlib, capsys):
    corpus = _encoded([["a \x1b[31m\ud800 b", "a \x1b[31m\ud800 b"]], mini_tokenizer)
    corpus_report.write_report(corpus, mini_tokenizer, str(tmp_path / "out"))
    text = (tmp_path / "out.report.txt").read_text(encoding="utf-8")
    assert '  2  "a  [31m  b"\n' in text
    assert text in capsys.readouterr().out


def test_an_empty_corpus_has_a_report(mini_tokenizer):
    assert "documents" in _text(_statistics([]), mini_tokenizer)


def _bars(axes):
    data = axes.patches[0].get_data()
    return list(data.values), list(data.edges)


def test_the_picture_shows_both_histograms(tmp_path):
    pytest.importorskip("matplotlib")
    corpus = _statistics([["a b c", "d"], ["e " * 64]])
    for length in (32, 32, 32, 7):
        corpus.sequence_lengths[length] += 1
    left, right = figure._figure(corpus).axes
    shares, edges = _bars(left)
    assert edges == list(range(33))
    assert (shares[6], shares[31], sum(shares)) == (25, 75, 100)
    counts, edges = _bars(right)
    assert (edges[0], edges[-1]) == (4, 2 ** (25 / 4))
    assert (counts[0], counts[-1], sum(counts)) == (1, 1, 2)
    assert figure.draw(corpus, str(tmp_path / "x.png"))
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib(mini_tokenizer, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(figure.importlib.util, "find_spec", lambda name: None)
    corpus_report.write_report(
        _statistics([["a"]]), mini_tokenizer, str(tmp_path / "x")
    )
    assert [path.name for path in tmp_path.iterdir()] == ["x.report.txt"]
    assert "matplotlib is not installed" in capsys.readouterr().out


@pytest.fixture
def create(mini_folder, mini_tokenizer, tmp_path):
    """Return a function that makes records and returns corpus statistics."""

    def _create(text, boundary_text=None, **more):
        (tmp_path / "text.txt").write_text(text)
        boundary_files = None
        if boundary_text:
            (tmp_path / "words.txt").write_text(boundary_text)
            boundary_files = [str(tmp_path / "words.txt")]
        entries = pretraining_data.create_pretraining_data(
            [str(tmp_path / "text.txt")],
            [str(tmp_path / name) for name in ("a", "b")],
            mini_tokenizer,
            InstanceSettings(max_seq_length=16, max_predictions_per_seq=3, **more),
            str(mini_folder / "vocab.txt"),
            boundary_files=boundary_files,
        )
        return entries[str(tmp_path / "b")]

    return _create


def test_a_build_ends_with_a_report(create, tmp_path, capsys):
    text = "the bread\nthe water\nthe water\n\n\u200e\n\nlight\nΩ house\n\n" * 9
    entry = create(text, dupe_factor=3)
    printed = capsys.readouterr().out
    assert (tmp_path / "a.report.txt").read_text() in printed
    assert not (tmp_path / "b.report.txt").exists()
    facts = entry["corpus"]
    assert facts["documents"] == entry["num_documents"] == 18
    assert facts["lines"] == 54
    assert facts["repeated_lines"] == 49
    assert facts["unknown_tokens"] == 9
    written = [
        example
        for name in "ab"
        for example in examples.read_examples(str(tmp_path / name))
    ]
    assert facts["sequences"] == len(written)
    used = [sum(x.features.feature["input_mask"].int64_list.value) for x in written]
    assert facts["padding_share"] == pytest.approx(1 - sum(used) / len(used) / 16)


def test_text_with_word_boundaries_is_counted_too(create):
    text = "老师\nthe\n\nlight Ω"
    facts = create(text, text, do_whole_word_mask=True)["corpus"]
    assert (facts["documents"], facts["lines"], facts["tokens"]) == (2, 3, 5)
    assert facts["unknown_tokens"] == 1
