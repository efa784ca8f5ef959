"""What Beam's workers do to make records: plain functions, one for each step.

They do with the parts of a corpus what `corpus_encoding`, `record_pieces` and
`shards` do on one machine, by the same rules, so that the same records come
out. Texts and their requests for random texts meet by the document's number.

A document travels as (where its sentences begin, its tokens), both as bytes;
an instance as (document, place, number, *TrainingInstance): the first three
tell its place in a piece before that is shuffled.
"""

import array
import dataclasses
import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from official_bert.corpus import readers, text_blocks
from official_bert.corpus.report.statistics import CorpusStatistics
from official_bert.data import (
    index_permutation,
    masking,
    planned_instances,
    pretraining_data,
)
from official_bert.data.instances import InstanceSettings, TrainingInstance
from official_bert.data.records import tfrecord
from official_bert.engines import corpus_encoding, record_pieces
from official_bert.engines.beam import files as beam_files
from official_bert.engines.beam import runs as beam_runs
from official_bert.tokenization.full import FullTokenizer

FACTS, SIZES, REQUESTS = "facts", "sizes", "requests"

# What is known of some blocks; (unit, number) of a block; a document that travels.
Facts = tuple[CorpusStatistics, readers.LineCounts, int]
BlockKey = tuple[int, int]
Packed = tuple[bytes, bytes]


@dataclasses.dataclass(frozen=True)
class Job:
    """What is to be made, as far as all workers need to know.

    Attributes:
      input_files: list of paths, for messages.
      output_files: list of paths.
      folder: for what is in between.
      settings: `InstanceSettings`.
      ids: `masking.MaskingIds`.
      token_code: the `array` code of a document's tokens, "H" or "I".
    """

    input_files: list[str]
    output_files: list[str]
    folder: str
    settings: InstanceSettings
    ids: masking.MaskingIds
    token_code: str


class Layout(NamedTuple):
    """How the corpus is divided.

    Attributes:
      first_documents: dict, (unit, number) of a block -> its first document.
      num_documents: D, of the corpus.
      num_pairs: of passes and documents.
      num_pieces: of all record files together.
    """

    first_documents: dict[BlockKey, int]
    num_documents: int
    num_pairs: int
    num_pieces: int

    def piece_of(self, place: int) -> int:
        """Return which piece has the pair at a place, see `shards.make_shards`."""
        return ((place + 1) * self.num_pieces - 1) // self.num_pairs

    def first_pair(self, piece: int) -> int:
        """Return the place of the first pair of a piece."""
        return self.num_pairs * piece // self.num_pieces


def encode_block(
    block: text_blocks.TextBlock,
    encoding: corpus_encoding.Encoding,
    tokenizer: FullTokenizer,
    token_code: str,
) -> Iterator[Any]:
    """Make the ids of a block, see `corpus_encoding.encode_block` and `Job`.

    Yields:
      (block, list of documents); as `SIZES` (block, documents, tokens); as
      `FACTS` (`CorpusStatistics`, `readers.LineCounts`, bytes of text).
    """
    from apache_beam.pvalue import TaggedOutput

    statistics = corpus_encoding.new_statistics(encoding, tokenizer)
    lines = readers.LineCounts()
    documents, num_tokens = [], 0
    for document in corpus_encoding.encode_block(
        block, encoding, tokenizer, statistics, lines
    ):
        starts = list(itertools.accumulate(map(len, document), initial=0))
        tokens = itertools.chain.from_iterable(document)
        documents.append((_pack("I", starts), _pack(token_code, tokens)))
        num_tokens += starts[-1]
    key = block.unit, block.number
    yield key, documents
    yield TaggedOutput(SIZES, (key, len(documents), num_tokens))
    yield TaggedOutput(FACTS, (statistics, lines, block.num_bytes))


def _pack(code, numbers):
    return array.array(code, numbers).tobytes()


def _unpack(code, packed):
    return memoryview(packed).cast(code).tolist()


def merge_facts(facts: Iterable[Facts | None]) -> Facts | None:
    """Merge what is known of blocks; None if there are none."""
    merged, lines, total_bytes = None, readers.LineCounts(), 0
    for statistics, counts, num_bytes in filter(None, facts):
        if merged is None:
            merged = CorpusStatistics(statistics.unknown_id, statistics.max_seq_length)
        merged.merge(statistics)
        lines.add(counts.lines, counts.invalid)
        total_bytes += num_bytes
    return (merged, lines, total_bytes) if merged else None


def facts_as_json(facts: Facts, layout: Layout) -> str:
    """Return merged facts, and how much there should be, as a line of JSON."""
    statistics, lines, num_bytes = facts
    return json.dumps(
        {
            "statistics": statistics.to_dict(),
            "lines": dataclasses.asdict(lines),
            "num_bytes": num_bytes,
            "num_documents": layout.num_documents,
            "num_pieces": layout.num_pieces,
        }
    )


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


def number_documents(
    encoded: tuple[BlockKey, list[Packed]], layout: Layout, settings: InstanceSettings
) -> Iterator[tuple[int, tuple[Packed, list[int]]]]:
    """Yield (number, (document, places of its passes in the order)) of a block."""
    block, documents = encoded
    numbers = layout.first_documents[block] + np.arange(len(documents))
    passes = np.arange(settings.dupe_factor) * layout.num_documents
    places = index_permutation.places_of(
        numbers[:, None] + passes, layout.num_pairs, settings.random_seed
    )
    yield from zip(
        numbers.tolist(), zip(documents, places.tolist(), strict=True), strict=True
    )


def plan_document(
    numbered: tuple[int, tuple[Packed, list[int]]], layout: Layout, job: Job
) -> Iterator[Any]:
    """Plan all passes over a document, and make what needs no other text.

    Args:
      numbered: as `number_documents` yields it.
      layout: `Layout`.
      job: `Job`.

    Yields:
      (piece, instance), and for each pass (piece, number of its instances); as
      `REQUESTS` (other document, (piece, place, plan, tokens_a)).
    """
    from apache_beam.pvalue import TaggedOutput

    number, ((starts, tokens), places) = numbered
    starts, tokens = _unpack("I", starts), _unpack(job.token_code, tokens)
    for pass_number, place in enumerate(places):
        piece = layout.piece_of(place)
        plans = planned_instances.plan_document(
            starts, number, layout.num_documents, pass_number, job.settings
        )
        yield piece, len(plans)
        for plan in plans:
            a_end = starts[plan.a_end]
            tokens_a = tokens[starts[plan.start] : a_end]
            if plan.other == planned_instances.NEXT:
                tokens_b = tokens[a_end : starts[plan.end]]
                yield piece, _instance(plan, place, tokens_a, tokens_b, job)
            else:
                request = piece, place, tuple(plan), tokens_a
                yield TaggedOutput(REQUESTS, (plan.other, request))


def answer_requests(
    met: tuple[int, dict[str, Any]], job: Job
) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Yield (piece, instance) for the requests that met their document."""
    _, both = met
    # One, or there would be no requests for it.
    (((starts, tokens), _),) = both["documents"]
    starts, tokens = _unpack("I", starts), _unpack(job.token_code, tokens)
    for piece, place, plan, tokens_a in both["requests"]:
        plan = planned_instances.PairPlan(*plan)
        first, end = planned_instances.sentences_of_b(starts, plan)
        tokens_b = tokens[starts[first] : starts[end]]
        yield piece, _instance(plan, place, tokens_a, tokens_b, job)


def _instance(plan, place, tokens_a, tokens_b, job):
    instance = planned_instances.finish(plan, tokens_a, tokens_b, job.settings, job.ids)
    return plan.document, place, plan.number, *instance


def write_piece(
    collected: tuple[int, Iterable[Any]], layout: Layout, job: Job
) -> tuple[int, dict[str, Any]]:
    """Write the records of a piece; return (shard, facts as a dict)."""
    number, values = collected
    instances = _complete_instances(number, values, layout)
    shard = number * len(job.output_files) // layout.num_pieces
    instances = (TrainingInstance(*instance[3:]) for instance in instances)
    records, facts = record_pieces.shuffled_records(
        number, instances, job.settings, job.ids
    )
    num_bytes = 0
    packed = tfrecord.is_packed(job.output_files[shard])
    with beam_files.written(_piece_path(job, number)) as file:
        for data in tfrecord.framed_records(records, packed):
            file.write(data)
            num_bytes += len(data)
    return shard, dataclasses.asdict(dataclasses.replace(facts, num_bytes=num_bytes))


def _complete_instances(piece, values, layout):
    """Return the instances of a piece, in order, if all of them are there."""
    values = [value for value in values if value is not None]
    instances = [value for value in values if isinstance(value, tuple)]
    counts = [value for value in values if not isinstance(value, tuple)]
    num_pairs = layout.first_pair(piece + 1) - layout.first_pair(piece)
    beam_runs.check_complete(len(counts), num_pairs, "document passes")
    beam_runs.check_complete(len(instances), sum(counts), "instances")
    return sorted(instances, key=lambda instance: instance[:3])


def join_pieces(
    collected: tuple[int, Iterable[dict[str, Any]]], layout: Layout, job: Job
) -> Iterator[str]:
    """Write a record file of its pieces; yield their facts as lines of JSON."""
    shard, facts = collected
    facts = sorted(facts, key=lambda piece: piece["number"])
    pieces_per_shard = layout.num_pieces // len(job.output_files)
    beam_runs.check_complete(len(facts), pieces_per_shard, "pieces")
    with beam_files.written(job.output_files[shard]) as file:
        for piece in facts:
            beam_files.append(_piece_path(job, piece["number"]), file)
    return map(json.dumps, facts)


def _piece_path(job, number):
    return f"{job.folder}/{number:06d}.records"
