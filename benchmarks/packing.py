r"""Measure sequences per second of pre-training with and without --pack.

    python benchmarks/packing.py --input_file=books.txt --vocab_file=vocab.txt \
        --output=output/packing

Runs with and without --pack alternate, on an idle machine. Prints a table with the
medians. --output is a folder for the records and the runs.
"""

import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from absl import flags  # noqa: E402

from official_bert.command_line.flag_values import define_positive, require  # noqa: E402
from official_bert.command_line.program import run  # noqa: E402
from official_bert.training.logs.run_log import read_metrics  # noqa: E402

FLAGS = flags.FLAGS

flags.DEFINE_string("input_file", None, "Text: a sentence per line, a blank line.")
flags.DEFINE_string("vocab_file", None, "Vocabulary of 30,522 tokens.")
flags.DEFINE_string("output", None, "Folder for records and runs.")
flags.DEFINE_multi_enum("size", ["tiny", "mini"], ("tiny", "mini"), "Sizes of models.")
define_positive("rounds", 3, "Runs of each kind.")
define_positive("steps", 50, "Training steps of a run; a fifth is not measured.")

# Tokens of a row -> rows of a training step.
BATCH_SIZES = {128: 32, 512: 8}
PACKED = re.compile(r"([\d.]+) per row\. Padding: ([\d.]+)% .* ([\d.]+)% without")


def main():
    """Measure all sizes and lengths."""
    require("input_file", "vocab_file", "output")
    print("| model | length | sequences per row | padding | sequences/s | ratio |")
    print("|---|---|---|---|---|---|")
    for length, batch_size in BATCH_SIZES.items():
        records = _records(length)
        for size in FLAGS.size:
            plain, packed = [], []
            for _ in range(FLAGS.rounds):
                plain.append(_pretrain(records, size, batch_size)[0])
                speed, said = _pretrain(records, size, batch_size, "--pack")
                per_row, after, before = map(float, PACKED.search(said).groups())
                packed.append(per_row * speed)
            ratios = [new / old for new, old in zip(packed, plain, strict=True)]
            old, new = map(statistics.median, (plain, packed))
            print(
                f"| {size} | {length} | {per_row:.2f} | {before} → {after} % | "
                f"{old:.0f} → {new:.0f} | {statistics.median(ratios):.2f} |",
                flush=True,
            )


def _records(length):
    """Create the records of a length, unless they exist; return their path."""
    path = os.path.join(FLAGS.output, f"{length}.tfrecord")
    if not os.path.exists(path):
        own = f"--max_seq_length={length}", f"--max_predictions_per_seq={length // 5}"
        _command(
            "create_pretraining_data",
            f"--input_file={FLAGS.input_file}",
            f"--vocab_file={FLAGS.vocab_file}",
            f"--output_file={path}",
            *own,
            "--dupe_factor=1",
        )
    return path


def _pretrain(records, size, batch_size, *further):
    """Return the rows per second of a run, and its printed lines."""
    folder = os.path.join(FLAGS.output, "run")
    shutil.rmtree(folder, ignore_errors=True)
    said = _command(
        "run_pretraining",
        "--do_train",
        f"--input_file={records}",
        f"--bert_config_file={ROOT}/configs/bert_{size}.json",
        f"--train_batch_size={batch_size}",
        f"--num_train_steps={FLAGS.steps}",
        f"--iterations_per_loop={FLAGS.steps // 5}",
        f"--output_dir={folder}",
        *further,
    )
    rows = [row for row in read_metrics(folder) if "sequences_per_second" in row]
    return statistics.median(row["sequences_per_second"] for row in rows[1:]), said


def _command(script, *arguments):
    command = [sys.executable, ROOT / "run_scripts" / f"{script}.py", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    run(main)
