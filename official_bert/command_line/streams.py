"""Read and write lines of text: files, or the standard streams."""

import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator
from typing import TextIO

from absl import logging

from official_bert import files

STANDARD = "-"


@contextlib.contextmanager
def opened_output(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """Yield a text stream for an output; a file appears only when it is complete."""
    with contextlib.ExitStack() as stack:
        if path == STANDARD:
            # A program that runs commands may have replaced stdout.
            if isinstance(sys.stdout, io.TextIOWrapper):
                # Use UTF-8 for any terminal encoding.
                sys.stdout.reconfigure(encoding="utf-8")
            yield sys.stdout
            return
        if not is_stream(path):
            path = stack.enter_context(files.atomic_path(path))
        yield stack.enter_context(open(path, "w", encoding="utf-8", newline="\n"))


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Return whether an output is a pipe or device, which must not be replaced."""
    if path == STANDARD:
        return True
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def lines_of(path: str, on_bytes: Callable[[int], None] | None = None) -> Iterator[str]:
    """Yield the stripped lines of a file or of standard input.

    Args:
      path: the file, plain or gzipped, or `STANDARD`.
      on_bytes: function that receives the number of bytes read.
    """
    from official_bert.corpus import readers

    if path != STANDARD:
        yield from readers.read_text_lines(path, on_bytes)
        return
    counts = readers.LineCounts()
    lines = readers.not_utf_16(sys.stdin.buffer, "Standard input")
    yield from readers.decode_lines(lines, counts, on_bytes)
    counts.warn("Standard input")
    if not counts.lines:
        logging.warning("Standard input is empty.")
