"""Define the flags of all fine-tuning commands, and start their runs."""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TypeVar

from absl import flags, logging

from official_bert import files, given_paths
from official_bert.command_line import found_models, training_flags
from official_bert.command_line.flag_values import define_aliases, locate, require
from official_bert.command_line.model_flags import given_files
from official_bert.command_line.recipes import stable_flags
from official_bert.command_line.tensorflow_start import start_tensorflow
from official_bert.errors import UserError
from official_bert.fine_tuning.task_file import has_task

if TYPE_CHECKING:
    import tensorflow as tf

    from official_bert.fine_tuning.job import FineTuningJob, Start
    from official_bert.fine_tuning.task_file import Task
    from official_bert.tables.datasets import Dataset

FLAGS = flags.FLAGS
Predictor = TypeVar("Predictor")
MOST_EPOCHS = 1_000_000

HELP_TITLE = "Fine-tuning (initial weights, epochs, repeated runs)"

flags.DEFINE_string(
    "model",
    None,
    "Model to start from: a path in any format (docs/how_to/conversion.md) or a name "
    "(docs/models.md). Without --do_train: a fine-tuned model.",
)
define_aliases("model", "init_checkpoint")
flags.DEFINE_float("num_train_epochs", 3.0, "Number of passes over the training set.")
flags.DEFINE_float(
    "warmup_proportion",
    0.1,
    "Fraction of the training steps used for linear warm-up.",
    0,
    1,
)
flags.DEFINE_integer(
    "save_checkpoints_steps",
    None,
    "Training steps between checkpoints. With --do_eval, each checkpoint is "
    "evaluated. Default: one epoch.",
    lower_bound=1,
)
flags.DEFINE_integer(
    "iterations_per_loop",
    20,
    "Training steps between two log lines. On TPUs also the steps per call, at most "
    "100.",
    lower_bound=1,
)
flags.DEFINE_bool(
    "pad_to_max_seq_length",
    False,
    "Pad every training batch to --max_seq_length, as the original does, instead of "
    "to its longest text. SQuAD also predicts on padded batches, and padding then "
    "takes part in the choice of answers.",
)
flags.DEFINE_integer(
    "num_seeds",
    1,
    "Number of runs, with seeds --seed, --seed+1, … Prints mean, standard deviation "
    "and best score, and keeps the best model.",
    lower_bound=1,
)
flags.DEFINE_bool(
    "grid",
    False,
    "Train with every combination of the three flags below, and keep the best model. "
    "The default learning rates are the paper's for GLUE (Sec. 4.1).",
)
flags.DEFINE_list(
    "grid_learning_rates",
    ["5e-5", "4e-5", "3e-5", "2e-5"],
    "Learning rates for --grid.",
)
flags.DEFINE_list(
    "grid_batch_sizes", [], "Batch sizes for --grid. Default: --train_batch_size."
)
flags.DEFINE_list("grid_epochs", [], "Epochs for --grid. Default: --num_train_epochs.")


def check_actions() -> None:
    """Raise `UserError` unless the flags name an action and an output directory."""
    require("output_dir")
    training_flags.require_one_of("do_train", "do_eval", "do_predict")


def start() -> "tf.distribute.Strategy":
    """Check the shared flags, start TensorFlow, and return the strategy of the run.

    Raises:
      UserError: flags contradict each other, or the output directory cannot be created.
    """
    _check()
    # Check this first: reading the data may take minutes.
    files.require_possible_directory(FLAGS.output_dir, "--output_dir")
    return start_tensorflow(training_flags.make_strategy)


def opened_start(strategy: "tf.distribute.Strategy") -> AbstractContextManager["Start"]:
    """Open the initial weights, config and vocabulary of the training."""
    from official_bert.fine_tuning import job
    from official_bert.training.strategies import check_shares

    for size in _grid("grid_batch_sizes", int, "train_batch_size"):
        check_shares(strategy, size, FLAGS.micro_batch_size)
    model = found_models.find(FLAGS.model)
    return job.opened_start(model, **given_files(), dropout=FLAGS.dropout)


def fine_tune(strategy: "tf.distribute.Strategy", job: "FineTuningJob") -> bool:
    """Run one or all trials of the flags; return False if SIGTERM ended them."""
    from official_bert.fine_tuning.job import fine_tune
    from official_bert.fine_tuning.sweep import run_trials

    trials = _trials(job.num_examples)
    if _is_sweep():
        return run_trials(strategy, job, trials)
    return fine_tune(strategy, job, trials[0].settings) is not None


def is_chief(strategy: "tf.distribute.Strategy") -> bool:
    """Return whether this process evaluates, predicts and writes the results."""
    from official_bert.training import strategies

    return strategies.is_chief(strategy)


def describe_run(file_flags: Sequence[str], datasets: "Iterable[Dataset]" = ()) -> None:
    """Write `run.json`.

    Args:
      file_flags: names of the flags that name the command's data files.
      datasets: datasets that the command read by name.
    """
    names = (*file_flags, "model", "bert_config_file", "vocab_file")
    values = [FLAGS[name].value for name in names]
    listed = [each if isinstance(each, list) else [each] for each in values]
    inputs = [found_models.path_of(path) for paths in listed for path in paths]
    records = [dataset.record() for dataset in datasets]
    named = ("dataset",) if "dataset" in FLAGS else ()
    training_flags.describe_run((*named, *file_flags), inputs, records)


def _check():
    """Raise `UserError` if these flags contradict each other."""
    training_flags.check()
    stable_flags.check()
    _check_sweep()
    checkpoint, directory = locate(FLAGS.model), FLAGS.output_dir
    if (
        not FLAGS.do_train
        and checkpoint
        and has_task(directory)
        and files.real(checkpoint) != files.real(directory)
    ):
        print(
            f"Using the fine-tuned model in {directory}; --model is ignored. To use "
            "--model, choose another --output_dir.",
            flush=True,
        )
    for name, most in (("num_train_epochs", MOST_EPOCHS), ("warmup_proportion", 1)):
        if not 0 <= getattr(FLAGS, name) <= most:
            raise UserError(
                f"--{name}={FLAGS[name].value} is out of range. It must be 0 to {most}."
            )
    if FLAGS.do_train and not FLAGS.model:
        if not FLAGS.bert_config_file:
            raise UserError(
                "Give --model, a pre-trained model to start from; or give "
                "--bert_config_file and --vocab_file to start from random weights."
            )
        require("vocab_file")
        logging.warning("--model is not given: training starts from random weights.")
    if FLAGS.do_train or not has_task(directory):
        # Download the model before reading the data, so that errors appear early.
        found_models.find(FLAGS.model)


def _check_sweep():
    if not FLAGS.grid:
        for name in ("grid_learning_rates", "grid_batch_sizes", "grid_epochs"):
            if FLAGS[name].present:
                raise UserError(f"--{name} needs --grid. Add --grid.")
    if not _is_sweep():
        return
    if not (FLAGS.do_train and FLAGS.do_eval):
        raise UserError(
            "--num_seeds and --grid need both --do_train and --do_eval: the "
            "evaluation selects the best model."
        )
    if FLAGS.stop_at_step:
        raise UserError(
            "--stop_at_step works only for a single run. Leave out --num_seeds and "
            "--grid."
        )
    if FLAGS.seed + FLAGS.num_seeds > 2**32:
        raise UserError(
            f"--num_seeds={FLAGS.num_seeds} with --seed={FLAGS.seed} exceeds the "
            "largest seed, 4294967295. Give a smaller --seed."
        )


def _is_sweep():
    return FLAGS.grid or FLAGS.num_seeds > 1


def used(train: str, dev: str, test: str) -> list[str]:
    """Return the names whose action is on: --do_train, --do_eval, --do_predict."""
    uses = (FLAGS.do_train, FLAGS.do_eval, FLAGS.do_predict)
    return list(itertools.compress((train, dev, test), uses))


def require_files(*names: str) -> None:
    """Raise `UserError` unless the files of these flags are given and readable."""
    require(*names)
    for name in names:
        given_paths.require_readable(locate(getattr(FLAGS, name)), f"--{name}")


def model_path() -> str:
    """Return the fine-tuned model to use: that in --output_dir, or else --model."""
    if FLAGS.do_train or has_task(FLAGS.output_dir) or not FLAGS.model:
        return FLAGS.output_dir
    return found_models.find(FLAGS.model)


def load_predictor(
    predictor_class: "Callable[..., Predictor]", task: "Task | None"
) -> "Predictor":
    """Load the model to use.

    After a training, its own vocabulary and casing are used.

    Args:
      predictor_class: subclass of `TaskPredictor`.
      task: see `TaskPredictor`.
    """
    given = {} if FLAGS.do_train else given_files()
    return predictor_class(model_path(), FLAGS.predict_batch_size, task, **given)


def _trials(num_examples):
    """Return the list of `sweep.Trial` for epochs of `num_examples` examples."""
    from official_bert.fine_tuning.job import FineTuningSettings
    from official_bert.fine_tuning.sweep import Trial

    trials = []
    for batch_size, learning_rate, num_train_epochs, seed in itertools.product(
        _grid("grid_batch_sizes", int, "train_batch_size"),
        _grid("grid_learning_rates", float, "learning_rate"),
        _grid("grid_epochs", float, "num_train_epochs"),
        range(FLAGS.seed, FLAGS.seed + FLAGS.num_seeds),
    ):
        num_train_steps = int(num_examples / batch_size * num_train_epochs)
        if num_train_steps < 1:
            raise UserError(
                f"{num_examples} examples in batches of {batch_size} give less than "
                f"one training step in {FLAGS.num_train_epochs:g} epochs. Give a "
                "smaller --train_batch_size or more --num_train_epochs."
            )
        if FLAGS.stop_at_step and FLAGS.stop_at_step > num_train_steps:
            raise UserError(
                f"--stop_at_step={FLAGS.stop_at_step} is after the last step of the "
                f"run, {num_train_steps}. Give a smaller value."
            )
        an_epoch = math.ceil(num_examples / batch_size)
        settings = training_flags.settings(
            FineTuningSettings,
            train_batch_size=batch_size,
            learning_rate=learning_rate,
            seed=seed,
            num_train_steps=num_train_steps,
            num_warmup_steps=int(num_train_steps * FLAGS.warmup_proportion),
            save_checkpoints_steps=FLAGS.save_checkpoints_steps or an_epoch,
            init_checkpoint=found_models.find(FLAGS.model),
            continue_from=None,
        )
        trials.append(Trial(settings, num_train_epochs))
    return trials


def _grid(flag, kind, other_flag):
    """Return the numbers of a list flag, or those of the other flag if it is empty."""
    numbers = []
    for text in getattr(FLAGS, flag) if FLAGS.grid else ():
        try:
            numbers.append(kind(text))
        except ValueError:
            numbers.append(0)
        if not 0 < numbers[-1] < math.inf:
            raise UserError(f"--{flag}: {text!r} is not a number above 0.")
    if FLAGS.grid and FLAGS[flag].default and not numbers:
        raise UserError(f"--{flag} is empty. Give numbers separated by commas.")
    return numbers or [FLAGS[other_flag].value]
