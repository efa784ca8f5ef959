import random

import pytest

from official_bert.corpus import readers
from official_bert.corpus.report.statistics import CorpusStatistics
from official_bert.data import masking, pretraining_data, word_boundaries
from official_bert.data.instances import InstanceSettings
from official_bert.errors import UserError
from official_bert.tokenization.full import FullTokenizer


@pytest.fixture
def tokenizer(tmp_path):
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"使用语言模型。x"]
    tokens += ["ab", "##c", "##d"]
    (tmp_path / "vocab.txt").write_text("\n".join(tokens) + "\n")
    return FullTokenizer(str(tmp_path / "vocab.txt"))


def _marks(line, segmented, tokenizer):
    """Return "|" where a token begins a word and "+" where it continues one."""
    marked = word_boundaries.mark_words(line, segmented, tokenizer)
    assert [m & masking.ID_BITS for m in marked] == tokenizer.encode(line)
    return "".join("+" if token & masking.CONTINUES else "|" for token in marked)


@pytest.mark.parametrize(
    ("line", "segmented", "marks"),
    [
        ("使用语言模型。", "使用 语言 模型 。", "|+|+|+|"),
        ("使用语言模型。", "使用语言模型。", "|++++++"),
        ("使用 语言", "使用 语言", "|+|+"),
        ("abcd x", "abcd x", "|++|"),
        # The tokens come from the text; a boundary between them counts.
        ("abcd", "abc d", "|+|"),
        ("abcd", "a bcd", "|++"),
        ("ÀB使", "ÀB 使", "||"),
        # A character that the tokenizer removes begins a word here.
        ("使用\u200b语言", "使用 \u200b语言", "|+|+"),
        ("\u200b使用", "\u200b使用", "|+"),
        ("使用\u200b语言", "使用\u200b 语言", "|+|+"),
    ],
)
def test_marks(line, segmented, marks, tokenizer):
    assert _marks(line, segmented, tokenizer) == marks


def _write(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    return str(tmp_path / name)


def test_whole_words_of_chinese_are_masked_together(tokenizer, tmp_path):
    text = "使用语言模型。\n语言模型。\n\n模型使用语言。\n使用。\n"
    words = "使用 语言 模型 。\n语言 模型 。\n\n模型 使用 语言 。\n使用 。\n"
    plain = _write(tmp_path, "plain.txt", text)
    segmented = _write(tmp_path, "words.txt", words)
    documents = list(word_boundaries.read_documents([plain], [segmented], tokenizer))
    assert [len(document) for document in documents] == [2, 2]
    vocab = masking.MaskingIds.of(tokenizer.vocab)
    for seed in range(50):
        tokens = list(documents[0][0])
        positions, _ = masking.mask_words(
            tokens, list(range(7)), 4, vocab, random.Random(seed)
        )
        for word in ({0, 1}, {2, 3}, {4, 5}):
            assert len(word & set(positions)) != 1


def test_the_corpus_is_counted_as_without_boundaries(tokenizer, tmp_path):
    """Statistics are the same; lines and documents without tokens are only counted."""
    text = "使用语言\n\u200e\n模型\n\n\u200e\n\n\n语言 模型\n使用他言\n"
    plain = _write(tmp_path, "plain.txt", text)
    corpora = [CorpusStatistics(tokenizer.vocab["[UNK]"], 32) for _ in range(2)]
    documents = list(
        word_boundaries.read_documents([plain], [plain], tokenizer, corpus=corpora[0])
    )
    texts = readers.read_documents([plain])
    encoded = list(
        pretraining_data.encode_documents(texts, tokenizer, corpus=corpora[1])
    )
    assert corpora[0].counts["lines_without_tokens"] == 2
    assert corpora[0].counts["unknown_tokens"] == 1
    assert corpora[0].to_dict() == corpora[1].to_dict()
    assert [
        [[token & masking.ID_BITS for token in ids] for ids in document]
        for document in documents
    ] == encoded


@pytest.mark.parametrize(
    "segmented",
    ["使用 语言\n其他\n", "使用 语言\n", "使用 语言\n语 言\n使\n", "\n语言\n"],
)
def test_a_copy_that_is_none_names_the_line(segmented, tokenizer, tmp_path):
    plain = _write(tmp_path, "plain.txt", "使用语言\n语言\n")
    other = _write(tmp_path, "words.txt", segmented)
    with pytest.raises(UserError, match=r"line \d of .*words.txt is not line"):
        list(word_boundaries.read_documents([plain], [other], tokenizer))


def test_each_file_needs_its_copy_and_the_format_is_lines(tokenizer, tmp_path):
    plain = _write(tmp_path, "plain.txt", "使用\n")
    with pytest.raises(UserError, match="has 2 files, but --input_file has 1"):
        word_boundaries.read_documents([plain], [plain, plain], tokenizer)
    with pytest.raises(UserError, match="needs --input_format=lines"):
        pretraining_data.create_pretraining_data(
            [plain],
            [str(tmp_path / "out")],
            tokenizer,
            InstanceSettings(),
            str(tmp_path / "vocab.txt"),
            input_format="raw",
            boundary_files=[plain],
        )


@pytest.mark.parametrize(
    "marks", [("\ufeff", ""), ("", "\ufeff"), ("\ufeff", "\ufeff")]
)
def test_a_byte_order_mark_is_no_text(tokenizer, tmp_path, marks):
    plain = _write(tmp_path, "plain.txt", marks[0] + "使用语言\n")
    other = _write(tmp_path, "words.txt", marks[1] + "使用 语言\n")
    ((found,),) = word_boundaries.read_documents([plain], [other], tokenizer)
    assert [bool(token & masking.CONTINUES) for token in found] == [0, 1, 0, 1]


@pytest.mark.parametrize("output", ["plain.txt", "words.txt", "vocab.txt"])
def test_records_replace_nothing_that_they_are_made_of(tokenizer, tmp_path, output):
    plain = _write(tmp_path, "plain.txt", "使用\n")
    words = _write(tmp_path, "words.txt", "使用\n")
    before = (tmp_path / output).read_bytes()
    with pytest.raises(UserError, match=f"{output} is also an input"):
        pretraining_data.create_pretraining_data(
            [plain],
            [str(tmp_path / output)],
            tokenizer,
            InstanceSettings(),
            str(tmp_path / "vocab.txt"),
            boundary_files=[words],
        )
    assert (tmp_path / output).read_bytes() == before
