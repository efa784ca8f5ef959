"""Rows of a user become examples: kinds and names of labels, invalid rows."""

import csv
import gzip
import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from official_bert.errors import UserError
from official_bert.tables.columns import Columns
from official_bert.tables.examples import Example
from official_bert.tables.labels import (
    KINDS,
    MULTI_LABEL,
    REGRESSION,
    SINGLE_LABEL,
    Labels,
    infer_kind,
    natural_sorted,
    parse_label,
)
from official_bert.tables.user_data import (
    read_examples,
    read_training_examples,
)

COLUMNS = Columns("text", None, "label", True)
LABELS = Labels(SINGLE_LABEL, ("neg", "pos"))


def write(folder, text, name="train.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("random")


def message_of(function, *arguments, **named):
    with pytest.raises(UserError) as caught:
        function(*arguments, **named)
    message = str(caught.value)
    assert message.endswith(".") and "\n" not in message
    return message


def labels_of(examples):
    return [example.label for example in examples]


def test_a_file_without_any_flag(tmp_path):
    text = "review,stars\nGood film.,10\n\nBad film.,2\nA good film.,10\nBad.,2\n"
    path = write(tmp_path, text)
    examples, columns, labels, notes = read_training_examples(path)
    assert examples[:2] == [
        Example(2, "Good film.", None, "10"),
        Example(4, "Bad film.", None, "2"),
    ]
    assert columns == Columns("review", None, "stars", True)
    assert labels == Labels(SINGLE_LABEL, ("2", "10"), None)
    assert [note.removeprefix(f"{path}: ") for note in notes] == [
        "column 'review' is used as the text. Choose another one with --text_column.",
        "column 'stars' is used as the label. Choose another one with --label_column.",
        "the labels are read as single_label (numbers, 2 of them distinct).",
    ]


def test_pairs_and_given_columns(tmp_path):
    lines = [
        {"a": "One.", "b": "Two.", "same": True},
        {"same": False, "b": "Three.", "a": " Four."},
    ]
    path = write(tmp_path, "\n".join(map(json.dumps, lines)), "train.jsonl")
    examples, columns, labels, notes = read_training_examples(path, "a", "b", "same")
    assert examples == [
        Example(1, "One.", "Two.", "true"),
        Example(2, " Four.", "Three.", "false"),
    ]
    assert columns == Columns("a", "b", "same", True)
    assert labels.names == ("false", "true")
    assert len(notes) == 1


def test_columns_by_number_without_a_header(tmp_path):
    path = write(tmp_path, "pos,Good film\nneg,Bad film\n", "train.csv")
    examples, columns, labels, _ = read_training_examples(path, 1, None, 0)
    assert examples[0] == Example(1, "Good film", None, "pos")
    assert columns == Columns("1", None, "0", False)
    other = write(tmp_path, "neg,Meh\n", "dev.csv")
    assert read_examples(other, columns, labels, "--dev_file") == (
        [Example(1, "Meh", None, "neg")],
        [],
    )


def test_rows_without_text_or_label_are_left_out_and_counted(tmp_path):
    rows = ["a,pos", " ,neg", "c,", '"d\ne",neg', ",", "f,  "]
    path = write(tmp_path, "text,label\n" + "\n".join(rows) + "\n")
    examples, _, labels, notes = read_training_examples(path)
    assert [(each.guid, each.label) for each in examples] == [(2, "pos"), (5, "neg")]
    assert notes[-2:] == [
        f"{path}: 2 rows without a text were left out (lines 3, 7).",
        f"{path}: 2 rows without a label were left out (lines 4, 8).",
    ]
    dev, dev_notes = read_examples(path, COLUMNS, labels, "--dev_file")
    assert dev == examples and dev_notes == notes[-2:]


def test_a_label_of_a_row_without_text_is_no_label(tmp_path):
    path = write(tmp_path, "text,label\na,pos\nb,neg\n,other\n")
    assert read_training_examples(path)[2].names == ("neg", "pos")


def test_pairs_need_both_texts(tmp_path):
    path = write(tmp_path, "a,b,label\nx,y,0\nx,,1\n,y,1\nx,y,1\n")
    examples, _, _, notes = read_training_examples(path, "a", "b")
    assert [each.guid for each in examples] == [2, 5]
    assert notes[-1].endswith("left out (lines 3, 4).")


def test_no_row_is_left(tmp_path):
    path = write(tmp_path, "text,label\na,\n,b\n")
    message = message_of(read_training_examples, path)
    assert "no row has both a text and a label" in message


def test_unknown_labels_are_listed_with_their_lines(tmp_path):
    rows = ['"a\nb",pos', "c,meh", *["d,Neg"] * 6]
    path = write(tmp_path, "text,label\n" + "\n".join(rows), "dev.csv")
    for is_test in (False, True):
        message = message_of(
            read_examples, path, COLUMNS, LABELS, "--dev_file", is_test
        )
        assert message == (
            f"{path}: 7 rows cannot be used: line 4 has the unknown label 'meh', "
            "line 5 has the unknown label 'Neg', line 6 has the unknown label 'Neg', "
            "line 7 has the unknown label 'Neg', line 8 has the unknown label 'Neg' "
            "and 2 more; the training file has only the labels 'neg', 'pos'."
        )


def test_a_test_file_needs_no_labels_and_keeps_its_rows(tmp_path):
    path = write(tmp_path, "id,text\n1,a\n2,\n3,c\n", "test.csv")
    examples, notes = read_examples(path, COLUMNS, LABELS, "--test_file", is_test=True)
    assert examples == [Example(2, "a"), Example(3, ""), Example(4, "c")]
    assert notes == [f"{path}: 1 row without a text was kept for prediction (line 3)."]
    message = message_of(read_examples, path, COLUMNS, LABELS, "--dev_file")
    assert message.startswith("--label_column") and "no column 'label'" in message


def test_a_test_file_may_have_labels(tmp_path):
    path = write(tmp_path, "text,label\na,pos\nb,\n", "test.csv")
    examples, _ = read_examples(path, COLUMNS, LABELS, "--test_file", is_test=True)
    assert labels_of(examples) == ["pos", None]


def test_a_headerless_test_file_of_texts_alone(tmp_path):
    path = write(tmp_path, "one\ntwo\n", "test.csv")
    columns = Columns("0", None, "1", False)
    examples, _ = read_examples(path, columns, LABELS, "--test_file", is_test=True)
    assert examples == [Example(1, "one"), Example(2, "two")]


def test_a_header_that_lacks_the_text(tmp_path):
    path = write(tmp_path, "some text here\nanother\n", "test.csv")
    message = message_of(read_examples, path, COLUMNS, LABELS, "--test_file", True)
    assert "no column 'text'. Its columns are 0 'some text here'" in message


def test_texts_that_are_lists(tmp_path):
    lines = ['{"text": "a", "label": 0}', '{"text": ["b"], "label": 1}']
    path = write(tmp_path, "\n".join(lines), "train.jsonl")
    message = message_of(read_training_examples, path)
    assert "line 2 has a list or an object as its text; write each text" in message


@pytest.mark.parametrize(
    "rows, what",
    [
        (["a,x", "b,x"], "every row has the label 'x'. A classifier needs at"),
        ([f"t{n} u,w{n}" for n in range(11)], "every row has a different label"),
    ],
)
def test_labels_that_tell_nothing_apart(tmp_path, rows, what):
    path = write(tmp_path, "text,label\n" + "\n".join(rows))
    assert what in message_of(read_training_examples, path)


def test_numbers_and_lists_that_tell_nothing_apart(tmp_path):
    path = write(tmp_path, "text,label\na,1\nb,1.0\n")
    message = message_of(read_training_examples, path, kind=REGRESSION)
    assert "every row has the same number" in message
    path = write(tmp_path, "text,label\na,[]\nb,[]\n")
    assert "no row has a label" in message_of(read_training_examples, path)


@pytest.mark.parametrize("quote", ["'", '""'])
def test_lists_in_cells_are_several_labels(tmp_path, quote):
    rows = ['a,"[x10, x9]"', 'b,"[]"', 'c,"[x9, x9]"', "d,"]
    text = "\n".join(rows).replace("x10", f"{quote}x10{quote}")
    path = write(tmp_path, "text,label\n" + text.replace("x9", f"{quote}x9{quote}"))
    examples, _, labels, notes = read_training_examples(path)
    assert labels == Labels(MULTI_LABEL, ("x9", "x10"))
    assert labels_of(examples) == [("x10", "x9"), (), ("x9",)]
    assert "every label is a list" in notes[-2]
    assert "1 row without a label was left out (line 5)" in notes[-1]


def test_lists_in_json_lines(tmp_path):
    lines = ['{"text": "a", "label": ["x", 2]}', '{"text": "b", "label": []}']
    path = write(tmp_path, "\n".join(lines), "train.jsonl")
    examples, _, labels, _ = read_training_examples(path)
    assert labels == Labels(MULTI_LABEL, ("2", "x"))
    assert labels_of(examples) == [("x", "2"), ()]


def test_cells_split_at_a_separator(tmp_path):
    path = write(tmp_path, "text,label\na,x | y\nb,\nc,y|y|\n")
    examples, columns, labels, _ = read_training_examples(path, separator="|")
    assert labels == Labels(MULTI_LABEL, ("x", "y"), "|")
    assert labels_of(examples) == [("x", "y"), (), ("y",)]
    dev = write(tmp_path, "text,label\na,x|z\n", "dev.csv")
    message = message_of(read_examples, dev, columns, labels, "--dev_file")
    assert "line 2 has the unknown label 'z'" in message


def test_several_labels_without_lists_or_separator(tmp_path):
    path = write(tmp_path, 'text,label\na,x y\nb,"[""x"", [1]]"\nc,[\n')
    message = message_of(read_training_examples, path, kind=MULTI_LABEL)
    assert "line 2 has the label 'x y', which is not a list, line 3" in message
    assert (
        "not a list of texts, line 4 has the label '[', which is not a list" in message
    )
    assert "give --label_separator" in message


def test_amounts_are_numbers(tmp_path):
    rows = [f"text {n},{n / 10}" for n in range(25)]
    path = write(tmp_path, "text,label\n" + "\n".join(rows))
    examples, columns, labels, _ = read_training_examples(path)
    assert labels == Labels(REGRESSION, ())
    assert labels_of(examples)[:3] == [0.0, 0.1, 0.2]
    dev = write(tmp_path, "text,label\na,7\nb,high\nc,nan\nd,1e999\n", "dev.csv")
    message = message_of(read_examples, dev, columns, labels, "--dev_file")
    assert (
        "3 rows" in message
        and "line 3 has the label 'high', which is not a num" in (message)
    )
    assert "line 4 has the label 'nan'" in message and "line 5" in message


def test_a_given_kind_is_taken(tmp_path):
    path = write(tmp_path, "text,label\na,1\nb,2\nc,2\n")
    examples, _, labels, notes = read_training_examples(path, kind=REGRESSION)
    assert labels_of(examples) == [1.0, 2.0, 2.0]
    assert not any("read as" in note for note in notes)


@pytest.mark.parametrize(
    "arguments, what",
    [
        ({"kind": "multi"}, "Choose one of single_label, multi_label, regression"),
        ({"kind": REGRESSION, "separator": ","}, "cannot be used with regression"),
        ({"separator": ""}, "is empty"),
    ],
)
def test_bad_choices(tmp_path, arguments, what):
    path = write(tmp_path, "text,label\na,1\nb,2\n")
    assert what in message_of(read_training_examples, path, **arguments)


@pytest.mark.parametrize(
    "cells, kind",
    [
        (list("12345") * 3, SINGLE_LABEL),
        ([f"{n / 2}" for n in range(10)] * 2, SINGLE_LABEL),
        ([f"{n / 2}" for n in range(10)], REGRESSION),
        ([f"{n / 2}" for n in range(21)] * 50, REGRESSION),
        ([str(n) for n in range(77)] * 5, SINGLE_LABEL),
        ([str(n) for n in range(77)] * 4, REGRESSION),
        ([str(n) for n in range(20)], SINGLE_LABEL),
        ([f"{n}.0" for n in range(20)], SINGLE_LABEL),
        (["1", "2", "unknown"], SINGLE_LABEL),
        (['["a"]', "[]"], MULTI_LABEL),
        (['["a"]', "b"], SINGLE_LABEL),
        ([["a"], []], MULTI_LABEL),
        ([], SINGLE_LABEL),
    ],
)
def test_the_kind_of_labels(cells, kind):
    assert infer_kind(cells)[0] == kind
    assert infer_kind(cells, separator=",")[0] == MULTI_LABEL


def test_labels_in_natural_order():
    assert natural_sorted(["10", "-1", "2", "1e1", "0.5"]) == [
        "-1",
        "0.5",
        "2",
        "10",
        "1e1",
    ]
    assert natural_sorted(["level 10", "7", "b", "level 2", "B", ""]) == [
        "",
        "7",
        "B",
        "b",
        "level 2",
        "level 10",
    ]
    assert len(natural_sorted(["x" + "9" * 5000, "x1"])) == 2


@pytest.mark.parametrize("cell", ["[b'x']", "[1j]", "[{1}]", "[('a',)]", '[{"a": 1}]'])
def test_lists_of_other_things(cell):
    with pytest.raises(ValueError, match="not a list of texts"):
        parse_label(cell, Labels(MULTI_LABEL, ()))
    assert parse_label("['a', 2, None, True]", Labels(MULTI_LABEL, ())) == (
        "a",
        "2",
        "true",
    )


def test_one_label_where_a_list_is():
    with pytest.raises(ValueError, match="which is not a text"):
        parse_label(["a"], LABELS)
    assert parse_label("[x", Labels(SINGLE_LABEL, ())) == "[x"


def test_messages_stay_short():
    with pytest.raises(ValueError) as caught:
        parse_label("x" * 10_000, LABELS)
    assert len(str(caught.value)) < 100


def test_many_known_labels_are_not_all_listed(tmp_path):
    labels = Labels(SINGLE_LABEL, tuple(f"l{n}" for n in range(30)))
    path = write(tmp_path, "text,label\na,b\n")
    message = message_of(read_examples, path, COLUMNS, labels, "--dev_file")
    assert message.endswith("'l18', 'l19' and 10 more.")


PIECES = [
    *["text", "label", "a", "b c", "1", "2.5", "[", '["x"]', "[]", "{", "}", "é", "\0"],
    *[",", ",", ",", "\t", "\t", ";", '"', '"', '""', "'", " ", ":", '{"text": "a"}'],
    *[
        "\n",
        "\n",
        "\n",
        "\r\n",
        "\r",
        "\ufeff",
        "\u2028",
        '{"label": 1}',
        "null",
        "[b'x']",
    ],
]


def pieces(most):
    return st.lists(st.sampled_from(PIECES), max_size=most).map("".join)


def as_csv(rows):
    target = io.StringIO()
    csv.writer(target).writerows([("text", "label"), *rows])
    return target.getvalue()


@settings(max_examples=500, deadline=None)
@given(
    pieces(15) | st.lists(st.tuples(pieces(3), pieces(2)), max_size=5).map(as_csv),
    st.sampled_from(["a.csv", "a.tsv", "a.jsonl", "a.txt", "a.csv.gz"]),
    st.sampled_from([*KINDS, None]),
    st.booleans(),
)
def test_whatever_a_file_holds_there_is_no_traceback(folder, text, name, kind, cut):
    path = folder / name
    content = text.encode()[:-1] if cut else text.encode()
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    try:
        examples, columns, labels, _ = read_training_examples(path, kind=kind)
        assert read_examples(path, columns, labels, "--dev_file")[0] == examples
        # May fail: training ignores the label of a row without a text.
        tests, _ = read_examples(path, columns, labels, "--test_file", is_test=True)
        assert {each.guid for each in tests} >= {each.guid for each in examples}
    except UserError as error:
        assert str(error).endswith(".")
