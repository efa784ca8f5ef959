"""Training vocabularies."""

import collections
import json
import os
import pathlib
import random
import subprocess
import sys

import pytest

from official_bert.engines import word_counting
from official_bert.errors import UserError
from official_bert.tokenization import FullTokenizer, load_vocab, train, word_counts
from official_bert.tokenization.word_counts import WordCounter

SCRIPT = pathlib.Path(__file__).parents[2] / "run_scripts" / "train_vocab.py"
HEADER = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def count(lines, **options):
    counter = WordCounter(**options)
    for line in lines:
        counter.add(line)
    return counter


def sample_lines():
    """Return lines of invented words, with many ties between pairs."""
    rng = random.Random(0)
    syllables = ["ka", "to", "mi", "ré", "Su", "nö", "li", "pe"]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 5))) for _ in range(500)]
    return [" ".join(rng.choices(words, k=8)) + "." for _ in range(300)]


def test_words_are_counted_as_our_tokenizer_sees_them():
    lines = ["The cat, the\ncat", "ÉTÉ\ue000 a\vb 王王", "été"]
    assert count(lines).words() == {
        "the": 2, "cat": 2, ",": 1, "ete\ue000": 1, "ab": 1, "王": 2, "ete": 1,
    }  # fmt: skip
    assert count(lines, do_lower_case=False).words()["ÉTÉ\ue000"] == 1


def test_words_that_can_have_no_pieces_are_only_numbered():
    counter = count(["a" * 200 + " " + "b" * 201, "b" * 201])
    assert counter.num_too_long() == 2
    assert counter.words() == {"a" * 200: 1}


def test_counting_in_portions_is_counting(monkeypatch):
    expected = count(sample_lines()).words()
    monkeypatch.setattr(word_counts, "MOST_CHUNKS", 7)
    assert count(sample_lines()).words() == expected


def test_memory_is_bounded_by_leaving_rare_words_out(monkeypatch):
    monkeypatch.setattr(word_counts, "MOST_CHUNKS", 10)
    lines = [f"common word{number} also" for number in range(500)]
    counter = count(lines, most_words=50)
    assert counter.words() == {"common": 500, "also": 500}
    assert counter.pruned == 1
    # Omitted words still count as characters.
    everything = collections.Counter("".join(lines).replace(" ", ""))
    assert counter.characters() == everything


def test_the_order_is_that_of_released_vocabularies():
    tokens = train.train_vocab(count(sample_lines()), 300, num_unused=150)
    assert tokens[0] == "[PAD]"
    assert tokens[1:100] == [f"[unused{index}]" for index in range(99)]
    assert tokens[100:104] == ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert tokens[104:155] == [f"[unused{index}]" for index in range(99, 150)]
    alphabet = sorted(set("katomiresunolipe."))
    assert tokens[155 : 155 + len(alphabet)] == alphabet
    assert len(tokens) == len(set(tokens)) == 300


def test_pieces_are_frequent_pairs_merged():
    # "ab" 12 times, then "abc" 5 times, then "xy" 4 times.
    lines = ["ab"] * 7 + ["abc"] * 5 + ["xy"] * 4
    tokens = train.train_vocab(count(lines), 100, num_unused=1)
    assert tokens == HEADER + [
        "a", "b", "c", "x", "y", "##a", "##b", "##c", "##x", "##y", "ab", "abc", "xy",
    ]  # fmt: skip
    rare = train.train_vocab(count(lines), 100, num_unused=1, min_frequency=5)
    assert rare == HEADER + ["a", "b", "c", "##a", "##b", "##c", "ab", "abc"]


def test_the_order_of_the_text_does_not_matter():
    lines = sample_lines()
    expected = train.train_vocab(count(lines), 400, num_unused=0)
    for _ in range(3):
        random.Random(1).shuffle(lines)
        assert train.train_vocab(count(lines), 400, num_unused=0) == expected


def test_every_frequent_character_can_be_encoded():
    lines = ["aé王,한 \ue000b"] * 3 + ["q ab"]
    tokens = train.train_vocab(count(lines), 200, num_unused=0, min_frequency=3)
    quality = train.measure_vocab(tokens, count(["ba\ue000e , 王한 한a"]))
    assert quality.unknown_rate == 0
    assert "q" not in tokens
    # Punctuation and Chinese characters never occur inside a word.
    assert "##," not in tokens and "##王" not in tokens
    assert "##\ue000" in tokens


def test_the_alphabet_can_be_limited_to_the_most_frequent():
    lines = ["aaa bb c"] * 2
    tokens = train.train_vocab(count(lines), 100, num_unused=0, limit_alphabet=2)
    assert tokens[5:9] == ["a", "b", "##a", "##b"]
    # Words with other characters do not leave fragments in the pieces.
    lines = ["acb"] * 9 + ["aabb"] * 20
    tokens = train.train_vocab(count(lines), 100, num_unused=0, limit_alphabet=2)
    assert "ab" not in tokens and "aabb" in tokens


def test_scaled_counts_rank_alike(monkeypatch):
    lines = ["ab"] * 70 + ["cd"] * 50 + ["ef"] * 40
    expected = train.train_vocab(count(lines), 22, num_unused=0)
    monkeypatch.setattr(train, "MOST_WORDS_SHOWN", 16)
    assert train.train_vocab(count(lines), 22, num_unused=0) == expected
    shown = list(train._repeat_words({"a": 2499, "b": 4}, 10))
    assert shown == [" ".join("a" * 250)]


def test_half_a_surrogate_pair_is_no_text():
    tokens = train.train_vocab(count(["a\ud800 ab"] * 3), 50, num_unused=0)
    assert "ab" in tokens and "\ud800" not in tokens


def test_what_cannot_be_trained():
    with pytest.raises(UserError, match="no words"):
        train.train_vocab(count([" \n", "\x01"]), 100)
    with pytest.raises(UserError, match="--vocab_size is 10, but 6 .* take 22") as e:
        train.train_vocab(count(["abcd efgh"] * 5), 10, num_unused=1)
    assert "--limit_alphabet" in str(e.value)


def test_measuring():
    tokens = [*HEADER, "a", "##b", "##a"]
    quality = train.measure_vocab(tokens, count(["a ab abb c", "c c " + "a" * 201]))
    assert quality.num_words == 7
    assert quality.unknown_rate == pytest.approx(4 / 7)
    assert quality.pieces_per_word == pytest.approx((1 + 2 + 3 + 4) / 7)
    with pytest.raises(UserError, match="no words"):
        train.measure_vocab(tokens, count([]))


def run_script(*arguments, **environment):
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def test_the_script_writes_the_same_bytes_every_time(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("\n".join(sample_lines()), encoding="utf-8")
    written = []
    for seed, threads, workers in [("1", "1", 1), ("2", "4", 2), ("3", "2", 1)]:
        output = tmp_path / f"vocab{seed}.txt"
        ran = run_script(
            f"--input_file={text}",
            f"--output_file={output}",
            "--vocab_size=300",
            "--num_unused=5",
            f"--num_workers={workers}",
            PYTHONHASHSEED=seed,
            RAYON_NUM_THREADS=threads,
        )
        assert ran.returncode == 0, ran.stderr
        written.append(output.read_bytes())
    assert written[0] == written[1] == written[2]
    assert len(load_vocab(output)) == 300
    assert FullTokenizer(output).tokenize("Katomi.")[-1] == "."
    assert "300 tokens" in ran.stdout
    assert "0.0000% unknown" in ran.stdout and "tokens per word" in ran.stdout
    record = json.loads((tmp_path / "vocab3.txt.run.json").read_text())
    assert record["flags"]["vocab_size"] == 300
    assert list(record["inputs"]) == [str(text)]


# Output of the script for counters of two words, which omit the rarer word.
REPORT = """
import types
from official_bert.commands import train_vocab
from official_bert.tokenization.word_counts import WordCounter
train_vocab.FLAGS = types.SimpleNamespace(output_file="v", vocab_size=2)
counters = []
for times in (1, 2):
    counters.append(WordCounter(most_words=1))
    counters[-1].add_counts({"the": 9, "a": times})
train_vocab._report(["[UNK]", "the"], *counters)
"""


def test_the_script_tells_what_is_left_out_of_either_text():
    done = subprocess.run(
        [sys.executable, "-c", REPORT],
        cwd=SCRIPT.parent,
        capture_output=True,
        text=True,
    )
    assert "words seen at most 1 times were left out" in done.stdout, done.stderr
    assert "seen at most 2 times in the held-out text were left" in done.stdout


def test_the_script_says_what_is_wrong(tmp_path):
    missing = run_script("--input_file=none.txt", f"--output_file={tmp_path}/v")
    assert missing.returncode == 1
    assert missing.stderr == "error: --input_file: no file matches 'none.txt'.\n"
    text = tmp_path / "text.txt"
    text.write_text("a b c d\n" * 30)
    folder = run_script(f"--input_file={text}", f"--output_file={tmp_path}/no/v")
    assert folder.returncode == 1
    assert "does not exist" in folder.stderr
    same = run_script(f"--input_file={text}", f"--output_file={text}")
    assert same.returncode == 1
    assert "is also an input" in same.stderr
    small = run_script(f"--input_file={text}", f"--output_file={tmp_path}/v")
    assert small.returncode == 0
    assert "smaller than --vocab_size=30522" in small.stdout


def test_a_text_of_one_line_is_not_held_out(tmp_path):
    text = next(
        line
        for line in map("one two three {}".format, range(1000))
        if word_counting._is_held_out(line)
    )
    (tmp_path / "text.txt").write_text(text)
    ran = run_script(
        f"--input_file={tmp_path}/text.txt",
        f"--output_file={tmp_path}/v",
        "--min_frequency=1",
    )
    assert ran.returncode == 0, ran.stderr
    assert "from 4 words" in ran.stdout and "too short to hold" in ran.stdout


def test_the_script_measures_on_other_text(tmp_path):
    text, other = tmp_path / "text.txt", tmp_path / "other.txt"
    text.write_text("ab ab\n" * 30)
    other.write_text("ab ba x\n")
    ran = run_script(
        f"--input_file={text}",
        f"--heldout_file={other}",
        f"--output_file={tmp_path}/v",
        "--num_unused=0",
    )
    assert ran.returncode == 0, ran.stderr
    # All 60 words are used for training. "x" is unknown and "ba" has two pieces.
    assert "from 60 words" in ran.stdout
    assert "3 words, 33.3333% unknown, 1.333 tokens per word" in ran.stdout
    record = json.loads((tmp_path / "v.run.json").read_text())
    assert list(record["inputs"]) == [str(text), str(other)]
