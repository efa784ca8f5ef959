"""Windows of questions and contexts equal those of the original's `run_squad.py`."""

import dataclasses
import gzip
import json
import logging
import time

import numpy as np
import pytest

from official_bert.errors import UserError
from official_bert.tasks.squad.features import NO_WORD, convert_examples
from official_bert.tasks.squad.files import make_example, read_examples
from official_bert.tokenization.full import FullTokenizer

ENTRIES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdef", "##b", "##c", "("]
PAD, UNK, CLS, SEP, _, A, B, C, D, E, F, _B, _C, PAREN = range(14)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    path.write_text("\n".join(ENTRIES))
    return FullTokenizer(str(path))


def with_answer(context, text, start, end):
    return dataclasses.replace(
        make_example("f", context),
        orig_answer_text=text,
        start_position=start,
        end_position=end,
    )


def convert(tokenizer, example, length=8, stride=2, query=3):
    return convert_examples([example], tokenizer, length, stride, query)


def test_one_window(tokenizer):
    (found,) = convert(tokenizer, make_example("f e", "abc (d\tab"), 12)
    assert found.input_ids.tolist() == [
        *(CLS, F, E, SEP),
        *(A, _B, _C, PAREN, D, A, _B, SEP),
    ]
    assert found.segment_ids.tolist() == [0] * 4 + [1] * 8
    assert found.token_to_orig_map.tolist() == [
        *[NO_WORD] * 4,
        *(0, 0, 0, 1, 1, 2, 2, NO_WORD),
    ]
    assert found.token_is_max_context.tolist() == [False] * 4 + [True] * 7 + [False]
    assert (found.start_position, found.end_position) == (None, None)
    assert not found.is_impossible
    assert found.input_ids.dtype == found.segment_ids.dtype == np.int32
    assert found.token_to_orig_map.dtype == np.int32
    assert found.token_is_max_context.dtype == bool


def test_several_windows(tokenizer):
    """Windows have 4 tokens at stride 2, so middle tokens are best in one window."""
    found = convert(tokenizer, make_example("f", "a b c d e a b"))
    assert [one.input_ids[3:-1].tolist() for one in found] == [
        [A, B, C, D],
        [C, D, E, A],
        [E, A, B],
    ]
    assert [one.token_to_orig_map[3:-1].tolist() for one in found] == [
        [0, 1, 2, 3],
        [2, 3, 4, 5],
        [4, 5, 6],
    ]
    assert [one.token_is_max_context[3:-1].tolist() for one in found] == [
        [True, True, True, False],
        [False, True, True, False],
        [False, True, True],
    ]
    assert [one.doc_span_index for one in found] == [0, 1, 2]
    assert [one.doc_start for one in found] == [0, 2, 4]
    assert [one.unique_id for one in found] == [10**9, 10**9 + 1, 10**9 + 2]


def test_numbers_of_several_examples(tokenizer):
    examples = [make_example("f", context) for context in ("a b c d e", "", "a")]
    found = convert_examples(examples, tokenizer, 8, 2, 3)
    numbers = [(one.example_index, one.doc_span_index, one.unique_id) for one in found]
    assert numbers == [(0, 0, 10**9), (0, 1, 10**9 + 1), (2, 0, 10**9 + 2)]


def test_a_context_without_tokens_has_no_window(tokenizer):
    for context in ("", " \n", "\u200b \x07"):
        assert convert(tokenizer, make_example("f", context)) == []


def test_an_answer_in_some_windows(tokenizer):
    found = convert(tokenizer, with_answer("a b c d e a b", "d e", 3, 4))
    positions = [(one.start_position, one.end_position) for one in found]
    assert positions == [(0, 0), (4, 5), (0, 0)]


@pytest.mark.parametrize(
    ("word", "positions"),
    [(0, [(3, 3), (0, 0), (0, 0)]), (3, [(6, 6), (4, 4), (0, 0)])],
)
def test_an_answer_at_the_edge_of_a_window(tokenizer, word, positions):
    example = with_answer("a b c d e a b", "abcd"[word], word, word)
    found = convert(tokenizer, example)
    assert [(one.start_position, one.end_position) for one in found] == positions


def test_an_answer_longer_than_a_window(tokenizer):
    found = convert(tokenizer, with_answer("a b c d e a b", "b c d e a", 1, 5))
    assert [(one.start_position, one.end_position) for one in found] == [(0, 0)] * 3


@pytest.mark.parametrize(
    ("context", "text", "words", "tokens"),
    [
        ("a (abc d", "abc", (1, 1), (2, 4)),  # Part of a word.
        ("a (abc d", "ab", (1, 1), (2, 3)),
        ("a abc d", "bc", (1, 1), (1, 3)),  # b is not ##b, so the complete word.
        ("a(a d", "a", (0, 0), (0, 0)),  # The first of two positions.
        ("a d a d", "a d", (2, 3), (2, 3)),  # Only among the answer's words.
        ("a d", "", (0, 1), (0, 1)),
        ("a bx d", "bx d", (1, 2), (1, 2)),  # [UNK] is an ordinary token.
    ],
)
def test_answers_are_narrowed(tokenizer, context, text, words, tokens):
    (found,) = convert(tokenizer, with_answer(context, text, *words), 12)
    first, last = tokens
    assert (found.start_position, found.end_position) == (3 + first, 3 + last)


def test_no_answer(tokenizer):
    example = dataclasses.replace(with_answer("a b", "", -1, -1), is_impossible=True)
    (found,) = convert(tokenizer, example)
    assert (found.start_position, found.end_position) == (0, 0)
    assert found.is_impossible


def test_long_questions_are_cut_and_counted(tokenizer, caplog):
    examples = [make_example(text, "a b c") for text in ("a b c d e", "a b c d", "a")]
    with caplog.at_level(logging.WARNING):
        found = convert_examples(examples, tokenizer, 9, 9, 3)
    assert [one.input_ids.tolist() for one in found] == [
        [CLS, A, B, C, SEP, A, B, C, SEP],
        [CLS, A, B, C, SEP, A, B, C, SEP],
        [CLS, A, SEP, A, B, C, SEP],
    ]
    assert caplog.messages == [
        "2 questions are longer than max_query_length 3: 3 tokens were cut off, at "
        "most 2 from one question."
    ]


def test_an_empty_question(tokenizer):
    (found,) = convert(tokenizer, make_example("", "a"))
    assert found.input_ids.tolist() == [CLS, SEP, A, SEP]
    assert found.segment_ids.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ((67, 128, 64), "max_seq_length 67 must be greater than max_query_length 64"),
        ((384, 0, 64), "doc_stride is 0, but it must be at least 1"),
        ((384, 128, 0), "max_query_length is 0, but it must be at least 1"),
    ],
)
def test_lengths_that_cannot_be(tokenizer, lengths, message):
    with pytest.raises(UserError, match=message):
        convert_examples([], tokenizer, *lengths)


def test_the_least_room(tokenizer):
    found = convert(tokenizer, make_example("f f f f", "a b c"), 7, 128, 3)
    assert [one.input_ids[5:-1].tolist() for one in found] == [[A], [B], [C]]


def test_a_very_long_context(tokenizer):
    words = ["abc", "d", "(", "e"] * 5000
    example = with_answer(" ".join(words), "d", 19997, 19997)
    started = time.process_time()
    found = convert(tokenizer, example, 384, 128, 64)
    assert time.process_time() - started < 10
    best = np.concatenate(
        [one.token_to_orig_map[one.token_is_max_context] for one in found]
    )
    assert len(best) == 30000  # Each token has one best window,
    assert (np.diff(best) >= 0).all()  # in order,
    assert set(best.tolist()) == set(range(20000))  # and no word is lost.
    last = found[-1]
    assert last.input_ids[last.start_position] == D
    assert last.token_to_orig_map[last.start_position] == 19997


def test_shuffled_examples_keep_their_context(tokenizer):
    contexts = ("a b", "c d e")
    examples = [make_example("f", contexts[place]) for place in (0, 1, 0, 1)]
    found = convert_examples(examples, tokenizer, 8, 2, 3)
    assert [one.input_ids.tolist() for one in found[::2]] == [
        [CLS, F, SEP, A, B, SEP]
    ] * 2
    assert found[1].input_ids.tolist() == found[3].input_ids.tolist()


@pytest.mark.comparison
@pytest.mark.parametrize("split", ["train", "dev"])
def test_mini_as_the_original(mini, split):
    packed = (mini / "squad_expected.json.gz").read_bytes()
    recorded = json.loads(gzip.decompress(packed))
    settings = recorded["settings"]
    tokenizer = FullTokenizer(str(mini / "vocab.txt"))
    examples = read_examples(mini / "squad.json", split == "train", True)
    names = ("max_seq_length", "doc_stride", "max_query_length")
    lengths = [settings[name] for name in names]
    found = convert_examples(examples, tokenizer, *lengths)
    assert len(found) == len(recorded[split]) == 87
    for one, row in zip(found, recorded[split], strict=True):
        size = len(row["tokens"])
        assert tokenizer.convert_ids_to_tokens(one.input_ids) == row["tokens"]
        assert one.input_ids.tolist() == row["input_ids"][:size]
        assert one.segment_ids.tolist() == row["segment_ids"][:size]
        assert sum(row["input_mask"]) == size
        words, best = row["token_to_orig_map"], row["token_is_max_context"]
        places = range(size)
        assert one.token_to_orig_map.tolist() == [
            words.get(str(place), NO_WORD) for place in places
        ]
        assert one.token_is_max_context.tolist() == [
            best.get(str(place), False) for place in places
        ]
        names = ("unique_id", "example_index", "doc_span_index")
        for name in (*names, "start_position", "end_position"):
            assert getattr(one, name) == row[name]


def first_answers(path, folder):
    """Rewrite a dev file as a training file, and return its path."""
    content = json.loads(path.read_text("utf-8"))
    for article in content["data"]:
        for paragraph in article["paragraphs"]:
            for each in paragraph["qas"]:
                del each["answers"][1:]
    written = folder / path.name
    written.write_text(json.dumps(content))
    return written


@pytest.mark.comparison
@pytest.mark.parametrize("split", ["dev", "train"])
@pytest.mark.parametrize("version", ["1.1", "2.0"])
def test_squad_as_the_original(shared, tmp_path, split, version):
    folder = shared / "golden" / "squad"
    settings = json.loads((folder / "settings.json").read_text())
    path = folder / f"dev-v{version}.json"
    if split == "train":
        path = first_answers(path, tmp_path)
    vocab = shared / "data" / "vocab" / settings["vocab"] / "vocab.txt"
    examples = read_examples(path, split == "train", version == "2.0")
    names = ("max_seq_length", "doc_stride", "max_query_length")
    lengths = [settings[name] for name in names]
    found = convert_examples(examples, FullTokenizer(str(vocab)), *lengths)
    with np.load(folder / f"features_{split}_v{version}.npz") as recorded:
        columns = {name: recorded[name] for name in recorded}
    assert len(found) == len(columns["input_ids"]) > 200
    qas_ids, masks = columns.pop("qas_ids"), columns.pop("input_mask")
    columns["unique_id"] = columns.pop("unique_ids")
    assert len(columns) == 7
    for row, one in enumerate(found):
        size = len(one.input_ids)
        assert masks[row].sum() == size
        assert examples[one.example_index].qas_id == qas_ids[row]
        for name, column in columns.items():
            expected = column[row] if column.ndim == 1 else column[row][:size]
            np.testing.assert_array_equal(getattr(one, name), expected, name)


def test_ten_thousand_questions_in_seconds(shared):
    vocab = shared / "data" / "vocab" / "bert-base-uncased" / "vocab.txt"
    path = shared / "data" / "squad" / "dev-v1.1.json"
    started = time.process_time()
    examples = read_examples(path, is_training=False)
    found = convert_examples(examples, FullTokenizer(str(vocab)))
    assert time.process_time() - started < 20
    assert len(examples) == 10570
    assert len(found) == 10833
