"""Files of tagged text are read, written, or rejected with one sentence."""

import collections
import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import slow

from official_bert.errors import UserError
from official_bert.metrics import entities
from official_bert.metrics.entities import IOB1, IOB2
from official_bert.tasks.ner import conll as ner_conll
from official_bert.tasks.ner import json_lines as ner_json
from official_bert.tasks.ner import sentences as ner_sentences
from official_bert.tasks.ner.files import has_tags, read_ner_file
from official_bert.tasks.ner.sentences import CONLL, JSON_LINES
from official_bert.tokenization.basic import BasicTokenizer

CONLL_TEXT = """-DOCSTART- -X- O

EU NNP B-ORG
rejects VBZ O

Peter NNP B-PER
Blackburn NNP I-PER

-DOCSTART- -X- O

Rome NNP B-LOC
"""


def write(folder, content, name="data.txt"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(folder, content, name="data.txt", **arguments):
    return read_ner_file(write(folder, content, name), **arguments)


def read_json(folder, *records, **arguments):
    content = "".join(json.dumps(record) + "\n" for record in records)
    return read(folder, content, "data.jsonl", **arguments)


def message_of(folder, content, name="data.txt", **arguments):
    path = write(folder, content, name)
    with pytest.raises(UserError) as caught:
        read_ner_file(path, **arguments)
    message = str(caught.value)
    assert message.endswith(".") and "\n" not in message and str(path) in message
    return message


def record(text, *spans):
    names = ("start", "end", "label")
    listed = [dict(zip(names, span, strict=True)) for span in spans]
    return {"text": text, "entities": listed}


def json_message(folder, *records, **arguments):
    content = "\n".join(r if isinstance(r, str) else json.dumps(r) for r in records)
    return message_of(folder, content, "data.jsonl", **arguments)


def tags_of(data):
    return [[sentence.tags for sentence in document] for document in data.documents]


def test_columns(tmp_path):
    data = read(tmp_path, CONLL_TEXT)
    assert data.format == CONLL
    assert data.labels == ("LOC", "ORG", "PER")
    assert tags_of(data) == [
        [("B-ORG", "O"), ("B-PER", "I-PER")],
        [("B-LOC",)],
    ]
    first, second = data.documents[0]
    assert (first.line, second.line, data.documents[1][0].line) == (3, 6, 11)
    assert first.words == ("EU", "rejects") and first.text == "EU rejects"
    assert first.offsets == ((0, 2), (3, 10))
    assert first.columns == (("NNP",), ("VBZ",))
    assert data.notes == [f"{tmp_path / 'data.txt'}: the tags are IOB2."]


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r"),
        lambda text: text.replace(" ", "\t"),
        lambda text: text.replace(" ", " \t "),
        lambda text: text.replace("\n", " \n"),
        lambda text: text.rstrip("\n"),
        lambda text: text.replace("-DOCSTART- -X- O\n\n", "-DOCSTART-\n"),
    ],
)
def test_what_does_not_matter(tmp_path, change):
    expected = read(tmp_path, CONLL_TEXT)
    found = read(tmp_path, change(CONLL_TEXT))
    assert tags_of(found) == tags_of(expected)
    words = [[s.words for s in document] for document in found.documents]
    assert words == [[("EU", "rejects"), ("Peter", "Blackburn")], [("Rome",)]]


def test_gzipped(tmp_path):
    data = read(tmp_path, gzip.compress(CONLL_TEXT.encode()), "data.txt.gz")
    assert len(data.documents) == 2


def test_other_whitespace_is_part_of_a_word(tmp_path):
    data = read(tmp_path, "1\u00a0000 O\na\u2028b O\n\u0085 B-X\n")
    assert data.documents[0][0].words == ("1\u00a0000", "a\u2028b", "\u0085")


@pytest.mark.parametrize(
    ("tags", "expected", "note"),
    [
        ("I-X I-X B-X O", "B-X I-X B-X O", "are IOB1 and were converted to IOB2"),
        ("B-X I-X O B-X", "B-X I-X O B-X", "are IOB2."),
        ("B-X B-X O O", "B-X B-X O O", "are IOB2."),
        ("O O O O", "O O O O", "are IOB2."),
        ("S-X B-X E-X O", "B-X B-X I-X O", "are BIOES and were converted"),
        ("B-X O I-X I-Y", "B-X O B-X B-Y", "IOB2, but 2 of 3 entities begin with I"),
    ],
)
def test_schemes(tmp_path, tags, expected, note):
    rows = [f"w {tag}\n" for tag in tags.split()]
    data = read(tmp_path, "".join(rows))
    assert tags_of(data) == [[tuple(expected.split())]]
    assert note in data.notes[-1]


def test_an_entity_that_begins_with_i_is_named_by_its_line(tmp_path):
    data = read(tmp_path, "a B-X\n\nb O\nc I-X\n")
    assert data.notes[-1].endswith("were changed to B: line 4.")


def test_without_borders_a_file_is_one_document(tmp_path):
    data = read(tmp_path, "a O\n\nb O\n\n\nc O\n")
    assert len(data.documents) == 1 and len(data.documents[0]) == 3
    assert "no -DOCSTART- rows: its 3 sentences are read as one" in data.notes[0]


def test_words_without_tags(tmp_path):
    data = read(tmp_path, "EU NNP\nrejects VBZ\n", with_tags=False)
    assert data.documents[0][0].columns == (("NNP",), ("VBZ",))
    assert data.documents[0][0].tags is None
    assert data.labels == () and data.notes == []
    assert read(tmp_path, "EU\nit\n", with_tags=False).documents[0][0].words == (
        "EU",
        "it",
    )


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            "a x O\nb O\nc x O\nd\n",
            "2 rows .*: line 2 has 2 columns .* 3, line 4 has 1",
        ),
        (
            "a O\nb c O\n",
            "1 row .*: line 2 has 3 columns instead of 2; a row is a word",
        ),
        ("a\nb\n", "line 1 has a word without a tag, line 2 has"),
        (
            "a O\n\nb X-LOC\nc B-\n",
            "line 3 has 'X-LOC', which is not a tag, line 4 has 'B-'",
        ),
        ("", "contains no words"),
        ("\n \n-DOCSTART- O\n", "contains no words"),
        (b"a O\nb\xff O\n\xfe O\n", "not UTF-8 in lines 2, 3"),
        (b"a O\n\0 O\n", "NUL characters in line 2"),
        ("a O\n".encode("utf-16"), "is UTF-16"),
    ],
)
def test_damaged_columns(tmp_path, content, expected):
    with pytest.raises(UserError, match=expected):
        read(tmp_path, content)
    message_of(tmp_path, content)


def test_unknown_types(tmp_path):
    message = message_of(tmp_path, CONLL_TEXT, labels=("LOC", "PER"))
    assert "line 3 has the tag 'B-ORG' of an unknown type; correct them, or" in message
    read(tmp_path, CONLL_TEXT, labels=("LOC", "ORG", "PER", "MISC"))
    message = json_message(tmp_path, record("a b", (0, 1, "X")), labels=("Y",))
    assert "line 1 has an entity of the unknown type 'X'" in message


def test_no_file(tmp_path):
    with pytest.raises(UserError, match="--dev_file: cannot read"):
        read_ner_file(tmp_path / "none.txt", "--dev_file")


def test_json_lines(tmp_path):
    text = "U.N. official Ekeus, né à Rome."
    spans = [(26, 30, "LOC"), (0, 4, "ORG"), (14, 19, "PER")]
    data = read_json(tmp_path, record(text, *spans), record(" "), record("Oslo"))
    assert data.format == JSON_LINES and data.notes == []
    assert data.labels == ("LOC", "ORG", "PER")
    (sentence,), (empty,), (third,) = data.documents
    assert sentence.text == text and (sentence.line, third.line) == (1, 3)
    assert " ".join(sentence.words) == "U . N . official Ekeus , né à Rome ."
    assert " ".join(sentence.tags) == ("B-ORG I-ORG I-ORG I-ORG O B-PER O O O B-LOC O")
    assert empty.words == empty.tags == ()


def test_json_lines_are_known_by_their_look(tmp_path):
    content = json.dumps(record("a", (0, 1, "X")))
    assert read(tmp_path, "\ufeff\r\n" + content + "\r\n").format == JSON_LINES
    assert read(tmp_path, "{ O\n} O\n").format == CONLL


def test_entities_within_words_are_widened_and_named(tmp_path):
    records = [
        record("in New York", (3, 11, "LOC")),
        record("Berliner Luft", (0, 6, "LOC")),
        record("a Berliner, a Römer", (4, 9, "LOC"), (15, 19, "LOC")),
        record(" Rome ", (0, 6, "LOC")),
    ]
    data = read_json(tmp_path, *records)
    assert [one.tags for (one,) in data.documents] == [
        ("O", "B-LOC", "I-LOC"),
        ("B-LOC", "O"),
        ("O", "B-LOC", "O", "O", "B-LOC"),
        ("B-LOC",),
    ]
    assert data.notes == [
        f"{tmp_path / 'data.jsonl'}: 3 of 5 entities begin or end inside a word "
        "and were extended to complete words: lines 2, 3."
    ]


def test_characters_of_no_word_do_not_cut_one(tmp_path):
    """There is a zero-width space before the word, and a soft hyphen in it."""
    data = read_json(tmp_path, record("\u200bRo\u00adme!", (0, 6, "LOC")))
    assert data.notes == []
    assert data.documents[0][0].offsets == ((1, 6), (6, 7))
    assert data.documents[0][0].words == ("Ro\u00adme", "!")


def test_json_without_entities(tmp_path):
    data = read_json(tmp_path, {"text": "In Rome"}, with_tags=False)
    assert data.documents[0][0].tags is None and data.notes == []
    assert data.documents[0][0].words == ("In", "Rome")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([{"text": "a"}, record("b", (0, 1, "X"))], True),
        ([record("b", (0, 1, "X")), {"text": "a"}], True),
        ([{"text": "a", "entities": []}], True),
        ([{"text": "a", "entities": None}], False),
        ([{"text": "a", "meta": {"entities": []}}], False),
        ([{"text": 'the "entities"'}, {"text": "a"}], False),
    ],
)
def test_json_has_tags_or_not(tmp_path, lines, expected):
    path = tmp_path / "data.jsonl"
    texts = (each if isinstance(each, str) else json.dumps(each) for each in lines)
    path.write_text("\n".join(texts))
    assert has_tags(path, "--test_file") is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("In O\nRome B-LOC\n", True),
        ("In IN I-PP O\nRome NNP I-NP Y-LOC\n", True),
        ("\n\nIn IN ?\nRome NNP B-LOC\n", True),
        ("-DOCSTART- -X- O\n\nIn IN\nRome NNP\n", False),
        ("In\nRome\n", False),
        ("O\nB-LOC\n", False),
    ],
)
def test_columns_have_tags_or_not(tmp_path, text, expected):
    """A typing error in one tag does not turn the file into an untagged one."""
    path = tmp_path / "data.txt"
    path.write_text(text)
    assert has_tags(path, "--test_file") is expected


GOOD = record("In Rome.", (3, 7, "LOC"))


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        ("{", "line 2 is not JSON"),
        ("[1]", "line 2 is not a JSON object"),
        ("[" * 100_000, "line 2 is nested too deeply"),
        ('{"text": "\\ud800"}', "line 2 contains a lone surrogate"),
        ({"entities": []}, 'line 2 has no string "text"'),
        ({"text": 3, "entities": []}, 'line 2 has no string "text"'),
        ({"text": "a"}, 'line 2 has no list "entities"'),
        ({"text": "a", "entities": {}}, 'line 2 has no list "entities"'),
        ({"text": "a", "entities": [[0, 1, "X"]]}, "without start, end and label"),
        (record("a", (0, "1", "X")), "whose start or end is not an integer"),
        (record("a", (0, True, "X")), "whose start or end is not an integer"),
        (record("ab", (1, 1, "X")), "from 1 to 1 in a text of 2 characters"),
        (record("ab", (1, 3, "X")), "from 1 to 3 in a text of 2 characters"),
        (record("ab", (-1, 1, "X")), "from -1 to 1 in a text"),
        (record("ab", (0, 1, "")), "the label '', which is not one word"),
        (record("ab", (0, 1, "a b")), "the label 'a b', which is not one word"),
        (record("ab", (0, 1, None)), "the label None, which is not one word"),
        (record("a b c", (0, 3, "X"), (2, 5, "Y")), "overlap .at character 2"),
        (record("abc", (0, 1, "X"), (2, 3, "X")), "two entities in one word"),
        (record("a   b", (1, 3, "X")), "an entity without a word .at character 1"),
    ],
)
def test_damaged_json_lines(tmp_path, bad, expected):
    message = json_message(tmp_path, GOOD, bad, GOOD)
    assert "1 row cannot be used: line 2 " in message
    with pytest.raises(UserError, match=expected):
        read_ner_file(tmp_path / "data.jsonl")


def test_all_damaged_lines_are_named(tmp_path):
    message = json_message(tmp_path, "{", "", GOOD, "[]", record("a", (0, 2, "X")))
    assert "3 rows cannot be used: line 1 " in message
    assert ", line 4 " in message and ", line 5 " in message
    assert "is empty" in message_of(tmp_path, "\n\n", "data.jsonl")


WILD = st.text(
    st.one_of(
        st.sampled_from("ab éΣß\u0301\u200b\u00ad\0\x0b\u00a0\u2028!王😀İ\ufffd\n\r\t"),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=30,
)


@settings(deadline=None, max_examples=300)
@given(WILD)
def test_words_are_slices_of_any_text(text):
    offsets = ner_sentences.split_words(text)
    before = 0
    for start, end in offsets:
        assert before <= start < end <= len(text)
        before = end
    basic = BasicTokenizer(do_lower_case=False)
    words = [basic.tokenize(text[start:end]) for start, end in offsets]
    assert words == [[word] for word in basic.tokenize(text)]


@settings(deadline=None)
@given(WILD, st.data())
def test_predictions_come_back_from_json_lines(tmp_path_factory, text, data):
    sentence = ner_sentences.text_sentence(text)
    size = len(sentence.words)
    drawn = data.draw(
        st.lists(st.sampled_from(["O", "B-X", "I-X"]), min_size=size, max_size=size)
    )
    tags = entities.convert_tags(drawn, IOB2)
    for entity in ner_sentences.text_entities(sentence, tags):
        assert entity["text"] == text[entity["start"] : entity["end"]] != ""
    path = tmp_path_factory.getbasetemp() / "predicted.jsonl"
    ner_json.write_entities(path, [[sentence]], [[tags]])
    again = read_ner_file(path)
    assert again.documents[0][0].text == text and again.notes == []
    assert again.documents[0][0].tags == tuple(tags)


def test_entities_of_a_text():
    sentence = ner_sentences.text_sentence("Né à São Paulo.")
    tags = ["O", "O", "B-LOC", "I-LOC", "O"]
    assert ner_sentences.text_entities(sentence, tags) == [
        {"start": 5, "end": 14, "label": "LOC", "text": "São Paulo"}
    ]


def test_written_json_lines(tmp_path):
    data = read(tmp_path, CONLL_TEXT)
    out = tmp_path / "out.jsonl"
    predicted = [[["O", "O"], ["B-PER", "I-PER"]], [["B-ORG"]]]
    ner_json.write_entities(out, data.documents, predicted)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["text"] for line in lines] == ["EU rejects", "Peter Blackburn", "Rome"]
    assert [line["entities"] for line in lines] == [
        [],
        [{"start": 0, "end": 15, "label": "PER", "text": "Peter Blackburn"}],
        [{"start": 0, "end": 4, "label": "ORG", "text": "Rome"}],
    ]


def test_written_columns(tmp_path):
    data = read(tmp_path, CONLL_TEXT)
    out = tmp_path / "out.txt"
    predicted = [[["O", "O"], ["B-PER", "I-PER"]], [["B-ORG"]]]
    ner_conll.write_conll(out, data.documents, predicted)
    assert out.read_text() == (
        "-DOCSTART- -X- O O\n\nEU NNP B-ORG O\nrejects VBZ O O\n\n"
        "Peter NNP B-PER B-PER\nBlackburn NNP I-PER I-PER\n\n"
        "-DOCSTART- -X- O O\n\nRome NNP B-LOC B-ORG\n\n"
    )
    again = read_ner_file(out)
    assert tags_of(again) == [[tuple(s) for s in d] for d in predicted]


def test_columns_are_written_without_known_tags(tmp_path):
    data = read(tmp_path, "EU NNP\nsays VBZ\n", with_tags=False)
    out = tmp_path / "out.txt"
    ner_conll.write_conll(out, data.documents, [[["B-ORG", "O"]]])
    assert out.read_text() == "EU NNP B-ORG\nsays VBZ O\n\n"
    data = read_json(tmp_path, record("a"), record(""), record("b", (0, 1, "X")))
    ner_conll.write_conll(out, data.documents, [[["O"]], [[]], [["B-X"]]])
    assert out.read_text() == (
        "-DOCSTART- O O\n\na O O\n\n-DOCSTART- O O\n\nb B-X B-X\n\n"
    )


def test_predictions_must_fit(tmp_path):
    data = read(tmp_path, "a O\nb O\n")
    for write_file in (ner_conll.write_conll, ner_json.write_entities):
        with pytest.raises(ValueError, match="zip"):
            write_file(tmp_path / "out.txt", data.documents, [[]])
    assert not (tmp_path / "out.txt").exists()
    with pytest.raises(ValueError, match="zip"):
        ner_conll.write_conll(tmp_path / "out.txt", data.documents, [[["O"]]])
    with pytest.raises(ValueError, match="1 tags for 2 words"):
        ner_json.write_entities(tmp_path / "out.txt", data.documents, [[["O"]]])


COUNTS = {
    "train": (
        946,
        14041,
        203621,
        {"LOC": 7140, "MISC": 3438, "ORG": 6321, "PER": 6600},
    ),
    "valid": (216, 3250, 51362, {"LOC": 1837, "MISC": 922, "ORG": 1341, "PER": 1842}),
    "test": (231, 3453, 46435, {"LOC": 1668, "MISC": 702, "ORG": 1661, "PER": 1617}),
}


@pytest.mark.parametrize("split", [slow("train"), "valid", slow("test")])
def test_conll_2003_holds_what_it_should(shared, tmp_path, split):
    """The counts equal those of Tjong Kim Sang and De Meulder (2003)."""
    data = read_ner_file(shared / "data" / "conll2003" / f"{split}.txt")
    sentences = [each for document in data.documents for each in document]
    num_documents, num_sentences, num_words, of_types = COUNTS[split]
    assert len(data.documents) == num_documents and len(sentences) == num_sentences
    assert sum(len(sentence.words) for sentence in sentences) == num_words
    found = [entity for s in sentences for entity in entities.to_spans(s.tags)]
    assert collections.Counter(entity.label for entity in found) == of_types
    assert "the tags are IOB2." in data.notes[-1] and data.labels == tuple(of_types)
    if split == "test":
        check_iob1(tmp_path, data)


def check_iob1(folder, data):
    """The same sentences in IOB1, the distributed scheme, give the same result."""
    path = folder / "iob1.txt"
    tags = [
        [entities.convert_tags(s.tags, IOB1) for s in document]
        for document in data.documents
    ]
    ner_conll.write_conll(path, data.documents, tags)
    again = read_ner_file(path)
    assert "the tags are IOB1" in again.notes[-1] and tags_of(again) == tags_of(data)
