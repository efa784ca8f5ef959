"""The flags of every script that fine-tunes: epochs, seeds, the grid; and the run."""

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

HELP_TITLE = "Fine-tuning, with its start, epochs, several runs"

flags.DEFINE_string(
    "model",
    None,
    "Weights to start from: a path in any format (docs/checkpoints.md) or a name "
    "(docs/models.md); without --do_train: a fine-tuned model.",
)
define_aliases("model", "init_checkpoint")
flags.DEFINE_float("num_train_epochs", 3.0, "Passes over the training set.")
flags.DEFINE_float(
    "warmup_proportion", 0.1, "Part of the updates that is linear warm-up.", 0, 1
)
flags.DEFINE_integer(
    "save_checkpoints_steps",
    None,
    "Updates between checkpoints, each evaluated with --do_eval; default: an epoch.",
    lower_bound=1,
)
flags.DEFINE_integer(
    "iterations_per_loop",
    20,
    "Updates between two log lines; on TPUs also in one call, at most 100.",
    lower_bound=1,
)
flags.DEFINE_bool(
    "pad_to_max_seq_length",
    False,
    "Train on batches that are all as long as --max_seq_length, as the original does, "
    "and not as their longest text; in SQuAD also predict with them, and let padding "
    "take part in the choice of answers.",
)
flags.DEFINE_integer(
    "num_seeds",
    1,
    "Train so often, with --seed and those after it; print mean, deviation and best, "
    "and leave the best.",
    lower_bound=1,
)
flags.DEFINE_bool(
    "grid",
    False,
    "Train with each combination of the following, and leave the best model; the "
    "default is the paper's for GLUE (Sec. 4.1).",
)
flags.DEFINE_list(
    "grid_learning_rates", ["5e-5", "4e-5", "3e-5", "2e-5"], "Rates of --grid."
)
flags.DEFINE_list("grid_batch_sizes", [], "Of --grid; default: --train_batch_size.")
flags.DEFINE_list("grid_epochs", [], "Of --grid; default: --num_train_epochs.")


def check_actions() -> None:
    """Raise `UserError` unless the flags say what to do, and where."""
    require("output_dir")
    training_flags.require_one_of("do_train", "do_eval", "do_predict")


def start() -> "tf.distribute.Strategy":
    """Check the shared flags, start TensorFlow, and return the strategy of the run.

    Raises:
      UserError: flags contradict each other, or the output directory cannot be made.
    """
    _check()
    # Reading the data may take minutes, so this comes first.
    files.require_possible_directory(FLAGS.output_dir, "--output_dir")
    return start_tensorflow(training_flags.make_strategy)


def opened_start(strategy: "tf.distribute.Strategy") -> AbstractContextManager["Start"]:
    """Open what the training starts from: weights, config and vocabulary."""
    from official_bert.fine_tuning import job
    from official_bert.training.strategies import check_shares

    for size in _grid("grid_batch_sizes", int, "train_batch_size"):
        check_shares(strategy, size, FLAGS.micro_batch_size)
    return job.opened_start(found_models.find(FLAGS.model), **given_files())


def fine_tune(strategy: "tf.distribute.Strategy", job: "FineTuningJob") -> bool:
    """Fine-tune as often as the flags say; return whether no SIGTERM ended it."""
    from official_bert.fine_tuning.job import fine_tune
    from official_bert.fine_tuning.sweep import run_trials

    trials = _trials(job.num_examples)
    if _is_sweep():
        return run_trials(strategy, job, trials)
    return fine_tune(strategy, job, trials[0].settings) is not None


def is_chief(strategy: "tf.distribute.Strategy") -> bool:
    """Whether this process is the one that evaluates, predicts and writes."""
    from official_bert.training import strategies

    return strategies.is_chief(strategy)


def describe_run(file_flags: Sequence[str], datasets: "Iterable[Dataset]" = ()) -> None:
    """Write `run.json`; `file_flags` name the command's data, or its datasets do."""
    names = (*file_flags, "model", "bert_config_file", "vocab_file")
    values = [FLAGS[name].value for name in names]
    listed = [each if isinstance(each, list) else [each] for each in values]
    inputs = [found_models.path_of(path) for paths in listed for path in paths]
    records = [dataset.record() for dataset in datasets]
    named = ("dataset",) if "dataset" in FLAGS else ()
    training_flags.describe_run((*named, *file_flags), inputs, records)


def _check():
    """Raise `UserError` where these flags contradict each other."""
    training_flags.check()
    _check_sweep()
    checkpoint, directory = locate(FLAGS.model), FLAGS.output_dir
    if (
        not FLAGS.do_train
        and checkpoint
        and has_task(directory)
        and files.real(checkpoint) != files.real(directory)
    ):
        print(
            f"It is the fine-tuned model in {directory} that is asked, not "
            "--model; to ask that, give another --output_dir.",
            flush=True,
        )
    for name, most in (("num_train_epochs", MOST_EPOCHS), ("warmup_proportion", 1)):
        if not 0 <= getattr(FLAGS, name) <= most:
            raise UserError(f"--{name} is {FLAGS[name].value}: it must be 0 to {most}.")
    if FLAGS.do_train and not FLAGS.model:
        if not FLAGS.bert_config_file:
            raise UserError(
                "Give --model, the pre-trained model to start from; or "
                "--bert_config_file and --vocab_file, to start from random weights."
            )
        require("vocab_file")
        logging.warning("Without --model the training starts from random weights.")
    if FLAGS.do_train or not has_task(directory):
        # A download that fails does so before the data are read.
        found_models.find(FLAGS.model)


def _check_sweep():
    if not FLAGS.grid:
        for name in ("grid_learning_rates", "grid_batch_sizes", "grid_epochs"):
            if FLAGS[name].present:
                raise UserError(f"--{name} is for --grid; give that, too.")
    if not _is_sweep():
        return
    if not (FLAGS.do_train and FLAGS.do_eval):
        raise UserError(
            "--num_seeds and --grid are for --do_train with --do_eval, which tells the "
            "best model."
        )
    if FLAGS.stop_at_step:
        raise UserError(
            "--stop_at_step is for a single run; leave out --num_seeds and --grid."
        )
    if FLAGS.seed + FLAGS.num_seeds > 2**32:
        raise UserError(
            f"--num_seeds={FLAGS.num_seeds} from --seed={FLAGS.seed} on goes beyond "
            "the largest seed, 4294967295; give a smaller --seed."
        )


def _is_sweep():
    return FLAGS.grid or FLAGS.num_seeds > 1


def used(train: str, dev: str, test: str) -> list[str]:
    """Return those of three names that --do_train, --do_eval, --do_predict use."""
    uses = (FLAGS.do_train, FLAGS.do_eval, FLAGS.do_predict)
    return list(itertools.compress((train, dev, test), uses))


def require_files(*names: str) -> None:
    """Raise `UserError` unless the files of these flags are named and readable."""
    require(*names)
    for name in names:
        given_paths.require_readable(locate(getattr(FLAGS, name)), f"--{name}")


def model_path() -> str:
    """Return the fine-tuned model to use: --output_dir's, or --model."""
    if FLAGS.do_train or has_task(FLAGS.output_dir) or not FLAGS.model:
        return FLAGS.output_dir
    return found_models.find(FLAGS.model)


def load_predictor(
    predictor_class: "Callable[..., Predictor]", task: "Task | None"
) -> "Predictor":
    """Load the model to use, after a training with its own vocabulary and casing.

    Args:
      predictor_class: subclass of `TaskPredictor`.
      task: see there.
    """
    given = {} if FLAGS.do_train else given_files()
    return predictor_class(model_path(), FLAGS.predict_batch_size, task, **given)


def _trials(num_examples):
    """Return the list of `sweep.Trial` for epochs of `num_examples`."""
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
                f"{num_examples} examples in batches of {batch_size} make no update in "
                f"{FLAGS.num_train_epochs:g} epochs; give a smaller --train_batch_size "
                "or more --num_train_epochs."
            )
        if FLAGS.stop_at_step and FLAGS.stop_at_step > num_train_steps:
            raise UserError(
                f"--stop_at_step={FLAGS.stop_at_step} lies behind the end of the run, "
                f"step {num_train_steps}; give a smaller one."
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
    """Return the numbers of a list flag, or else that of another flag."""
    numbers = []
    for text in getattr(FLAGS, flag) if FLAGS.grid else ():
        try:
            numbers.append(kind(text))
        except ValueError:
            numbers.append(0)
        if not 0 < numbers[-1] < math.inf:
            raise UserError(f"--{flag}: {text!r} is no number above 0.")
    if FLAGS.grid and FLAGS[flag].default and not numbers:
        raise UserError(f"--{flag} is empty; give numbers with commas between them.")
    return numbers or [FLAGS[other_flag].value]
