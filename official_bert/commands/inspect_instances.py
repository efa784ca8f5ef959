r"""Show pre-training records as text: tokens, masks, segments, label.

    python run_scripts/inspect_instances.py \
      --input_file=train.tfrecord --vocab_file=vocab.txt --num_instances=3

A masked token is shown as `shown«was»`: the model's input, then the token to predict.
On a terminal, segment B has a different color.
"""

import os
import sys

from absl import flags

from official_bert import given_paths
from official_bert.command_line.flag_values import locate, require
from official_bert.command_line.tensorflow_start import start_tensorflow

flags.DEFINE_string(
    "input_file", None, "TFRecord files: a comma-separated list of names and globs."
)
flags.DEFINE_string(
    "vocab_file", None, "Vocabulary that the records were created with."
)
flags.DEFINE_integer("num_instances", 5, "Number of records to show.", lower_bound=1)
flags.DEFINE_integer("skip", 0, "Number of records to skip first.", lower_bound=0)
FLAGS = flags.FLAGS
# Flags that the help shows first.
REQUIRED: tuple[str, ...] = ("input_file", "vocab_file")
MOST_USED: tuple[str, ...] = ("num_instances", "skip")


def main() -> None:
    """Print the selected records."""
    require(*REQUIRED)
    input_files = given_paths.find_input_files(
        [locate(pattern) for pattern in given_paths.split_list(FLAGS.input_file)]
    )

    from official_bert.data import show_instances
    from official_bert.data.records import manifest
    from official_bert.tokenization.vocabulary import load_vocab

    vocab_file = locate(FLAGS.vocab_file)
    vocab = load_vocab(vocab_file)
    entries = {path: manifest.read_manifest(path) for path in input_files}
    manifest.check_vocabulary(entries, vocab_file)
    start_tensorflow()
    in_colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    shown = show_instances.describe_instances(
        input_files, list(vocab), FLAGS.skip, FLAGS.num_instances, in_colour
    )
    for text in shown:
        print(text)
