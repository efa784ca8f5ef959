r"""Pre-train the quickstart model in float32 and bfloat16, and draw the loss curves.

    python run_scripts/quickstart.py
    python benchmarks/precision_curves.py --output=output/precision

It reads the quickstart's records and compiles each step with XLA, so that it
uses a TPU's kernels. The folder gets a run for each seed and precision,
`precision_curves.png`, and `precision_curves.json` with the last held-out
losses. A second call resumes.
"""

import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from absl import flags  # noqa: E402

from official_bert import files  # noqa: E402
from official_bert.command_line.flag_values import require  # noqa: E402
from official_bert.command_line.program import run  # noqa: E402
from official_bert.training.logs.run_log import read_metrics  # noqa: E402

FLAGS = flags.FLAGS

flags.DEFINE_string("records", "output/quickstart", "Folder of the quickstart.")
flags.DEFINE_string("output", None, "Folder for the runs and the figure.")
flags.DEFINE_integer("steps", 3400, "Training steps of each run.", 1)
flags.DEFINE_integer("seeds", 3, "Runs for each precision.", 1)

PRECISIONS = {"float32": "tab:blue", "bfloat16": "tab:orange"}


def main() -> None:
    """Train all runs, then compare them."""
    require("output")
    losses = {}
    for seed, precision in itertools.product(range(1, FLAGS.seeds + 1), PRECISIONS):
        rows = _train(precision, seed)
        losses[precision, seed] = [
            (row["step"], row["eval_loss"]) for row in rows if "eval_loss" in row
        ]
    last = {
        precision: [losses[key][-1][1] for key in losses if key[0] == precision]
        for precision in PRECISIONS
    }
    for precision, values in last.items():
        described = ", ".join(f"{value:.4f}" for value in values)
        print(f"{precision}: {statistics.mean(values):.4f} (seeds: {described})")
    path = os.path.join(FLAGS.output, "precision_curves.json")
    files.write_text(path, json.dumps({"steps": FLAGS.steps, "held-out": last}))
    _draw(losses)


def _train(precision, seed):
    """Return the rows of the metrics of one run; a complete run is not repeated."""
    folder = os.path.join(FLAGS.output, f"{precision}-{seed}")
    command = [
        sys.executable,
        ROOT / "run_scripts" / "run_pretraining.py",
        f"--flagfile={ROOT / 'configs' / 'quickstart.flags'}",
        f"--bert_config_file={ROOT / 'configs' / 'bert_quickstart.json'}",
        f"--input_file={FLAGS.records}/train.tfrecord",
        f"--eval_input_file={FLAGS.records}/heldout.tfrecord",
        f"--vocab_file={FLAGS.records}/vocab.txt",
        f"--output_dir={folder}",
        f"--num_train_steps={FLAGS.steps}",
        f"--save_checkpoints_steps={max(FLAGS.steps // 8, 1)}",
        f"--precision={precision}",
        f"--seed={seed}",
        "--xla",
    ]
    print(f"{precision}, seed {seed}", flush=True)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return read_metrics(folder)


def _draw(losses):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="tight")
    axes = figure.subplots()
    for (precision, seed), points in losses.items():
        label = precision if seed == 1 else None
        steps, values = zip(*points, strict=True)
        axes.plot(steps, values, color=PRECISIONS[precision], label=label)
    axes.set(xlabel="step", ylabel="held-out loss (nats)")
    axes.legend()
    path = os.path.join(FLAGS.output, "precision_curves.png")
    with files.atomic_path(path) as temporary:
        figure.savefig(temporary, format="png", dpi=110)
    print(f"Curves: {path}")


if __name__ == "__main__":
    run(main)
