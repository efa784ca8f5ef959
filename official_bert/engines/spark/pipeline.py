"""Make record files from text of any size with jobs of Apache Spark.

The steps are those of `engines/steps.py`, and so are the records: the same text
and settings give the same files on any cluster. Ids of blocks and finished
pieces are files in a temporary folder next to the output. Spark shuffles only
pairs that need the text of another document, and the pairs of a piece.
"""

import bisect
import itertools
import json
import pickle
from typing import Any

from absl import logging

from official_bert import files, given_paths
from official_bert.data.instances import InstanceSettings
from official_bert.engines import (
    arrivals,
    cluster_job,
    cluster_outputs,
    corpus_encoding,
    steps,
)
from official_bert.engines.cluster_job import Pair
from official_bert.engines.spark import files as spark_files
from official_bert.engines.spark import session, tables
from official_bert.engines.spark.files import STORAGE
from official_bert.tokenization.full import FullTokenizer

# Table schemas: sizes of blocks; values for the block with the document
# `other`; values for a piece; finished pieces or files. `steps.write_piece`
# collects the values: a `Pair`, a number of instances, or None.
SIZES = "unit long, number long, documents long, tokens long"
PLANNED = "block long, other long, piece long, value binary"
ANSWERED = "piece long, value binary"
FINISHED = "number long"
# As a number of documents: the row refers to a file of facts. As `other`: the
# value needs no other document.
NONE = -1


def create_pretraining_data(
    input_files: list[str],
    output_files: list[str],
    tokenizer: FullTokenizer,
    settings: InstanceSettings,
    vocab_file: str,
    input_format: str = "lines",
    *,
    cluster: session.SparkSettings,
) -> dict[str, dict[str, Any]]:
    """Write the training instances of text files as TFRecords.

    Arguments, result and errors are those of the function in
    `pretraining_data`, with these differences: `input_files` are from
    `spark_files.find_inputs`, all workers can reach `output_files`, and
    `cluster` is from `session.make_settings`. `UserError` is also raised if
    Spark cannot run the job.
    """
    cluster_outputs.check_output_files(output_files, [*input_files, vocab_file])
    output_files = [files.absolute(path) for path in output_files]
    encoding = corpus_encoding.Encoding.of(
        vocab_file, tokenizer, settings, input_format, input_files, STORAGE.size_of
    )
    with (
        given_paths.made_parents(output_files, "--output_file"),
        spark_files.temporary_folder(f"{output_files[0]}.spark") as folder,
        session.running(cluster, folder) as spark,
    ):
        job = cluster_outputs.make_job(
            input_files, output_files, folder, settings, tokenizer, STORAGE
        )
        tasks = tables.count_tasks(spark, input_files)
        logging.info("Spark: converting text to ids, %d tasks.", tasks)
        layout, facts = _encode(spark, job, encoding, tokenizer, tasks)
        logging.info("Spark: converting ids to records, %d pieces.", layout.num_pieces)
        _make_pieces(spark, job, layout, tasks)
        _join(spark, job, layout)
        pieces = (
            json.loads(spark_files.read(_facts_path(job, number)))
            for number in range(layout.num_pieces)
        )
        return cluster_outputs.describe(job, facts, pieces, tokenizer, vocab_file)


def _encode(spark, job, encoding, tokenizer, tasks):
    """Write the ids of all blocks; return the `Layout` and the facts as a dict."""
    tables.set_rows_at_once(spark, tables.ONE_ROW)
    blocks = tables.read_blocks(spark, job.input_files, encoding.input_format, tasks)
    rows = tables.map_rows(blocks, _encode_blocks, SIZES, encoding, tokenizer, job)
    sizes, facts = [], None
    for unit, number, documents, tokens in rows.collect():
        if documents == NONE:
            read = pickle.loads(spark_files.read(_path(job, (unit, number), "facts")))
            facts = steps.merge_facts([facts, read])
        else:
            sizes.append(((unit, number), documents, tokens))
    # Raises an error if the files contain no text.
    layout = cluster_job.lay_out(sizes, job)
    assert facts is not None
    return layout, json.loads(steps.facts_as_json(facts, layout))


def _encode_blocks(rows, encoding, tokenizer, job):
    """Write the ids of blocks; yield `SIZES`, and finally a row for the facts file."""
    facts = first = None
    for _, _, packed in rows:
        block = pickle.loads(packed)
        found = dict(steps.encode_block(block, encoding, tokenizer, job.token_code))
        facts = steps.merge_facts([facts, found[steps.FACTS]])
        key, documents = found[steps.DOCUMENTS]
        first = first or key
        with job.storage.written(_path(job, key, "ids")) as file:
            file.write(pickle.dumps(documents))
        _, num_documents, num_tokens = found[steps.SIZES]
        yield *key, num_documents, num_tokens
    if first:
        with job.storage.written(_path(job, first, "facts")) as file:
            file.write(pickle.dumps(facts))
        yield *first, NONE, 0


def _make_pieces(spark, job, layout, tasks):
    """Write all pieces and their facts."""
    tables.set_rows_at_once(spark, tables.ROWS_AT_ONCE)
    keys = sorted(layout.first_documents)
    blocks = tables.numbers(spark, len(keys), tasks)
    planned = tables.map_rows(blocks, _plan_blocks, PLANNED, keys, layout, job)
    asked = planned.repartition(tasks, "block").sortWithinPartitions("block", "other")
    answered = tables.map_rows(asked, _answer, ANSWERED, keys, layout, job)
    num_tasks = min(layout.num_pieces, tables.MOST_TASKS)
    collected = answered.repartition(num_tasks, "piece").sortWithinPartitions("piece")
    done = tables.map_rows(collected, _write_pieces, FINISHED, layout, job).collect()
    arrivals.check_complete(len(set(done)), layout.num_pieces, "pieces")


def _plan_blocks(rows, keys, layout, job):
    """Yield `PLANNED` for the documents of blocks."""
    first_documents = [layout.first_documents[key] for key in keys]
    for (block,) in rows:
        if block == 0:
            # All pieces are listed, since some may have no instances.
            for piece in range(layout.num_pieces):
                yield block, NONE, piece, pickle.dumps(None)
        encoded = keys[block], _read_documents(job, keys[block])
        for numbered in steps.number_documents(encoded, layout, job.settings):
            for kind, (to, value) in steps.plan_document(numbered, layout, job):
                if kind == steps.INSTANCES:
                    yield block, NONE, to, _pack(value)
                else:
                    asked = bisect.bisect_right(first_documents, to) - 1
                    piece, pair = value
                    yield asked, to, piece, _pack(pair)


def _answer(rows, keys, layout, job):
    """Yield `ANSWERED` for `PLANNED`, sorted by block and document."""
    for block, of_block in itertools.groupby(rows, lambda row: row[0]):
        documents = None
        for other, asked in itertools.groupby(of_block, lambda row: row[1]):
            if other == NONE:
                for _, _, piece, value in asked:
                    yield piece, value
                continue
            documents = documents or _read_documents(job, keys[block])
            document = documents[other - layout.first_documents[keys[block]]]
            requests = ((piece, _unpack(value)) for _, _, piece, value in asked)
            met = other, {"documents": [(document, [])], "requests": requests}
            for piece, pair in steps.answer_requests(met, job):
                yield piece, _pack(pair)


def _write_pieces(rows, layout, job):
    """Write the pieces of `ANSWERED`, sorted by piece; yield their numbers."""
    for number, of_piece in itertools.groupby(rows, lambda row: row[0]):
        values = (_unpack(value) for _, value in of_piece)
        _, facts = steps.write_piece((number, values), layout, job)
        with job.storage.written(_facts_path(job, number)) as file:
            file.write(json.dumps(facts).encode())
        yield (number,)


def _join(spark, job, layout):
    """Write all record files from their pieces."""
    count = len(job.output_files)
    files = tables.numbers(spark, count, count)
    done = tables.map_rows(files, _join_files, FINISHED, layout, job).collect()
    arrivals.check_complete(len(set(done)), count, "record files")


def _join_files(rows, layout, job):
    per_file = layout.num_pieces // len(job.output_files)
    for (number,) in rows:
        pieces = range(number * per_file, (number + 1) * per_file)
        steps.join_pieces((number, [{"number": n} for n in pieces]), layout, job)
        yield (number,)


def _pack(value):
    """Return a value as bytes; a `Pair` is stored without its class name."""
    return pickle.dumps(tuple(value) if isinstance(value, Pair) else value)


def _unpack(packed):
    value = pickle.loads(packed)
    return Pair(*value) if isinstance(value, tuple) else value


def _path(job, key, ending):
    """Return the path of a file for a block, or for the blocks starting at it."""
    return f"{job.folder}/{key[0]}-{key[1]}.{ending}"


def _read_documents(job, key):
    return pickle.loads(spark_files.read(_path(job, key, "ids")))


def _facts_path(job, piece):
    return f"{job.folder}/{piece:06d}.json"
