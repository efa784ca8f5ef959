"""Record files from text of any size as an Apache Beam pipeline.

The transformation is that of `parallel_data`, and so are its records: the same
text and settings give the same files, wherever Beam runs. No worker holds more
than a block of text, or a piece of a record file, at a time.
"""

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from absl import logging

from official_bert import files
from official_bert.corpus import readers
from official_bert.corpus.report import report as corpus_report
from official_bert.corpus.report.statistics import CorpusStatistics
from official_bert.data import masking, pretraining_data
from official_bert.data.instances import InstanceSettings
from official_bert.data.records import manifest
from official_bert.engines import (
    corpus_encoding,
    parallel_data,
    record_pieces,
    token_store,
)
from official_bert.engines.beam import files as beam_files
from official_bert.engines.beam import runs as beam_runs
from official_bert.engines.beam import steps as beam_steps
from official_bert.errors import UserError
from official_bert.tokenization.full import FullTokenizer

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions


def create_pretraining_data(
    input_files: list[str],
    output_files: list[str],
    tokenizer: FullTokenizer,
    settings: InstanceSettings,
    vocab_file: str,
    input_format: str = "lines",
    options: "PipelineOptions | None" = None,
) -> dict[str, dict[str, Any]]:
    """Write the training instances of text files as TFRecords.

    Arguments, result and errors are those of `pretraining_data`'s function, but for
    these: `input_files` are from `beam_files.find_inputs`, all workers reach
    `output_files`, and `options` are from `beam_runs.make_options`. It is a
    `UserError`, too, if Beam cannot run this.
    """
    check_output_files(output_files, [*input_files, vocab_file])
    output_files = [beam_files.absolute(path) for path in output_files]
    encoding = corpus_encoding.Encoding.of(
        vocab_file, tokenizer, settings, input_format, input_files, beam_files.size_of
    )
    local = [path for path in output_files if not beam_files.is_remote(path)]
    parents = files.made_parents(local, "--output_file")
    with parents, beam_files.temporary_folder(f"{output_files[0]}.beam") as folder:
        job = beam_steps.Job(
            input_files,
            output_files,
            folder,
            settings,
            masking.MaskingIds.of(tokenizer.vocab),
            token_store.code_of(
                token_store.highest_token(tokenizer, settings.do_whole_word_mask)
            ),
        )
        logging.info("Making records with Apache Beam.")
        beam_runs.run_pipeline(
            options, lambda pipeline: _build(pipeline, job, encoding, tokenizer)
        )
        statistics, num_pieces = _read_statistics(job)
        pretraining_data.check_documents(
            statistics.counts["documents"], input_files, settings
        )
        entries = parallel_data.describe(
            _read_pieces(job, num_pieces),
            output_files,
            statistics,
            tokenizer,
            settings,
            vocab_file,
        )
    _write_descriptions(entries, statistics, tokenizer)
    return entries


def check_output_files(
    output_files: Sequence[str], input_files: Sequence[str] = ()
) -> None:
    """Raise `UserError` unless these paths can be written, as far as we know."""
    remote = [path for path in output_files if beam_files.is_remote(path)]
    if len(remote) != len(set(remote)):
        raise UserError("--output_file names a file twice.")
    if set(remote) & set(input_files):
        raise UserError("--output_file names an input; name another file.")
    if len(remote) < len(output_files) or not output_files:
        local = [path for path in output_files if not beam_files.is_remote(path)]
        pretraining_data.check_output_files(local, input_files)


def _build(pipeline, job, encoding, tokenizer):
    """Add all steps to a `beam.Pipeline`."""
    import apache_beam as beam
    from apache_beam.typehints.decorators import no_annotations

    # Beam would choose coders by annotations, which are for readers here.
    text = beam_runs.read_blocks(pipeline, job.input_files, encoding.input_format)
    encoded = text | "Encode block" >> beam.FlatMap(
        no_annotations(beam_steps.encode_block), encoding, tokenizer, job.token_code
    ).with_outputs(beam_steps.SIZES, beam_steps.FACTS, main="documents")
    layout = beam.pvalue.AsSingleton(
        encoded[beam_steps.SIZES]
        | "List blocks" >> beam.CombineGlobally(beam.combiners.ToListCombineFn())
        | "Lay out" >> beam.Map(no_annotations(beam_steps.lay_out), job)
    )
    _ = (
        encoded[beam_steps.FACTS]
        | "Merge facts" >> beam.CombineGlobally(no_annotations(beam_steps.merge_facts))
        | "Known facts" >> beam.Filter(bool)
        | "As JSON" >> beam.Map(no_annotations(beam_steps.facts_as_json), layout)
        | "Write facts"
        >> beam.io.WriteToText(f"{job.folder}/facts", shard_name_template="")
    )
    documents = (
        encoded["documents"]
        # Encoding is done once, whoever asks for what it made.
        | "Spread ids" >> beam.Reshuffle()
        | "Number documents"
        >> beam.FlatMap(
            no_annotations(beam_steps.number_documents), layout, job.settings
        )
    )
    planned = documents | "Plan" >> beam.FlatMap(
        no_annotations(beam_steps.plan_document), layout, job
    ).with_outputs(beam_steps.REQUESTS, main="instances")
    answered = (
        {"documents": documents, "requests": planned[beam_steps.REQUESTS]}
        | "Meet" >> beam.CoGroupByKey()
        | "Answer" >> beam.FlatMap(no_annotations(beam_steps.answer_requests), job)
    )
    _write_records(pipeline, (planned["instances"], answered), layout, job)


def _write_records(pipeline, instances, layout, job):
    """Write pieces, record files, and the facts of the pieces."""
    import apache_beam as beam
    from apache_beam.typehints.decorators import no_annotations

    pieces = (
        pipeline
        | "Start" >> beam.Create([None])
        # All are named, since one may have no instances.
        | "Name pieces"
        >> beam.FlatMap(
            lambda _, layout: [(piece, None) for piece in range(layout.num_pieces)],
            layout,
        )
    )
    _ = (
        (*instances, pieces)
        | "All instances" >> beam.Flatten()
        | "Collect pieces" >> beam.GroupByKey()
        | "Write piece" >> beam.Map(no_annotations(beam_steps.write_piece), layout, job)
        | "Collect record files" >> beam.GroupByKey()
        | "Write record file"
        >> beam.FlatMap(no_annotations(beam_steps.join_pieces), layout, job)
        | "Write facts of pieces"
        >> beam.io.WriteToText(f"{job.folder}/pieces", shard_name_template="")
    )


def _read_statistics(job):
    """Return the `CorpusStatistics` and the number of pieces that there should be."""
    (line,) = beam_files.read_lines(f"{job.folder}/facts")
    facts = json.loads(line)
    statistics = CorpusStatistics.from_dict(facts["statistics"])
    readers.LineCounts(**facts["lines"]).warn(files.named(job.input_files))
    num_documents = statistics.counts["documents"]
    beam_runs.check_text_complete(facts["num_bytes"], job.input_files)
    beam_runs.check_complete(num_documents, facts["num_documents"], "documents")
    return statistics, facts["num_pieces"]


def _read_pieces(job, num_pieces):
    """Yield (path of its file, `PieceFacts`) of each piece."""
    num_read = 0
    for line in beam_files.read_lines(f"{job.folder}/pieces"):
        facts = record_pieces.PieceFacts.from_dict(json.loads(line))
        yield (
            job.output_files[facts.number * len(job.output_files) // num_pieces],
            facts,
        )
        num_read += 1
    beam_runs.check_complete(num_read, num_pieces, "pieces")


def write_beside(
    output_file: str, ending: str, write: Callable[..., object], *arguments: Any
) -> None:
    """Call `write(path, *arguments)` for a file beside an output, be it remote."""
    folder, name = os.path.split(beam_files.absolute(output_file))
    with _local_copy(folder) as local:
        write(f"{local}/{name}{ending}", *arguments)


def _write_descriptions(entries, statistics, tokenizer):
    """Write the manifest and the report next to the record files."""
    for folder in dict.fromkeys(map(os.path.dirname, entries)):
        with _local_copy(folder, manifest.NAME) as local:
            manifest.write_manifest(
                {
                    f"{local}/{os.path.basename(path)}": entry
                    for path, entry in entries.items()
                    if os.path.dirname(path) == folder
                }
            )
    num_records = sum(entry["num_records"] for entry in entries.values())
    logging.info("%d records in %s", num_records, files.named(entries))
    write_beside(
        next(iter(entries)),
        ending="",
        write=lambda path: corpus_report.write_report(statistics, tokenizer, path),
    )


@contextlib.contextmanager
def _local_copy(folder, *names):
    """Yield a folder that can be written like any other.

    For a remote one it is a temporary folder with its files of these names;
    what is in it at the end goes to the remote one.
    """
    if not beam_files.is_remote(folder):
        yield folder
        return
    with tempfile.TemporaryDirectory() as local:
        for name in names:
            beam_files.fetch(f"{folder}/{name}", f"{local}/{name}")
        yield local
        for name in os.listdir(local):
            beam_files.send(f"{local}/{name}", f"{folder}/{name}")
