r"""Make a WordPiece vocabulary from your own text.

  python run_scripts/train_vocab.py --input_file='corpus/*.txt' \
    --output_file=vocab.txt --vocab_size=30522

Google never released the program that made its vocabularies. This one splits
text into words exactly as BERT does and has the Rust trainer of `tokenizers`
find the pieces. It tells how well the vocabulary fits text that it was not
made from. The same text gives the same vocabulary, byte for byte.
"""

import os

from absl import flags
from command_line import require, run, write_run_json

FLAGS = flags.FLAGS

flags.DEFINE_string(
    "input_file",
    None,
    "Text files: a comma-separated list of names and globs, plain or .gz, or "
    "builtin:python.",
)
flags.DEFINE_enum(
    "input_format",
    "lines",
    ["lines", "raw", "wikiextractor"],
    "One sentence per line, running paragraphs, or WikiExtractor's output.",
)
flags.DEFINE_string("output_file", None, "The vocab.txt to write.")
flags.DEFINE_integer("vocab_size", 30522, "Tokens of the vocabulary.", 10)
flags.DEFINE_bool(
    "do_lower_case",
    True,
    "Lower-case the text and drop its accents. Use the same value everywhere.",
)
flags.DEFINE_integer(
    "num_unused", 99, "[unused…] tokens to reserve for words added later.", 0
)
flags.DEFINE_integer(
    "min_frequency", 2, "How often a character or a pair of pieces must occur.", 1
)
flags.DEFINE_integer(
    "limit_alphabet",
    None,
    "Keep only so many characters, the most frequent; all by default. Words of "
    "other characters become [UNK].",
    1,
)
flags.DEFINE_string(
    "heldout_file",
    None,
    "Text files to measure the vocabulary on; by default every 20th line of the "
    "input, which training then does not see.",
)


def main():
    """Count words, train, write the vocabulary, say how good it is."""
    require("input_file", "output_file")
    from official_bert import files
    from official_bert.data import readers
    from official_bert.tokenization import train
    from official_bert.tokenization.word_counts import WordCounter

    files.require_parent(FLAGS.output_file, "--output_file")
    sources = readers.find_inputs(FLAGS.input_file)
    held_out_sources = []
    if FLAGS.heldout_file:
        held_out_sources = readers.find_inputs(FLAGS.heldout_file, "--heldout_file")
    _refuse_to_overwrite(sources + held_out_sources)

    counter = WordCounter(FLAGS.do_lower_case)
    held_out = WordCounter(FLAGS.do_lower_case)
    lines = readers.read_sentences(sources, FLAGS.input_format, "reading")
    if not held_out_sources:
        lines = train.hold_out(lines, held_out)
    for line in lines:
        counter.add(line)
    for line in readers.read_sentences(
        held_out_sources, FLAGS.input_format, "reading held-out text"
    ):
        held_out.add(line)
    tokens = train.train_vocab(
        counter,
        FLAGS.vocab_size,
        FLAGS.num_unused,
        FLAGS.min_frequency,
        FLAGS.limit_alphabet,
    )
    files.write_text(FLAGS.output_file, "".join(f"{token}\n" for token in tokens))
    _report(tokens, counter, held_out)
    write_run_json(f"{FLAGS.output_file}.run.json", sources + held_out_sources)


def _refuse_to_overwrite(sources):
    """Raise `UserError` if the vocabulary would replace the text."""
    from official_bert.errors import UserError

    if os.path.realpath(FLAGS.output_file) in map(os.path.realpath, sources):
        raise UserError(
            f"--output_file: {FLAGS.output_file} is an input; name another file."
        )


def _report(tokens, counter, held_out):
    """Print what was made and how it fits the held-out text."""
    from official_bert.tokenization import train

    words = counter.words()
    print(
        f"{FLAGS.output_file}: {len(tokens)} tokens from {sum(words.values())} "
        f"words, {len(words)} of them different."
    )
    if len(tokens) < FLAGS.vocab_size:
        print(
            f"The text has no more pieces of frequency {FLAGS.min_frequency}: the "
            f"vocabulary is smaller than --vocab_size={FLAGS.vocab_size}."
        )
    if counter.pruned:
        print(
            f"To save memory, words seen at most {counter.pruned} times were not "
            "counted to the end; their characters were."
        )
    if not held_out.words():
        print("The text is too short to hold a part of it out for measuring.")
        return
    quality = train.measure_vocab(tokens, held_out)
    print(
        f"Held-out text: {quality.num_words} words, {quality.unknown_rate:.4%} "
        f"unknown, {quality.pieces_per_word:.3f} pieces per word."
    )


if __name__ == "__main__":
    run(main)
