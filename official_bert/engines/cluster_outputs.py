"""The beginning and the end of a job on a cluster: paths, manifest, report.

Paths with `://` belong to the cluster's storage. Workers can reach it and all
other paths, which are in a shared folder or on this machine.
"""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from absl import logging

from official_bert import files, given_paths
from official_bert.corpus import readers, text_blocks
from official_bert.corpus.report import report as corpus_report
from official_bert.corpus.report.statistics import CorpusStatistics
from official_bert.data import masking, pretraining_data
from official_bert.data.instances import InstanceSettings
from official_bert.data.records import manifest
from official_bert.engines import arrivals, parallel_data, record_pieces, token_store
from official_bert.engines.cluster_job import Job, Storage
from official_bert.errors import UserError
from official_bert.files import is_remote
from official_bert.tokenization.full import FullTokenizer


def find_inputs(
    patterns: str | Iterable[str],
    flag: str,
    runner: str,
    match: Callable[[str, str], list[str]],
) -> list[str]:
    """Return the paths for names and globs.

    Args:
      patterns: names and globs, a list or separated by commas.
      flag: the flag with the patterns, for messages.
      runner: the value of `--runner`, for messages.
      match: function (pattern, flag) -> paths for a remote glob.

    Raises:
      UserError: no file matches, or the input is the standard input, which only
        the local engine can read.
    """
    paths: list[str] = []
    for pattern in given_paths.split_list(patterns) or [""]:
        if pattern == text_blocks.STANDARD_INPUT:
            raise UserError(
                f"{flag}: --runner={runner} cannot read the standard input. "
                "Give files, or remove --runner."
            )
        if is_remote(pattern):
            paths += match(pattern, flag)
        else:
            # Workers may have another working folder.
            paths += map(os.path.abspath, readers.find_inputs([pattern], flag))
    return paths


def check_output_files(
    output_files: Sequence[str], input_files: Sequence[str] = ()
) -> None:
    """Raise `UserError` if a path is known to be unwritable."""
    remote = [path for path in output_files if is_remote(path)]
    if len(remote) != len(set(remote)):
        raise UserError("--output_file contains a file twice. Give each file once.")
    if set(remote) & set(input_files):
        raise UserError("--output_file contains an input file. Choose another name.")
    if len(remote) < len(output_files) or not output_files:
        local = [path for path in output_files if not is_remote(path)]
        pretraining_data.check_output_files(local, input_files)


def make_job(
    input_files: list[str],
    output_files: list[str],
    folder: str,
    settings: InstanceSettings,
    tokenizer: FullTokenizer,
    storage: Storage,
) -> Job:
    """Return the `Job` that makes record files."""
    highest = token_store.highest_token(tokenizer, settings.do_whole_word_mask)
    ids = masking.MaskingIds.of(tokenizer.vocab)
    code = token_store.code_of(highest)
    return Job(input_files, output_files, folder, settings, ids, code, storage)


def describe(
    job: Job,
    facts: dict[str, Any],
    pieces: Iterable[dict[str, Any]],
    tokenizer: FullTokenizer,
    vocab_file: str,
) -> dict[str, dict[str, Any]]:
    """Check that all data has arrived; write the manifest and the report.

    Args:
      job: `Job` whose record files are written.
      facts: the merged facts of all blocks, from `steps.facts_as_json`.
      pieces: the facts of each piece, as dicts; read one at a time.
      tokenizer: `FullTokenizer`.
      vocab_file: path of its vocabulary.

    Returns:
      the manifest's entry for each file.

    Raises:
      UserError: the cluster has lost data, or there are no records.
    """
    statistics = CorpusStatistics.from_dict(facts["statistics"])
    readers.LineCounts(**facts["lines"]).warn(given_paths.named(job.input_files))
    num_documents = statistics.counts["documents"]
    arrivals.check_text_complete(
        facts["num_bytes"], job.input_files, job.storage.size_of
    )
    arrivals.check_complete(num_documents, facts["num_documents"], "documents")
    pretraining_data.check_documents(num_documents, job.input_files, job.settings)
    entries = parallel_data.describe(
        _pieces_of_files(job, pieces, facts["num_pieces"]),
        job.output_files,
        statistics,
        tokenizer,
        job.settings,
        vocab_file,
    )
    _write_descriptions(entries, statistics, tokenizer, job.storage)
    return entries


def _pieces_of_files(job, pieces, num_pieces):
    """Yield (path of the file, `PieceFacts`) for each piece."""
    num_read = 0
    for piece in pieces:
        shard = piece["number"] * len(job.output_files) // num_pieces
        yield job.output_files[shard], record_pieces.PieceFacts.from_dict(piece)
        num_read += 1
    arrivals.check_complete(num_read, num_pieces, "pieces")


def write_beside(
    storage: Storage,
    output_file: str,
    ending: str,
    write: Callable[..., object],
    *arguments: Any,
) -> None:
    """Call `write(path, *arguments)` for a file next to an output, local or remote."""
    folder, name = os.path.split(files.absolute(output_file))
    with _local_copy(storage, folder) as local:
        write(f"{local}/{name}{ending}", *arguments)


def _write_descriptions(entries, statistics, tokenizer, storage):
    """Write the manifest and the report next to the record files."""
    for folder in dict.fromkeys(map(os.path.dirname, entries)):
        with _local_copy(storage, folder, manifest.NAME) as local:
            manifest.write_manifest(
                {
                    f"{local}/{os.path.basename(path)}": entry
                    for path, entry in entries.items()
                    if os.path.dirname(path) == folder
                }
            )
    num_records = sum(entry["num_records"] for entry in entries.values())
    logging.info("%d records in %s", num_records, given_paths.named(entries))
    write_beside(
        storage,
        next(iter(entries)),
        "",
        lambda path: corpus_report.write_report(statistics, tokenizer, path),
    )


@contextlib.contextmanager
def _local_copy(storage: Storage, folder: str, *names: str) -> Iterator[str]:
    """Yield a folder that can be written like a local one.

    For a remote folder, this is a temporary folder with copies of its files
    `names`; at the end, all files in it are copied to the remote folder.
    """
    if not is_remote(folder):
        yield folder
        return
    with tempfile.TemporaryDirectory() as local:
        for name in names:
            storage.fetch(f"{folder}/{name}", f"{local}/{name}")
        yield local
        for name in os.listdir(local):
            storage.send(f"{local}/{name}", f"{folder}/{name}")
