"""Multiple choice is read from SWAG's and ARC's layouts; damaged rows are rejected."""

import csv
import gzip
import io
import json
import zlib

import pytest

from official_bert.errors import UserError
from official_bert.tasks.choice.files import (
    ChoiceExample,
    is_json_lines,
    parse_prompt,
    read_choices,
    read_prompts,
    read_swag,
)

COLUMNS = (
    ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,"
    "ending0,ending1,ending2,ending3,label"
)
HEADER = COLUMNS.split(",")


def swag_row(label="2", source="gold", **changes):
    row = {name: "" for name in HEADER} | {
        "sent1": 'He says "hi, all".',
        "sent2": "Then he",
        "gold-source": source,
        "label": label,
    }
    row |= {f"ending{number}": f"does {number}, twice." for number in range(4)}
    return row | changes


def swag_text(*rows, header=HEADER):
    out = io.StringIO()
    writer = csv.DictWriter(out, header, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def write(folder, content, name="data.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def json_file(folder, *records):
    content = "".join(json.dumps(record) + "\n" for record in records)
    return write(folder, content, "data.jsonl")


def examples(read, path, **arguments):
    found, notes = read(path, **arguments)
    assert notes == []
    return found


def message_of(read, path, **arguments):
    with pytest.raises(UserError) as caught:
        read(path, **arguments)
    message = str(caught.value)
    assert message.endswith(".") and "\n" not in message and str(path) in message
    return message


CHOICES = tuple(f"Then he does {number}, twice." for number in range(4))


def test_swag(tmp_path):
    path = write(tmp_path, swag_text(swag_row(), swag_row("0")))
    assert examples(read_swag, path) == [
        ChoiceExample(2, 'He says "hi, all".', CHOICES, 2),
        ChoiceExample(3, 'He says "hi, all".', CHOICES, 0),
    ]


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\n\n"),
        lambda text: text.replace(",label", ", label "),
    ],
)
def test_what_does_not_matter(tmp_path, change):
    text = swag_text(swag_row()).replace("\r\n", "\n")
    (found,) = examples(read_swag, write(tmp_path, change(text)))
    assert (found.choices, found.label) == (CHOICES, 2)


def test_swag_s_columns_may_stand_anywhere(tmp_path):
    header = ["label", "ending1", "sent2", "ending0", "sent1"]
    content = gzip.compress(swag_text(swag_row("1"), header=header).encode())
    (found,) = examples(read_swag, write(tmp_path, content, "data.csv.gz"))
    assert (found.choices, found.label) == (CHOICES[:2], 1)


@pytest.mark.parametrize("name", ["sent1", "ending1", "label"])
def test_a_column_that_stands_twice(tmp_path, name):
    header, *rows = SWAG_TABLE.splitlines()
    table = [f"{header},{name}", *(f"{row},0" for row in rows)]
    message = message_of(read_swag, write(tmp_path, "\n".join(table), "data.csv"))
    assert f"has two columns {name}. Remove one of them" in message


def test_swag_without_labels(tmp_path):
    header = HEADER[:-1]
    path = write(tmp_path, swag_text(swag_row(), header=header), "test.csv")
    (found,) = examples(read_swag, path, is_test=True)
    assert (found.choices, found.label) == (CHOICES, None)
    assert "has no column label. The first row of SWAG's" in message_of(read_swag, path)
    path = write(tmp_path, swag_text(swag_row(""), swag_row("3")))
    found = examples(read_swag, path, is_test=True)
    assert [one.label for one in found] == [None, 3]


def test_generated_endings_may_be_left_out(tmp_path):
    sources = ["gold", "gen", "gold1-orig", "gen-orig"]
    path = write(tmp_path, swag_text(*(swag_row(source=each) for each in sources)))
    assert len(examples(read_swag, path)) == 4
    found, notes = read_swag(path, leave_out_generated=True)
    assert [one.guid for one in found] == [2, 4]
    assert notes == [
        f"{path}: 2 of 4 rows were left out, because a language "
        "model wrote their correct ending."
    ]
    only_generated = write(tmp_path, swag_text(swag_row(source="gen")))
    message = message_of(read_swag, only_generated, leave_out_generated=True)
    assert "contains no examples" in message
    header = [name for name in HEADER if name != "gold-source"]
    path = write(tmp_path, swag_text(swag_row(), header=header))
    message = message_of(read_swag, path, leave_out_generated=True)
    assert "has no column gold-source" in message


@pytest.mark.parametrize("label", ["4", "-1", "", "A", "1.0"])
def test_swag_s_bad_labels(tmp_path, label):
    path = write(tmp_path, swag_text(swag_row(), swag_row(label), swag_row()))
    message = message_of(read_swag, path)
    assert "1 row cannot be used: line 3 has " in message
    if label:
        assert f"has the answer '{label}', which is not one of 0, 1, 2 and 3" in message
        message_of(read_swag, path, is_test=True)
    else:
        assert "has no answer" in message


def test_swag_s_damaged_rows(tmp_path):
    rows = [swag_row(sent1=" "), swag_row(), swag_row(ending2=""), swag_row(sent2="")]
    path = write(tmp_path, swag_text(*rows))
    message = message_of(read_swag, path)
    assert "2 rows cannot be used: line 2 has an empty sent1, line 4 has an" in message
    assert "empty ending2;" in message
    path = write(tmp_path, swag_text(swag_row()) + "a,b\n")
    assert "line 3 has 2 cells instead of 12" in message_of(read_swag, path)
    path = json_file(tmp_path, swag_row(ending1=["a"]), swag_row(sent2={"a": "b"}))
    message = message_of(read_swag, path)
    assert (
        "line 1 has no text as its ending1, line 2 has no text as its sent2" in message
    )


def test_other_layouts_are_not_swag(tmp_path):
    header = ["sent1", "sent2", "gold-ending", "distractor-0"]
    path = write(tmp_path, swag_text(swag_row(), header=header))
    assert "has no column ending0, ending1, label." in message_of(read_swag, path)
    gap = [name for name in HEADER if name != "ending1"]
    path = write(tmp_path, swag_text(swag_row(), header=gap))
    assert "has no column ending1." in message_of(read_swag, path)
    for content in (swag_text(), ""):
        message_of(read_swag, write(tmp_path, content))


def test_swag_s_sample(shared):
    folder = shared / "data" / "swag"
    found = examples(read_swag, folder / "sample_swag_layout.csv")
    assert len(found) == 10
    assert [one.label for one in found] == [0, 3, 1, 3, 0, 3, 0, 1, 3, 3]
    assert zlib.crc32(found[1].context.encode()) == 2881724252
    assert zlib.crc32(found[1].choices[3].encode()) == 1466713490
    in_json = examples(read_swag, folder / "sample.json")
    assert [(one.context, one.choices, one.label) for one in in_json] == [
        (one.context, one.choices, one.label) for one in found
    ]


SWAG_RECORD = {
    "sent1": "He says hi.",
    "sent2": "Then he",
    "ending0": "goes.",
    "ending1": "stays.",
    "label": 1,
}
SWAG_LINE = json.dumps(SWAG_RECORD) + "\n"
SWAG_TABLE = "sent1,sent2,ending0,ending1,label\nHe says hi.,Then he,goes.,stays.,1\n"
PROMPT = ("He says hi.", ("Then he goes.", "Then he stays."))


@pytest.mark.parametrize("name", ["data.csv", "data.jsonl", "data.json", "DATA", "a.b"])
@pytest.mark.parametrize("blanks", ["", "\ufeff", "\n\n", "\ufeff\r\n \t\n"])
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_what_is_in_a_file_decides_not_its_name(tmp_path, name, blanks, ending):
    line = 1 + blanks.count("\n")
    for text, is_json in ((SWAG_LINE, True), (SWAG_TABLE, False)):
        content = (blanks + text).encode()
        content = gzip.compress(content) if ending else content
        path = write(tmp_path, content, name + ending)
        assert is_json_lines(path) == is_json
        expected = [ChoiceExample(line + (not is_json), *PROMPT, 1)]
        assert examples(read_swag, path) == expected
        if is_json:
            assert examples(read_choices, path) == expected
        assert read_prompts(path) == [PROMPT]


def test_a_table_of_questions_by_any_name(tmp_path):
    path = write(tmp_path, "question,A,B,answerKey\nWhich?,a,b,B\n", "data.json")
    assert examples(read_choices, path) == [ChoiceExample(2, "Which?", ("a", "b"), 1)]


def test_tabs(tmp_path):
    table = SWAG_TABLE.replace(",", "\t").replace("stays", 'stays" in')
    path = write(tmp_path, table, "data.csv")
    (found,) = examples(read_swag, path)
    assert (found.choices[1], found.label) == ('Then he stays" in.', 1)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("Which?,a,b,A\n", "is neither SWAG's CSV, whose first row has the columns"),
        (
            "the horse\n",
            "nor JSON lines with one object in braces per line. Convert it",
        ),
        ('"{}"\n', "is neither SWAG's CSV"),
        ('[{"sent1": "a"}]', "contains one JSON list. Write JSON lines"),
        ("\n \n", "is empty"),
        ("\ufeff", "is empty"),
        (gzip.compress(b"a", mtime=0), "is not UTF-8"),
        (b"PK\x03\x04", "Save it as CSV"),
    ],
)
@pytest.mark.parametrize("read", [read_swag, read_prompts])
def test_neither(tmp_path, read, content, expected):
    for name in ("data.csv", "data.jsonl"):
        assert expected in message_of(read, write(tmp_path, content, name))


def test_json_lines_with_both_kinds_of_keys(tmp_path):
    damaged = [
        {"sent1": "", "sent2": "a", "ending0": "b", "ending1": "c", "label": 0},
        {"sent1": "a", "ending0": "b", "ending1": "c", "label": 0},
        {"sent1": "a", "sent2": "", "ending0": "b", "ending2": "c", "label": 0},
        {"sent1": "a", "sent2": "", "ending0": "b", "ending1": "c", "label": 2},
        {"sent1": "a", "sent2": "", "ending0": "b", "ending1": "c"},
    ]
    path = json_file(tmp_path, GOOD, SWAG_RECORD, *damaged)
    message = message_of(read_choices, path)
    for expected in (
        "line 3 has an empty sent1",
        "line 4 has no text as its sent2",
        "line 5 has an empty ending1",
        "line 6 has the answer '2', which is not one of 0 and 1",
        "line 7 has no answer",
    ):
        assert expected in message
    found, notes = read_choices(path, leave_out_damaged=True)
    assert found == [
        ChoiceExample(1, "Q?", ("a", "b"), 0),
        ChoiceExample(2, *PROMPT, 1),
    ]
    assert "5 of 7 rows cannot be used" in notes[0]


def test_lines_that_are_no_json_may_be_left_out(tmp_path):
    content = json.dumps(GOOD) + '\n{"question"\n[]\n' + json.dumps(GOOD)
    found, notes = read_choices(write(tmp_path, content), leave_out_damaged=True)
    assert [one.guid for one in found] == [1, 4]
    assert "2 of 4 rows cannot be used and were left out: lines 2, 3." in notes[0]


@pytest.mark.parametrize("label", ["9", "", "none"])
def test_prompts_whatever_their_answers(tmp_path, label):
    path = write(tmp_path, SWAG_TABLE.replace(",1\n", f",{label}\n"))
    assert read_prompts(path) == [PROMPT]
    record = SWAG_RECORD | {"label": [label]}
    own = {"prompt": "Which?", "choices": ["a", "b"], "answerKey": label}
    path = json_file(tmp_path, record, own)
    assert read_prompts(path) == [PROMPT, ("Which?", ("a", "b"))]


def test_damaged_prompts(tmp_path):
    path = json_file(tmp_path, {}, SWAG_RECORD, {"prompt": "Which?", "choices": ["a"]})
    message = message_of(read_prompts, path)
    assert "line 1 has an empty question, line 3 has 1 choice; a row is a" in message
    path = write(tmp_path, SWAG_TABLE.replace("goes.", ""))
    assert "line 2 has an empty ending0" in message_of(read_prompts, path)
    path = write(tmp_path, SWAG_TABLE.replace("sent2", "start"))
    assert "has no column sent2" in message_of(read_prompts, path)


def test_prompts_of_lines():
    assert parse_prompt(SWAG_LINE) == PROMPT
    assert parse_prompt(json.dumps(ARC)) == ("Which skin?", tuple(TEXTS))
    assert parse_prompt('{"prompt": "2 + 2", "choices": [3, 4.0]}')[1] == ("3", "4.0")
    for line, expected in (("[]", "not a JSON object"), ("{", "is not JSON")):
        with pytest.raises(ValueError, match=expected):
            parse_prompt(line)


TEXTS = ["dry palms", "wet palms", "oil"]
ARC = {
    "id": "Mercury_7",
    "question": {
        "stem": "Which skin?",
        "choices": [
            {"text": text, "label": label}
            for text, label in zip(TEXTS, "ABC", strict=True)
        ],
    },
    "answerKey": "C",
}
HUGGING_FACE_ARC = {
    "id": "Mercury_7",
    "question": "Which skin?",
    "choices": {"text": TEXTS, "label": ["1", "2", "3"]},
    "answerKey": "3",
}


@pytest.mark.parametrize("record", [ARC, HUGGING_FACE_ARC])
def test_arc_s_json(tmp_path, record):
    expected = ChoiceExample("Mercury_7", "Which skin?", tuple(TEXTS), 2)
    assert examples(read_choices, json_file(tmp_path, record)) == [expected]
    unknown = {key: value for key, value in record.items() if key != "answerKey"}
    path = json_file(tmp_path, unknown, record)
    found = examples(read_choices, path, is_test=True)
    assert [one.label for one in found] == [None, 2]
    assert "line 1 has no answer" in message_of(read_choices, path)


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ({"label": 0}, 0),
        ({"label": "2"}, 2),
        ({"label": "b"}, 1),
        ({"answerKey": "1"}, 0),
        ({"answerKey": 3}, 2),
        ({"answerKey": " C "}, 2),
        ({"answerKey": None, "label": 1}, 1),
    ],
)
@pytest.mark.parametrize("name", ["question", "context", "prompt"])
def test_plain_json(tmp_path, name, answer, label):
    path = json_file(tmp_path, {name: "Which?", "choices": TEXTS} | answer)
    expected = ChoiceExample(1, "Which?", tuple(TEXTS), label)
    assert examples(read_choices, path) == [expected]


def test_own_labels_need_no_order(tmp_path):
    choices = {"text": TEXTS, "label": ["C", "A", "B"]}
    path = json_file(
        tmp_path, HUGGING_FACE_ARC | {"choices": choices, "answerKey": "A"}
    )
    assert examples(read_choices, path)[0].label == 1


def test_arc_s_table(tmp_path):
    rows = 'Which?,a,"b, c",d,e,C\nWhat?,f,g,h,,1\nWho?,i,j,,,b\n'
    expected = [
        ChoiceExample(1, "Which?", ("a", "b, c", "d", "e"), 2),
        ChoiceExample(2, "What?", ("f", "g", "h"), 0),
        ChoiceExample(3, "Who?", ("i", "j"), 1),
    ]
    assert examples(read_choices, write(tmp_path, rows)) == expected
    headed = write(tmp_path, "question,A,B,C,D,answerKey\n" + rows)
    found = examples(read_choices, headed)
    assert [one.guid for one in found] == [2, 3, 4]
    assert [one.label for one in found] == [2, 0, 1]
    unknown = write(tmp_path, "Which?,a,b,c,\nWhat?,d,e,,A\n")
    found = examples(read_choices, unknown, is_test=True)
    assert [(one.choices, one.label) for one in found] == [
        (("a", "b", "c"), None),
        (("d", "e"), 0),
    ]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (" ,a,b,c,A", "has an empty question"),
        ("Q?,,,,A", "has no choices"),
        ("Q?,a,,,A", "has 1 choice;"),
        ("Q?,a,,c,A", "has an empty choice"),
        ("Q?,a,b,,C", "has the answer 'C', which is not one of A and B"),
        ("Q?,a,b,,0", "has the answer '0'"),
        ("Q?,a,b,c,", "has no answer"),
    ],
)
def test_damaged_rows_of_a_table(tmp_path, row, expected):
    good = "Q?,a,b,c,A\n"
    path = write(tmp_path, good + row + "\n" + good)
    message = message_of(read_choices, path)
    assert "1 row cannot be used: line 2 has " in message and expected in message
    found, notes = read_choices(path, leave_out_damaged=True)
    assert [one.guid for one in found] == [1, 3]
    assert notes == [f"{path}: 1 of 3 rows cannot be used and were left out: line 2."]
    with pytest.raises(UserError, match="line 1 has"):
        read_choices(write(tmp_path, row + "\n"), leave_out_damaged=True)


GOOD = {"question": "Q?", "choices": ["a", "b"], "label": 0}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"question": ""}, "has an empty question"),
        ({"question": ["Q?"]}, "has no text as its question"),
        ({"question": {"choices": ["a", "b"]}}, "has no text as its question"),
        ({"question": {"stem": "Q?"}}, "has no choices"),
        ({"choices": None}, "has no choices"),
        ({"choices": "a b"}, "has choices that are not a list of texts"),
        ({"choices": ["a", 1.5, None]}, "has no text as its choice"),
        (
            {"choices": ["a", {"text": "b", "label": "B"}]},
            "with missing or repeated labels",
        ),
        (
            {"choices": {"text": ["a", "b"], "label": ["A"]}},
            "with missing or repeated labels",
        ),
        (
            {"choices": {"text": ["a", "b"], "label": ["A", "A"]}},
            "with missing or repeated labels",
        ),
        ({"choices": {"text": ["a", "b"]}}, "has choices that are not a list of texts"),
        ({"label": 2}, "has the answer '2', which is not one of A and B"),
        ({"label": ["A"]}, "has the answer"),
        ({"answerKey": "0"}, "has the answer '0', which is not one of A and B"),
        ({"choices": {"text": ["a", "b"], "label": ["X", "Y"]}}, "not one of X and Y"),
    ],
)
def test_damaged_json(tmp_path, changes, expected):
    path = json_file(tmp_path, GOOD, GOOD | changes)
    message = message_of(read_choices, path)
    assert "1 row cannot be used: line 2 has " in message and expected in message


def test_a_table_of_one_column(tmp_path):
    path = write(tmp_path, "Which?\nWhat?\n")
    message = message_of(read_choices, path)
    assert "line 1 has 1 cell, line 2 has 1 cell; a row is a question" in message


def test_damaged_files(tmp_path):
    assert "line 2 is not JSON" in message_of(
        read_choices, write(tmp_path, json.dumps(GOOD) + "\n{\n", "data.jsonl")
    )
    assert "not UTF-8 in line 1" in message_of(
        read_choices, write(tmp_path, b"Q\xff?,a,b,A\n")
    )
    assert "is empty" in message_of(read_choices, write(tmp_path, ""))
    with pytest.raises(UserError, match="--dev_file: cannot read"):
        read_choices(tmp_path / "none.csv", "--dev_file")


@pytest.mark.parametrize(
    ("name", "num_rows", "num_left_out"),
    [
        ("ARC-C/dev/arc_challenge_dev.csv", 1119, 23),
        ("ARC-C/test/arc_challenge_test.csv", 299, 5),
        ("ARC-E/dev/arc_easy_dev.csv", 2251, 104),
        ("ARC-E/test/arc_easy_test.csv", 570, 21),
    ],
)
def test_arc_as_it_is(shared, name, num_rows, num_left_out):
    """In these files, questions with numeric labels have lost their choices."""
    path = shared / "data" / "arc" / name
    assert f"{num_left_out} rows cannot be used" in message_of(read_choices, path)
    found, notes = read_choices(path, leave_out_damaged=True)
    assert len(found) == num_rows - num_left_out
    assert f"{num_left_out} of {num_rows} rows cannot be used" in notes[0]
    assert {len(one.choices) for one in found} == {3, 4}
    assert {one.label for one in found} == {0, 1, 2, 3}
