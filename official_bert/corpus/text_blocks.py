"""Divide text of any size into blocks of a few megabytes, at ends of documents.

A block can be processed anywhere, without the text around it. The documents of
all blocks, in order, are those of the files, with two differences from
`readers.read_documents`: the end of a file always ends a document, and a
document larger than a block is split.
"""

import contextlib
import hashlib
import io
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import IO, NamedTuple

from absl import logging

from official_bert import files
from official_bert.corpus import readers

BLOCK_BYTES = 4 << 20
STANDARD_INPUT = "-"

# Each of these certainly ends a document. Blank lines with unusual white space
# also do, but are not needed for block boundaries.
_BLANK_LINE = re.compile(rb"\n[ \t\r]*\n")
_DOC_END = re.compile(rb"(?:^|\n)[ \t\r]*</doc>[ \t\r]*\n")
_DOC_START = re.compile(rb"(?:^|\n)([ \t\r]*<doc )")


class TextUnit(NamedTuple):
    """Files that one worker divides into blocks.

    Attributes:
      number: of the unit, in the order of the files.
      paths: tuple of names; `-` is the standard input.
    """

    number: int
    paths: tuple[str, ...]


class TextPart(NamedTuple):
    """Consecutive lines of one file.

    Attributes:
      path: the file.
      first_line: number of the first line in the file, from 1.
      data: bytes.
      inside: whether it continues a split document.
    """

    path: str
    first_line: int
    data: bytes
    inside: bool


class TextBlock(NamedTuple):
    """A block of some megabytes of text.

    Attributes:
      unit: number of its unit.
      number: number of the block in the unit.
      parts: tuple of `TextPart`; the end of each ends a document.
      num_cut: number of documents that begin here and are split at the end, 0
        or 1.
    """

    unit: int
    number: int
    parts: tuple[TextPart, ...]
    num_cut: int

    @property
    def num_bytes(self) -> int:
        """Return the size of its text."""
        return sum(len(part.data) for part in self.parts)

    def digest(self) -> str:
        """Return the SHA-256, hex, of everything that its documents depend on."""
        digest = hashlib.sha256()
        for part in self.parts:
            digest.update(b"%d %d\n" % (len(part.data), part.inside))
            digest.update(part.data)
        return digest.hexdigest()


def total_bytes(
    paths: Collection[str], size_of: Callable[[str], int] = files.size
) -> int | None:
    """Return the size of the text of files, or None if it is unknown.

    For compressed files and the standard input, the size of the text is
    unknown.

    Args:
      paths: list of names, `-` for the standard input.
      size_of: function, name -> bytes.
    """
    if any(path == STANDARD_INPUT or path.endswith(".gz") for path in paths):
        return None
    return sum(map(size_of, paths))


def find_inputs(patterns: str, flag: str = "--input_file") -> list[str]:
    """Return the paths of `readers.find_inputs`; `-` alone is standard input."""
    if patterns.strip() == STANDARD_INPUT:
        return [STANDARD_INPUT]
    return readers.find_inputs(patterns, flag)


def group_files(
    paths: Iterable[str], size_of: Callable[[str], int] = files.size
) -> list[TextUnit]:
    """Return the `TextUnit`s of files: small files grouped, large files alone.

    Args:
      paths: list of names, `-` for the standard input.
      size_of: function, name -> bytes.
    """
    groups: list[list[str]] = []
    room = 0
    for path in paths:
        size = BLOCK_BYTES if path == STANDARD_INPUT else size_of(path)
        if not groups or size > room:
            groups.append([])
            room = BLOCK_BYTES
        groups[-1].append(path)
        room -= size
    return [TextUnit(number, tuple(group)) for number, group in enumerate(groups)]


def open_text(path: str) -> contextlib.AbstractContextManager[IO[bytes]]:
    """Open a file or the standard input to read its bytes; see `readers.opened`."""
    if path == STANDARD_INPUT:
        return contextlib.nullcontext(sys.stdin.buffer)
    return readers.opened(path)


def blocks_of_files(paths: Iterable[str], input_format: str) -> Iterator[TextBlock]:
    """Yield the `TextBlock`s of files, one file after another; see `blocks_of`."""
    for unit in group_files(paths):
        yield from blocks_of(unit, input_format)


def blocks_of(
    unit: TextUnit,
    input_format: str,
    open_file: Callable[
        [str], contextlib.AbstractContextManager[IO[bytes]]
    ] = open_text,
) -> Iterator[TextBlock]:
    """Yield the blocks of a unit; they depend only on its bytes.

    Args:
      unit: `TextUnit`.
      input_format: one of `readers.FORMATS`.
      open_file: function, name -> context manager of a binary file.

    Yields:
      `TextBlock` of about `BLOCK_BYTES`; the last one is smaller. Only a single
      longer line of JSON makes a larger block.

    Raises:
      UserError: a file cannot be read.
    """
    number, size = 0, 0
    parts: list[TextPart] = []
    for path in unit.paths:
        for part, is_cut in _parts_of(path, input_format, open_file):
            if parts and size + len(part.data) > BLOCK_BYTES:
                yield TextBlock(unit.number, number, tuple(parts), 0)
                number, parts, size = number + 1, [], 0
            parts.append(part)
            size += len(part.data)
            if is_cut:
                num_cut = int(not part.inside)
                yield TextBlock(unit.number, number, tuple(parts), num_cut)
                number, parts, size = number + 1, [], 0
    if parts:
        yield TextBlock(unit.number, number, tuple(parts), 0)


def _parts_of(path, input_format, open_file):
    """Yield (`TextPart`, whether it ends within a document)."""
    line, inside, rest, is_empty = 1, False, b"", True
    with open_file(path) as source:
        while True:
            data = rest + _read(source, BLOCK_BYTES - len(rest))
            is_empty = is_empty and not data
            if line == 1:
                readers.check_not_utf_16(data, path)
            if len(data) < BLOCK_BYTES:
                break
            end, is_cut = _find_end(data, input_format, inside)
            if not end:
                data, end = _read_line(data, source)
            yield TextPart(path, line, data[:end], inside), is_cut
            line += data.count(b"\n", 0, end)
            inside, rest = is_cut, data[end:]
    if data:
        yield TextPart(path, line, data, inside), False
    if is_empty:
        logging.warning("%s is empty.", name_of(path))


def _read(source, size):
    """Read this many bytes, fewer only at the end: a pipe may return small parts."""
    pieces = []
    while size > 0 and (piece := source.read(size)):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _read_line(data, source):
    """Return a line that is longer than a block, and its length."""
    pieces = [data]
    while b"\n" not in pieces[-1] and (piece := _read(source, BLOCK_BYTES)):
        pieces.append(piece)
    data = b"".join(pieces)
    return data, data.find(b"\n", len(data) - len(pieces[-1])) + 1 or len(data)


def _find_end(data, input_format, inside):
    """Return (position of a block boundary in data, whether it splits a document).

    The position is 0 if the data is one line that cannot be split.
    """
    is_wiki = input_format == "wikiextractor"
    ends = [m.end() for m in (_DOC_END if is_wiki else _BLANK_LINE).finditer(data)]
    if ends:
        return ends[-1], False
    if is_wiki and not inside:
        # Before the first article, these are JSON lines, each a document.
        start = _DOC_START.search(data)
        end = start.start(1) if start else data.rfind(b"\n") + 1
        if end or not start:
            return end, False
    return data.rfind(b"\n") + 1 or _end_of_word(data), True


def _end_of_word(data):
    """Return the end of the last complete word, or of the last character."""
    end = data.rfind(b" ") + 1 or len(data)
    while end == len(data) or 0x80 <= data[end] < 0xC0:
        end -= 1
    return end


def documents_of(
    block: TextBlock, input_format: str, counts: readers.LineCounts | None = None
) -> Iterator[list[str]]:
    """Yield the documents of a block, in the form of `readers.read_documents`.

    Args:
      block: `TextBlock`.
      input_format: one of `readers.FORMATS`.
      counts: `readers.LineCounts` that counts its lines.

    Raises:
      UserError: the text has another format; the message names file and line.
    """
    counts = readers.LineCounts() if counts is None else counts
    for part in block.parts:
        lines = readers.decode_lines(io.BytesIO(part.data), counts)
        yield from readers.group_documents(
            readers.split_lines(
                lines, input_format, name_of(part.path), part.first_line, part.inside
            )
        )


def name_of(path: str) -> str:
    """Return the name of a file for messages."""
    return "standard input" if path == STANDARD_INPUT else path
