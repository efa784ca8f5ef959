"""Pieces of record files; each can be made independently.

The (pass, document) pairs of the corpus have a random order that is computed
and not stored (`index_permutation`). A piece has the shuffled records of
consecutive pairs, few enough for the memory of a process. The records of a
piece and their order depend only on the corpus, the settings and the number of
pieces.
"""

import collections
import dataclasses
import hashlib
import json
import os
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from official_bert import files
from official_bert.data import estimate, index_permutation, masking, planned_instances
from official_bert.data.example_encoding import make_encoder
from official_bert.data.instances import InstanceSettings, TrainingInstance
from official_bert.data.records import tfrecord
from official_bert.engines.token_store import BlockSize, TokenStore

# Raise this when the bytes of a finished piece change.
FORMAT = 1
# Approximate size of the records of a piece.
PIECE_BYTES = 32 << 20


class Piece(NamedTuple):
    """A piece to make.

    Attributes:
      number: of the piece, from 0.
      first: position of its first (pass, document) pair in the order.
      end: position after its last pair.
      path: path of its records; compressed if it ends in `.gz`.
      facts_path: path of its facts, as JSON, written last.
    """

    number: int
    first: int
    end: int
    path: str
    facts_path: str


@dataclasses.dataclass(frozen=True)
class PieceFacts:
    """Facts about a finished piece.

    Attributes:
      number: number of the piece.
      num_records: number of records.
      num_random_next: number of records with a random next sentence.
      num_bytes: size of the file.
      labels: dict, id -> number of masked tokens with this label.
      lengths: dict, tokens of a sequence -> number of sequences.
    """

    number: int
    num_records: int
    num_random_next: int
    num_bytes: int
    labels: dict[int, int]
    lengths: dict[int, int]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Return the facts written by `make_piece_maker`."""
        return cls.from_dict(files.read_json(path, "facts of record files"))

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Self:
        """Return the facts from the JSON form of `dataclasses.asdict`."""
        for name in ("labels", "lengths"):
            saved[name] = {int(key): count for key, count in saved[name].items()}
        return cls(**saved)

    def in_short(self) -> Self:
        """Return the facts without the counts, which need a megabyte of memory."""
        return dataclasses.replace(self, labels={}, lengths={})


def count_pieces(num_tokens: int, num_shards: int, settings: InstanceSettings) -> int:
    """Return the number of pieces per record file.

    Args:
      num_tokens: tokens of the corpus.
      num_shards: number of record files.
      settings: `InstanceSettings`.
    """
    num_bytes = estimate.bytes_of_records(num_tokens, settings)
    return max(1, -(-int(num_bytes) // (num_shards * PIECE_BYTES)))


def make_piece_maker(
    paths: Sequence[str],
    sizes: Sequence[BlockSize],
    settings: InstanceSettings,
    ids: masking.MaskingIds,
) -> Callable[[Piece], PieceFacts]:
    """Return the function that makes one piece, for `workers.run_tasks`.

    It returns the facts of the piece in short form; its file has all of them.

    Args:
      paths: list of str, the files of a `TokenStore`.
      sizes: list of `token_store.BlockSize`.
      settings: `InstanceSettings`.
      ids: `masking.MaskingIds`.
    """
    store = TokenStore(paths, sizes)

    def make(piece):
        instances = _piece_instances(store, piece, settings, ids)
        records, facts = shuffled_records(piece.number, instances, settings, ids)
        facts = dataclasses.replace(facts, num_bytes=_write(piece, records))
        files.write_text(piece.facts_path, json.dumps(vars(facts)))
        return facts.in_short()

    return make


def shuffled_records(
    number: int,
    instances: Iterable[TrainingInstance],
    settings: InstanceSettings,
    ids: masking.MaskingIds,
) -> tuple[list[bytes], PieceFacts]:
    """Encode the instances of a piece and shuffle them.

    Args:
      number: number of the piece.
      instances: iterable of `TrainingInstance`.
      settings: `InstanceSettings`.
      ids: `masking.MaskingIds`.

    Returns:
      (list of bytes, `PieceFacts` without the size of the file).
    """
    encode = make_encoder(
        settings.max_seq_length,
        settings.max_predictions_per_seq,
        max(ids.vocab_ids) + 1,
    )
    records, num_random_next = [], 0
    labels: collections.Counter[int] = collections.Counter()
    lengths: collections.Counter[int] = collections.Counter()
    for instance in instances:
        records.append(encode(instance))
        num_random_next += instance.is_random_next
        labels.update(instance.labels())
        lengths[len(instance.input_ids)] += 1
    seed = f"{settings.random_seed}/{number}".encode()
    rng = random.Random(int.from_bytes(hashlib.blake2b(seed).digest(), "big"))
    masking.shuffle(records, rng)
    counts = dict(labels), dict(lengths)
    return records, PieceFacts(number, len(records), num_random_next, 0, *counts)


def _piece_instances(store, piece, settings, ids):
    """Yield the instances of a piece, before shuffling."""
    num_documents = store.num_documents
    pairs = index_permutation.permuted(
        np.arange(piece.first, piece.end),
        num_documents * settings.dupe_factor,
        settings.random_seed,
    )
    # Read in the order of the disk.
    for pair in sorted(pairs.tolist(), key=lambda pair: pair % num_documents):
        pass_number, document = divmod(pair, num_documents)
        yield from _document_instances(store, document, pass_number, settings, ids)


def _document_instances(store, document, pass_number, settings, ids):
    """Yield the instances of one pass over one document."""
    starts = store.starts_of(document)
    base = starts[0]
    tokens = store.tokens_of(document, base, starts[-1])
    for plan in planned_instances.plan_document(
        starts, document, store.num_documents, pass_number, settings
    ):
        a_end = starts[plan.a_end] - base
        tokens_a = tokens[starts[plan.start] - base : a_end]
        if plan.other == planned_instances.NEXT:
            tokens_b = tokens[a_end : starts[plan.end] - base]
        else:
            others = store.starts_of(plan.other)
            first, end = planned_instances.sentences_of_b(others, plan)
            tokens_b = store.tokens_of(plan.other, others[first], others[end])
        yield planned_instances.finish(plan, tokens_a, tokens_b, settings, ids)


def _write(piece, records):
    """Write the records; return the size of the file."""
    with files.atomic_path(piece.path) as temporary:
        return tfrecord.write_records(records, temporary, piece.path)
