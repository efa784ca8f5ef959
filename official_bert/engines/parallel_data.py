"""Make record files from text of any size: bounded memory, many processes.

Text becomes ids on disk (`corpus_encoding`), ids become pieces of records
(`record_pieces`), and pieces become files (`shards`). Finished parts stay in a
work folder next to the output until everything is done, so a killed run resumes
from there. The output bytes depend only on the text and the settings, not on
the number of processes or on kills.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable
from typing import Any

from absl import logging

from official_bert import files, given_paths
from official_bert.corpus.progress import progress
from official_bert.corpus.report import report as corpus_report
from official_bert.corpus.report.statistics import CorpusStatistics
from official_bert.data import estimate, masking, pretraining_data
from official_bert.data.instances import InstanceSettings
from official_bert.data.records import manifest, tfrecord
from official_bert.engines import corpus_encoding, record_pieces, shards, workers
from official_bert.errors import UserError
from official_bert.tokenization.full import FullTokenizer


def create_pretraining_data(
    input_files: list[str],
    output_files: list[str],
    tokenizer: FullTokenizer,
    settings: InstanceSettings,
    vocab_file: str,
    input_format: str = "lines",
    num_workers: int = 1,
) -> dict[str, dict[str, Any]]:
    """Write the training instances of text files as TFRecords.

    This is `pretraining_data.create_pretraining_data` with other random draws;
    see `planned_instances`. Arguments, result and errors are the same, with
    these differences: In `input_files`, `-` is the standard input. The end of a
    file always ends a document. Each record file appears as soon as it is
    complete. The records do not depend on the number of processes,
    `num_workers`. `UserError` is also raised if another run uses the same
    output.
    """
    if num_workers < 1:
        raise UserError(f"--num_workers is {num_workers}; it must be at least 1.")
    pretraining_data.check_output_files(output_files, [*input_files, vocab_file])
    encoding = corpus_encoding.Encoding.of(
        vocab_file, tokenizer, settings, input_format, input_files, files.size
    )
    folder = _work_folder(output_files[0])
    parents = given_paths.made_parents(output_files, "--output_file")
    with parents, _work_folder_held(folder):
        corpus = corpus_encoding.encode_corpus(
            input_files, encoding, os.path.join(folder, "blocks"), num_workers
        )
        try:
            num_documents = corpus.num_documents
            pretraining_data.check_documents(num_documents, input_files, settings)
            if settings.always_follows(num_documents):
                num_sentences = sum(size.sentences for size in corpus.sizes)
                pretraining_data.check_records(num_sentences - num_documents)
        except UserError:
            # A resumed run would fail here again.
            shutil.rmtree(folder)
            raise
        done = _make_records(
            corpus, output_files, tokenizer, settings, folder, num_workers
        )
        pieces = (
            (shard.path, record_pieces.PieceFacts.read(piece.facts_path))
            for shard in done
            for piece in shard.pieces
        )
        entries = describe(
            pieces, output_files, corpus.statistics, tokenizer, settings, vocab_file
        )
        manifest.write_manifest(entries)
        shutil.rmtree(folder)
    num_records = sum(entry["num_records"] for entry in entries.values())
    logging.info("%d records in %s", num_records, given_paths.named(output_files))
    corpus_report.write_report(corpus.statistics, tokenizer, output_files[0])
    return entries


def _work_folder(output_file):
    """Return the work folder; it is on a local disk, because pieces grow."""
    if not files.is_remote(output_file):
        return f"{output_file}.work"
    name = hashlib.sha256(output_file.encode()).hexdigest()[:16]
    return os.path.join(tempfile.gettempdir(), f"official_bert-{name}.work")


@contextlib.contextmanager
def _work_folder_held(folder):
    """Lock the work folder; log a message if finished parts stay in it."""
    files.make_directory(folder, "--output_file")
    with files.locked_directory(folder, "--output_file"):
        try:
            yield
        finally:
            _leave(folder)


def _leave(folder):
    """Remove a work folder without finished parts."""
    if not os.path.isdir(folder):
        return
    if any(".json" in name for *_, names in os.walk(folder) for name in names):
        logging.info(
            "Finished parts are in %s. Repeat the command to resume from there.", folder
        )
    else:
        shutil.rmtree(folder, ignore_errors=True)


def _make_records(corpus, output_files, tokenizer, settings, folder, num_workers):
    """Write all files; return the `Shard`s."""
    folder = os.path.join(folder, "pieces")
    _keep_if_same(folder, corpus, settings, output_files)
    num_tokens = sum(size.tokens for size in corpus.sizes)
    num_pairs = corpus.num_documents * settings.dupe_factor
    per_shard = record_pieces.count_pieces(num_tokens, len(output_files), settings)
    made = shards.make_shards(output_files, folder, per_shard, num_pairs)
    missing = {piece.number: piece for shard in made for piece in shard.missing()}
    ids = masking.MaskingIds.of(tokenizer.vocab)
    inputs = corpus.paths, corpus.sizes, settings, ids
    left = sum(piece.end - piece.first for piece in missing.values()) / num_pairs
    if not any(map(tfrecord.is_packed, output_files)):
        num_bytes = left * estimate.bytes_of_records(num_tokens, settings)
        estimate.warn_of_disk(num_bytes, output_files[0])
    with progress(corpus.num_bytes, "creating records", "B", "documents") as update:
        update(corpus.num_bytes * (1 - left))
        for facts in workers.run_tasks(
            record_pieces.make_piece_maker, inputs, missing.values(), num_workers
        ):
            made[facts.number // per_shard].add(facts)
            piece = missing[facts.number]
            share = (piece.end - piece.first) / num_pairs
            update(corpus.num_bytes * share, corpus.num_documents * share)
    return made


def _keep_if_same(folder, corpus, settings, output_files):
    """Empty the folder of pieces if they belong to other text or settings."""
    made_of = {
        "format": record_pieces.FORMAT,
        "corpus": corpus.digest,
        "settings": dataclasses.asdict(settings),
        "output_files": list(map(files.absolute, output_files)),
    }
    text = json.dumps(made_of, sort_keys=True).encode()
    digest = {"sha256": hashlib.sha256(text).hexdigest()}
    path = os.path.join(folder, "made_of.json")
    if os.path.exists(path):
        if files.read_json(path, "the source of records") == digest:
            files.remove_leftovers(folder)
            return
        logging.info(
            "%s has records of other text or settings; starting again.", folder
        )
    shutil.rmtree(folder, ignore_errors=True)
    files.make_directory(folder, "--output_file")
    files.write_json(path, digest)


def describe(
    pieces: Iterable[tuple[str, record_pieces.PieceFacts]],
    output_files: Iterable[str],
    statistics: CorpusStatistics,
    tokenizer: FullTokenizer,
    settings: InstanceSettings,
    vocab_file: str,
) -> dict[str, dict[str, Any]]:
    """Return the manifest's entry for each file.

    Args:
      pieces: iterable of (path, `PieceFacts` of a piece of that file).
      output_files: list of paths.
      statistics: `CorpusStatistics`; the lengths of the sequences are added.
      tokenizer: `FullTokenizer`.
      settings: `instances.InstanceSettings`.
      vocab_file: path of its vocabulary.

    Raises:
      UserError: there are no records.
    """
    num_records: Counter[str] = Counter()
    num_bytes: Counter[str] = Counter()
    num_random_next = 0
    labels = [0] * len(tokenizer.vocab)
    for path, facts in pieces:
        num_records[path] += facts.num_records
        num_bytes[path] += facts.num_bytes
        num_random_next += facts.num_random_next
        for label, count in facts.labels.items():
            labels[label] += count
        statistics.sequence_lengths.update(facts.lengths)
    pretraining_data.check_records(num_records.total())
    share_random_next = num_random_next / num_records.total()
    entry = pretraining_data.describe(
        settings, tokenizer, vocab_file, statistics, share_random_next, labels
    )
    return {
        path: {"num_records": num_records[path], **entry, "num_bytes": num_bytes[path]}
        for path in output_files
    }
