r"""Fine-tune on GLUE beside PyTorch and transformers: scores and speed.

    python benchmarks/fine_tuning.py --data_dir=glue_data --model=all-MiniLM-L6-v2 \
        --output=fine_tuning.jsonl

For each seed and task, `run_classifier.py` and `peers/fine_tune_pytorch.py` run one
after the other: the same weights (a Hugging Face directory), rows, batch, rate, warm-up
and padding to a batch's longest text. Each run is a line of the output; runs that are
there already are not made again. Scores do not depend on what else the machine does, so
with --who=ours and --who=PyTorch both sides can run at once, on a core each; the ratio
of speeds needs them in alternation on a quiet machine. PyTorch gets an environment of
its own, in --peer_env.
"""

import functools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "run_scripts"))

from absl import flags  # noqa: E402
from command_line import require, run  # noqa: E402

from official_bert.errors import UserError  # noqa: E402
from official_bert.tasks.glue_tasks import find_task  # noqa: E402
from official_bert.training.logs import read_metrics  # noqa: E402

FLAGS = flags.FLAGS

flags.DEFINE_list("tasks", ["mrpc", "rte", "sts-b", "cola", "sst-2"], "Tasks of GLUE.")
flags.DEFINE_string("data_dir", None, "Folder of all tasks' folders.")
flags.DEFINE_string("model", None, "Hugging Face directory of the weights.")
flags.DEFINE_list("seeds", ["1", "2", "3", "4", "5"], "Seeds.")
flags.DEFINE_integer(
    "max_train_rows", 12_000, "Rows to train on at most, the first of the file."
)
flags.DEFINE_float("num_train_epochs", 3, "Epochs of training.")
flags.DEFINE_string("peer_env", "build/peers", "Folder of PyTorch's environment.")
flags.DEFINE_string("output", None, "JSON lines, one for each run.")

OURS, THEIRS = "ours", "PyTorch"
flags.DEFINE_list("who", [OURS, THEIRS], "Whose runs to make.")
BATCH, RATE, LENGTH = 32, "5e-5", 128
PEERS = ROOT / "benchmarks" / "peers"


def main():
    """Make the runs that are missing, then print the tables."""
    require("data_dir", "model", "output")
    makers = {OURS: _ours, THEIRS: _theirs}
    with tempfile.TemporaryDirectory() as folder:
        for seed in map(int, FLAGS.seeds):
            for task in map(find_task, FLAGS.tasks):
                data = _shortened(task, pathlib.Path(folder))
                for who in FLAGS.who:
                    _run_missing(who, task, seed, makers[who], data)
    print("\n".join(table(_rows())))


@functools.cache
def _peer_python():
    """Return the Python of PyTorch's environment, made if it is not there."""
    python = pathlib.Path(FLAGS.peer_env).resolve() / "bin" / "python"
    if not python.exists():
        venv.create(FLAGS.peer_env, with_pip=True)
    subprocess.run(
        [python, "-m", "pip", "install", "-q", "-r", PEERS / "requirements.txt"],
        check=True,
    )
    return python


def _rows():
    if not os.path.exists(FLAGS.output):
        return []
    with open(FLAGS.output, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _run_missing(who, task, seed, make_run, data):
    """Make a run and append its line, unless it is there."""
    key = {"who": who, "task": task.name, "seed": seed}
    if any(row | key == row for row in _rows()):
        return
    row = key | make_run(task, seed, data)
    with open(FLAGS.output, "a", encoding="utf-8") as output:
        output.write(json.dumps(row) + "\n")
    print(row, flush=True)


def _shortened(task, folder):
    """Return a task's folder, whose training file has at most so many rows."""
    source = pathlib.Path(FLAGS.data_dir) / task.directory
    target = folder / task.directory
    if not target.exists():
        target.mkdir()
        header = 0 if task.layouts["train"].num_columns else 1
        for split, most in (("train", header + FLAGS.max_train_rows), ("dev", None)):
            name = task.layouts[split].files[0]
            lines = (source / name).read_bytes().split(b"\n")
            (target / name).write_bytes(b"\n".join(lines[:most]))
    return target


def _ours(task, seed, data):
    """Fine-tune with `run_classifier.py`; return scores and speed."""
    with tempfile.TemporaryDirectory() as output:
        _call(
            [
                sys.executable,
                ROOT / "run_scripts" / "run_classifier.py",
                f"--task_name={task.name}",
                f"--data_dir={data}",
                f"--init_checkpoint={FLAGS.model}",
                f"--output_dir={output}",
                "--do_train",
                "--do_eval",
                f"--max_seq_length={LENGTH}",
                f"--train_batch_size={BATCH}",
                f"--learning_rate={RATE}",
                f"--num_train_epochs={FLAGS.num_train_epochs}",
                f"--seed={seed}",
                # The last model counts, as in PyTorch's loop.
                "--save_checkpoints_steps=1000000",
            ]
        )
        rows = [row for row in read_metrics(output) if "sequences_per_second" in row]
        steps = [row["step"] for row in rows]
        seconds = sum(
            (step - before) * BATCH / row["sequences_per_second"]
            for before, step, row in zip([0, *steps], steps, rows, strict=False)
        )
        results = (pathlib.Path(output) / "eval_results.txt").read_text()
        scores = dict(line.split(" = ") for line in results.splitlines())
    found = {name: float(scores[f"eval_{name}"]) for name in task.metrics}
    return found | _speed(steps[-1], seconds)


def _theirs(task, seed, data):
    """Fine-tune with PyTorch; return scores and speed."""
    done = _call(
        [
            _peer_python(),
            PEERS / "fine_tune_pytorch.py",
            f"--task_name={task.name}",
            f"--data_dir={data}",
            f"--model={FLAGS.model}",
            f"--max_seq_length={LENGTH}",
            f"--batch_size={BATCH}",
            f"--learning_rate={RATE}",
            f"--num_train_epochs={FLAGS.num_train_epochs}",
            f"--seed={seed}",
        ]
    )
    found = json.loads(done.stdout.splitlines()[-1])
    scores = {name: found[name] for name in task.metrics}
    return scores | _speed(found["num_train_steps"], found["seconds"])


def _speed(steps, seconds):
    return {"steps": steps, "seconds": seconds, "rate": steps * BATCH / seconds}


def _call(command):
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise UserError(f"{command[1]} failed: {done.stderr[-500:]}")
    return done


def table(rows):
    """Return lines: for each task and score the means, and the ratio of rates."""
    lines = []
    for task in map(find_task, dict.fromkeys(row["task"] for row in rows)):
        of_task = [row for row in rows if row["task"] == task.name]
        for name in task.metrics:
            groups = [
                [100 * row[name] for row in of_task if row["who"] == who]
                for who in (OURS, THEIRS)
            ]
            spread = "   ".join(
                f"{who} {_mean_and_deviation(group)}"
                for who, group in zip((OURS, THEIRS), groups, strict=True)
            )
            apart = _apart(*groups)
            lines.append(f"{task.name:6} {name:20} {spread}   apart: {apart}")
        ratios = _ratios(of_task)
        if ratios:
            lines.append(
                f"{task.name:6} ours / PyTorch, sequences per second: median "
                f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-"
                f"{max(ratios):.2f}, {len(ratios)} pairs)"
            )
    return lines


def _mean_and_deviation(scores):
    deviation = statistics.stdev(scores) if len(scores) > 1 else float("nan")
    mean = statistics.fmean(scores) if scores else float("nan")
    return f"{mean:.1f} ± {deviation:.1f} ({len(scores)} seeds)"


def _apart(ours, theirs):
    """Return how many pooled standard deviations the means are apart."""
    if min(len(ours), len(theirs)) < 2:
        return "-"
    freedom = len(ours) + len(theirs) - 2
    squares = [
        statistics.variance(scores) * (len(scores) - 1) for scores in (ours, theirs)
    ]
    pooled = (sum(squares) / freedom) ** 0.5
    return f"{(statistics.fmean(ours) - statistics.fmean(theirs)) / pooled:+.2f} sd"


def _ratios(rows):
    """Return ours / theirs of the runs of the same seed, made in alternation."""
    rates = {(row["who"], row["seed"]): row["rate"] for row in rows if row.get("rate")}
    return [
        rate / rates[THEIRS, seed]
        for (who, seed), rate in rates.items()
        if who == OURS and (THEIRS, seed) in rates
    ]


if __name__ == "__main__":
    run(main)
