"""Lines of text in and out of a script: files, or the standard streams."""

import contextlib
import io
import os
import sys

from absl import logging

from official_bert import files

STANDARD = "-"


@contextlib.contextmanager
def opened_output(path):
    """Yield a text stream for an output; a file is there when it is whole."""
    with contextlib.ExitStack() as stack:
        if path == STANDARD:
            _write_utf8(sys.stdout)
            yield sys.stdout
            return
        if not is_stream(path):
            path = stack.enter_context(files.atomic_path(path))
        yield stack.enter_context(open(path, "w", encoding="utf-8", newline="\n"))


def _write_utf8(stream):
    """Let a stream write UTF-8, whatever the terminal's encoding is."""
    # A program that runs scripts may have put something else in its place.
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8")


def is_stream(path):
    """Whether an output is a pipe or device, which no new file may replace."""
    if path == STANDARD:
        return True
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def lines_of(path, on_bytes=lambda count: None):
    """Yield the stripped lines of a file or of standard input.

    Args:
      path: the file, plain or gzipped, or `STANDARD`.
      on_bytes: function that is told how much has been read.
    """
    if path == STANDARD:
        return _lines_of_standard_input(on_bytes)
    from official_bert.corpus.readers import read_text_lines

    return read_text_lines(path, on_bytes)


def _lines_of_standard_input(on_bytes):
    from official_bert.corpus import readers

    counts = readers.LineCounts()
    lines = readers.not_utf_16(sys.stdin.buffer, "Standard input")
    yield from readers.decode_lines(lines, counts, on_bytes)
    counts.warn("Standard input")
    if not counts.lines:
        logging.warning("Standard input is empty.")
