r"""Tokenizer speed beside Rust `tokenizers`, both on one core.

  python benchmarks/tokenization.py --input_file=books.txt \
    --vocab_file=vocab.txt

Both turn the same lines into ids, in turns, in one process. "First sight" is a
tokenizer that has seen no text yet and so remembers no words; "again" is the
same one on the same text. A ratio above 1 means that ours is faster.
"""

import os
import pathlib
import statistics
import sys
import time

# Both must be set before the library is loaded.
os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "run_scripts"))

from absl import flags  # noqa: E402
from command_line import require, run  # noqa: E402

FLAGS = flags.FLAGS

flags.DEFINE_string("input_file", None, "Text, one sentence per line.")
flags.DEFINE_string("vocab_file", None, "The vocab.txt to tokenize with.")
flags.DEFINE_bool("do_lower_case", True, "Lower-case the text.")
flags.DEFINE_integer("rounds", 7, "How often each is measured.", 1)

BATCH = 1000


def main():
    """Measure in turns and print medians, spreads and the ratio."""
    require("input_file", "vocab_file")
    from tokenizers import BertWordPieceTokenizer, __version__

    from official_bert.files import require_readable
    from official_bert.tokenization import FullTokenizer

    require_readable(FLAGS.input_file, "--input_file")
    text = pathlib.Path(FLAGS.input_file).read_text(encoding="utf-8")
    lines = [line for line in text.split("\n") if line]
    megabytes = len(text.encode()) / 1e6
    theirs = BertWordPieceTokenizer(FLAGS.vocab_file, lowercase=FLAGS.do_lower_case)
    results = {"Rust": [], "first sight": [], "again": []}
    for _ in range(FLAGS.rounds):
        ours = FullTokenizer(FLAGS.vocab_file, FLAGS.do_lower_case)
        results["first sight"].append(megabytes / _time_ours(ours, lines))
        results["Rust"].append(megabytes / _time_theirs(theirs, lines))
        results["again"].append(megabytes / _time_ours(ours, lines))
    python = sys.version.split()[0]
    print(f"Python {python}, tokenizers {__version__}; {megabytes:.1f} MB, one thread")
    _print_results(results)


def _time_ours(tokenizer, lines):
    """Return the seconds for the ids of all lines."""
    start = time.perf_counter()
    for first in range(0, len(lines), BATCH):
        [tokenizer.encode(line) for line in lines[first : first + BATCH]]
    return time.perf_counter() - start


def _time_theirs(tokenizer, lines):
    """Return the seconds for all lines; batches keep its memory small."""
    start = time.perf_counter()
    for first in range(0, len(lines), BATCH):
        tokenizer.encode_batch(lines[first : first + BATCH], add_special_tokens=False)
    return time.perf_counter() - start


def _print_results(results):
    """Print a line for each; a round's ratio is of neighbours in time."""
    rust = results["Rust"]
    print(f"{'':12}  MB/s: median (lowest-highest)   x Rust: median (lowest-highest)")
    for name, speeds in results.items():
        ratios = [ours / theirs for ours, theirs in zip(speeds, rust, strict=True)]
        print(f"{name:12}  {_spread(speeds):30}  {_spread(ratios)}")


def _spread(values):
    middle = statistics.median(values)
    return f"{middle:6.2f} ({min(values):.2f}-{max(values):.2f})"


if __name__ == "__main__":
    run(main)
