"""Words are counted block by block, by any number of workers, in any order."""

import collections
import random

import pytest

from official_bert.corpus import text_blocks
from official_bert.engines import word_counting
from official_bert.errors import UserError
from official_bert.tokenization import word_counts


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """Write three files of some hundred lines, in blocks of a few."""
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", 2000)
    rng = random.Random(3)
    syllables = ["ka", "to", "mi", "Ré", "su", "王", "li", "pe,"]
    paths = []
    for number in range(3):
        lines = [
            " ".join("".join(rng.choices(syllables, k=3)) for _ in range(6))
            for _ in range(200)
        ]
        lines[::9] = [""] * len(lines[::9])
        path = tmp_path / f"{number}.txt"
        path.write_text("\n".join(lines), encoding="utf-8")
        paths.append(str(path))
    return paths


def counted(paths, num_workers=1, hold_out=True):
    counters = word_counting.count_words(paths, "lines", True, hold_out, num_workers)
    return [
        (counter.words(), counter.characters(), counter.num_too_long())
        for counter in counters
    ]


def test_workers_and_the_order_of_files_do_not_matter(corpus):
    expected = counted(corpus)
    assert sum(expected[0][0].values()) > 10 * sum(expected[1][0].values()) > 0
    assert counted(corpus, num_workers=2) == expected
    assert counted(corpus[::-1]) == expected


def test_where_text_is_cut_does_not_matter(corpus, monkeypatch):
    expected = counted(corpus)
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", 1 << 20)
    assert counted(corpus) == expected


def test_a_line_and_its_repetitions_are_held_out_together(tmp_path):
    path = tmp_path / "text.txt"
    lines = [f"word{number}x" for number in range(400)] * 2
    path.write_text("\n".join(lines))
    (text, *_), (held_out, *_) = counted([str(path)])
    assert not text.keys() & held_out.keys()
    assert set(text.values()) == set(held_out.values()) == {2}
    assert 5 <= len(held_out) <= 40 and len(text) + len(held_out) == 400
    (everything, *_), (nothing, *_) = counted([str(path)], hold_out=False)
    assert len(everything) == 400 and not nothing


def test_most_words_are_given_out_alike_wherever_they_were_counted(monkeypatch):
    """If there are too many words, the most frequent ones have exact counts."""
    monkeypatch.setattr(word_counts, "MOST_RUNS", 3)
    rng = random.Random(0)
    numbers = [int(rng.expovariate(0.02)) for _ in range(5000)]
    parts = [numbers[start : start + 250] for start in range(0, 5000, 250)]
    expected = collections.Counter(f"w{number}" for number in numbers)
    for order in (parts, parts[::-1]):
        counter = word_counts.WordCounter(most_words=60)
        for part in order:
            counter.add_counts(collections.Counter(f"w{n}" for n in part), 1)
        assert 0 < len(counter.words()) <= 60
        assert counter.num_too_long() == 20
        assert counter.words() == {
            word: n for word, n in expected.items() if n > counter.pruned
        }
        # A limit one lower would have kept too many.
        assert sum(n >= counter.pruned for n in expected.values()) > 60
        assert counter.characters()["w"] == 5000


def test_words_of_any_characters_outlive_the_disk():
    counter = word_counts.WordCounter(most_words=2)
    words = {"a\tb": 3, "\ud800": 4, "王": 5, "x": 1}
    for word, count in words.items():
        counter.add_counts({word: count})
    counter.add_counts({"王": 5})
    assert counter.words() == {"王": 10, "\ud800": 4}
    assert counter.characters()["\t"] == 3


def test_what_is_wrong_is_one_sentence(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("No article.\n")
    for num_workers in (1, 2):
        with pytest.raises(UserError, match="text.txt: line 1 is neither"):
            word_counting.count_words(
                [str(path)], "wikiextractor", True, True, num_workers
            )
