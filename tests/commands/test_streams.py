"""The rules for files also apply to standard input."""

import io
import sys

import pytest

from official_bert.command_line import streams

DATA = "\ufffd is a character\r\n é \n".encode() + b"caf\xe9\n\n"


@pytest.fixture
def from_input(monkeypatch):
    """Return a function: input bytes -> (lines, reported sizes)."""

    def _from_input(data):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        sizes = []
        return list(streams.lines_of(streams.STANDARD, sizes.append)), sizes

    return _from_input


def test_lines_are_those_of_a_file(from_input, tmp_path, caplog):
    (tmp_path / "text").write_bytes(DATA)
    lines, sizes = from_input(DATA)
    assert lines == ["\ufffd is a character", "é", "caf", ""]
    assert lines == list(streams.lines_of(str(tmp_path / "text")))
    assert sum(sizes) == len(DATA)
    assert "Standard input: 1 of 4 lines have bytes that are not UTF-8" in caplog.text


def test_no_line_is_told(from_input, caplog):
    assert from_input(b"") == ([], [])
    assert "Standard input is empty." in caplog.text
