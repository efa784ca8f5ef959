"""Windows over tagged sentences score each word exactly once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import MINI

from official_bert.constants import IGNORED
from official_bert.errors import UserError
from official_bert.fine_tuning.windows import best_spans, make_spans
from official_bert.tasks.ner import files as ner_files
from official_bert.tasks.ner import sentences as ner_sentences
from official_bert.tasks.ner.features import (
    convert_documents,
    pad_ner_features,
    tag_names,
    word_tags,
)
from official_bert.tasks.ner.sentences import text_sentence, word_sentence
from official_bert.tokenization.full import FullTokenizer

ENTRIES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abc", "##b", "##c", "."]
PAD, UNK, CLS, SEP, _, A, B, C, _B, _C, DOT = range(11)
TAGS = tag_names(["X"])
O_ID, B_ID, I_ID = range(3)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
    path.write_text("\n".join(ENTRIES))
    return FullTokenizer(str(path))


def sentence(words, tags=None):
    return word_sentence(words.split(), None if tags is None else tags.split())


def only(features):
    (one,) = features
    return one


def scored(features):
    """Return the (document, sentence, word) of all scored words, sorted."""
    return sorted(
        (one.document, *word) for one in features for word in one.words.tolist()
    )


def every_word(documents):
    return [
        (d, s, w)
        for d, document in enumerate(documents)
        for s, sentence in enumerate(document)
        for w in range(len(sentence.words))
    ]


def test_tag_names():
    assert tag_names(["PER", "LOC"]) == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
    assert tag_names([""]) == ("O", "B", "I") and tag_names([]) == ("O",)


def test_the_first_piece_carries_the_label(tokenizer):
    document = [sentence("abc a", "B-X I-X"), sentence("b.c", "O")]
    found = only(convert_documents([document], tokenizer, 20, TAGS))
    assert found.input_ids.tolist() == [CLS, A, _B, _C, A, B, DOT, C, SEP]
    assert found.segment_ids.tolist() == [0] * 9
    assert found.label_ids.tolist() == [-1, B_ID, -1, -1, I_ID, O_ID, -1, -1, -1]
    assert found.positions.tolist() == [1, 4, 5] and found.document == 0
    assert found.words.tolist() == [[0, 0], [0, 1], [1, 0]]
    arrays = (found.input_ids, found.segment_ids, found.label_ids)
    assert {a.dtype for a in (*arrays, found.positions, found.words)} == {
        np.dtype(np.int32)
    }


def test_all_pieces_may_carry_it(tokenizer):
    document = [sentence("abc a", "B-X I-X"), sentence("b.c", "O")]
    found = only(
        convert_documents([document], tokenizer, 20, TAGS, label_all_pieces=True)
    )
    labels = [-1, B_ID, B_ID, B_ID, I_ID, O_ID, O_ID, O_ID, -1]
    assert found.label_ids.tolist() == labels
    assert found.positions.tolist() == [1, 4, 5]


def test_words_without_pieces_are_unknown(tokenizer):
    document = [sentence("a \u200b \u0301 c", "O B-X I-X O")]
    found = only(convert_documents([document], tokenizer, 9, TAGS))
    assert found.input_ids.tolist() == [CLS, A, UNK, UNK, C, SEP]
    assert found.label_ids.tolist() == [-1, O_ID, B_ID, I_ID, O_ID, -1]
    assert len(found.words) == 4


def test_a_window_is_filled_with_neighbouring_sentences(tokenizer):
    """Windows have 4 of the 8 tokens a b c a | b c a b, at stride 2."""
    document = [sentence("a b c a", "O B-X I-X O"), sentence("b c a b", "O O O B-X")]
    found = convert_documents([document], tokenizer, 6, TAGS)
    ids = [one.input_ids.tolist()[1:-1] for one in found]
    assert ids == [[A, B, C, A], [C, A, B, C], [B, C, A, B]]
    assert [one.words.tolist() for one in found] == [
        [[0, 0], [0, 1], [0, 2]],
        [[0, 3], [1, 0]],
        [[1, 1], [1, 2], [1, 3]],
    ]
    assert [one.label_ids.tolist()[1:-1] for one in found] == [
        [O_ID, B_ID, I_ID, -1],
        [-1, O_ID, O_ID, -1],
        [-1, O_ID, O_ID, B_ID],
    ]


def test_documents_do_not_mix(tokenizer):
    documents = [[sentence("a b")], [], [sentence("")], [sentence("c")]]
    found = convert_documents(documents, tokenizer, 20)
    assert [one.input_ids.tolist() for one in found] == [
        [CLS, A, B, SEP],
        [CLS, C, SEP],
    ]
    assert [one.document for one in found] == [0, 3]


def test_one_sentence_a_window(tokenizer):
    document = [sentence("a b"), sentence("a b c a b"), sentence("c")]
    found = convert_documents([document], tokenizer, 5, one_sentence=True)
    assert [one.input_ids.tolist()[1:-1] for one in found] == [
        [A, B],
        [A, B, C],
        [B, C, A],
        [C, A, B],
        [C],
    ]
    assert {sentence for one in found[1:4] for sentence, _ in one.words.tolist()} == {1}
    assert scored(found) == every_word([document])


def test_a_word_longer_than_a_window(tokenizer):
    document = [sentence("a abcbcbcbcb b", "O B-X I-X")]
    found = convert_documents([document], tokenizer, 5, TAGS, label_all_pieces=True)
    assert scored(found) == [(0, 0, 0), (0, 0, 1), (0, 0, 2)]
    assert all(len(one.words) for one in found)
    labels = [one.label_ids[one.positions].tolist() for one in found]
    assert sum(labels, []) == [O_ID, B_ID, I_ID]


def test_without_labels(tokenizer):
    plain, tagged = [sentence("a abc")], [sentence("a abc", "O B-X")]
    for document, tags in ((plain, TAGS), (tagged, ())):
        found = only(convert_documents([document], tokenizer, 9, tags))
        assert set(found.label_ids.tolist()) == {IGNORED}
        assert found.positions.tolist() == [1, 2]


def test_a_tag_that_is_none(tokenizer):
    with pytest.raises(
        ValueError, match="of line 1 has the tag 'B-Y', which is not one of O, B-X"
    ):
        convert_documents([[sentence("a b", "O B-Y")]], tokenizer, 9, TAGS)


def test_no_room(tokenizer):
    with pytest.raises(UserError, match="max_seq_length is 2"):
        convert_documents([], tokenizer, 2)
    with pytest.raises(UserError, match="doc_stride is 0"):
        convert_documents([], tokenizer, 9, doc_stride=0)


def test_the_window_is_that_of_most_context(tokenizer):
    rng = np.random.default_rng(0)
    words = [" ".join(rng.choice(list("abc"), 7)) for _ in range(9)]
    document = [sentence(each) for each in words]
    found = convert_documents([document], tokenizer, 12, doc_stride=3)
    spans = make_spans(63, 10, 3)
    best = best_spans(spans, 63)
    # Each word is one token, and each window is the best one for some word.
    assert len(found) == len(spans)
    for place, one in enumerate(found):
        pieces = [7 * s + w for s, w in one.words.tolist()]
        assert pieces == np.flatnonzero(best == place).tolist()
        assert (one.positions + spans[place].start - 1).tolist() == pieces


LENGTHS = st.integers(3, 24)
STRIDES = st.none() | st.integers(1, 40)
WORDS = st.text("abc.\u0301\u200bdß王", min_size=1, max_size=12)
DOCUMENTS = st.lists(st.lists(st.lists(WORDS, max_size=9), max_size=4), max_size=3)
MINI_TOKENIZER = FullTokenizer(str(MINI / "vocab.txt"))


@settings(deadline=None, max_examples=300)
@given(DOCUMENTS, LENGTHS, STRIDES, st.booleans(), st.booleans(), st.data())
def test_every_word_is_scored_once(documents, length, stride, one, all_pieces, data):
    draw_tags = st.sampled_from(TAGS)
    documents = [
        [word_sentence(words, [data.draw(draw_tags) for _ in words]) for words in each]
        for each in documents
    ]
    found = convert_documents(
        documents, MINI_TOKENIZER, length, TAGS, stride, one, all_pieces
    )
    assert scored(found) == every_word(documents)
    for window in found:
        size = len(window.input_ids)
        assert 3 <= size <= length
        assert len(window.label_ids) == len(window.segment_ids) == size
        labels = window.label_ids.tolist()
        for position, (s, w) in zip(window.positions, window.words, strict=True):
            word = documents[window.document][s].words[w]
            first = (MINI_TOKENIZER.encode(word) or [MINI_TOKENIZER.vocab["[UNK]"]])[0]
            assert window.input_ids[position] == first
            assert TAGS[labels[position]] == documents[window.document][s].tags[w]
        if not all_pieces:
            labelled = np.flatnonzero(window.label_ids != IGNORED)
            assert labelled.tolist() == window.positions.tolist()
    known = [[list(each.tags) for each in document] for document in documents]
    predictions = [np.maximum(window.label_ids, 0) for window in found]
    assert word_tags(documents, found, predictions, TAGS) == known


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60), LENGTHS, STRIDES)
def test_predictions_lead_back_to_any_text(text, length, stride):
    """Each word is an entity of its own; other characters are left out."""
    documents = [[text_sentence(text)]]
    found = convert_documents(documents, MINI_TOKENIZER, length, doc_stride=stride)
    predictions = [[B_ID] * len(window.input_ids) for window in found]
    ((tags,),) = word_tags(documents, found, predictions, TAGS)
    entities = ner_sentences.text_entities(documents[0][0], tags)
    assert [(e["start"], e["end"]) for e in entities] == ner_sentences.split_words(text)
    assert all(e["text"] == text[e["start"] : e["end"]] for e in entities)


def test_windows_that_are_missing_or_double(tokenizer):
    documents = [[sentence("a b c a b c")]]
    found = convert_documents(documents, tokenizer, 5)
    predictions = [np.zeros(5, np.int32)] * len(found)
    assert word_tags(documents, found[::-1], predictions, TAGS) == [[["O"] * 6]]
    with pytest.raises(ValueError, match="words have no prediction"):
        word_tags(documents, found[1:], predictions[1:], TAGS)
    with pytest.raises(ValueError, match="two predictions"):
        word_tags(documents, found * 2, predictions * 2, TAGS)
    with pytest.raises(ValueError, match="zip"):
        word_tags(documents, found, predictions[1:], TAGS)


def test_padding(tokenizer):
    documents = [[sentence("a b", "B-X I-X")], [sentence("c", "O")]]
    batch = pad_ner_features(convert_documents(documents, tokenizer, 9, TAGS), 5)
    assert {name: array.tolist() for name, array in batch.items()} == {
        "input_ids": [[CLS, A, B, SEP, PAD], [CLS, C, SEP, PAD, PAD]],
        "input_mask": [[1, 1, 1, 1, 0], [1, 1, 1, 0, 0]],
        "segment_ids": [[0] * 5] * 2,
        "label_ids": [[-1, B_ID, I_ID, -1, -1], [-1, O_ID, -1, -1, -1]],
    }
    assert {array.dtype for array in batch.values()} == {np.dtype(np.int32)}


def test_conll_2003_loses_nothing(shared):
    data = ner_files.read_ner_file(shared / "data" / "conll2003" / "test.txt")
    vocab = shared / "data" / "vocab" / "bert-base-cased" / "vocab.txt"
    tokenizer = FullTokenizer(str(vocab), do_lower_case=False)
    tags = tag_names(data.labels)
    found = convert_documents(data.documents, tokenizer, 128, tags)
    assert scored(found) == every_word(data.documents)
    predictions = [np.maximum(one.label_ids, 0) for one in found]
    restored = word_tags(data.documents, found, predictions, tags)
    assert restored == [[list(s.tags) for s in d] for d in data.documents]
