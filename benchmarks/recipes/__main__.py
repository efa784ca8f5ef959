r"""Train recipes for equal time with several seeds, and fine-tune the models.

    python -m benchmarks.recipes --input_file=books.txt --budget_minutes=3 \
        --output=output/recipes
    python -m benchmarks.recipes --input_file=books.txt --budget_minutes=30 \
        --recipe=2018 --recipe=budget --glue_data_dir=glue_data --conll_dir=conll2003 \
        --output=output/recipes

One document in 20 is held out and masked at 15 %. A short run of each recipe on the
idle machine measures its speed. The number of training steps then fills the budget, so
the runs themselves may be disturbed. Evaluations do not count. Each model is fine-tuned
with several seeds, with and without dropout. `settings.py` lists the recipes. --output
is a folder for all files and for `recipe_runs.jsonl`, one line per result. Repeat the
command to resume.
"""

import concurrent.futures
import dataclasses
import functools
import itertools
import os
import pathlib
import statistics
import subprocess
import sys

from absl import flags

from benchmarks import compared_runs
from benchmarks.recipes.settings import RATES, RECIPES, folder_name
from official_bert import files
from official_bert.ablations import heldout_text
from official_bert.ablations.tables import TASKS
from official_bert.command_line.flag_values import define_positive, require
from official_bert.command_line.program import run
from official_bert.config import BertConfig
from official_bert.errors import UserError
from official_bert.training.logs import eval_results
from official_bert.training.logs.run_log import read_metrics

FLAGS = flags.FLAGS

flags.DEFINE_string("input_file", None, "Text: a sentence per line, a blank line.")
flags.DEFINE_enum("size", "tiny", list(RATES), "Size of the models.")
flags.DEFINE_float("budget_minutes", 3.0, "Minutes of training per run.", 0.01)
define_positive("num_seeds", 3, "Pre-training runs per recipe.")
define_positive(
    "fine_tuning_seeds", 3, "Fine-tunings per model and task, with and without dropout."
)
define_positive("speed_steps", 200, "Training steps to measure the speed.")
flags.DEFINE_multi_enum("recipe", None, list(RECIPES), "Run only this recipe.")
flags.DEFINE_string("glue_data_dir", None, "Folder of GLUE, for SST-2 and STS-B.")
flags.DEFINE_string("conll_dir", None, "Folder with train.txt and valid.txt.")
define_positive(
    "jobs",
    1,
    "Runs at the same time, on one core each. Speeds are still those of all cores.",
)
flags.DEFINE_string("output", None, "Folder for all files.")

ROOT = pathlib.Path(__file__).resolve().parents[2]
BATCH_SIZE = 64
NUM_EVALUATIONS = 10


def main():
    """Make the missing runs."""
    require("input_file", "output")
    recipes = FLAGS.recipe or list(RECIPES)
    os.makedirs(FLAGS.output, exist_ok=True)
    _write_configs()
    _write_records({RECIPES[recipe].records for recipe in recipes})
    speeds = {recipe: _speed(recipe) for recipe in recipes}
    cores = itertools.cycle(sorted(os.sched_getaffinity(0)))

    def take_core():
        if FLAGS.jobs > 1:
            # Children of this thread inherit it.
            os.sched_setaffinity(0, {next(cores)})

    with concurrent.futures.ThreadPoolExecutor(FLAGS.jobs, initializer=take_core) as (
        pool
    ):
        seeds = range(1, FLAGS.num_seeds + 1)
        # All recipes have a first seed before any has a second one.
        runs = [
            pool.submit(_run, recipe, seed, speeds[recipe])
            for seed, recipe in itertools.product(seeds, recipes)
        ]
        try:
            for done in concurrent.futures.as_completed(runs):
                done.result()
        except BaseException:
            # Otherwise an error would appear after all other runs.
            pool.shutdown(cancel_futures=True)
            raise


def _path(*parts):
    # Absolute, because commands run in the project's folder.
    return os.path.abspath(os.path.join(FLAGS.output, *parts))


def _run(recipe, seed, speed):
    """Pre-train a model and fine-tune it."""
    one = PretrainingRun(recipe, seed, FLAGS.budget_minutes)
    steps = one.steps_at(speed)
    _record(one.key("loss"), functools.partial(_pretrain, one, steps))
    seeds = range(1, FLAGS.fine_tuning_seeds + 1)
    # All tasks have a first seed before any has a second one.
    for seed, task, dropout in itertools.product(seeds, _tasks(), (True, False)):
        how = {"task": task, "fine_tuning_seed": seed, "dropout": dropout}
        _record(one.key("score", **how), functools.partial(_fine_tune, one, how))


def _record(key, make_run):
    compared_runs.run_missing(_path("recipe_runs.jsonl"), key, make_run)


def _speed(recipe):
    """Return the mean sequences per second of a recipe on all cores."""
    share = RECIPES[recipe].causal_share
    masked = _measured_speed(recipe, is_causal=False)
    if not share:
        return masked
    # A left-to-right model predicts all tokens, so its steps take longer.
    causal = _measured_speed(recipe, is_causal=True)
    return 1 / (share / causal + (1 - share) / masked)


def _measured_speed(recipe, is_causal):
    """Return the sequences per second of one part of a recipe.

    Recipes whose training steps cost the same share a speed: differences between them
    would be noise.
    """
    one = PretrainingRun(recipe, seed=int(is_causal), minutes=0)
    cost = "causal " * is_causal + one.recipe.cost
    key = {"part": "speed", "size": FLAGS.size, "cost": cost}
    _record(key, lambda: _measure_speed(one, is_causal))
    found = compared_runs.read(_path("recipe_runs.jsonl"))
    return statistics.median(
        row["sequences_per_second"] for row in found if row | key == row
    )


def _measure_speed(one, is_causal):
    config = _config(one.recipe.initializer_range, is_causal)
    _command(
        "run_pretraining",
        *one.flags(FLAGS.speed_steps),
        f"--bert_config_file={config}",
    )
    # The first rows contain the compilation.
    rows = [row for row in read_metrics(one.folder) if "sequences_per_second" in row]
    speeds = [row["sequences_per_second"] for row in rows[2:]]
    return {"sequences_per_second": round(statistics.median(speeds), 1)}


@dataclasses.dataclass(frozen=True)
class PretrainingRun:
    """One pre-training.

    Attributes:
      name: a key of `RECIPES`.
      seed: its seed.
      minutes: its budget; 0 for a run that measures the speed.
    """

    name: str
    seed: int
    minutes: float

    @property
    def recipe(self):
        """Return the `Recipe`."""
        return RECIPES[self.name]

    @property
    def folder(self):
        """Return the output directory."""
        name = folder_name(self.name, FLAGS.size, self.seed, self.minutes)
        return _path("models", name)

    def key(self, part, **more):
        """Return what identifies a result of this run, a dict."""
        own = {"recipe": self.name, "seed": self.seed, "minutes": self.minutes}
        return {"part": part, "size": FLAGS.size, **own, **more}

    def steps_at(self, speed):
        """Return the training steps that fill the budget at a speed."""
        return int(60 * self.minutes * speed / BATCH_SIZE * self.recipe.steps_ratio)

    def flags(self, num_train_steps):
        """Return the flags of `run_pretraining.py`."""
        every = max(1, num_train_steps // NUM_EVALUATIONS)
        return [
            "--do_train",
            f"--input_file={_record_file(self.recipe.records)}",
            f"--vocab_file={_path('vocab.txt')}",
            f"--bert_config_file={_config(self.recipe.initializer_range)}",
            f"--train_batch_size={BATCH_SIZE}",
            f"--num_train_steps={num_train_steps}",
            f"--num_warmup_steps={num_train_steps // 10}",
            f"--save_checkpoints_steps={every}",
            f"--iterations_per_loop={every}",
            "--keep_checkpoint_max=1",
            f"--seed={self.seed}",
            f"--output_dir={self.folder}",
            *self.recipe.flags_for(num_train_steps),
            # The last value counts, so it replaces the rate of a flag file.
            f"--learning_rate={RATES[FLAGS.size] * self.recipe.rate_ratio:g}",
        ]


def _pretrain(one, num_train_steps):
    """Return the steps and the held-out loss of each evaluation."""
    own = one.flags(num_train_steps)
    causal = int(one.recipe.causal_share * num_train_steps)
    if causal:
        folder = f"{one.folder}_causal"
        config = _config(one.recipe.initializer_range, is_causal=True)
        before = f"--bert_config_file={config}"
        stop = f"--stop_at_step={causal}"
        _command("run_pretraining", *own, before, stop, f"--output_dir={folder}")
        own += [f"--continue_from={folder}", "--initializer=original"]
    heldout = f"--dev_file={_record_file('heldout')}"
    evaluation = "--eval_batch_size=64", "--max_eval_steps=1000"
    _command("run_pretraining", *own, "--do_eval", heldout, *evaluation)
    rows = [row for row in read_metrics(one.folder) if "eval_masked_lm_loss" in row]
    return {
        "num_train_steps": num_train_steps,
        "unigram_entropy": rows[-1]["eval_unigram_entropy"],
        "curve": [(row["step"], round(row["eval_masked_lm_loss"], 4)) for row in rows],
    }


def _tasks():
    """Return the names of the tasks whose data is given."""
    glue = ["sst-2", "sts-b"] if FLAGS.glue_data_dir else []
    return [*glue, "conll"] if FLAGS.conll_dir else glue


def _fine_tune(one, how):
    """Return the score of a task, from the dev set.

    Args:
      one: `PretrainingRun`.
      how: dict of `task`, `fine_tuning_seed` and `dropout`.
    """
    task, seed = how["task"], how["fine_tuning_seed"]
    name = f"{task}_{seed}{'' if how['dropout'] else '_no-dropout'}"
    folder = f"{one.folder}_{name}"
    if task == "conll":
        source = os.path.abspath(FLAGS.conll_dir)
        data = [f"--train_file={source}/train.txt", f"--dev_file={source}/valid.txt"]
    else:
        data = [f"--data_dir={os.path.abspath(FLAGS.glue_data_dir)}"]
    _command(
        TASKS[task].script.removesuffix(".py"),
        *data,
        f"--flagfile=configs/ablations/{task}.flags",
        f"--model={one.folder}",
        f"--dropout={how['dropout']}",
        f"--seed={seed}",
        f"--output_dir={folder}",
    )
    return {"score": eval_results.read(folder)[f"eval_{TASKS[task].metric}"]}


def _record_file(name):
    """Return the path of the records of a flag file in configs/ablations."""
    return _path("records", name, "00.tfrecord")


def _write_records(names):
    """Write vocabulary, held-out records and those of some flag files."""
    os.makedirs(_path("text"), exist_ok=True)
    text = os.path.abspath(FLAGS.input_file)
    train, heldout = heldout_text.split_off([text], _path("text"))
    vocab = _path("vocab.txt")
    if not os.path.exists(vocab):
        own = f"--input_file={text}", f"--output_file={vocab}"
        _command("train_vocab", *own, "--vocab_size=8000")
    for name in ("heldout", *sorted(names)):
        target = _record_file(name)
        if os.path.exists(target):
            continue
        _command(
            "create_pretraining_data",
            "--flagfile=configs/ablations/records.flags",
            f"--flagfile=configs/ablations/{name}.flags",
            f"--input_file={heldout if name == 'heldout' else train}",
            f"--vocab_file={vocab}",
            f"--output_file={target}",
            *(["--masking=static"] if name == "heldout" else []),
        )
    # Recipes with and without next-sentence prediction evaluate on the same records.
    # With a manifest, each would refuse those of the other.
    pathlib.Path(_path("records", "heldout", "manifest.json")).unlink(missing_ok=True)


def _config(initializer_range, is_causal=False):
    """Return the path of a config of the models."""
    own = f"{FLAGS.size}_{initializer_range}{'_causal' * is_causal}"
    return _path(f"{own}.json")


def _write_configs():
    original = BertConfig.from_json_file(ROOT / "configs" / f"bert_{FLAGS.size}.json")
    # As in configs/ablations: 8,000 tokens, 64 positions.
    small = dataclasses.replace(original, vocab_size=8000, max_position_embeddings=64)
    ranges = {recipe.initializer_range for recipe in RECIPES.values()}
    for value, is_causal in itertools.product(ranges, (False, True)):
        own = dataclasses.replace(
            small, initializer_range=value, causal_attention=is_causal
        )
        files.write_json(_config(value, is_causal), own.to_dict())


def _command(script, *arguments):
    """Run a command from the project's folder; its output goes to a log."""
    command = [sys.executable, f"run_scripts/{script}.py", *arguments]
    path = _path("commands.log")
    with open(path, "a", encoding="utf-8") as log:
        done = subprocess.run(command, check=False, cwd=ROOT, stdout=log, stderr=log)
    if done.returncode:
        raise UserError(f"{script}.py failed. {path} has its output.")


if __name__ == "__main__":
    run(main)
