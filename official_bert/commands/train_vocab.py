r"""Train a WordPiece vocabulary on your text.

  python run_scripts/train_vocab.py --input_file='corpus/*.txt' \
    --output_file=vocab.txt --vocab_size=30522

Google did not release the program that created its vocabularies. This command splits
text into words exactly as BERT does. The Rust trainer of `tokenizers` then finds the
WordPiece tokens. The command reports how well the vocabulary fits held-out text. The
same text gives the same vocabulary, byte for byte, for any number of processes and on a
cluster.
"""

from collections.abc import Callable
from typing import Any

from absl import flags

from official_bert import files, given_paths
from official_bert.command_line import cluster_flags
from official_bert.command_line.flag_values import define_aliases, require
from official_bert.command_line.run_record import write_run_json
from official_bert.corpus.readers import FORMATS

FLAGS = flags.FLAGS
# Flags that the help shows first.
REQUIRED: tuple[str, ...] = ("input_file", "output_file")
MOST_USED: tuple[str, ...] = (
    "vocab_size",
    "do_lower_case",
    "input_format",
    "min_frequency",
    "num_unused",
    "limit_alphabet",
    "dev_file",
    "num_workers",
)

flags.DEFINE_string(
    "input_file",
    None,
    "Text files: a comma-separated list of names and globs, plain or .gz, or "
    "builtin:python; - is standard input.",
)
flags.DEFINE_enum(
    "input_format",
    "lines",
    FORMATS,
    "lines: one sentence per line. raw: running text. wikiextractor: WikiExtractor's "
    "output.",
)
flags.DEFINE_string("output_file", None, "Vocabulary file to write, such as vocab.txt.")
flags.DEFINE_integer("vocab_size", 30522, "Number of tokens in the vocabulary.", 10)
flags.DEFINE_bool(
    "do_lower_case",
    True,
    "Lowercase the text and remove accents. Use the same value in all commands.",
)
flags.DEFINE_integer(
    "num_unused", 99, "[unused…] tokens to reserve for words added later.", 0
)
flags.DEFINE_integer(
    "min_frequency", 2, "Minimum count of a character or of a pair of tokens.", 1
)
flags.DEFINE_integer(
    "limit_alphabet",
    None,
    "Keep only this number of most frequent characters. Default: all. Words with "
    "other characters become [UNK].",
    1,
)
flags.DEFINE_string(
    "dev_file",
    None,
    "Text files to measure the vocabulary on. Default: one line in 20 of the input, "
    "chosen by a hash and not used for training.",
)
define_aliases("dev_file", "heldout_file")
flags.DEFINE_integer(
    "num_workers", 1, "Processes that count words. The result does not depend on it.", 1
)


def main() -> None:
    """Count words, train, write the vocabulary and report its quality."""
    require(*REQUIRED)
    from official_bert.tokenization import train

    given_paths.require_parent(FLAGS.output_file, "--output_file")
    sources, counter, held_out = _count()
    limits = FLAGS.num_unused, FLAGS.min_frequency, FLAGS.limit_alphabet
    tokens = train.train_vocab(counter, FLAGS.vocab_size, *limits)
    files.write_text(FLAGS.output_file, "".join(f"{token}\n" for token in tokens))
    _report(tokens, counter, held_out)
    write_run_json(f"{FLAGS.output_file}.run.json", sources)


def _count():
    """Return (all inputs, counter of the text, counter of the held-out text)."""
    find_inputs: Callable[..., list[str]]
    count_words: Callable[..., tuple[Any, Any]]
    how: tuple[Any, ...]
    cluster = cluster_flags.cluster_engine()
    if cluster:
        find_inputs, count_words = cluster.find_inputs, cluster.count_words
        how = cluster.cluster, cluster.folder(FLAGS.output_file, ".counts")
    else:
        from official_bert.corpus.text_blocks import find_inputs
        from official_bert.engines.word_counting import count_words

        how = (FLAGS.num_workers,)
    text = FLAGS.input_format, FLAGS.do_lower_case
    sources, held_out_sources = find_inputs(FLAGS.input_file), []
    if FLAGS.dev_file:
        held_out_sources = find_inputs(FLAGS.dev_file, "--dev_file")
    inputs = sources + held_out_sources
    given_paths.require_no_input([FLAGS.output_file], inputs, "--output_file")
    counter, held_out = count_words(sources, *text, not held_out_sources, *how)
    if held_out_sources:
        held_out, _ = count_words(held_out_sources, *text, False, *how)
    elif not counter.words():
        # With a very short text, all lines may be held out.
        counter, held_out = held_out, counter
    return inputs, counter, held_out


def _report(tokens, counter, held_out):
    """Print the size of the vocabulary and how well it fits held-out text."""
    from official_bert.tokenization import train

    words = counter.words()
    print(
        f"{FLAGS.output_file}: {len(tokens)} tokens from {sum(words.values())} "
        f"words, {len(words)} of them distinct."
    )
    if len(tokens) < FLAGS.vocab_size:
        print(
            f"The vocabulary is smaller than --vocab_size={FLAGS.vocab_size}: the "
            f"text has no more tokens with a count of at least {FLAGS.min_frequency}."
        )
    for where, counted in (("", counter), (" in the held-out text", held_out)):
        if counted.pruned:
            print(
                f"To save memory, words seen at most {counted.pruned} times{where} "
                "were left out; their characters were kept."
            )
    if not held_out.words():
        print("The text is too short to hold out a part for measuring.")
        return
    quality = train.measure_vocab(tokens, held_out)
    print(
        f"Held-out text: {quality.num_words} words, {quality.unknown_rate:.4%} "
        f"unknown, {quality.pieces_per_word:.3f} tokens per word."
    )
