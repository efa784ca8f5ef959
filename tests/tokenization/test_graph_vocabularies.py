"""The tokenizers of ops with one invented vocabulary per rule."""

import functools
import random

import graph_checks
import pytest
import tensorflow as tf

from official_bert.tokenization import FullTokenizer, graph_words
from official_bert.tokenization.graph import GraphTokenizer
from official_bert.tokenization.graph_tf_text import TfTextTokenizer


@pytest.fixture(scope="module", autouse=True)
def read_the_character_table_once():
    with pytest.MonkeyPatch.context() as patch:
        once = functools.cache(graph_words.character_arrays)
        patch.setattr(graph_words, "character_arrays", once)
        yield


def check_made_up(path, pieces, texts):
    """Compare the tokenizers of a vocabulary, with and without `tf.function`.

    Returns:
      list of the pieces of each text.
    """
    python = FullTokenizer(graph_checks.write_vocab(path / "vocab.txt", pieces))
    expected = [graph_checks.expected_pieces(python, text) for text in texts]
    for graph in (GraphTokenizer, TfTextTokenizer):
        found = graph(python.vocab, do_lower_case=True)(tf.constant(texts))
        columns = [one.to_list() for one in (found.ids, found.starts, found.ends)]
        rows = [list(zip(*row, strict=True)) for row in zip(*columns, strict=True)]
        assert rows == expected
    return [python.convert_ids_to_tokens(ids) for ids in columns[0]]


@pytest.mark.parametrize(
    ("pieces", "text", "expected"),
    [
        ([], "a", "[UNK]"),
        (["a"], "aa a b", "[UNK] a [UNK]"),
        (["##a"], "a aa", "[UNK] [UNK]"),
        (["a", "##a"], "aaa", "a ##a ##a"),
        # "##" is not a piece of any word, and "#" never precedes a letter.
        (["##", "a", "##a", "##b"], "aa #a ab", "a ##a [UNK] a a ##b"),
        (["##", "#", "b", "##b"], "##b ##", "# # b # #"),
        (["###a", "a", "#"], "a#a ###a", "a # a # # # a"),
        # Greedy: "abc" matches, so "ab ##cd" is not tried.
        (["abc", "ab", "##cd"], "abcd abc ab", "[UNK] abc ab"),
        (["ab", "##cd", "##c", "##de"], "abcd abcde", "ab ##cd [UNK]"),
        # The missing piece is at the beginning, in the middle, or at the end.
        (["a", "##b", "##c"], "xbc axc abx abc", "[UNK] [UNK] [UNK] a ##b ##c"),
        # A prefix of a piece is not a piece. Word pieces do not match inside words.
        (["abcdef", "a", "##b"], "abcde ab abcdef", "[UNK] a ##b abcdef"),
        (["a", "bc", "##b"], "abc bc ab", "[UNK] bc a ##b"),
        (["[a]", "[", "]", "a", "!a"], "[a] !a", "[ a ] [UNK] a"),
        (["", "a"], "a  a", "a a"),
        (["mask", "]"], "[MASK] mask", "[UNK] mask ] mask"),
        (
            ["x" * 100, "##" + "y" * 100, "##y"],
            "x" * 100 + "y" * 101 + " " + "x" * 100 + "y" * 100,
            "[UNK] " + "x" * 100 + " ##" + "y" * 100,
        ),
        (["x" * 200, "x" * 201], "x" * 200 + " " + "x" * 201, "x" * 200 + " [UNK]"),
        (
            ["\U0010ffff", "##\U0010ffff", "\u0378"],
            "\U0010ffff\U0010ffff \u0378\U0010fffe \u0378",
            "\U0010ffff ##\U0010ffff [UNK] \u0378",
        ),
    ],
)
def test_made_up_vocabularies(pieces, text, expected, tmp_path):
    [found] = check_made_up(tmp_path, pieces, [text])
    assert " ".join(found) == expected


def test_ids_that_are_not_in_the_order_of_pieces(tmp_path):
    pieces = ["##b", "zz", "a", "##a", "b", "##zz", "z"]
    [found] = check_made_up(tmp_path, pieces, ["azzb zzab bzz z"])
    assert found == ["a", "##zz", "##b", "zz", "##a", "##b", "b", "##zz", "z"]


# Letters that no rule changes, with three and with four bytes in UTF-8.
LETTERS = [*range(0x10D0, 0x10FB), *range(0x2D30, 0x2D60), *range(0x10450, 0x10480)]


def test_random_vocabularies(tmp_path):
    """Tests many small vocabularies in one: no two of them share letters."""
    draw = random.Random(7)
    letters = [chr(code) for code in LETTERS]
    draw.shuffle(letters)
    pieces, texts = ["王"], []

    def word(longest, characters):
        return "".join(draw.choices(characters, k=draw.randint(1, longest)))

    for two in zip(letters[::2], letters[1::2], strict=False):
        for _ in range(draw.randrange(2, 20)):
            longest = draw.choice((1, 2, 5))
            pieces.append(draw.choice(("", "##", "##")) + word(longest, two))
        texts += [" ".join(word(9, [*two * 4, "王", "\u0301"]) for _ in range(20))]
    draw.shuffle(pieces)
    found = [piece for row in check_made_up(tmp_path, pieces, texts) for piece in row]
    # Both results must be frequent, or the test would compare little.
    assert 0.1 < found.count("[UNK]") / len(found) < 0.5
