"""Whole words for languages that are written without spaces.

The original's whole-word masking recognizes words by their `##` tokens. It has
no effect on Chinese, where each character is a token. Here the user adds a
segmented copy of the text: the same lines, with spaces between words. The
tokens come from the text itself; the copy only shows which belong together.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence

from official_bert.corpus import readers
from official_bert.corpus.report.statistics import CorpusStatistics
from official_bert.data import masking
from official_bert.errors import UserError
from official_bert.tokenization.full import FullTokenizer


def read_documents(
    input_files: Sequence[str],
    boundary_files: Sequence[str],
    tokenizer: FullTokenizer,
    on_bytes: Callable[[int], object] | None = None,
    corpus: CorpusStatistics | None = None,
) -> Iterator[list[list[int]]]:
    """Yield documents of ids, with `masking.CONTINUES` on tokens that continue a word.

    Args:
      input_files: list of paths, in the format `lines`.
      boundary_files: list of paths, a segmented copy of each.
      tokenizer: `FullTokenizer`.
      on_bytes: as for `readers.read_documents`.
      corpus: `CorpusStatistics` that counts the documents.

    Raises:
      UserError: a copy differs by more than spaces; the message names the line.
    """
    if len(input_files) != len(boundary_files):
        raise UserError(
            f"--word_boundaries has {len(boundary_files)} files, but "
            f"--input_file has {len(input_files)}. Give one segmented copy per "
            "input file."
        )
    pairs = zip(input_files, boundary_files, strict=True)
    sentences = _read_sentences(pairs, tokenizer, on_bytes)
    return _counted(readers.group_documents(sentences), corpus)


def mark_words(line: str, segmented: str, tokenizer: FullTokenizer) -> list[int] | None:
    """Return the ids of a line, with marks on tokens that continue a word.

    Args:
      line: str.
      segmented: str, the line with more spaces.
      tokenizer: `FullTokenizer`.

    Returns:
      list of int, or None if the two differ by more than spaces.
    """
    if "".join(line.split()) != "".join(segmented.split()):
        return None
    words = enumerate(segmented.split())
    word_of = [number for number, word in words for _ in word]
    # Offset of each character without spaces.
    places = list(itertools.accumulate((not c.isspace() for c in line), initial=0))
    pieces, offsets = tokenizer.tokenize_with_offsets(line)
    marked, last_word = [], None
    for index, (start, end) in zip(
        tokenizer.convert_tokens_to_ids(pieces), offsets, strict=True
    ):
        # Do not test for the word's start: cleaning may have removed its first
        # characters.
        continues = word_of[places[start]] == last_word
        marked.append(index | masking.CONTINUES if continues else index)
        last_word = word_of[places[end - 1]]
    return marked


def _counted(documents, corpus):
    """Yield the ids of documents with (line, ids), counting them in `corpus`.

    Lines and documents without tokens are counted, but not returned.
    """
    for number, document in enumerate(documents):
        lines, ids = zip(*document, strict=True)
        if corpus:
            plain = [[index & masking.ID_BITS for index in line] for line in ids]
            corpus.add_document(lines, plain, str(number))
        with_tokens = [line_ids for line_ids in ids if line_ids]
        if with_tokens:
            yield with_tokens


def _read_sentences(pairs, tokenizer, on_bytes):
    """Yield (line, ids) for each line with text, and None where a document ends."""
    for input_file, boundary_file in pairs:
        lines = itertools.zip_longest(
            readers.read_text_lines(input_file, on_bytes),
            readers.read_text_lines(boundary_file, on_bytes),
        )
        for number, (line, segmented) in enumerate(lines, 1):
            ids = None
            if line is not None and segmented is not None:
                if number == 1:
                    line, segmented = map(readers.without_mark, (line, segmented))
                ids = mark_words(line, segmented, tokenizer)
            if ids is None:
                raise UserError(
                    f"--word_boundaries: line {number} of {boundary_file} is "
                    f"not line {number} of {input_file} with added spaces. Use "
                    "a copy of the same text."
                )
            # Only a blank line ends a document, not a line without tokens.
            yield (line, ids) if line else None
