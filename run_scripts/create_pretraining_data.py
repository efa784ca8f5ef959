r"""Make pre-training records from text: masked words, next sentences.

    python run_scripts/create_pretraining_data.py \
      --input_file=text.txt --output_file=train.tfrecord --vocab_file=vocab.txt \
      --max_seq_length=128 --max_predictions_per_seq=20 --dupe_factor=5

Same files, flags and seed give the records of google-research/bert's script,
record for record. `manifest.json` beside the output says what it holds.
"""

from absl import flags, logging
from command_line import locate, require, run, start_tensorflow, write_run_json

from official_bert import files
from official_bert.data.readers import FORMATS

flags.DEFINE_string(
    "input_file",
    None,
    "Text files, a comma-separated list of names and globs, plain or .gz; or "
    "builtin:python, the prose inside this Python installation "
    "(builtin:python:heldout is its held-out part).",
)
flags.DEFINE_string(
    "output_file", None, "TFRecord files to write, a comma-separated list."
)
flags.DEFINE_string("vocab_file", None, "The vocabulary, one token a line.")
flags.DEFINE_enum(
    "input_format",
    "lines",
    FORMATS,
    "lines: one sentence a line, a blank line between documents. raw: running "
    "text. wikiextractor: WikiExtractor's <doc> or JSON output. docs/data.md "
    "has the details.",
)
flags.DEFINE_bool(
    "do_lower_case", True, "Lower-case the text: True for uncased vocabularies."
)
flags.DEFINE_bool("do_whole_word_mask", False, "Mask all pieces of a word together.")
flags.DEFINE_string(
    "word_boundaries",
    None,
    "A segmented copy of each input file, the same lines with spaces between the "
    "words: whole-word masking for Chinese and other languages without spaces. "
    "Implies --do_whole_word_mask.",
)
flags.DEFINE_bool(
    "next_sentence_fix",
    False,
    "Never label a text from the same document a random next sentence, which the "
    "original does when ten draws find no other document.",
)
flags.DEFINE_integer(
    "max_seq_length", 128, "Tokens of a sequence; the trainer needs the same."
)
flags.DEFINE_integer(
    "max_predictions_per_seq",
    20,
    "Most masked tokens of a sequence, about max_seq_length * masked_lm_prob; the "
    "trainer needs the same.",
)
flags.DEFINE_integer("random_seed", 12345, "Seed of every random choice.")
flags.DEFINE_integer("dupe_factor", 10, "Passes over the text, with other masks each.")
flags.DEFINE_float("masked_lm_prob", 0.15, "Share of tokens to mask.")
flags.DEFINE_float(
    "short_seq_prob", 0.1, "Share of document passes that make shorter sequences."
)
FLAGS = flags.FLAGS


def main():
    """Check the flags, make the records, describe them."""
    from official_bert.data import pretraining_data, readers
    from official_bert.data.instances import InstanceSettings
    from official_bert.tokenization.full import FullTokenizer
    from official_bert.tokenization.vocabulary import guess_do_lower_case

    require("input_file", "output_file", "vocab_file")
    settings = InstanceSettings(
        max_seq_length=FLAGS.max_seq_length,
        max_predictions_per_seq=FLAGS.max_predictions_per_seq,
        dupe_factor=FLAGS.dupe_factor,
        masked_lm_prob=FLAGS.masked_lm_prob,
        short_seq_prob=FLAGS.short_seq_prob,
        random_seed=FLAGS.random_seed,
        do_whole_word_mask=FLAGS.do_whole_word_mask or bool(FLAGS.word_boundaries),
        next_sentence_fix=FLAGS.next_sentence_fix,
    )
    output_files = files.split_list(FLAGS.output_file)
    pretraining_data.check_output_files(output_files)
    vocab_file = locate(FLAGS.vocab_file)
    tokenizer = FullTokenizer(vocab_file, FLAGS.do_lower_case)
    if FLAGS.do_lower_case != guess_do_lower_case(tokenizer.vocab):
        logging.warning(
            "--do_lower_case is %s, but %s looks like the vocabulary of %s text; is "
            "it the right one?",
            FLAGS.do_lower_case,
            vocab_file,
            "cased" if FLAGS.do_lower_case else "lower-cased",
        )
    input_files = readers.find_inputs(FLAGS.input_file)
    boundary_files = None
    if FLAGS.word_boundaries:
        boundary_files = readers.find_inputs(FLAGS.word_boundaries, "--word_boundaries")
    start_tensorflow()
    pretraining_data.create_pretraining_data(
        input_files,
        output_files,
        tokenizer,
        settings,
        vocab_file,
        input_format=FLAGS.input_format,
        boundary_files=boundary_files,
    )
    write_run_json(
        f"{output_files[0]}.run.json",
        [vocab_file, *input_files, *(boundary_files or [])],
    )


if __name__ == "__main__":
    run(main)
