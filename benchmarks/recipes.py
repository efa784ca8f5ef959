r"""Train recipes for equal time, step by step; draw losses and scores with error bars.

    python benchmarks/recipes.py --input_file='records/*.tfrecord' \
        --dev_file=heldout.tfrecord --vocab_file=vocab.txt \
        --bert_config_file=configs/bert_tiny.json --budget_minutes=30 \
        --glue_data_dir=glue_data --output=output/recipes

The training records need --masking=dynamic. A short run of each recipe measures its
speed. The number of training steps then fills the budget. Each recipe contains the
recipes before it. Repeat the command to resume.

--output is a folder for the runs, `recipes.jsonl`, `tables.md`, `loss.png` and
`scores.png`.
"""

import dataclasses
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
from official_bert.command_line.flag_values import define_positive, require  # noqa: E402
from official_bert.command_line.program import run  # noqa: E402
from official_bert.training.logs.run_log import read_metrics  # noqa: E402

FLAGS = flags.FLAGS

flags.DEFINE_string("input_file", None, "Unmasked TFRecords to train on.")
flags.DEFINE_string("dev_file", None, "Held-out TFRecords, masked at 15 %.")
flags.DEFINE_string("vocab_file", None, "Vocabulary of the records.")
flags.DEFINE_string("bert_config_file", None, "bert_config.json of all models.")
flags.DEFINE_float("budget_minutes", 30.0, "Minutes of training per run.", 0.01)
define_positive("num_seeds", 3, "Pre-training runs per recipe.")
define_positive("speed_steps", 60, "Training steps to measure the speed.")
define_positive("train_batch_size", 32, "Sequences per training step.")
flags.DEFINE_float("learning_rate", 5e-4, "Peak learning rate.")
flags.DEFINE_list("recipes", [], "Recipes to run. Default: all.")
flags.DEFINE_string("glue_data_dir", None, "Folder of GLUE. Default: no GLUE tasks.")
flags.DEFINE_list("tasks", ["SST-2", "STS-B"], "GLUE tasks to fine-tune on.")
flags.DEFINE_string(
    "conll_dir", None, "Folder of CoNLL-2003. Default: no named entities."
)
flags.DEFINE_string("output", None, "Folder for runs, results and figures.")

# Name -> flags in addition to those of the recipes before it. `{decay}` is a fifth of
# the training steps.
RECIPES = {
    "2018": [],
    "no dropout": ["--nodropout"],
    "fan-in": ["--initializer=fan_in"],
    "masking 30 % to 15 %": ["--masked_lm_prob=0.30:0.15"],
    "Muon": ["--optimizer=muon"],
    "constant then decay": [
        "--learning_rate_schedule=constant_decay",
        "--num_decay_steps={decay}",
    ],
}
LOSS = "eval_masked_lm_loss"
CONLL = "CoNLL"
# Task -> name of its score, a share from 0 to 1 or a correlation.
SCORES = {"SST-2": "eval_accuracy", "STS-B": "eval_spearman", CONLL: "eval_f1"}


@dataclasses.dataclass(frozen=True)
class PretrainingRun:
    """One pre-training: a recipe and a seed."""

    recipe: str
    seed: int

    def folder(self, part):
        """Return the output directory of a part of the run."""
        name = self.recipe.replace(" ", "-").replace("%", "percent")
        return os.path.join(FLAGS.output, part, f"{name}_seed-{self.seed}")

    def flags(self, num_train_steps):
        """Return the flags of the recipe and of all recipes before it."""
        names = list(RECIPES)
        found = [
            flag
            for name in names[: names.index(self.recipe) + 1]
            for flag in RECIPES[name]
        ]
        decay = max(1, num_train_steps // 5)
        return [flag.format(decay=decay) for flag in found]


def main():
    """Run all recipes, write the results and draw the figures."""
    require("input_file", "dev_file", "vocab_file", "bert_config_file", "output")
    os.makedirs(FLAGS.output, exist_ok=True)
    rows = []
    for recipe in FLAGS.recipes or RECIPES:
        steps = _steps_of_budget(recipe)
        for seed in range(1, FLAGS.num_seeds + 1):
            one = PretrainingRun(recipe, seed)
            print(f"{recipe}, seed {seed}: {steps} training steps", flush=True)
            _pretrain(one, "models", steps)
            row = {"recipe": recipe, "seed": seed, "num_train_steps": steps}
            row["curve"] = _curve(one.folder("models"))
            row["loss"] = row["curve"][-1][1]
            row["scores"] = {task: _fine_tune(one, task) for task in _tasks()}
            rows.append(row)
            _write(rows)


def _tasks():
    glue = FLAGS.tasks if FLAGS.glue_data_dir else []
    return [*glue, CONLL] if FLAGS.conll_dir else glue


def _steps_of_budget(recipe):
    """Return the number of training steps that fill the budget."""
    one = PretrainingRun(recipe, 0)
    _pretrain(one, "speed", FLAGS.speed_steps)
    # The first rows contain the compilation.
    rows = [row for row in read_metrics(one.folder("speed")) if "loss" in row]
    speed = statistics.median(row["sequences_per_second"] for row in rows[2:])
    seconds = 60 * FLAGS.budget_minutes
    return max(10, int(seconds * speed / FLAGS.train_batch_size))


def _pretrain(one, part, num_train_steps):
    every = max(1, num_train_steps // 10)
    _command(
        "run_pretraining",
        "--do_train",
        "--do_eval",
        f"--input_file={FLAGS.input_file}",
        f"--dev_file={FLAGS.dev_file}",
        f"--vocab_file={FLAGS.vocab_file}",
        f"--bert_config_file={FLAGS.bert_config_file}",
        f"--train_batch_size={FLAGS.train_batch_size}",
        f"--learning_rate={FLAGS.learning_rate}",
        f"--num_train_steps={num_train_steps}",
        f"--num_warmup_steps={num_train_steps // 10}",
        f"--save_checkpoints_steps={every}",
        f"--iterations_per_loop={max(1, every // 2)}",
        "--max_eval_steps=32",
        "--eval_batch_size=32",
        "--keep_checkpoint_max=1",
        f"--seed={one.seed}",
        f"--output_dir={one.folder(part)}",
        *one.flags(num_train_steps),
    )


def _fine_tune(one, task):
    """Return the score of a task, from the dev set."""
    folder = one.folder(task)
    if task == CONLL:
        command = (
            "run_ner",
            f"--train_file={FLAGS.conll_dir}/train.txt",
            f"--dev_file={FLAGS.conll_dir}/valid.txt",
        )
    else:
        data = f"--data_dir={FLAGS.glue_data_dir}"
        command = ("run_classifier", f"--task_name={task}", data)
    _command(
        *command,
        "--do_train",
        "--do_eval",
        f"--model={one.folder('models')}",
        "--bias_correction",
        f"--seed={one.seed}",
        f"--output_dir={folder}",
    )
    path = os.path.join(folder, "eval_results.txt")
    lines = files.read_text(path, "the results of an evaluation").splitlines()
    values = dict(line.split(" = ") for line in lines if " = " in line)
    return float(values[SCORES[task]])


def _command(script, *arguments):
    command = [sys.executable, str(ROOT / "run_scripts" / f"{script}.py"), *arguments]
    subprocess.run(command, check=True)


def _curve(folder):
    """Return (minutes of training, held-out loss) of each evaluation."""
    minutes, last, points = 0.0, 0, []
    for row in read_metrics(folder):
        if "sequences_per_second" in row:
            sequences = (row["step"] - last) * FLAGS.train_batch_size
            minutes += sequences / row["sequences_per_second"] / 60
            last = row["step"]
        if LOSS in row:
            points.append((minutes, row[LOSS]))
    return points


def _write(rows):
    """Write the rows, both tables and both figures."""
    text = "".join(json.dumps(row) + "\n" for row in rows)
    files.write_text(os.path.join(FLAGS.output, "recipes.jsonl"), text)
    names = dict.fromkeys(row["recipe"] for row in rows)
    of = {name: [row for row in rows if row["recipe"] == name] for name in names}
    losses = {name: _spread([row["loss"] for row in of[name]]) for name in names}
    scores = {
        task: {n: _spread([100 * row["scores"][task] for row in of[n]]) for n in names}
        for task in _tasks()
    }
    tables = [_table({"held-out loss": losses}, 3), _table(scores, 1)]
    files.write_text(os.path.join(FLAGS.output, "tables.md"), "\n".join(tables))
    _draw_losses(of)
    if scores:
        _draw_scores(scores)


def _table(columns, digits):
    """Return a Markdown table: a row per recipe, which includes those above it."""
    if not columns:
        return ""
    lines = [
        "| recipe | " + " | ".join(columns) + " |",
        "|---" * (len(columns) + 1) + "|",
    ]
    for name in next(iter(columns.values())):
        spreads = [column[name] for column in columns.values()]
        cells = [f"{mean:.{digits}f} ± {s:.{digits}f}" for mean, s in spreads]
        lines.append("| " + " | ".join([name, *cells]) + " |")
    return "\n".join(lines) + "\n"


def _spread(values):
    """Return mean and standard deviation; 0 for one value."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return statistics.mean(values), deviation


def _draw_losses(of):
    """Draw the held-out losses over the time of training."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for number, (name, rows) in enumerate(of.items()):
        for row in rows:
            label = name if row is rows[0] else None
            axes.plot(*zip(*row["curve"], strict=True), color=f"C{number}", label=label)
    axes.set(xlabel="minutes of training", ylabel="held-out masked-LM loss")
    axes.legend()
    figure.savefig(os.path.join(FLAGS.output, "loss.png"), dpi=150)


def _draw_scores(scores):
    """Draw the score of each task and recipe, with its standard deviation."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for task, by_name in scores.items():
        means, deviations = zip(*by_name.values(), strict=True)
        names = list(by_name)
        axes.errorbar(names, means, deviations, marker="o", capsize=4, label=task)
    axes.set(ylabel="score of the dev set, %")
    axes.tick_params(axis="x", rotation=20)
    axes.legend()
    figure.savefig(os.path.join(FLAGS.output, "scores.png"), dpi=150)


if __name__ == "__main__":
    run(main)
