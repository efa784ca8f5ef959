"""Make record files from text of any size with an Apache Beam pipeline.

The steps and the records are those of `parallel_data`: the same text and
settings give the same files on any runner. A worker holds at most a block of
text or a piece of a record file at a time.
"""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from absl import logging

from official_bert import files, given_paths
from official_bert.data.instances import InstanceSettings
from official_bert.engines import cluster_job, cluster_outputs, corpus_encoding, steps
from official_bert.engines.beam import files as beam_files
from official_bert.engines.beam import runs as beam_runs
from official_bert.engines.beam.files import STORAGE
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
    *,
    cluster: "PipelineOptions | None" = None,
) -> dict[str, dict[str, Any]]:
    """Write the training instances of text files as TFRecords.

    Arguments, result and errors are those of the function in
    `pretraining_data`, with these differences: `input_files` are from
    `beam_files.find_inputs`, all workers can reach `output_files`, and
    `cluster` is from `beam_runs.make_options`. `UserError` is also raised if
    Beam cannot run the pipeline.
    """
    cluster_outputs.check_output_files(output_files, [*input_files, vocab_file])
    output_files = [files.absolute(path) for path in output_files]
    encoding = corpus_encoding.Encoding.of(
        vocab_file, tokenizer, settings, input_format, input_files, STORAGE.size_of
    )
    parents = given_paths.made_parents(output_files, "--output_file")
    with parents, beam_files.temporary_folder(f"{output_files[0]}.beam") as folder:
        job = cluster_outputs.make_job(
            input_files, output_files, folder, settings, tokenizer, STORAGE
        )
        logging.info("Creating records with Apache Beam.")
        beam_runs.run_pipeline(
            cluster, lambda pipeline: _build(pipeline, job, encoding, tokenizer)
        )
        (facts,) = _read_json_lines(f"{folder}/facts")
        pieces = _read_json_lines(f"{folder}/pieces")
        return cluster_outputs.describe(job, facts, pieces, tokenizer, vocab_file)


def _read_json_lines(path):
    return map(json.loads, beam_files.read_lines(path))


def _tagged(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a step whose results Beam separates by kind."""

    def tagged_step(value, *arguments):
        from apache_beam.pvalue import TaggedOutput

        for kind, result in step(value, *arguments):
            yield TaggedOutput(kind, result)

    return tagged_step


def _build(pipeline, job, encoding, tokenizer):
    """Add all steps to a `beam.Pipeline`."""
    import apache_beam as beam
    from apache_beam.typehints.decorators import no_annotations

    # Without this, Beam would choose coders from the annotations.
    text = beam_runs.read_blocks(pipeline, job.input_files, encoding.input_format)
    encoded = text | "Encode block" >> beam.FlatMap(
        _tagged(steps.encode_block), encoding, tokenizer, job.token_code
    ).with_outputs(steps.DOCUMENTS, steps.SIZES, steps.FACTS)
    layout = beam.pvalue.AsSingleton(
        encoded[steps.SIZES]
        | "List blocks" >> beam.CombineGlobally(beam.combiners.ToListCombineFn())
        | "Lay out" >> beam.Map(no_annotations(cluster_job.lay_out), job)
    )
    _ = (
        encoded[steps.FACTS]
        | "Merge facts" >> beam.CombineGlobally(no_annotations(steps.merge_facts))
        | "Known facts" >> beam.Filter(bool)
        | "As JSON" >> beam.Map(no_annotations(steps.facts_as_json), layout)
        | "Write facts"
        >> beam.io.WriteToText(f"{job.folder}/facts", shard_name_template="")
    )
    documents = (
        encoded[steps.DOCUMENTS]
        # Encode only once, even if several steps use the result.
        | "Spread ids" >> beam.Reshuffle()
        | "Number documents"
        >> beam.FlatMap(no_annotations(steps.number_documents), layout, job.settings)
    )
    planned = documents | "Plan" >> beam.FlatMap(
        _tagged(steps.plan_document), layout, job
    ).with_outputs(steps.INSTANCES, steps.REQUESTS)
    answered = (
        {"documents": documents, "requests": planned[steps.REQUESTS]}
        | "Meet" >> beam.CoGroupByKey()
        | "Answer" >> beam.FlatMap(no_annotations(steps.answer_requests), job)
    )
    _write_records(pipeline, (planned[steps.INSTANCES], answered), layout, job)


def _write_records(pipeline, instances, layout, job):
    """Write pieces, record files, and the facts of the pieces."""
    import apache_beam as beam
    from apache_beam.typehints.decorators import no_annotations

    pieces = (
        pipeline
        | "Start" >> beam.Create([None])
        # All pieces are listed, since some may have no instances.
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
        | "Write piece" >> beam.Map(no_annotations(steps.write_piece), layout, job)
        | "Collect record files" >> beam.GroupByKey()
        | "Write record file"
        >> beam.FlatMap(no_annotations(steps.join_pieces), layout, job)
        | "Write facts of pieces"
        >> beam.io.WriteToText(f"{job.folder}/pieces", shard_name_template="")
    )
