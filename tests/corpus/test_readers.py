import gzip
import json
import os

import pytest

from official_bert.corpus import readers
from official_bert.errors import UserError


@pytest.fixture
def write(tmp_path):
    def _write(name, content):
        path = tmp_path / name
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return str(path)

    return _write


def _read(paths, input_format="lines"):
    return list(readers.read_documents(paths, input_format))


def test_blank_lines_end_documents_and_lines_are_stripped(write):
    path = write("a.txt", "\n  one \ntwo\t\r\n\n \t \nthree\n\n")
    assert _read([path]) == [["one", "two"], ["three"]]


def test_a_document_goes_on_in_the_next_file_unless_a_blank_line_ends_it(write):
    first, second = write("a.txt", "one\n\ntwo"), write("b.txt", "three\n\n")
    third = write("c.txt", "four\n")
    assert _read([first, second, third]) == [["one"], ["two", "three"], ["four"]]


def test_only_line_feeds_end_lines(write):
    path = write("a.txt", "a\u2028b\x85c\x0bd\x1ce\rf\n")
    assert _read([path]) == [["a\u2028b\x85c\x0bd\x1ce\rf"]]


def test_a_line_of_exotic_white_space_is_blank_as_in_the_original(write):
    assert _read([write("a.txt", "a\n\u2028\u3000\nb\n")]) == [["a"], ["b"]]


def test_invalid_utf8_is_left_out_and_counted(write, caplog):
    path = write("a.txt", b"caf\xc3\xa9\nab\xffcd\n\xfe\nlast\n")
    assert _read([path]) == [["café", "abcd"], ["last"]]
    assert f"{path}: 2 of 4 lines" in caplog.text


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_refused(write, encoding):
    path = write("a.txt", "\ufeffcafé\n".encode(encoding))
    with pytest.raises(UserError, match=f"{path} is UTF-16. Save it as UTF-8"):
        _read([path])


def test_an_empty_file_is_said_to_be_empty(write, caplog):
    path = write("a.txt", "")
    assert _read([path]) == []
    assert f"{path} is empty" in caplog.text


@pytest.mark.parametrize("input_format", readers.FORMATS)
def test_gzip_reads_as_plain_text(write, input_format):
    text = '<doc id="1" title="T">\nT\n\nOne. Two.\n</doc>\n'
    text = text if input_format == "wikiextractor" else "One. Two.\n\nThree.\n"
    plain, packed = write("a.txt", text), write("a.txt.gz", text)
    assert _read([packed], input_format) == _read([plain], input_format) != []


def test_half_a_gzip_file_is_an_error(write):
    path = write("a.txt.gz", "some text\n" * 1000)
    with open(path, "r+b") as file:
        file.truncate(os.path.getsize(path) - 10)
    with pytest.raises(UserError, match="a.txt.gz is not a complete gzip file"):
        _read([path])


def test_text_that_only_claims_to_be_gzip_is_an_error(tmp_path):
    path = tmp_path / "a.gz"
    path.write_text("plain")
    with pytest.raises(UserError, match="a.gz is not a complete gzip file"):
        _read([str(path)])


def test_raw_text_is_joined_and_split(write):
    path = write("a.txt", "It was late. The\nrain fell. \nNobody came.\n\n\nA new one!")
    assert _read([path, path], "raw") == 2 * [
        ["It was late.", "The rain fell.", "Nobody came."],
        ["A new one!"],
    ]


def test_wikiextractor_blocks(write):
    path = write(
        "wiki_00",
        '<doc id="1" url="u" title="Salt &amp; Iron">\nSalt &amp; Iron\n\n'
        "Salt is old. Iron &lt; gold.\n\nSalt &amp; Iron\n</doc>\n\n"
        '<doc id="2" url="u" title="Empty">\nEmpty\n\n</doc>\n'
        '<doc id="3" url="u" title="B">\nB\n\nLast one.\n</doc>\n',
    )
    assert _read([path], "wikiextractor") == [
        ["Salt is old.", "Iron < gold.", "Salt & Iron"],
        ["Last one."],
    ]


def test_wikiextractor_json_lines(write):
    articles = [
        {
            "id": "1",
            "title": "Salt",
            "text": "Salt\n\nSalt is old. It is &lt; 9.\nEnd.",
        },
        {"id": "2", "title": "None", "text": ""},
        {"id": "3", "text": "No title."},
    ]
    path = write("wiki_00", "\n".join(map(json.dumps, articles)) + "\n")
    assert _read([path], "wikiextractor") == [
        ["Salt is old.", "It is < 9.", "End."],
        ["No title."],
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("plain text", "line 2 is neither inside"),
        ('{"text": ', "line 2 is not JSON"),
        ('{"body": "x"}', 'line 2 has no "text"'),
    ],
)
def test_other_text_is_no_wikiextractor_output(write, line, message):
    path = write("wiki_00", f'{{"text": "Fine."}}\n{line}\n')
    with pytest.raises(UserError, match=message):
        _read([path], "wikiextractor")


def test_every_byte_is_reported(write):
    path, sizes = write("a.txt", "ab\n\ncé\n"), []
    list(readers.read_documents([path], "lines", sizes.append))
    assert sum(sizes) == os.path.getsize(path)


def test_unknown_format_directory_and_missing_file(tmp_path):
    with pytest.raises(UserError, match="--input_format='xml'"):
        _read([], "xml")
    with pytest.raises(UserError, match="is a directory"):
        readers.find_inputs(str(tmp_path))
    with pytest.raises(UserError, match="no file matches"):
        readers.find_inputs(str(tmp_path / "*.txt"))
    with pytest.raises(UserError, match="--input_file is empty"):
        readers.find_inputs("")


def test_globs_are_sorted_and_lists_keep_their_order(write, tmp_path):
    b, a, c = write("b.txt", ""), write("a.txt", ""), write("c.md", "")
    assert readers.find_inputs(f"{c}, {tmp_path}/*.txt") == [c, a, b]


def test_wikiextractor_output_with_a_byte_order_mark(write):
    path = write("wiki_00", '\ufeff<doc id="1" title="A">\nA\n\nOne.\n</doc>\n')
    assert _read([path], "wikiextractor") == [["One."]]


def test_the_report_on_records_is_no_text(write, tmp_path, caplog):
    """The report in the same folder is not read as text by a repeated command."""
    write("a.txt", "one")
    for name in ("train.tfrecord", "train.tfrecord.report.txt", "my.report.txt"):
        write(name, "x")
    found = readers.find_inputs(str(tmp_path / "*.txt"))
    assert [os.path.basename(path) for path in found] == ["a.txt", "my.report.txt"]
    assert "train.tfrecord.report.txt is a report on" in caplog.text
