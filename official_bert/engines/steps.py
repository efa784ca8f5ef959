"""The steps of a cluster's workers to make records: plain functions.

They process the parts of a corpus by the same rules as `corpus_encoding`,
`record_pieces` and `shards` do on one machine, so the records are the same.
Apache Beam and Apache Spark run these steps. A step with several kinds of
results yields (kind, result).

A document is sent as (starts of its sentences, its tokens), both as bytes. An
instance is sent as a `Pair`, and the worker that writes its piece masks it.
"""

import array
import dataclasses
import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from official_bert.corpus import readers, text_blocks
from official_bert.corpus.report.statistics import CorpusStatistics
from official_bert.data import index_permutation, planned_instances
from official_bert.data.instances import InstanceSettings
from official_bert.data.records import tfrecord
from official_bert.engines import arrivals, corpus_encoding, record_pieces
from official_bert.engines.cluster_job import BlockKey, Facts, Job, Layout, Packed, Pair
from official_bert.tokenization.full import FullTokenizer

# Kinds of results.
DOCUMENTS, SIZES, FACTS = "documents", "sizes", "facts"
INSTANCES, REQUESTS = "instances", "requests"


def encode_block(
    block: text_blocks.TextBlock,
    encoding: corpus_encoding.Encoding,
    tokenizer: FullTokenizer,
    token_code: str,
) -> Iterator[Any]:
    """Convert a block to ids; see `corpus_encoding.encode_block` and `Job`.

    Yields:
      `DOCUMENTS`: (block, list of documents); `SIZES`: (block, documents,
        tokens);
      `FACTS`: (`CorpusStatistics`, `readers.LineCounts`, bytes of text).
    """
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
    yield DOCUMENTS, (key, documents)
    yield SIZES, (key, len(documents), num_tokens)
    yield FACTS, (statistics, lines, block.num_bytes)


def _pack(code, numbers):
    return array.array(code, numbers).tobytes()


def _unpack(code, packed):
    return memoryview(packed).cast(code).tolist()


def merge_facts(facts: Iterable[Facts | None]) -> Facts | None:
    """Merge the facts of blocks; return None if there are none."""
    merged, lines, total_bytes = None, readers.LineCounts(), 0
    for statistics, counts, num_bytes in filter(None, facts):
        if merged is None:
            merged = CorpusStatistics(statistics.unknown_id, statistics.max_seq_length)
        merged.merge(statistics)
        lines.add(counts.lines, counts.invalid)
        total_bytes += num_bytes
    return (merged, lines, total_bytes) if merged else None


def facts_as_json(facts: Facts, layout: Layout) -> str:
    """Return merged facts, with the expected totals, as a line of JSON."""
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


def number_documents(
    encoded: tuple[BlockKey, list[Packed]], layout: Layout, settings: InstanceSettings
) -> Iterator[tuple[int, tuple[Packed, list[int]]]]:
    """Yield (number, (document, positions of its passes in the order)) of a block."""
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
    """Plan all passes over a document, and make pairs that need no other text.

    Args:
      numbered: a value from `number_documents`.
      layout: `Layout`.
      job: `Job`.

    Yields:
      `INSTANCES`: (piece, `Pair`), and for each pass (piece, number of its
      instances); `REQUESTS`: (other document, (piece, `Pair` without B)).
    """
    number, ((starts, tokens), places) = numbered
    starts, tokens = _unpack("I", starts), _unpack(job.token_code, tokens)
    for pass_number, place in enumerate(places):
        piece = layout.piece_of(place)
        plans = planned_instances.plan_document(
            starts, number, layout.num_documents, pass_number, job.settings
        )
        yield INSTANCES, (piece, len(plans))
        for plan in plans:
            a_end = starts[plan.a_end]
            tokens_a = _pack(job.token_code, tokens[starts[plan.start] : a_end])
            pair = Pair(number, place, plan.number, tuple(plan), tokens_a, b"")
            if plan.other == planned_instances.NEXT:
                tokens_b = _pack(job.token_code, tokens[a_end : starts[plan.end]])
                yield INSTANCES, (piece, pair._replace(tokens_b=tokens_b))
            else:
                yield REQUESTS, (plan.other, (piece, pair))


def answer_requests(
    met: tuple[int, dict[str, Any]], job: Job
) -> Iterator[tuple[int, Pair]]:
    """Yield (piece, `Pair`) for requests that were joined with their document."""
    _, both = met
    # Exactly one; otherwise it would have no requests.
    (((starts, tokens), _),) = both["documents"]
    starts = _unpack("I", starts)
    size = array.array(job.token_code).itemsize
    for piece, pair in both["requests"]:
        plan = planned_instances.PairPlan(*pair.plan)
        first, end = planned_instances.sentences_of_b(starts, plan)
        tokens_b = tokens[starts[first] * size : starts[end] * size]
        yield piece, pair._replace(tokens_b=tokens_b)


def _finish(pair, job):
    """Return the `TrainingInstance` of a `Pair`."""
    return planned_instances.finish(
        planned_instances.PairPlan(*pair.plan),
        _unpack(job.token_code, pair.tokens_a),
        _unpack(job.token_code, pair.tokens_b),
        job.settings,
        job.ids,
    )


def write_piece(
    collected: tuple[int, Iterable[Any]], layout: Layout, job: Job
) -> tuple[int, dict[str, Any]]:
    """Write the records of a piece; return (shard, facts as a dict)."""
    number, values = collected
    pairs = _complete_pairs(number, values, layout)
    shard = number * len(job.output_files) // layout.num_pieces
    instances = (_finish(pair, job) for pair in pairs)
    records, facts = record_pieces.shuffled_records(
        number, instances, job.settings, job.ids
    )
    num_bytes = 0
    packed = tfrecord.is_packed(job.output_files[shard])
    with job.storage.written(_piece_path(job, number)) as file:
        for data in tfrecord.framed_records(records, packed):
            file.write(data)
            num_bytes += len(data)
    return shard, dataclasses.asdict(dataclasses.replace(facts, num_bytes=num_bytes))


def _complete_pairs(piece, values, layout):
    """Return the `Pair`s of a piece in order, after checking that all are there."""
    values = [value for value in values if value is not None]
    pairs = [value for value in values if isinstance(value, tuple)]
    counts = [value for value in values if not isinstance(value, tuple)]
    num_pairs = layout.first_pair(piece + 1) - layout.first_pair(piece)
    arrivals.check_complete(len(counts), num_pairs, "document passes")
    arrivals.check_complete(len(pairs), sum(counts), "instances")
    return sorted(pairs, key=lambda pair: pair[:3])


def join_pieces(
    collected: tuple[int, Iterable[dict[str, Any]]], layout: Layout, job: Job
) -> Iterator[str]:
    """Write a record file from its pieces; yield their facts as lines of JSON."""
    shard, facts = collected
    facts = sorted(facts, key=lambda piece: piece["number"])
    pieces_per_shard = layout.num_pieces // len(job.output_files)
    arrivals.check_complete(len(facts), pieces_per_shard, "pieces")
    with job.storage.written(job.output_files[shard]) as file:
        for piece in facts:
            job.storage.append(_piece_path(job, piece["number"]), file)
    return map(json.dumps, facts)


def _piece_path(job, number):
    return f"{job.folder}/{number:06d}.records"
