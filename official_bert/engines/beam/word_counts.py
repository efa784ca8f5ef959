"""Counting the words of a corpus as an Apache Beam pipeline.

Blocks are counted where they are read, counts are added up by word across the
cluster, and the sums are read here one after another.
"""

import collections
from collections.abc import Sequence
from typing import TYPE_CHECKING

from absl import logging

from official_bert import files
from official_bert.corpus import readers
from official_bert.engines import word_counting
from official_bert.engines.beam import files as beam_files
from official_bert.engines.beam import runs as beam_runs
from official_bert.tokenization.word_counts import WordCounter

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

# What a count is of, as the first byte of its key: words of the text, words of
# what is held out, totals (all words, bytes, lines, lines that are not UTF-8).
# Words too long for WordPieces count as b"".
TEXT, HELD_OUT, TOTALS = b"t", b"h", b"s"
SUMS_AT_ONCE = 100_000


def count_words(
    paths: Sequence[str],
    input_format: str,
    do_lower_case: bool,
    hold_out: bool,
    options: "PipelineOptions",
    folder: str,
) -> tuple[WordCounter, WordCounter]:
    """Count the words of files with Apache Beam, as `word_counting.count_words`.

    `paths` are from `beam_files.find_inputs` and `options` from
    `beam_runs.make_options`. The sums are in `folder` for as long as they are needed,
    on a file system that all workers reach; it must not exist.
    """

    def build(pipeline):
        import apache_beam as beam

        blocks = beam_runs.read_blocks(pipeline, paths, input_format)
        counts = blocks | "Count block" >> beam.FlatMap(
            _count_block, input_format, do_lower_case, hold_out
        )
        _ = (
            counts
            | "Add up" >> beam.CombinePerKey(sum)
            | "As lines" >> beam.MapTuple(_as_line)
            | beam.io.WriteToText(
                f"{folder}/sums",
                coder=beam.coders.BytesCoder(),
                shard_name_template="",
            )
        )

    with beam_files.temporary_folder(folder):
        beam_runs.run_pipeline(options, build)
        return _read_sums(f"{folder}/sums", do_lower_case, paths)


def _count_block(block, input_format, do_lower_case, hold_out):
    """Yield (key, count) of all that is counted in a block."""
    found = word_counting.count_block(block, input_format, do_lower_case, hold_out)
    for kind, (words, num_too_long) in ((TEXT, found.text), (HELD_OUT, found.held_out)):
        for word, count in words.items():
            yield kind + word.encode("utf-8", "surrogatepass"), count
        if num_too_long:
            yield kind, num_too_long
        yield TOTALS + b"words", sum(words.values())
    yield TOTALS + b"bytes", found.num_bytes
    yield TOTALS + b"read", found.lines.lines
    yield TOTALS + b"invalid", found.lines.invalid


def _as_line(key, count):
    # There is no white space in a word.
    return b"%s\t%d" % (key, count)


def _read_sums(path, do_lower_case, text_files):
    """Return the counters that the lines of a file make."""
    counters = {kind: WordCounter(do_lower_case) for kind in (TEXT, HELD_OUT)}
    sums: dict[bytes, dict[str, int]] = {kind: {} for kind in counters}
    totals: collections.Counter[bytes] = collections.Counter()
    num_words = 0
    for line in beam_files.read_lines(path):
        key, _, digits = line.rstrip(b"\n").rpartition(b"\t")
        kind, word, count = key[:1], key[1:], int(digits)
        if kind == TOTALS:
            totals[word] = count
        elif not word:
            counters[kind].add_counts({}, count)
        else:
            num_words += count
            sums[kind][word.decode("utf-8", "surrogatepass")] = count
            if len(sums[kind]) == SUMS_AT_ONCE:
                counters[kind].add_counts(sums.pop(kind))
                sums[kind] = {}
    for kind, counter in counters.items():
        counter.add_counts(sums[kind])
    beam_runs.check_text_complete(totals[b"bytes"], text_files)
    beam_runs.check_complete(num_words, totals[b"words"], "words")
    lines = readers.LineCounts(totals[b"read"], totals[b"invalid"])
    lines.warn(files.named(text_files))
    logging.info("%d lines read", lines.lines)
    return counters[TEXT], counters[HELD_OUT]
