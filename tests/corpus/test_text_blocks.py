import gzip
import io
import json
import pickle
import sys

import pytest

from official_bert.corpus import readers, text_blocks
from official_bert.errors import UserError

TEXTS = {
    "lines": "One a.\nTwo b.\n\nThree c.\n \t\r\nFour d.\nFive e.\n\n\n\nSix f.\n",
    "raw": "One a. Two\nb.\n\nThree c.\n \t\r\nFour d. Five e.\n\n\n\nSix f.\n",
    "wikiextractor": '<doc id="1" title="T">\nT\n\nOne a.\n</doc>\n\n'
    '{"text": "Two b. Three c."}\n<doc id="3" title="U">\nU\nFour d.\n</doc>\n'
    '{"text": "Five e."}\n{"text": "Six f."}\n',
}


@pytest.fixture
def write(tmp_path):
    def _write(name, content):
        data = content.encode() if isinstance(content, str) else content
        (tmp_path / name).write_bytes(
            gzip.compress(data) if name.endswith(".gz") else data
        )
        return str(tmp_path / name)

    return _write


def _blocks(paths, input_format="lines"):
    return [
        block
        for unit in text_blocks.group_files(paths)
        for block in text_blocks.blocks_of(unit, input_format)
    ]


def _documents(blocks, input_format="lines"):
    return [
        document
        for block in blocks
        for document in text_blocks.documents_of(block, input_format)
    ]


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
@pytest.mark.parametrize("input_format", readers.FORMATS)
def test_blocks_of_any_size_hold_the_documents_of_the_file(
    write, monkeypatch, input_format, name
):
    path = write(name, TEXTS[input_format])
    expected = list(readers.read_documents([path], input_format))
    assert len(expected) > 3
    longest = 52
    for size in range(longest, len(TEXTS[input_format]) + 2):
        monkeypatch.setattr(text_blocks, "BLOCK_BYTES", size)
        blocks = _blocks([path], input_format)
        assert _documents(blocks, input_format) == expected
        assert sum(block.num_cut for block in blocks) == 0
        text = b"".join(part.data for block in blocks for part in block.parts)
        assert text == TEXTS[input_format].encode()
        assert max(block.num_bytes for block in blocks) <= size
        if size == longest:
            assert len(blocks) > 1


def test_the_end_of_a_file_ends_a_document(write):
    first, second = write("a.txt", "one"), write("b.txt", "two\n\nthree")
    blocks = _blocks([first, second])
    assert [block.num_bytes for block in blocks] == [13]
    assert _documents(blocks) == [["one"], ["two"], ["three"]]


def test_small_files_share_a_unit_and_a_large_one_is_alone(monkeypatch):
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", 10)
    sizes = {"a": 4, "b": 6, "c": 1, "d": 25, "e": 0, "f": 10, "g": 3, "-": None}
    units = text_blocks.group_files("abcde-fg", sizes.get)
    paths = ["".join(unit.paths) for unit in units]
    assert paths == ["ab", "c", "d", "e-", "f", "g"]
    assert [unit.number for unit in units] == list(range(6))


def test_a_block_takes_several_files_and_stays_small(write, monkeypatch):
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", 10)
    # Compressed files are larger than their size on disk.
    paths = [write(f"{n}.txt.gz", f"{n}{n}{n}\n\n") for n in "abcde"]
    unit = text_blocks.TextUnit(5, tuple(paths))
    blocks = list(text_blocks.blocks_of(unit, "lines"))
    assert [block[:2] for block in blocks] == [(5, 0), (5, 1), (5, 2)]
    assert [len(block.parts) for block in blocks] == [2, 2, 1]
    assert _documents(blocks) == [[3 * n] for n in "abcde"]


def test_a_document_larger_than_a_block_is_cut_at_line_ends(write, monkeypatch):
    path = write("a.txt", "first\n\n" + "0123456\n" * 10 + "\nlast\n")
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", 30)
    blocks = _blocks([path])
    assert [block.num_cut for block in blocks] == [0, 1, 0, 0, 0]
    documents = _documents(blocks)
    assert documents[0] == ["first"] and documents[-1] == ["last"]
    assert [line for d in documents[1:-1] for line in d] == ["0123456"] * 10
    assert [part.first_line for b in blocks for part in b.parts] == [1, 3, 6, 9, 12]


def test_a_line_larger_than_a_block_is_cut_between_words_or_characters(
    write, monkeypatch
):
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", 16)
    words = write("a.txt", "abcdefg " * 6)
    assert {line for d in _documents(_blocks([words])) for line in d} <= {
        "abcdefg abcdefg",
        "abcdefg",
    }
    letters = write("b.txt", "漢" * 20)
    documents = _documents(_blocks([letters]))
    assert "".join(line for d in documents for line in d) == "漢" * 20


def test_a_large_article_goes_on_in_the_next_block(write, monkeypatch):
    text = '<doc id="1" title="T">\nT\n' + "One a. Two b.\n" * 9 + "</doc>\n"
    path = write("wiki_00", text + '{"text": "Three c."}\n')
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", 50)
    blocks = _blocks([path], "wikiextractor")
    assert [block.parts[0].inside for block in blocks][:2] == [False, True]
    assert sum(block.num_cut for block in blocks) == 1
    documents = _documents(blocks, "wikiextractor")
    assert [line for d in documents for line in d] == ["One a.", "Two b."] * 9 + [
        "Three c."
    ]


def test_a_line_of_json_is_never_cut(write, monkeypatch):
    articles = [{"text": "One a. " * n} for n in (1, 30, 2, 40)]
    path = write("wiki_00", "\n".join(map(json.dumps, articles)))
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", 32)
    documents = _documents(_blocks([path], "wikiextractor"), "wikiextractor")
    assert [len(document) for document in documents] == [1, 30, 2, 40]


def test_an_error_names_the_line_of_the_file(write, monkeypatch):
    path = write("wiki_00", '{"text": "Fine."}\n' * 7 + "plain text\n")
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", 40)
    with pytest.raises(UserError, match="wiki_00: line 8 is neither inside"):
        _documents(_blocks([path], "wikiextractor"), "wikiextractor")


def test_bytes_that_are_not_utf8_are_counted(write):
    path = write("a.txt", b"caf\xc3\xa9\nab\xffcd\n\xfe\nlast\n")
    counts = readers.LineCounts()
    (block,) = _blocks([path])
    documents = list(text_blocks.documents_of(block, "lines", counts))
    assert documents == [["café", "abcd"], ["last"]]
    assert (counts.lines, counts.invalid) == (4, 2)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_refused(write, encoding):
    path = write("a.txt", "\ufeffcafé\n".encode(encoding))
    with pytest.raises(UserError, match=f"{path} is UTF-16. Save it as UTF-8"):
        _blocks([path])


def test_empty_files_give_nothing_and_are_said_to_be_empty(write, caplog):
    assert _blocks([write("a.txt", ""), write("b.txt.gz", "")]) == []
    assert "a.txt is empty" in caplog.text and "b.txt.gz is empty" in caplog.text


def test_half_a_gzip_file_is_an_error(write):
    path = write("a.txt.gz", "some text\n" * 1000)
    with open(path, "r+b") as file:
        file.truncate(20)
    with pytest.raises(UserError, match="a.txt.gz is not a complete gzip file"):
        _blocks([path])


class _Trickle(io.BytesIO):
    def read(self, size=-1):
        return super().read(min(size, 3))


def test_standard_input_reads_as_a_file_however_it_comes(write, monkeypatch):
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", 20)
    expected = _blocks([write("a.txt", TEXTS["lines"])])
    source = io.TextIOWrapper(_Trickle(TEXTS["lines"].encode()))
    monkeypatch.setattr(sys, "stdin", source)
    found = _blocks(["-"])
    assert [part.data for block in found for part in block.parts] == [
        part.data for block in expected for part in block.parts
    ]
    assert found[0].parts[0].path == "-"


def test_digests_tell_blocks_apart_and_blocks_can_be_sent(write):
    (together,) = _blocks([write("a.txt", "one\ntwo")])
    (apart,) = _blocks([write("b.txt", "one\n"), write("c.txt", "two")])
    assert together.digest() != apart.digest()
    assert pickle.loads(pickle.dumps(apart)).digest() == apart.digest()


def test_the_size_of_text_is_known_or_not(tmp_path):
    paths = [str(tmp_path / name) for name in ("a.txt", "b.txt")]
    for path in paths:
        with open(path, "w") as file:
            file.write("text\n")
    assert text_blocks.total_bytes(paths) == 10
    assert text_blocks.total_bytes(paths, len) == sum(map(len, paths))
    assert text_blocks.total_bytes([*paths, "c.gz"]) is None
    assert text_blocks.total_bytes([text_blocks.STANDARD_INPUT]) is None


def test_a_dash_alone_is_the_standard_input(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("text\n")
    assert text_blocks.find_inputs(" - ") == [text_blocks.STANDARD_INPUT]
    assert text_blocks.find_inputs(str(path)) == [str(path)]
    with pytest.raises(UserError, match="--heldout_file: no file matches"):
        text_blocks.find_inputs(f"{tmp_path}/-", "--heldout_file")
