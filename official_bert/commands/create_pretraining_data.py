r"""Create pre-training records from text, with masked tokens and next sentences.

    python run_scripts/create_pretraining_data.py \
      --input_file=text.txt --output_file=train.tfrecord --vocab_file=vocab.txt \
      --max_seq_length=128 --max_predictions_per_seq=20 --dupe_factor=5

With the same files, flags and seed, the records equal those of google-research/bert's
script, record for record. This mode holds all records in memory.

--num_workers=8 uses 8 processes and little memory, for text of any size. It follows the
same recipe with different random numbers, and resumes after a kill. --runner=beam and
--runner=spark create the same records as --num_workers, on a cluster. `manifest.json`
next to the output describes the records.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from absl import flags, logging

from official_bert import given_paths
from official_bert.command_line import cluster_flags
from official_bert.command_line.flag_values import define_aliases, locate, require
from official_bert.command_line.run_record import write_run_json
from official_bert.corpus.readers import FORMATS
from official_bert.data.instances import MASKINGS, InstanceSettings
from official_bert.data.masking import MaskingMix
from official_bert.errors import UserError

flags.DEFINE_string(
    "input_file",
    None,
    "Text files: a comma-separated list of names and globs, plain or .gz. "
    "builtin:python is the prose of this Python installation (builtin:python:heldout "
    "is its held-out part). With --num_workers also -, the standard input.",
)
flags.DEFINE_string(
    "output_file",
    None,
    "TFRecord files to write: a comma-separated list. @32 in a name means 32 files: "
    "train@32.tfrecord stands for train-00000-of-00032.tfrecord and so on. Names "
    "that end in .gz are compressed. Missing folders are created.",
)
flags.DEFINE_integer(
    "num_workers",
    None,
    "Number of processes that stream the text. Every number gives the same records, "
    "which differ from those without this flag. Unfinished work is kept in <first "
    "output file>.work.",
)
flags.DEFINE_string("vocab_file", None, "Vocabulary file, one token per line.")
flags.DEFINE_enum(
    "input_format",
    "lines",
    FORMATS,
    "lines: one sentence per line, a blank line between documents. raw: running "
    "text. wikiextractor: WikiExtractor's <doc> or JSON output. See "
    "docs/how_to/data.md.",
)
flags.DEFINE_bool(
    "do_lower_case", True, "Lowercase the text. Use True for uncased vocabularies."
)
flags.DEFINE_bool(
    "do_whole_word_mask", False, "Mask all WordPiece tokens of a word together."
)
flags.DEFINE_string(
    "word_boundaries",
    None,
    "Segmented copy of each input file: the same lines with spaces between the "
    "words. Gives whole-word masking for Chinese and other languages without spaces. "
    "Implies --do_whole_word_mask.",
)
flags.DEFINE_bool(
    "next_sentence_fix",
    False,
    "Never label a text from the same document as a random next sentence. The "
    "original does so if ten draws find no other document.",
)
flags.DEFINE_bool(
    "next_sentence_prediction",
    True,
    "Replace half of the next sentences by random ones. If false, segment B always "
    "follows segment A, and there is no next-sentence prediction (Table 5, No NSP). "
    "The trainer needs the same setting.",
)
flags.DEFINE_integer(
    "max_seq_length", 128, "Tokens per sequence. The trainer needs the same value."
)
flags.DEFINE_integer(
    "max_predictions_per_seq",
    20,
    "Maximum number of masked tokens per sequence, about max_seq_length * "
    "masked_lm_prob. The trainer needs the same value.",
)
flags.DEFINE_integer("seed", 12345, "Seed of all random choices.")
define_aliases("seed", "random_seed")
flags.DEFINE_enum(
    "masking",
    "static",
    MASKINGS,
    "static: masks are stored in each record, as in the original. dynamic: records "
    "are stored unmasked, and the trainer draws new masks in each epoch.",
)
flags.DEFINE_integer(
    "dupe_factor",
    None,
    "Number of passes over the text, each with different masks. Default: 10, or 1 "
    "with --masking=dynamic.",
)
flags.DEFINE_float("masked_lm_prob", 0.15, "Fraction of tokens to mask.")
flags.DEFINE_string(
    "masking_mix",
    "80/10/10",
    "Percentages of masked tokens that become [MASK], stay unchanged, or become a "
    "random token (Table 8).",
)
flags.DEFINE_float(
    "short_seq_prob", 0.1, "Fraction of document passes that create shorter sequences."
)
FLAGS = flags.FLAGS
# Flags that the help shows first.
REQUIRED: tuple[str, ...] = ("input_file", "output_file", "vocab_file")
MOST_USED: tuple[str, ...] = (
    "max_seq_length",
    "max_predictions_per_seq",
    "dupe_factor",
    "do_lower_case",
    "do_whole_word_mask",
    "masked_lm_prob",
    "input_format",
    "num_workers",
    "masking",
    "seed",
)


def main() -> None:
    """Check the flags, create the records and describe them."""
    from official_bert.corpus import readers, text_blocks
    from official_bert.tokenization.full import FullTokenizer
    from official_bert.tokenization.vocabulary import guess_do_lower_case

    require(*REQUIRED)
    settings = _settings()
    output_files = given_paths.split_shards(FLAGS.output_file)
    check_output_files, find_inputs, create, write_beside = _engine()
    check_output_files(output_files)
    vocab_file = locate(FLAGS.vocab_file)
    tokenizer = FullTokenizer(vocab_file, FLAGS.do_lower_case)
    if tokenizer.do_lower_case != guess_do_lower_case(tokenizer.vocab):
        logging.warning(
            "--do_lower_case is %s, but %s looks like the vocabulary of %s text. "
            "Check that it is the right one.",
            tokenizer.do_lower_case,
            vocab_file,
            "cased" if tokenizer.do_lower_case else "lower-cased",
        )
    input_files, boundary_files = find_inputs(FLAGS.input_file), []
    if input_files == [text_blocks.STANDARD_INPUT] and FLAGS.num_workers is None:
        raise UserError(
            "--input_file=- (standard input) needs --num_workers; --num_workers=1 is "
            "enough."
        )
    options = {"input_format": FLAGS.input_format}
    if FLAGS.word_boundaries:
        boundary_files = readers.find_inputs(FLAGS.word_boundaries, "--word_boundaries")
        options["boundary_files"] = boundary_files
    create(input_files, output_files, tokenizer, settings, vocab_file, **options)
    inputs = [vocab_file, *input_files, *boundary_files]
    write_beside(output_files[0], ".run.json", write_run_json, inputs)


def _settings():
    names = [field.name for field in dataclasses.fields(InstanceSettings)]
    values: dict[str, Any] = {name: FLAGS[name].value for name in names}
    values["masking_mix"] = MaskingMix.parse(FLAGS.masking_mix)
    values["do_whole_word_mask"] |= bool(FLAGS.word_boundaries)
    if FLAGS.dupe_factor is None:
        # A record that gets new masks in each epoch needs no copies.
        values["dupe_factor"] = 1 if FLAGS.masking == "dynamic" else 10
    return InstanceSettings(**values)


def _engine():
    """Return four functions for the chosen engine.

    They check outputs, find inputs, create the data, and write a file next to the
    output.
    """
    from official_bert.corpus import text_blocks
    from official_bert.data import pretraining_data
    from official_bert.engines import parallel_data

    cluster = cluster_flags.cluster_engine()
    if (FLAGS.num_workers is not None or cluster) and FLAGS.word_boundaries:
        raise UserError(
            "--word_boundaries cannot be used with --num_workers or --runner. Leave "
            "them out."
        )
    if cluster:
        from official_bert.engines import cluster_outputs

        create: Callable[..., Any] = functools.partial(
            cluster.pipeline.create_pretraining_data, cluster=cluster.cluster
        )
        write_beside = functools.partial(cluster_outputs.write_beside, cluster.storage)
        check = cluster_outputs.check_output_files
        return check, cluster.find_inputs, create, write_beside
    create = pretraining_data.create_pretraining_data
    if FLAGS.num_workers is not None:
        create = functools.partial(
            parallel_data.create_pretraining_data, num_workers=FLAGS.num_workers
        )
    return (
        pretraining_data.check_output_files,
        text_blocks.find_inputs,
        create,
        lambda path, ending, write, inputs: write(f"{path}{ending}", inputs),
    )
