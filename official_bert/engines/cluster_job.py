"""The job of a cluster's workers, and the division of the corpus."""

import dataclasses
import itertools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import IO, Any, NamedTuple

from official_bert.corpus import readers
from official_bert.corpus.report.statistics import CorpusStatistics
from official_bert.data import masking, pretraining_data
from official_bert.data.instances import InstanceSettings
from official_bert.engines import record_pieces

# Facts about some blocks; (unit, number) of a block; a document sent between
# workers.
Facts = tuple[CorpusStatistics, readers.LineCounts, int]
BlockKey = tuple[int, int]
Packed = tuple[bytes, bytes]


class Storage(NamedTuple):
    """An engine's functions for files that all workers can reach.

    Attributes:
      size_of: function, path -> bytes of the file.
      written: function, path -> context manager of a binary file to write,
        which gets its name when it is complete.
      append: function (path, file) that writes all bytes of a file to an open
        file.
      fetch: function (path, local path) that copies a file to this machine, if
        it exists.
      send: function (local path, path) that copies a file from this machine.
    """

    size_of: Callable[[str], int]
    written: Callable[[str], AbstractContextManager[IO[bytes]]]
    append: Callable[[str, IO[bytes]], None]
    fetch: Callable[[str, str], None]
    send: Callable[[str, str], None]


class Pair(NamedTuple):
    """An instance before masking.

    Attributes:
      document: document number of A; the first three attributes order the pairs
        of a piece.
      place: position of the pass over that document in the order of all pairs.
      number: number of the instance in the pass.
      plan: the `PairPlan`, as a plain tuple.
      tokens_a: packed; see `Job`.
      tokens_b: packed; empty while they are missing.
    """

    document: int
    place: int
    number: int
    plan: tuple[Any, ...]
    tokens_a: bytes
    tokens_b: bytes


@dataclasses.dataclass(frozen=True)
class Job:
    """The job description for all workers.

    Attributes:
      input_files: list of paths, for messages.
      output_files: list of paths.
      folder: for temporary files.
      settings: `InstanceSettings`.
      ids: `masking.MaskingIds`.
      token_code: the `array` code of a document's tokens, "H" or "I".
      storage: functions for all files.
    """

    input_files: list[str]
    output_files: list[str]
    folder: str
    settings: InstanceSettings
    ids: masking.MaskingIds
    token_code: str
    storage: Storage


class Layout(NamedTuple):
    """The division of the corpus.

    Attributes:
      first_documents: dict, (unit, number) of a block -> number of its first
        document.
      num_documents: D, number of documents in the corpus.
      num_pairs: number of (pass, document) pairs.
      num_pieces: number of pieces of all record files.
    """

    first_documents: dict[BlockKey, int]
    num_documents: int
    num_pairs: int
    num_pieces: int

    def piece_of(self, place: int) -> int:
        """Return the piece with the pair at a position; see `shards.make_shards`."""
        return ((place + 1) * self.num_pieces - 1) // self.num_pairs

    def first_pair(self, piece: int) -> int:
        """Return the position of the first pair of a piece."""
        return self.num_pairs * piece // self.num_pieces


def lay_out(sizes: list[tuple[BlockKey, int, int]], job: Job) -> Layout:
    """Divide the corpus; return the `Layout`.

    Args:
      sizes: list of (block, documents, tokens).
      job: `Job`.

    Raises:
      UserError: there is no text.
    """
    settings = job.settings
    sizes = sorted(sizes)
    counts = [num_documents for _, num_documents, _ in sizes]
    first = [0, *itertools.accumulate(counts)]
    pretraining_data.check_documents(first[-1], job.input_files, settings)
    num_shards = len(job.output_files)
    num_tokens = sum(num_tokens for *_, num_tokens in sizes)
    per_shard = record_pieces.count_pieces(num_tokens, num_shards, settings)
    blocks = (block for block, *_ in sizes)
    return Layout(
        dict(zip(blocks, first, strict=False)),
        first[-1],
        first[-1] * settings.dupe_factor,
        num_shards * per_shard,
    )
