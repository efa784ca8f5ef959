r"""Fine-tune with this project and with PyTorch and transformers: scores and speed.

    python benchmarks/fine_tuning.py --data_dir=glue_data --model=all-MiniLM-L6-v2 \
        --output=fine_tuning.jsonl
    python benchmarks/fine_tuning.py --tasks=squad1,conll --model=all-MiniLM-L6-v2 \
        --squad1_files=train-v1.1.json,dev-v1.1.json \
        --conll_files=train.txt,valid.txt,test.txt --output=fine_tuning.jsonl

For each seed and task, our command and PyTorch's script in `peers` run one
after the other. Both use the same weights (a Hugging Face directory), rows,
windows, batch, learning rate, warm-up and padding to a batch's longest text.
`compared_tasks.py` has the settings of each task. Each run is a line of the
output; existing runs are not repeated. Scores do not depend on the machine's
load, so with --who=ours and --who=PyTorch both sides can run at once, on one
core each. The ratio of speeds needs alternating runs on an idle machine.
PyTorch has a separate environment, in --peer_env.
"""

import contextlib
import functools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from absl import flags  # noqa: E402

from benchmarks import compared_runs  # noqa: E402
from benchmarks.compared_tasks import (  # noqa: E402
    ARC,
    CONLL,
    SQUAD_1,
    SQUAD_2,
    TASKS,
    check_sources,
    find_task,
)
from benchmarks.peers import environment  # noqa: E402
from official_bert.command_line.flag_values import require  # noqa: E402
from official_bert.command_line.program import run  # noqa: E402
from official_bert.errors import UserError  # noqa: E402

FLAGS = flags.FLAGS

flags.DEFINE_list(
    "tasks",
    ["mrpc", "rte", "sts-b", "cola", "sst-2"],
    f"GLUE tasks, and {', '.join(TASKS)}.",
)
flags.DEFINE_string(
    "data_dir", None, "Folder that contains the folders of the GLUE tasks."
)
flags.DEFINE_list("squad1_files", [], f"{', '.join(SQUAD_1.sources)}.")
flags.DEFINE_list("squad2_files", [], f"{', '.join(SQUAD_2.sources)}.")
flags.DEFINE_list("conll_files", [], f"{', '.join(CONLL.sources)}.")
flags.DEFINE_list(
    "arc_files",
    [],
    f"{', '.join(ARC.sources)}. Each may be a pattern, such as arc/*/train.csv.",
)
flags.DEFINE_string("model", None, "Hugging Face directory of the weights.")
flags.DEFINE_list("seeds", ["1", "2", "3", "4", "5"], "Seeds.")
flags.DEFINE_integer(
    "max_train_rows",
    None,
    "Maximum number of rows, questions or sentences for training, from the "
    "beginning of the file; default: 12000 for GLUE, all for the others.",
    lower_bound=1,
)
flags.DEFINE_integer(
    "max_dev_rows",
    None,
    "Maximum number for evaluation; default: all. Use few for a short "
    "speed measurement.",
    lower_bound=1,
)
flags.DEFINE_float(
    "num_train_epochs", None, "Training epochs; default: 2 for SQuAD, else 3."
)
flags.DEFINE_string("peer_env", "build/peers", "Folder of PyTorch's environment.")
flags.DEFINE_string("output", None, "JSON lines file, one line per run.")

flags.DEFINE_string(
    "models_dir",
    None,
    "Folder that keeps our models as TASK_SEED; default: models are deleted.",
)

OURS, THEIRS = "ours", "PyTorch"
WITH = f"{OURS} with "
flags.DEFINE_multi_string(
    "who",
    [OURS, THEIRS],
    f'Sides to run: {OURS}, "{WITH}--bias_correction", "{WITH}" and other flags of our '
    f"command, {THEIRS}. --flagfile=stable is a flag, too.",
)


def main():
    """Run what is missing, then print the tables."""
    require("model", "output")
    tasks = list(map(find_task, FLAGS.tasks))
    sources = list(map(_sources_of, tasks))
    makers = {who: _maker(who) for who in FLAGS.who}
    with tempfile.TemporaryDirectory() as folder:
        data = [
            _prepare(task, paths, pathlib.Path(folder) / task.name)
            for task, paths in zip(tasks, sources, strict=True)
        ]
        for seed in map(int, FLAGS.seeds):
            for task, data_flags in zip(tasks, data, strict=True):
                for who in FLAGS.who:
                    key = {"who": who, "task": task.name, "seed": seed}
                    make_run = functools.partial(makers[who], task, seed, data_flags)
                    compared_runs.run_missing(FLAGS.output, key, make_run)
    print("\n".join(table(compared_runs.read(FLAGS.output))))


def _maker(who):
    """Return the function that fine-tunes a side.

    Raises:
      UserError: no such side.
    """
    if who == THEIRS:
        return _theirs
    if who == OURS:
        return _ours
    if not who.startswith(WITH):
        raise UserError(f'--who={who} is not {OURS}, "{WITH}…" or {THEIRS}.')
    return functools.partial(_ours, further=who.removeprefix(WITH).split())


def _sources_of(task):
    """Return the paths in the flags of a task, a list of str."""
    if task.name not in TASKS:
        require("data_dir")
        return [FLAGS.data_dir]
    name = f"{task.name}_files"
    require(name)
    check_sources(task, FLAGS[name].value)
    return FLAGS[name].value


def _prepare(task, sources, folder):
    """Write a task's files; return the flags for them."""
    folder.mkdir()
    max_train_rows = FLAGS.max_train_rows or task.max_train_rows
    return task.prepare(sources, folder, max_train_rows, FLAGS.max_dev_rows)


def _flags(task, seed, data_flags):
    """Return the flags of both sides."""
    epochs = FLAGS.num_train_epochs
    if epochs is None:
        epochs = task.num_train_epochs
    return [
        *data_flags,
        *task.setting_flags(),
        f"--init_checkpoint={FLAGS.model}",
        f"--num_train_epochs={epochs}",
        f"--seed={seed}",
    ]


def _ours(task, seed, data_flags, further=()):
    """Fine-tune with our command; return scores and speed."""
    with _output_dir(f"{task.name}_{seed}") as output:
        command = [
            sys.executable,
            ROOT / "run_scripts" / task.script,
            *_flags(task, seed, data_flags),
            *task.our_flags,
            *further,
            f"--output_dir={output}",
            # The last model counts, as in PyTorch's loop.
            "--save_checkpoints_steps=1000000",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise UserError(f"{task.script} failed: {done.stderr[-500:]}")
        # Further flags may change the batch size.
        training = compared_runs.training_time(output)
        scores = task.read_scores(output)
    return _result(task, scores, *training)


def _output_dir(name):
    """Return a context with the folder for our model."""
    if FLAGS.models_dir:
        return contextlib.nullcontext(os.path.join(FLAGS.models_dir, name))
    return tempfile.TemporaryDirectory()


def _theirs(task, seed, data_flags):
    """Fine-tune with PyTorch; return scores and speed."""
    arguments = _flags(task, seed, data_flags)
    output = environment.run(FLAGS.peer_env, task.peer, arguments)
    report = json.loads(output.splitlines()[-1])
    time = report["num_train_steps"], report["seconds"], task.train_batch_size
    return _result(task, report, *time)


def _result(task, scores, steps, seconds, batch_size):
    """Return the record of a run, without its key."""
    rate = steps * batch_size / seconds
    task_scores = {name: scores[name] for name in task.scores}
    return task_scores | {"steps": steps, "seconds": seconds, "rate": rate}


def table(records):
    """Return lines with the mean scores of each task, and the ratio of speeds.

    The difference of the means is in pooled standard deviations, ours minus
    PyTorch's.
    """
    lines = []
    sides = dict.fromkeys(one["who"] for one in records)
    for task in map(find_task, dict.fromkeys(one["task"] for one in records)):
        of_task = [one for one in records if one["task"] == task.name]
        for name in task.scores:
            groups = {
                who: [100 * one[name] for one in of_task if one["who"] == who]
                for who in sides
            }
            theirs = groups.get(THEIRS, [])
            for who, group in groups.items():
                if group:
                    line = f"{task.name:6} {name:20} {who:27} "
                    line += compared_runs.mean_and_deviation(group)
                    if who != THEIRS:
                        line += f"   apart: {compared_runs.apart(group, theirs)}"
                    lines.append(line)
        ratios = compared_runs.ratios(of_task, OURS, THEIRS)
        if ratios:
            lines.append(
                f"{task.name:6} ours / PyTorch, sequences per second: median "
                f"{statistics.median(ratios):.2f} ({min(ratios):.2f}-"
                f"{max(ratios):.2f}, {len(ratios)} pairs)"
            )
    return lines


if __name__ == "__main__":
    run(main)
