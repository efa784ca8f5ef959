"""Tables in users' formats are read correctly, or rejected with one sentence."""

import csv
import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from official_bert.errors import UserError
from official_bert.tables import table_files as tables
from official_bert.tables.delimited import Row, read_csv, read_tsv
from official_bert.tables.table_files import CSV, JSON_LINES, TSV, read_table


def write(folder, content, name="data.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def rows_of(table):
    return [(row.line, *row.cells) for row in table.rows]


def message_of(path, **arguments):
    with pytest.raises(UserError) as caught:
        read_table(path, **arguments)
    message = str(caught.value)
    assert message.endswith(".") and "\n" not in message
    assert message.startswith((str(path), "--train_file"))
    return message


CSV_TEXT = 'review,stars\nGood.,5\n"Bad, ""really""\nbad.",1\nDull.,2\n'


def test_quoted_newlines_keep_the_lines_a_person_counts(tmp_path):
    table = read_table(write(tmp_path, CSV_TEXT))
    assert table.format == CSV and table.has_header
    assert table.columns == ("review", "stars")
    assert rows_of(table) == [
        (2, "Good.", "5"),
        (3, 'Bad, "really"\nbad.', "1"),
        (5, "Dull.", "2"),
    ]


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_ends_and_byte_order_mark_do_not_matter(tmp_path, end):
    content = (
        b"\xef\xbb\xbf"
        + "review,stars\nGood.,5\n\nDull.,2\n".replace("\n", end).encode()
    )
    table = read_table(write(tmp_path, content))
    assert table.columns == ("review", "stars")
    assert rows_of(table) == [(2, "Good.", "5"), (4, "Dull.", "2")]


def test_only_line_ends_end_lines(tmp_path):
    text = "text,label\na\u2028b\x0bc\x85d\x0c,1\ne,2\n"
    table = read_table(write(tmp_path, text))
    assert rows_of(table) == [(2, "a\u2028b\x0bc\x85d\x0c", "1"), (3, "e", "2")]


@pytest.mark.parametrize("delimiter", ";\t")
def test_other_delimiters_of_a_csv(tmp_path, delimiter):
    text = f"review{delimiter}stars\nGood, fine.{delimiter}5\nSo, so.{delimiter}3\n"
    table = read_table(write(tmp_path, text))
    assert rows_of(table) == [(2, "Good, fine.", "5"), (3, "So, so.", "3")]


def test_a_semicolon_in_a_text_is_no_delimiter(tmp_path):
    table = read_table(write(tmp_path, "Nice; cheap\nBad\nDear\n"), has_header=False)
    assert rows_of(table) == [(1, "Nice; cheap"), (2, "Bad"), (3, "Dear")]


@pytest.mark.parametrize(
    "name, content, expected",
    [
        ("a.tsv", "text\tlabel\na,b\tc\n", TSV),
        ("a.TAB", "text\tlabel\na,b\tc\n", TSV),
        ("a.txt", "text\tlabel\na,b\tc\n", TSV),
        ("a.txt", 'text,label\n"a,b",c\n', CSV),
        ("a", '\n{"text": "a,b", "label": "c"}\n', JSON_LINES),
        ("a.jsonl", '{"text": "a,b", "label": "c"}\n', JSON_LINES),
        ("a.ndjson", '{"text": "a,b", "label": "c"}\n', JSON_LINES),
        ("a.json", '{"text": "a,b", "label": "c"}\n', JSON_LINES),
    ],
)
def test_the_ending_decides_and_else_the_first_line(tmp_path, name, content, expected):
    table = read_table(write(tmp_path, content, name))
    assert table.format == expected
    assert table.columns == ("text", "label")
    assert [row.cells for row in table.rows] == [("a,b", "c")]
    zipped = write(tmp_path, gzip.compress(content.encode()), name + ".gz")
    assert read_table(zipped).rows == table.rows


def test_glue_tsv_with_lone_quotes_loses_no_line():
    text = 'sentence\tlabel\n"Hello\t1\nworld"\t2\n5" screen\t1\n'
    rows, problems = read_tsv(text)
    assert not problems
    assert rows[1:] == [
        Row(2, ('"Hello', "1")),
        Row(3, ('world"', "2")),
        Row(4, ('5" screen', "1")),
    ]


def test_glue_tsv_names_short_rows_whatever_quotes_do():
    text = 'sentence\tlabel\n"Hello\t1\nshort\nalso short\nfine\t1\n'
    rows, problems = read_tsv(text)
    assert [row.line for row in rows] == [1, 2, 5]
    assert [line for line, _ in problems] == [3, 4]


def test_tsv_with_quotes_that_quote():
    text = 'text\tlabel\n"a\tb"\t1\n"c\nd ""e"""\t2\n"f"\t1\n'
    rows, problems = read_tsv(text)
    assert not problems
    assert rows[1:] == [
        Row(2, ("a\tb", "1")),
        Row(3, ('c\nd "e"', "2")),
        Row(5, ("f", "1")),
    ]
    short = read_tsv(text + "short\n")
    assert short == (rows, [(6, "has 1 cell instead of 2")])


def test_empty_cells(tmp_path):
    text = "text,label,\n,1,\na,,\n   \nb,2\n,,\n"
    problem = "line 5 has 2 cells instead of 3"
    assert problem in message_of(write(tmp_path, text))
    table = read_table(write(tmp_path, text.replace("b,2", "b,2,,,")))
    assert rows_of(table) == [
        (2, "", "1", ""),
        (3, "a", "", ""),
        (5, "b", "2", ""),
        (6, "", "", ""),
    ]


def test_short_and_long_rows_are_counted_over_the_whole_file(tmp_path):
    rows = ['"two\nlines",1', "short", "a,b,c", *["x"] * 5]
    message = message_of(write(tmp_path, "text,label\n" + "\n".join(rows)))
    assert "7 rows cannot be used" in message
    assert "line 4 has 1 cell instead of 2, line 5 has 3 cells instead of 2" in message
    assert "line 8 has 1 cell instead of 2 and 2 more" in message


@pytest.mark.parametrize(
    "text, what",
    [
        ('text,label\n"a,1\nb,2\nc,3\n', "line 2 begins a quoted cell that never ends"),
        ('text,label\na,1\n"b "c" d",2\n', "line 3 has text after a closing quote"),
    ],
)
def test_bad_quoting(tmp_path, text, what):
    message = message_of(write(tmp_path, text))
    assert what in message and "double inner quotes" in message


def test_long_cells_are_no_problem(tmp_path):
    long = "word " * 50_000
    limit = csv.field_size_limit()
    table = read_table(write(tmp_path, f"text,label\n{long},1\n"))
    assert rows_of(table) == [(2, long, "1")]
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize("name", ["data.csv", "data.tsv", "data.jsonl", "data"])
@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff"])
def test_an_empty_file(tmp_path, name, content):
    assert "is empty" in message_of(write(tmp_path, content, name))


def test_a_header_alone(tmp_path):
    message = message_of(write(tmp_path, "review,stars\n"))
    assert "contains a header but no rows" in message


def test_bytes_that_are_not_utf8(tmp_path):
    lines = [b"text,label", b"caf\xe9,1", "café,2".encode(), *[b"\xff,1"] * 6]
    message = message_of(write(tmp_path, b"\n".join(lines)))
    assert "not UTF-8 in lines 2, 4, 5, 6, 7 and 2 more" in message
    assert "Save it as UTF-8" in message


def test_nul_characters(tmp_path):
    message = message_of(write(tmp_path, b"text,label\na\0,1\nb,2\n"))
    assert "NUL characters in line 2." in message


@pytest.mark.parametrize(
    "name, content, what",
    [
        ("a.csv", "text,label\na,1\n".encode("utf-16"), "is UTF-16"),
        ("a.xlsx", b"PK\x03\x04rest", "a workbook"),
        ("a.csv.gz", b"text,label\n", "cannot be read"),
        (
            "a.csv.gz",
            gzip.compress(b"text,label\n" * 99, mtime=0)[:-9],
            "cannot be read",
        ),
        ("a.json", '[{"text": "a"}]', "one object per line"),
    ],
)
def test_files_of_other_formats(tmp_path, name, content, what):
    assert what in message_of(write(tmp_path, content, name))


def test_a_file_that_is_not_there(tmp_path):
    assert "cannot read" in message_of(tmp_path / "missing.csv")
    (tmp_path / "folder.csv").mkdir()
    assert "is a directory" in message_of(tmp_path / "folder.csv")


def test_json_lines_of_many_types(tmp_path):
    lines = [
        '{"text": "a\\nb", "label": 1.50, "ok": true}',
        "",
        '{"label": ["x", "y"], "more": null, "text": 12345678901234567890}',
    ]
    table = read_table(write(tmp_path, "\r\n".join(lines), "a.jsonl"))
    assert table.columns == ("text", "label", "ok", "more")
    assert rows_of(table) == [
        (1, "a\nb", "1.50", "true", ""),
        (3, "12345678901234567890", ["x", "y"], "", ""),
    ]


def test_names_of_columns_lose_their_blanks(tmp_path):
    for name, content in [
        ("a.csv", "text , label\na,b\n"),
        ("a.jsonl", '{"text ": "a", " label": "b"}\n'),
    ]:
        table = read_table(write(tmp_path, content, name), names=["text"])
        assert table.columns == ("text", "label")
        assert [tuple(row.cells) for row in table.rows] == [("a", "b")]


def test_bad_json_lines(tmp_path):
    lines = [
        '{"text": "fine"}',
        "{'text': 1}",
        "[1]",
        '{"text": "a", "text": "b"}',
        '{"text": "\\ud83d"}',
        '{"text": ' + "[" * 100_000,
        '{"text": ' + "9" * 5000 + "}",
        "{",
    ]
    message = message_of(write(tmp_path, "\n".join(lines), "a.jsonl"))
    assert "6 rows cannot be used: line 2 is not JSON (" in message
    assert (
        "line 3 is not a JSON object, line 4 has a key twice, line 5 contains"
        in message
    )
    assert "line 6 is nested too deeply and 1 more; write one JSON" in message


@pytest.mark.parametrize(
    "text, expected",
    [
        ("review,stars\nGood,5\n", True),
        ("Good film,5\nBad film,1\n", False),
        (",Review text,stars\n0,Good,5\n", True),  # An index column of pandas.
        ("Great movie,positive\nAwful,negative\nFine,positive\n", False),
        ("Great movie,positive\nAwful film,negative\n", False),
        ("Great,positive\nAwful,negative\nFine,positive\n", False),
        ("headline,topic_area\nApple rises,tech\n", True),
        ("what they said,worth\nGood,5\nBad,1\n", True),
        ("I liked it\n", False),
        ("text\n", True),
        ("sentence one,label\nA,B\n", True),
    ],
)
def test_what_looks_like_a_header(text, expected):
    rows, _ = read_csv(text)
    assert tables.looks_like_header(rows) is expected


def test_a_user_decides_on_the_header(tmp_path):
    path = write(tmp_path, "Good film,pos\nBad film,neg\nPoor,neg\n")
    assert read_table(path).columns == ("0", "1")
    assert rows_of(read_table(path))[0] == (1, "Good film", "pos")
    assert read_table(path, has_header=True).columns == ("Good film", "pos")
    assert read_table(path, names=["pos"]).has_header
    assert not read_table(path, names=["0", 1]).has_header


def test_is_number():
    assert all(map(tables.is_number, ["3", "-0.5", "1e-3", " 7. ", "+.5"]))
    bad = ["", "nan", "inf", "1_000", "1,5", "٣", "0x1", "1 2", ["1"], "."]
    assert not any(map(tables.is_number, bad))


CELLS = st.text(
    st.sampled_from(list("ab \"',;\t\n\r|éß中\u2028\x85😀\ufeff\\#[{")), max_size=8
)


def tables_of(cells):
    return st.integers(2, 4).flatmap(
        lambda width: st.lists(
            st.lists(cells, min_size=width, max_size=width), min_size=1, max_size=6
        )
    )


def written(rows, folder, name, **options):
    path = folder / name
    with open(path, "w", encoding="utf-8", newline="") as target:
        csv.writer(target, **options).writerows(rows)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("random")


@settings(max_examples=300, deadline=None)
@given(tables_of(CELLS), st.booleans())
def test_what_python_writes_as_csv_is_read_back(folder, rows, quote_all):
    # Only the header makes the delimiter unambiguous.
    header = [f"column {number}" for number in range(len(rows[0]))]
    # If lines end with a line feed, Python 3.11 does not quote a carriage return.
    options = {"lineterminator": "\n", "quoting": csv.QUOTE_ALL} if quote_all else {}
    path = written([header, *rows], folder, "a.csv", **options)
    table = read_table(path, has_header=True)
    assert [list(row.cells) for row in table.rows] == rows
    assert [row.line for row in table.rows] == lines_of(rows)


def lines_of(rows):
    """Return the lines at which rows start below a header, counting all line ends."""
    lines, line = [], 2
    for row in rows:
        lines.append(line)
        text = "".join(cell + "|" for cell in row).replace("\r\n", "\n")
        line += 1 + text.count("\n") + text.count("\r")
    return lines


# A cell with tabs and line ends might look like rows of an unquoted TSV.
@settings(max_examples=300, deadline=None)
@given(tables_of(CELLS.map(lambda cell: cell.replace("\n", "").replace("\r", ""))))
def test_what_python_writes_as_tsv_is_read_back(folder, rows):
    header = [f"column {number}" for number in range(len(rows[0]))]
    path = written([header, *rows], folder, "a.tsv", delimiter="\t")
    table = read_table(path, has_header=True)
    assert [list(row.cells) for row in table.rows] == rows


@settings(max_examples=200, deadline=None)
@given(st.lists(st.fixed_dictionaries({"text": CELLS, "label": CELLS}), min_size=1))
def test_json_lines_are_read_back(folder, rows):
    path = folder / "a.jsonl"
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text("".join(lines), encoding="utf-8", newline="")
    table = read_table(path)
    expected = [
        (line, *map(row.get, table.columns)) for line, row in enumerate(rows, 1)
    ]
    assert rows_of(table) == expected
