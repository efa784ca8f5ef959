r"""Train sentence embeddings with this project and with sentence-transformers.

    python benchmarks/embeddings.py --train_file=STS-B/train.tsv \
        --dev_file=STS-B/dev.tsv --model=all-MiniLM-L6-v2 --output=embeddings.jsonl

For each seed, our command and a script with sentence-transformers and PyTorch run one
after the other. Both use the same weights (a sentence-transformers directory), rows,
batch size, temperature, learning rate and warm-up, and pad to a batch's longest text.
Ours runs with --bias_correction, because PyTorch's AdamW corrects the bias: without
dropout, all training steps are then equal. The last model counts. Each run is a line of
the output: Spearman correlation on the dev and test set, seconds per training step, and
texts per second, which counts tracing. Existing runs are not repeated. Scores do not
depend on the machine's load, so with --who both sides can run at once. PyTorch has a
separate environment, in --peer_env.

With --speed_rounds, both sides then compute training steps in alternating turns, on one
thread each. Processor time counts, so other work on the machine hardly changes it.
--results writes all tables for `benchmarks/figures`.

GLUE's test.tsv has no scores. Use --num_test_rows, or the test set of the STS benchmark
itself.
"""

import functools
import json
import operator
import pathlib
import random
import shlex
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from absl import flags  # noqa: E402

from benchmarks import compared_runs  # noqa: E402
from benchmarks.peers import environment  # noqa: E402
from benchmarks.yardstick import processes  # noqa: E402
from official_bert import files  # noqa: E402
from official_bert.command_line.flag_values import require  # noqa: E402
from official_bert.command_line.program import run  # noqa: E402
from official_bert.errors import UserError  # noqa: E402
from official_bert.training.logs import eval_results  # noqa: E402

FLAGS = flags.FLAGS
OURS, THEIRS = "ours", "sentence-transformers"
OURS_COMPILED = "ours, compiled as in long runs"
STEPS_PER_TURN = 4
THREADS = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
ONE_THREAD = dict.fromkeys(THREADS, "1")
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
flags.DEFINE_string("results", None, "JSON file for the tables.")
flags.DEFINE_string("machine", "unknown", "The machine, for --results.")
flags.DEFINE_integer("speed_rounds", 0, "Alternating turns to measure speed.", 0)
flags.DEFINE_list("who", [OURS, THEIRS], f"Sides to run: {OURS}, {THEIRS}.")


def main():
    """Make the missing runs, then print the table."""
    require("train_file", "dev_file", "model", "output")
    makers = {OURS: _ours, THEIRS: _theirs}
    speed = None
    with tempfile.TemporaryDirectory() as folder:
        data = _data_flags(pathlib.Path(folder))
        for seed in map(int, FLAGS.seeds):
            for who in FLAGS.who:
                key = {"who": who, "seed": seed}
                key |= {name: FLAGS[name].value for name in SHARED}
                compared_runs.run_missing(
                    FLAGS.output, key, functools.partial(makers[who], data, seed)
                )
        if FLAGS.speed_rounds:
            speed = _measure_speed(data["train_file"])
            print(f"Seconds of processor time per training step: {speed}")
    records = compared_runs.read(FLAGS.output)
    print("\n".join(table(records)))
    if FLAGS.results:
        files.write_json(FLAGS.results, results(records, speed))


def _data_flags(folder):
    """Write the rows that the flags choose; return the paths, by name of a flag."""
    parts = {}
    for name in ("train_file", "dev_file", "test_file"):
        if path := FLAGS[name].value:
            text = pathlib.Path(path).read_text("utf-8")
            header, *rows = text.rstrip("\n").split("\n")
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
        lines = [header, *rows[: FLAGS.max_rows], ""]
        found[name].write_text("\n".join(lines), "utf-8")
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
        steps, seconds, _ = compared_runs.training_time(train)
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


def _measure_speed(train_file):
    """Return the seconds of one core per training step: name -> list, one per turn."""
    arguments = {
        "model": FLAGS.model,
        "train_file": str(train_file),
        "loss": FLAGS.loss,
        "temperature": FLAGS.temperature,
        "batch": FLAGS.train_batch_size,
        "calls": STEPS_PER_TURN,
    }

    def variant(name, module, **others):
        own = {**arguments, **others}
        is_peer = name == THEIRS
        return processes.Variant(
            name, module, "embedding_training", own, is_peer, environment=ONE_THREAD
        )

    variants = [
        variant(OURS, "ours", compiled=False),
        variant(OURS_COMPILED, "ours", compiled=True),
        variant(THEIRS, "peers.pytorch.embeddings"),
    ]
    python = environment.peer_python(FLAGS.peer_env)
    seconds, _, _ = processes.take_turns(
        variants, FLAGS.speed_rounds, 1, python, "cpu_seconds"
    )
    return {
        name: [one / STEPS_PER_TURN for one in turns] for name, turns in seconds.items()
    }


def results(records, speed):
    """Return the content of a file of `benchmarks/results`.

    Args:
      records: of all runs.
      speed: result of `_measure_speed`, or None.
    """
    steps = max(one["steps"] for one in records)
    rows = []
    for part in ("dev", "test"):
        name = f"{part}_spearman"
        ours, theirs = (
            [100 * one[name] for one in records if one["who"] == who and name in one]
            for who in (OURS, THEIRS)
        )
        if ours and theirs:
            apart = compared_runs.apart(ours, theirs).removesuffix(" sd")
            rows.append([f"Spearman, {part}", _spread(ours), _spread(theirs), apart])
    tables = {
        "scores": {
            "columns": ["STS-B", "official_bert", THEIRS, "apart"],
            "rows": rows,
        }
    }
    if speed:
        theirs = speed[THEIRS]
        tables["speed"] = {
            "columns": ["program", "seconds per training step", f"speed / {THEIRS}"],
            "rows": [
                [
                    name.replace(OURS, "official_bert"),
                    round(statistics.median(turns), 3),
                    round(
                        statistics.median(map(operator.truediv, theirs, turns)),
                        2,
                    ),
                ]
                for name, turns in speed.items()
            ],
        }
    return {
        "about": f"MiniLM trained for {steps} steps; {FLAGS.loss}, batch "
        f"{FLAGS.train_batch_size}. Scores: mean and standard deviation of seeds. "
        "Speed: processor time on one thread each, in alternating turns.",
        "commands": [_command()],
        "machine": FLAGS.machine,
        "seed": " ".join(FLAGS.seeds),
        "tables": tables,
    }


def _spread(scores):
    """Return a cell with mean and standard deviation; of one score, the score."""
    if len(scores) == 1:
        return round(scores[0], 2)
    return [round(statistics.fmean(scores), 2), round(statistics.stdev(scores), 2)]


def _command():
    """Return this command, without the flags that only this machine needs."""
    others = ("--machine", "--peer_env", "--who")
    kept = [one for one in sys.argv[1:] if not one.startswith(others)]
    return shlex.join(["python", "benchmarks/embeddings.py", *kept])


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
