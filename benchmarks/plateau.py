r"""Find out when pre-training leaves the plateau at the unigram entropy, and why.

    python run_scripts/quickstart.py
    python benchmarks/plateau.py --output=output/plateau

At first, a model only learns how frequent each token is: its held-out masked-LM loss
stays at the unigram entropy. This program changes one setting of a small BERT at a time
and reports the first evaluation whose loss is 0.2 nats lower. It reads the quickstart's
records. --output is a folder for the runs, `plateau.jsonl`, `plateau.md` and
`plateau.png`. A second call resumes.
"""

import dataclasses
import functools
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from absl import flags  # noqa: E402

from benchmarks import compared_runs  # noqa: E402
from official_bert import files  # noqa: E402
from official_bert.command_line.flag_values import define_positive, require  # noqa: E402
from official_bert.command_line.program import run  # noqa: E402
from official_bert.config import BertConfig  # noqa: E402
from official_bert.training.logs.run_log import read_metrics  # noqa: E402

FLAGS = flags.FLAGS

flags.DEFINE_string("records", "output/quickstart", "Folder of the quickstart.")
flags.DEFINE_string("output", None, "Folder for runs, results and figure.")
define_positive("steps", 1000, "Training steps of each run.")
define_positive("num_seeds", 3, "Runs for each setting.")

BELOW = 0.2
EVERY = 50
# Name -> flags that differ from the usual setting: range 0.02, rate 5e-4, batch 64.
SETTINGS = {
    "usual": [],
    "rate 1e-4": ["--learning_rate=1e-4"],
    "rate 2e-3": ["--learning_rate=2e-3"],
    "batch 16": ["--train_batch_size=16"],
    "batch 256": ["--train_batch_size=256"],
    "no dropout": ["--nodropout"],
    "--initializer=residual": ["--initializer=residual"],
    "--initializer=fan_in": ["--initializer=fan_in"],
    "fan_in and no dropout": ["--initializer=fan_in", "--nodropout"],
}

flags.DEFINE_multi_enum("setting", None, list(SETTINGS), "Run only this setting.")


def main() -> None:
    """Make the missing runs; write the table and the figure."""
    require("output")
    os.makedirs(FLAGS.output, exist_ok=True)
    path = os.path.join(FLAGS.output, "plateau.jsonl")
    config = _write_config()
    for setting in FLAGS.setting or SETTINGS:
        for seed in range(1, FLAGS.num_seeds + 1):
            key = {"setting": setting, "seed": seed, "steps": FLAGS.steps}
            make_run = functools.partial(_pretrain, config, setting, seed)
            compared_runs.run_missing(path, key, make_run)
    rows = compared_runs.read(path)
    text = "\n".join(_table(rows))
    print(text)
    files.write_text(os.path.join(FLAGS.output, "plateau.md"), text + "\n")
    _draw(rows, os.path.join(FLAGS.output, "plateau.png"))


def _write_config():
    """Write BERT-tiny's config with the quickstart's vocabulary; return its path."""
    path = os.path.join(FLAGS.output, "bert_config.json")
    small = BertConfig.from_json_file(ROOT / "configs" / "bert_quickstart.json")
    usual = dataclasses.replace(
        small,
        initializer_range=0.02,
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
    )
    files.write_json(path, usual.to_dict())
    return path


def _pretrain(config, setting, seed):
    """Return the unigram entropy and the held-out loss of each evaluation."""
    folder = os.path.join(FLAGS.output, "run")
    # A run that was stopped starts again, because it takes only minutes.
    shutil.rmtree(folder, ignore_errors=True)
    command = [
        *(sys.executable, ROOT / "run_scripts" / "run_pretraining.py"),
        *("--do_train", "--do_eval", f"--bert_config_file={config}"),
        f"--input_file={FLAGS.records}/train.tfrecord",
        f"--dev_file={FLAGS.records}/heldout.tfrecord",
        f"--vocab_file={FLAGS.records}/vocab.txt",
        f"--output_dir={folder}",
        *("--learning_rate=5e-4", "--train_batch_size=64", "--eval_batch_size=64"),
        f"--num_train_steps={FLAGS.steps}",
        f"--num_warmup_steps={FLAGS.steps // 10}",
        f"--save_checkpoints_steps={EVERY}",
        f"--iterations_per_loop={EVERY}",
        *("--max_eval_steps=16", "--keep_checkpoint_max=1", f"--seed={seed}"),
        *SETTINGS[setting],
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    rows = [row for row in read_metrics(folder) if "eval_masked_lm_loss" in row]
    return {
        "unigram": rows[-1]["eval_unigram_entropy"],
        "curve": [(row["step"], row["eval_masked_lm_loss"]) for row in rows],
    }


def _left_at(row):
    """Return the step of the first evaluation below the plateau; None for none."""
    below = [step for step, loss in row["curve"] if loss < row["unigram"] - BELOW]
    return below[0] if below else None


def _by_setting(rows):
    """Return setting -> its rows, in the order of `SETTINGS`."""
    found = {name: [row for row in rows if row["setting"] == name] for name in SETTINGS}
    return {name: of for name, of in found.items() if of}


def _table(rows):
    """Return the lines of a Markdown table: a row per setting."""
    yield "| setting | steps on the plateau, each seed | held-out loss at the end |"
    yield "|---|---|---|"
    for name, of in _by_setting(rows).items():
        steps = ", ".join(str(_left_at(row) or f"over {row['steps']}") for row in of)
        last = [row["curve"][-1][1] for row in of]
        spread = f" ± {statistics.stdev(last):.2f}" if len(last) > 1 else ""
        yield f"| {name} | {steps} | {statistics.mean(last):.2f}{spread} |"


def _draw(rows, path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    for number, (name, of) in enumerate(_by_setting(rows).items()):
        for row in of:
            label = name if row is of[0] else None
            axes.plot(
                *zip(*row["curve"], strict=True),
                color=f"C{number}",
                linewidth=1,
                label=label,
            )
    axes.axhline(rows[0]["unigram"], color="black", linestyle="--", linewidth=1)
    axes.set(xlabel="step", ylabel="held-out masked-LM loss (nats)")
    axes.legend(fontsize=8)
    with files.atomic_path(path) as temporary:
        figure.savefig(temporary, format="png", dpi=110)


if __name__ == "__main__":
    run(main)
