r"""Train sentence embeddings with this project and with sentence-transformers.

    python benchmarks/embeddings.py --train_file=STS-B/train.tsv \
        --dev_file=STS-B/dev.tsv --model=all-MiniLM-L6-v2 --output=embeddings.jsonl

For each seed, our command and a script with sentence-transformers and PyTorch run one
after the other. Both use the same weights (a sentence-transformers directory), rows,
batch size, temperature, learning rate and warm-up, and pad to a batch's longest text.
Ours runs with --bias_correction, because PyTorch's AdamW corrects the bias: without
dropout, all training steps are then equal. The last model counts. Each run is a line of
the output: Spearman correlation on the dev and test set, seconds per training step, and
texts per second. Existing runs are not repeated. Scores do not depend on the machine's
load, so with --who and one thread each, both sides can run at once. The ratio of speeds
needs an idle machine. PyTorch has a separate environment, in --peer_env.

GLUE's test.tsv has no scores. Use --num_test_rows, or the test set of the STS benchmark
itself.
"""

import functools
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from absl import flags  # noqa: E402

from benchmarks import compared_runs  # noqa: E402
from benchmarks.peers import environment  # noqa: E402
from official_bert.command_line.flag_values import require  # noqa: E402
from official_bert.command_line.program import run  # noqa: E402
from official_bert.errors import UserError  # noqa: E402
from official_bert.training.logs import eval_results  # noqa: E402

FLAGS = flags.FLAGS
OURS, THEIRS = "ours", "sentence-transformers"
# Flags that both sides get.
SHARED = (
    "loss",
    "temperature",
    "max_seq_length",
    "train_batch_size",
    "learning_rate",
    "num_train_epochs",
)

flags.DEFINE_string("train_file", None, "Pairs with scores to train on.")
flags.DEFINE_string("dev_file", None, "Pairs with scores to evaluate on.")
flags.DEFINE_string("test_file", None, "More pairs with scores to evaluate on.")
flags.DEFINE_string("model", None, "sentence-transformers directory of the weights.")
flags.DEFINE_list("seeds", ["1", "2", "3", "4", "5"], "Seeds.")
flags.DEFINE_enum("loss", "cosent", ["cosent", "info_nce"], "Loss of both sides.")
flags.DEFINE_float("temperature", 0.05, "Divisor of cosines.", 1e-6)
flags.DEFINE_integer("max_seq_length", 128, "Maximum tokens of a text.", 3)
flags.DEFINE_integer("train_batch_size", 32, "Pairs per training step.", 1)
flags.DEFINE_float("learning_rate", 2e-5, "Highest learning rate.", 0)
flags.DEFINE_float("num_train_epochs", 4, "Training epochs.", 0)
flags.DEFINE_integer(
    "max_rows",
    None,
    "Maximum number of rows of each file, a random sample. Default: all.",
    lower_bound=2,
)
flags.DEFINE_integer(
    "num_test_rows",
    None,
    "Test on this number of random rows of --train_file, and train on the others.",
    lower_bound=2,
)
flags.DEFINE_string("peer_env", "build/peers", "Folder of PyTorch's environment.")
flags.DEFINE_string("output", None, "JSON lines file, one line per run.")
flags.DEFINE_list("who", [OURS, THEIRS], f"Sides to run: {OURS}, {THEIRS}.")


def main():
    """Make the missing runs, then print the table."""
    require("train_file", "dev_file", "model", "output")
    makers = {OURS: _ours, THEIRS: _theirs}
    with tempfile.TemporaryDirectory() as folder:
        data = _data_flags(pathlib.Path(folder))
        for seed in map(int, FLAGS.seeds):
            for who in FLAGS.who:
                key = {"who": who, "seed": seed}
                key |= {name: FLAGS[name].value for name in SHARED}
                compared_runs.run_missing(
                    FLAGS.output, key, functools.partial(makers[who], data, seed)
                )
    print("\n".join(table(compared_runs.read(FLAGS.output))))


def _data_flags(folder):
    """Write the rows that the flags choose; return the paths, by name of a flag."""
    parts = {}
    for name in ("train_file", "dev_file", "test_file"):
        if path := FLAGS[name].value:
            header, *rows = pathlib.Path(path).read_text("utf-8").splitlines(True)
            # The files are sorted by source, so their beginnings are no fair sample.
            random.Random(0).shuffle(rows)
            parts[name] = header, rows, pathlib.Path(path).suffix
    if count := FLAGS.num_test_rows:
        header, rows, suffix = parts["train_file"]
        parts["test_file"] = header, rows[:count], suffix
        parts["train_file"] = header, rows[count:], suffix
    found = {}
    for name, (header, rows, suffix) in parts.items():
        found[name] = folder / f"{name}{suffix}"
        found[name].write_text("".join([header, *rows[: FLAGS.max_rows]]), "utf-8")
    return found


def _flags(seed):
    """Return the flags of both sides except those of the files."""
    shared = [f"--{name}={FLAGS[name].value}" for name in SHARED]
    return [*shared, f"--init_checkpoint={FLAGS.model}", f"--seed={seed}"]


def _ours(data, seed):
    """Train with our command; return scores and speed."""
    with tempfile.TemporaryDirectory() as folder:
        train, test = (pathlib.Path(folder) / name for name in ("train", "test"))
        _run_ours(
            *_flags(seed),
            "--bias_correction",
            "--do_train",
            "--do_eval",
            f"--train_file={data['train_file']}",
            f"--dev_file={data['dev_file']}",
            f"--output_dir={train}",
            # The last model counts, as in PyTorch's loop.
            "--save_checkpoints_steps=1000000",
        )
        size = FLAGS.train_batch_size
        steps, seconds = compared_runs.steps_and_seconds(train, size)
        scores = {"dev_spearman": eval_results.read(train)["eval_spearman"]}
        if "test_file" in data:
            _run_ours(
                "--do_eval",
                f"--dev_file={data['test_file']}",
                f"--init_checkpoint={train}",
                f"--output_dir={test}",
            )
            scores["test_spearman"] = eval_results.read(test)["eval_spearman"]
    return _result(scores, steps, seconds)


def _run_ours(*arguments):
    script = ROOT / "run_scripts" / "run_embedding.py"
    command = [sys.executable, script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError(f"run_embedding.py failed: {done.stderr[-500:]}")


def _theirs(data, seed):
    """Train with sentence-transformers; return scores and speed."""
    files = [f"--{name}={path}" for name, path in data.items()]
    output = environment.run(
        FLAGS.peer_env, "pytorch.embeddings", [*_flags(seed), *files]
    )
    report = json.loads(output.splitlines()[-1])
    scores = {key: value for key, value in report.items() if "spearman" in key}
    return _result(scores, report["num_train_steps"], report["seconds"])


def _result(scores, steps, seconds):
    """Return the record of a run, without its key."""
    rate = 2 * FLAGS.train_batch_size * steps / seconds
    return scores | {
        "steps": steps,
        "seconds_per_step": seconds / steps,
        "rate": rate,
    }


def table(records):
    """Return lines with the mean scores, seconds per step, and the ratio of speeds.

    The difference of the means is in pooled standard deviations, ours minus theirs.
    """
    lines = []
    for name in ("dev_spearman", "test_spearman", "seconds_per_step"):
        groups = {
            who: [one[name] for one in records if one["who"] == who and name in one]
            for who in (OURS, THEIRS)
        }
        groups = {who: group for who, group in groups.items() if group}
        if name == "seconds_per_step":
            lines += [
                f"{name:16} {who:22} median {statistics.median(group):.3f}"
                for who, group in groups.items()
            ]
            continue
        groups = {who: [100 * one for one in group] for who, group in groups.items()}
        lines += [
            f"{name:16} {who:22} {compared_runs.mean_and_deviation(group)}"
            for who, group in groups.items()
        ]
        if len(groups) == 2:
            lines[-2] += f"   apart: {compared_runs.apart(*groups.values())}"
    ratios = compared_runs.ratios(records, OURS, THEIRS)
    if ratios:
        lines.append(
            f"ours / {THEIRS}, texts per second: median "
            f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f}, "
            f"{len(ratios)} pairs)"
        )
    return lines


if __name__ == "__main__":
    run(main)
