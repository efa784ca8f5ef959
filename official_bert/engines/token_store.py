"""A corpus as token ids on disk, with random access to documents.

Each block of text becomes one file: starts of its documents among its sentences
(uint32 [documents + 1]), starts of its sentences among its tokens (uint32
[sentences + 1]), and the tokens (uint16 or uint32). Parts are read explicitly,
because pages of a memory-mapped file would count as memory of the process.
"""

import array
import bisect
import dataclasses
import itertools
import os
from collections.abc import Iterable, Sequence
from typing import IO

from official_bert import files
from official_bert.data import masking
from official_bert.errors import UserError
from official_bert.tokenization.full import FullTokenizer

# Maximum number of open files; processes usually may open 1024.
MOST_OPEN = 256

_POSITION = "I"
_POSITION_BYTES = 4


@dataclasses.dataclass(frozen=True)
class BlockSize:
    """The size of a block.

    Attributes:
      documents: number of documents.
      sentences: number of sentences.
      tokens: number of tokens.
      token_bytes: bytes per token in the file, 2 or 4.
    """

    documents: int
    sentences: int
    tokens: int
    token_bytes: int


def write_block(
    path: str | os.PathLike[str],
    documents: Iterable[Iterable[Iterable[int]]],
    highest: int,
) -> BlockSize:
    """Write one block, atomically; return its `BlockSize`.

    Args:
      path: the file.
      documents: iterable of lists of lists of int, none of them empty.
      highest: no token is larger.
    """
    tokens: array.array[int] = array.array(code_of(highest))
    sentence_starts = array.array(_POSITION, [0])
    document_starts = array.array(_POSITION, [0])
    for document in documents:
        for sentence in document:
            tokens.extend(sentence)
            sentence_starts.append(len(tokens))
        document_starts.append(len(sentence_starts) - 1)
    with files.atomic_path(path) as temporary, open(temporary, "wb") as file:
        for numbers in (document_starts, sentence_starts, tokens):
            numbers.tofile(file)
    num_documents, num_sentences = len(document_starts) - 1, len(sentence_starts) - 1
    return BlockSize(num_documents, num_sentences, len(tokens), tokens.itemsize)


def code_of(highest: int) -> str:
    """Return the `array` code for tokens up to a number."""
    return "H" if highest < 1 << 16 else _POSITION


def highest_token(tokenizer: FullTokenizer, whole_words: bool) -> int:
    """Return the largest token that a tokenizer can return."""
    highest = max(tokenizer.vocab.values())
    return highest | masking.CONTINUES if whole_words else highest


class TokenStore:
    """The documents of all blocks, numbered in order.

    Args:
      paths: list of str, the blocks' files; opened on access.
      sizes: list of `BlockSize`.

    Attributes:
      num_documents: D.
    """

    def __init__(self, paths: Sequence[str], sizes: Sequence[BlockSize]):
        self._paths = paths
        self._sizes = sizes
        counts = (size.documents for size in sizes)
        self._first = list(itertools.accumulate(counts, initial=0))
        self._open: dict[int, IO[bytes]] = {}
        self.num_documents = self._first[-1]

    def starts_of(self, document: int) -> list[int]:
        """Return the starts of a document's sentences, a list of n + 1 int.

        They count the tokens of its block, for `tokens_of`.
        """
        block = self._block_of(document)
        own = (document - self._first[block]) * _POSITION_BYTES
        first, end = self._read(block, _POSITION, own, 2)
        offset = (self._sizes[block].documents + 1 + first) * _POSITION_BYTES
        return self._read(block, _POSITION, offset, end - first + 1)

    def tokens_of(self, document: int, start: int, end: int) -> list[int]:
        """Return the tokens of a document's block from `start` to `end`, a list."""
        block = self._block_of(document)
        size = self._sizes[block]
        positions = size.documents + size.sentences + 2
        offset = positions * _POSITION_BYTES + start * size.token_bytes
        code = "H" if size.token_bytes == 2 else _POSITION
        return self._read(block, code, offset, end - start)

    def _block_of(self, document):
        return bisect.bisect_right(self._first, document) - 1

    def _read(self, block, code, offset, count):
        file = self._open.pop(block, None)
        if file is None:
            # Close the least recently used file.
            if len(self._open) >= MOST_OPEN:
                self._open.pop(next(iter(self._open))).close()
            file = open(self._paths[block], "rb", buffering=0)  # noqa: SIM115
        self._open[block] = file
        file.seek(offset)
        size = count * array.array(code).itemsize
        data = file.read(size)
        if len(data) != size:
            path = self._paths[block]
            raise UserError(
                f"{path} is truncated. Delete {os.path.dirname(path)} and "
                "repeat the command."
            )
        return memoryview(data).cast(code).tolist()
