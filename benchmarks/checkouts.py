r"""Compare the speed of two checkouts of this project, in alternating turns.

    git worktree add ../before COMMIT
    python benchmarks/checkouts.py --before=../before --vocab_file=vocab.txt \
        --data_dir=glue_data --output=checkouts.json

It measures our program of some rows of the yardstick (`run.py`). Both checkouts use
this Python environment. Ratios are times before / now: above 1, today's code is
faster.
"""

import dataclasses
import pathlib
import statistics
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from absl import flags  # noqa: E402

from benchmarks.yardstick import comparisons, processes  # noqa: E402
from official_bert import files  # noqa: E402
from official_bert.command_line.flag_values import require  # noqa: E402
from official_bert.command_line.program import run  # noqa: E402

FLAGS = flags.FLAGS

ROWS = [
    "train-tiny",
    "train-mini",
    "train-base",
    "xla-tiny",
    "xla-mini",
    "encode",
    "int8",
    "cola",
    "mrpc",
]

flags.DEFINE_string("before", None, "Folder of the other checkout.")
flags.DEFINE_list("rows", ROWS, f"Rows to measure, from: {', '.join(ROWS)}.")
flags.DEFINE_string("vocab_file", None, "Vocabulary of an uncased English model.")
flags.DEFINE_string(
    "data_dir", None, "Folder that contains the folders of the GLUE tasks."
)
flags.DEFINE_integer("rounds", 7, "Turns of each variant.", 2)
flags.DEFINE_string("output", None, "JSON file for the ratios.")


def main():
    """Measure all rows; print and write their ratios."""
    for name in ("before", "vocab_file", "data_dir", "output"):
        require(name)
    ratios = {}
    for name in FLAGS.rows:
        with tempfile.TemporaryDirectory() as folder:
            quartiles = _quartiles(name, folder)
        ratios[name] = [round(value, 3) for value in quartiles]
        low, median, high = ratios[name]
        print(f"{name:12}{median:.2f} ({low:.2f} to {high:.2f})", flush=True)
        files.write_json(FLAGS.output, ratios)


def _quartiles(name, folder):
    """Return the quartiles of before / now over the rounds."""
    comparison = _comparison(name, folder)
    now = comparison.variants[0]
    if name.startswith("xla-"):
        now = dataclasses.replace(now, arguments=now.arguments | {"xla": True})
    checkout = pathlib.Path(FLAGS.before).resolve()
    before = dataclasses.replace(now, name="before", checkout=checkout)
    seconds, _, _ = processes.take_turns(
        [now, before], FLAGS.rounds, comparison.calls, sys.executable
    )
    pairs = zip(seconds["before"], seconds[now.name], strict=True)
    return statistics.quantiles([then / today for then, today in pairs], n=4)


def _comparison(name, folder):
    kind, _, size = name.partition("-")
    if kind in ("train", "xla"):
        return comparisons.training(size)
    if kind == "encode":
        return comparisons.encoding()
    if kind == "int8":
        return comparisons.int8(FLAGS.vocab_file)
    return comparisons.fine_tuning(name, FLAGS.data_dir, FLAGS.vocab_file, folder)


if __name__ == "__main__":
    run(main)
