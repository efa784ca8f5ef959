"""Count the words of a corpus with an Apache Beam pipeline.

Workers count blocks where they read them, the cluster adds up the counts of
each word, and this process reads the sums one at a time.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from official_bert.engines import word_sums
from official_bert.engines.beam import files as beam_files
from official_bert.engines.beam import runs as beam_runs
from official_bert.tokenization.word_counts import WordCounter

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions


def count_words(
    paths: Sequence[str],
    input_format: str,
    do_lower_case: bool,
    hold_out: bool,
    options: "PipelineOptions",
    folder: str,
) -> tuple[WordCounter, WordCounter]:
    """Count the words of files with Apache Beam, like `word_counting.count_words`.

    `paths` are from `beam_files.find_inputs` and `options` from
    `beam_runs.make_options`. The sums are in `folder` temporarily. All workers
    must reach it, and it must not exist.
    """

    def build(pipeline):
        import apache_beam as beam
        from apache_beam.typehints.decorators import no_annotations

        blocks = beam_runs.read_blocks(pipeline, paths, input_format)
        counts = blocks | "Count block" >> beam.FlatMap(
            no_annotations(word_sums.count_block), input_format, do_lower_case, hold_out
        )
        _ = (
            counts
            | "Add up" >> beam.CombinePerKey(sum)
            | "As lines" >> beam.MapTuple(no_annotations(word_sums.as_line))
            | beam.io.WriteToText(
                f"{folder}/sums",
                coder=beam.coders.BytesCoder(),
                shard_name_template="",
            )
        )

    with beam_files.temporary_folder(folder):
        beam_runs.run_pipeline(options, build)
        sums = map(word_sums.from_line, beam_files.read_lines(f"{folder}/sums"))
        return word_sums.read_sums(sums, do_lower_case, paths, beam_files.size_of)
