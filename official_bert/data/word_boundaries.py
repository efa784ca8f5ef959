"""Whole words for languages that are written without spaces.

The original's whole-word masking knows a word by its `##` pieces, so it does
nothing for Chinese, whose characters are a token each. Here the user brings a
segmented copy of the text: the same lines, with spaces between the words. The
tokens stay those of the text itself; the copy only says which belong together.
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
    """Yield documents of ids, with `masking.CONTINUES` where a token continues a word.

    Args:
      input_files: list of paths, in the format `lines`.
      boundary_files: list of paths, a segmented copy of each.
      tokenizer: `FullTokenizer`.
      on_bytes: as for `readers.read_documents`.
      corpus: `CorpusStatistics` to count the documents in.

    Raises:
      UserError: a copy differs by more than spaces; names the line.
    """
    if len(input_files) != len(boundary_files):
        raise UserError(
            f"--word_boundaries names {len(boundary_files)} files and --input_file "
            f"{len(input_files)}: each needs its segmented copy."
        )
    pairs = zip(input_files, boundary_files, strict=True)
    sentences = _read_sentences(pairs, tokenizer, on_bytes)
    return _counted(readers.group_documents(sentences), corpus)


def mark_words(line: str, segmented: str, tokenizer: FullTokenizer) -> list[int] | None:
    """Return the ids of a line, marked where a token continues a word.

    Args:
      line: str.
      segmented: str, the line with more spaces.
      tokenizer: `FullTokenizer`.

    Returns:
      list of int, or None when the two differ by more than spaces.
    """
    if "".join(line.split()) != "".join(segmented.split()):
        return None
    words = enumerate(segmented.split())
    word_of = [number for number, word in words for _ in word]
    # Where each character would be if there were no spaces.
    places = list(itertools.accumulate((not c.isspace() for c in line), initial=0))
    pieces, offsets = tokenizer.tokenize_with_offsets(line)
    marked, last_word = [], None
    for index, (start, end) in zip(
        tokenizer.convert_tokens_to_ids(pieces), offsets, strict=True
    ):
        # Not "is at the word's start": characters there may have been cleaned away.
        continues = word_of[places[start]] == last_word
        marked.append(index | masking.CONTINUES if continues else index)
        last_word = word_of[places[end - 1]]
    return marked


def _counted(documents, corpus):
    """Yield the ids of documents of (line, ids), counting them in `corpus`.

    Lines and documents without tokens are counted and drop out.
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
    """Yield (line, ids) of each line with text, and None where a document ends."""
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
                    f"--word_boundaries: line {number} of {boundary_file} is not "
                    f"line {number} of {input_file} with spaces between its words."
                )
            # A line that holds no token ends no document; a blank one does.
            yield (line, ids) if line else None
