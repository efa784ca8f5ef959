"""Read text files in several formats, plain or gzipped, as documents of sentences.

Formats (`--input_format`):

* `lines`: one sentence per line, a blank line between documents. As in the
  original, a document continues in the next file unless a blank line ends it.
* `raw`: running text. A blank line or the end of a file ends a document; its
  lines are joined and split by `sentences.split_sentences`.
* `wikiextractor`: WikiExtractor's output, `<doc …>` … `</doc>` blocks or JSON
  lines with a `text`. Each article is a document without its title line; each
  of its lines is a paragraph and is split into sentences.

All files are read as UTF-8. Invalid bytes are dropped, like in the original
under Python 2, and a warning counts the affected lines. Files with the UTF-16
mark are rejected. Only line feeds end lines.
"""

import codecs
import contextlib
import dataclasses
import gzip
import html
import itertools
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import IO, TypeVar

from absl import logging

from official_bert import files, given_paths
from official_bert.corpus.sentences import split_sentences
from official_bert.errors import UserError

BUILTIN = "builtin:"
# Name ending of the report on the text of a record file.
REPORT = ".report.txt"
FORMATS = ("lines", "raw", "wikiextractor")

_Sentence = TypeVar("_Sentence")


def find_inputs(patterns: str | Iterable[str], flag: str = "--input_file") -> list[str]:
    """Return the paths for a list of globs and embedded corpora (`builtin:python`).

    Args:
      patterns: comma-separated string, or list, of files, globs and embedded
        corpora.
      flag: the flag with the patterns, for messages.

    Returns:
      list of str, paths.

    Raises:
      UserError: a pattern matches nothing, or a file is unreadable.
    """
    found = []
    for pattern in given_paths.split_list(patterns) or [""]:
        if pattern.startswith(BUILTIN):
            # Imported here, because most runs do not need it.
            from official_bert.corpus import builtin as builtin_corpus

            found.append(builtin_corpus.corpus_file(pattern, flag))
        else:
            for path in given_paths.find_input_files(pattern, flag):
                records = path.removesuffix(REPORT)
                if records != path and files.exists(records):
                    logging.warning(
                        "%s is a report on %s, not text, so it is skipped.",
                        path,
                        records,
                    )
                else:
                    found.append(path)
    return found


def read_documents(
    input_files: Iterable[str],
    input_format: str = "lines",
    on_bytes: Callable[[int], object] | None = None,
) -> Iterator[list[str]]:
    """Yield the documents of files, one after another.

    Args:
      input_files: paths from `find_inputs`.
      input_format: one of `FORMATS`; embedded corpora have the format `lines`.
      on_bytes: function, called with the size of each line read.

    Returns:
      iterator of list of str: the sentences of one document, stripped. A
      document without sentences is left out.

    Raises:
      UserError: a file is unreadable or of another format; names the line.
    """
    if input_format not in FORMATS:
        raise UserError(
            f"--input_format={input_format!r} is unknown. Choose from "
            f"{', '.join(FORMATS)}."
        )
    parts = (
        split_lines(read_text_lines(path, on_bytes), input_format, path)
        for path in input_files
    )
    return group_documents(itertools.chain.from_iterable(parts))


def group_documents(sentences: Iterable[_Sentence | None]) -> Iterator[list[_Sentence]]:
    """Yield the non-empty lists of values between false values."""
    document: list[_Sentence] = []
    for sentence in sentences:
        if sentence:
            document.append(sentence)
        elif document:
            yield document
            document = []
    if document:
        yield document


def split_lines(
    lines: Iterable[str],
    input_format: str,
    path: str,
    first_line: int = 1,
    inside: bool = False,
) -> Iterable[str]:
    """Yield sentences, and "" where a document ends.

    Args:
      lines: iterable of stripped str.
      input_format: one of `FORMATS`.
      path: source of the lines, for messages.
      first_line: line number of the first line in the file.
      inside: whether the lines begin inside a document.

    Raises:
      UserError: a line does not have the format; the message names it.
    """
    if input_format == "raw":
        return _split_raw(lines)
    if input_format == "wikiextractor":
        return _split_wikiextractor(lines, path, first_line, inside)
    return lines


@dataclasses.dataclass
class LineCounts:
    """The number of lines read, and of lines with dropped bytes."""

    lines: int = 0
    invalid: int = 0

    def add(self, lines: int, invalid: int) -> None:
        """Add counts of lines that were read elsewhere."""
        self.lines += lines
        self.invalid += invalid

    def warn(self, path: str) -> None:
        """Log a warning if bytes were dropped."""
        if self.invalid:
            logging.warning(
                "%s: %d of %d lines have bytes that are not UTF-8; these bytes "
                "were dropped.",
                path,
                self.invalid,
                self.lines,
            )


def read_text_lines(
    path: str, on_bytes: Callable[[int], object] | None = None
) -> Iterator[str]:
    """Yield the stripped lines of a file; warn about unreadable bytes."""
    counts = LineCounts()
    with opened(path) as source:
        yield from decode_lines(not_utf_16(source, path), counts, on_bytes)
    counts.warn(path)
    if not counts.lines:
        logging.warning("%s is empty.", path)


def not_utf_16(byte_lines: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Yield lines of bytes; raise `UserError` if they begin with the mark of UTF-16."""
    lines = iter(byte_lines)
    first = next(lines, None)
    if first is not None:
        check_not_utf_16(first, name)
        yield first
        yield from lines


def check_not_utf_16(beginning: bytes, name: str) -> None:
    """Raise `UserError` if the first bytes of a text are the mark of UTF-16."""
    if beginning.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise UserError(f"{name} is UTF-16. Save it as UTF-8.")


def without_mark(line: str) -> str:
    """Return a file's first line without its byte order mark."""
    return line.removeprefix("\ufeff").strip()


def decode_lines(
    byte_lines: Iterable[bytes],
    counts: LineCounts,
    on_bytes: Callable[[int], object] | None = None,
) -> Iterator[str]:
    """Yield lines of bytes as stripped str; bytes that are not UTF-8 are dropped.

    Args:
      byte_lines: iterable of bytes.
      counts: `LineCounts` that counts the lines.
      on_bytes: function, called with the size of each line.
    """
    for line in byte_lines:
        counts.lines += 1
        if on_bytes:
            on_bytes(len(line))
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError:
            counts.invalid += 1
            text = line.decode("utf-8", "ignore")
        yield text.strip()


@contextlib.contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """Open a file to read its bytes, unpacked if its name ends in `.gz`.

    Raises:
      UserError: the file cannot be opened, or a later read fails.
    """
    with reading_errors(path), files.opened_unpacked(path) as source:
        yield source


@contextlib.contextmanager
def reading_errors(path: str) -> Iterator[None]:
    """Convert errors while reading a file to `UserError`."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(
            f"{path} is not a complete gzip file ({error}). Download or "
            "compress it again."
        ) from error
    except OSError as error:
        # Only system errors have a `strerror`.
        raise UserError(f"Cannot read {path}: {error.strerror or error}.") from error


def _split_raw(lines):
    for paragraph in group_documents(lines):
        yield from split_sentences(" ".join(paragraph))
        yield ""


def _split_wikiextractor(lines, path, first_line, inside):
    title = None
    for number, line in enumerate(lines, first_line):
        if number == 1:
            line = without_mark(line)
        if line.startswith("<doc "):
            inside = True
            _, has_title, rest = line.partition('title="')
            title = html.unescape(rest.rpartition('"')[0]) if has_title else None
        elif line == "</doc>":
            inside = False
            yield ""
        elif inside:
            text = html.unescape(line)
            if text != title:
                yield from split_sentences(text)
            title = None
        elif line.startswith("{"):
            yield from _read_json_article(line, f"{path}: line {number}")
            yield ""
        elif line:
            raise UserError(
                f"{path}: line {number} is neither inside <doc …> … </doc> nor "
                "JSON, so the file is not WikiExtractor output. For plain text "
                "use --input_format=lines or raw."
            )
    yield ""


def _read_json_article(line, where):
    try:
        article = json.loads(line)
    except json.JSONDecodeError as error:
        raise UserError(f"{where} is not JSON: {error.msg}.") from error
    if not isinstance(article, dict) or not isinstance(article.get("text"), str):
        raise UserError(
            f'{where} has no "text", so it is not WikiExtractor output. Check '
            "--input_format."
        )
    paragraphs = article["text"].split("\n")
    if paragraphs[0].strip() == article.get("title"):
        del paragraphs[0]
    for paragraph in paragraphs:
        yield from split_sentences(html.unescape(paragraph))
