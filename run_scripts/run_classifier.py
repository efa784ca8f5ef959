r"""Fine-tune BERT on a GLUE task or on a table of your own; evaluate it; ask it.

    python run_scripts/run_classifier.py --task_name=MRPC --data_dir=glue_data/MRPC \
        --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=output/mrpc \
        --do_train --do_eval --learning_rate=2e-5 --num_train_epochs=3

    python run_scripts/run_classifier.py --train_file=reviews.csv \
        --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=output/reviews \
        --do_train --do_eval

The same command again continues where the output directory stands. In the end that
directory is a model that knows its labels: predict.py --model_dir=… asks it.
More in docs/finetuning.md.
"""

import contextlib
import math
import os

import training_flags
from absl import flags, logging
from command_line import locate, require, run, start_tensorflow, write_run_json
from model_flags import given_files

from official_bert import files
from official_bert.errors import UserError

FLAGS = flags.FLAGS
MOST_EPOCHS = 1_000_000

flags.DEFINE_string(
    "task_name",
    None,
    "CoLA, SST-2, MRPC, STS-B, QQP, MNLI, MNLI-mm, AX, QNLI, RTE, WNLI or XNLI.",
)
flags.DEFINE_string("data_dir", None, "Folder of the task's TSV files, or of GLUE's.")
flags.DEFINE_bool(
    "tfds",
    False,
    "Take the task from tensorflow-datasets (pip install it); --data_dir is then its "
    "folder.",
)
flags.DEFINE_string(
    "train_file", None, "Your own data instead: CSV, TSV or JSON lines, also .gz."
)
flags.DEFINE_string(
    "dev_file",
    None,
    "Likewise, to evaluate on; without it --dev_fraction of the training file is.",
)
flags.DEFINE_string(
    "test_file", None, "Likewise, for --do_predict; labels may be missing."
)
flags.DEFINE_string(
    "text_column", None, "Its column, by name or number; default: found by its looks."
)
flags.DEFINE_string("text_b_column", None, "Column of the second text of pairs.")
flags.DEFINE_string("label_column", None, "As --text_column.")
flags.DEFINE_enum(
    "label_kind",
    None,
    ("single_label", "multi_label", "regression"),
    "What labels are; default: found by their looks.",
)
flags.DEFINE_string(
    "label_separator", None, "What stands between the labels of a cell: multi_label."
)
flags.DEFINE_bool(
    "has_header",
    None,
    "Whether the first row names the columns; default: found by its looks.",
)
flags.DEFINE_float(
    "dev_fraction", 0.1, "Of the training rows, for --do_eval without --dev_file."
)
flags.DEFINE_string(
    "init_checkpoint",
    None,
    "Weights to start from, in any format (docs/checkpoints.md); without --do_train: "
    "a fine-tuned model.",
)
flags.DEFINE_bool("do_predict", False, "Whether to predict the test set.")
flags.DEFINE_integer("predict_batch_size", 8, "Texts per batch of predictions.", 1)
flags.DEFINE_integer(
    "max_seq_length",
    None,
    "Tokens of a text (or pair) at most, [CLS] and [SEP] among them; default: 128, or "
    "that of the fine-tuned model.",
    lower_bound=3,
)
flags.DEFINE_enum(
    "long_text",
    None,
    ("truncate", "window"),
    "What becomes of longer texts. truncate (the default): cut off, as in the "
    "original. window: read through overlapping windows, whose logits are averaged.",
)
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
    "iterations_per_loop", 20, "Updates between two log lines.", lower_bound=1
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
flags.DEFINE_string(
    "glue_submission",
    None,
    "Folder for the GLUE server's files; zipped once those of all tasks are there.",
)


def main():
    """Check everything that can be checked, then train, evaluate and predict."""
    require("output_dir")
    _check_flags()
    strategy = start_tensorflow(training_flags.make_strategy)
    from official_bert.training import strategies

    with contextlib.ExitStack() as stack:
        data = _read_data()
        if FLAGS.do_train and not _train(strategy, data, stack):
            return
        if strategies.is_chief(strategy):
            _ask(data)
            name = "run.json" if FLAGS.do_train else "eval_run.json"
            write_run_json(os.path.join(FLAGS.output_dir, name), _inputs())


def _check_flags():
    training_flags.check()
    if not (FLAGS.do_train or FLAGS.do_eval or FLAGS.do_predict):
        raise UserError(
            "At least one of --do_train, --do_eval and --do_predict must be given."
        )
    own = [FLAGS.train_file, FLAGS.dev_file, FLAGS.test_file]
    if any(own) and (FLAGS.task_name or FLAGS.data_dir or FLAGS.tfds):
        raise UserError(
            "--task_name with --data_dir or --tfds is for GLUE's tasks, --train_file, "
            "--dev_file and --test_file are for your own data; give one of the two."
        )
    if not any(own):
        require("task_name")
        if not FLAGS.tfds:
            require("data_dir")
    elif FLAGS.do_train:
        require("train_file")
    if any(own) and FLAGS.do_eval and not FLAGS.do_train:
        require("dev_file")
    if any(own) and FLAGS.do_predict:
        require("test_file")
    if FLAGS.glue_submission:
        _check_submission(any(own))
    _check_sweep()
    for name, most in (("num_train_epochs", MOST_EPOCHS), ("warmup_proportion", 1)):
        if not 0 <= FLAGS[name].value <= most:
            raise UserError(f"--{name} is {FLAGS[name].value}: it must be 0 to {most}.")
    if FLAGS.do_train and not FLAGS.init_checkpoint:
        require("bert_config_file", "vocab_file")
        logging.warning(
            "Without --init_checkpoint the model starts from random weights."
        )


def _check_submission(is_own):
    from official_bert.tasks.glue_tasks import find_task

    if is_own or not FLAGS.do_predict:
        raise UserError("--glue_submission is for --do_predict of a GLUE task.")
    task = find_task(FLAGS.task_name)
    if not task.submission:
        raise UserError(
            f"--glue_submission: the GLUE server takes no {task.name}; leave it out."
        )
    files.make_directory(FLAGS.glue_submission, "--glue_submission")


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


def _read_data():
    """Return the `ClassifierData` of the command."""
    from official_bert.tasks import classifier_data
    from official_bert.tasks.classifier_task import has_task, read_task

    wanted = [
        name
        for name, flag in [
            (classifier_data.TRAIN, FLAGS.do_train),
            (classifier_data.DEV, FLAGS.do_eval),
            (classifier_data.TEST, FLAGS.do_predict),
        ]
        if flag
    ]
    known = None
    if not FLAGS.do_train and (has_task(_model_path()) or not FLAGS.task_name):
        known, _ = read_task(_model_path())
    length = FLAGS.max_seq_length or (known.max_seq_length if known else 128)
    long_text = FLAGS.long_text or (known.long_text if known else "truncate")
    if FLAGS.task_name:
        data = _read_glue(length, long_text, wanted)
        if known:
            classifier_data.check_same_answers(known, data.task, _model_path())
        return data
    own = classifier_data.OwnFiles(
        *(locate(FLAGS[f"{name}_file"].value) for name in ("train", "dev", "test")),
        FLAGS.text_column,
        FLAGS.text_b_column,
        FLAGS.label_column,
        FLAGS.label_kind,
        FLAGS.label_separator,
        FLAGS.has_header,
        FLAGS.dev_fraction,
    )
    if known:
        return classifier_data.read_own_for(known, own, length, long_text, wanted)
    return classifier_data.read_own(own, length, long_text, wanted)


def _read_glue(length, long_text, wanted):
    from official_bert.tasks import classifier_data, glue_files, glue_tfds
    from official_bert.tasks.glue_tasks import find_task

    folder = locate(FLAGS.data_dir)
    if FLAGS.tfds:
        glue_tfds.require_tfds()
        source = classifier_data.GlueSource(
            lambda task, split: glue_tfds.read_examples(task, split, folder),
            glue_tfds.has_examples,
        )
    else:
        source = classifier_data.GlueSource(
            lambda task, split: glue_files.read_examples(task, folder, split),
            lambda task, split: glue_files.has_examples(task, folder, split),
        )
    task = find_task(FLAGS.task_name)
    if not FLAGS.do_train:
        task = classifier_data.in_order_of(task, _labels_of_model())
    return classifier_data.read_glue(task, source, length, long_text, wanted)


def _labels_of_model():
    """Return the names that the model's config has for its labels, if any."""
    from official_bert.checkpoints import any_format
    from official_bert.tasks.classifier_task import labels_of

    with any_format.opened(_model_path()) as checkpoint:
        return labels_of(checkpoint.config) if checkpoint.config else ()


def _model_path():
    """Return the fine-tuned model to ask: --output_dir's, or --init_checkpoint."""
    from official_bert.tasks.classifier_task import has_task

    if FLAGS.do_train or has_task(FLAGS.output_dir) or not FLAGS.init_checkpoint:
        return FLAGS.output_dir
    return locate(FLAGS.init_checkpoint)


def _train(strategy, data, stack):
    """Fine-tune once, or as often as a sweep asks; return whether it is complete."""
    from official_bert.tasks import (
        classifier,
        classifier_features,
        fine_tuning,
        sweep,
    )
    from official_bert.training import strategies

    grid = _grid()
    for size in grid.train_batch_sizes:
        strategies.check_shares(strategy, size, FLAGS.micro_batch_size)
    start = stack.enter_context(
        fine_tuning.opened_start(locate(FLAGS.init_checkpoint), **given_files())
    )
    start.check_length(data.task.max_seq_length)
    train = classifier_features.encode(data.task, data.train, start.tokenizer)
    train_features = [one for each in train for one in each]
    dev_windows = None
    if FLAGS.do_eval:
        dev = next(iter(data.dev.values()))
        dev_windows = classifier_features.encode(data.task, dev, start.tokenizer)

    def settings_of(batch_size, learning_rate, num_train_epochs, seed):
        num_train_steps = int(len(train_features) / batch_size * num_train_epochs)
        _check_steps(num_train_steps, len(train_features), batch_size)
        an_epoch = math.ceil(len(train_features) / batch_size)
        return training_flags.settings(
            fine_tuning.FineTuningSettings,
            train_batch_size=batch_size,
            learning_rate=learning_rate,
            seed=seed,
            num_train_steps=num_train_steps,
            num_warmup_steps=int(num_train_steps * FLAGS.warmup_proportion),
            save_checkpoints_steps=FLAGS.save_checkpoints_steps or an_epoch,
            init_checkpoint=locate(FLAGS.init_checkpoint),
            continue_from=None,
            vocab_file=start.vocab_file,
            do_lower_case=start.tokenizer.do_lower_case,
        )

    work = classifier.fine_tuning(
        start.config, data.task, train_features, dev_windows, FLAGS.eval_batch_size
    )
    if _is_sweep():
        return sweep.run_grid(strategy, work, data.task.metrics, grid, settings_of)
    settings = settings_of(*grid.cells()[0], FLAGS.seed)
    files.make_directory(FLAGS.output_dir, "--output_dir")
    return fine_tuning.fine_tune(strategy, work, settings) is not None


def _check_steps(num_train_steps, num_examples, batch_size):
    if num_train_steps < 1:
        raise UserError(
            f"{num_examples} examples in batches of {batch_size} make no update in "
            f"{FLAGS.num_train_epochs:g} epochs; give a smaller --train_batch_size or "
            "more --num_train_epochs."
        )
    if FLAGS.stop_at_step and FLAGS.stop_at_step > num_train_steps:
        raise UserError(
            f"--stop_at_step={FLAGS.stop_at_step} lies behind the end of the run, step "
            f"{num_train_steps}; give a smaller one."
        )


def _grid():
    from official_bert.tasks.sweep import Grid

    seeds = tuple(range(FLAGS.seed, FLAGS.seed + FLAGS.num_seeds))
    rates, sizes, epochs = [FLAGS.learning_rate], [], []
    if FLAGS.grid:
        rates = _numbers("grid_learning_rates", float)
        sizes = _numbers("grid_batch_sizes", int)
        epochs = _numbers("grid_epochs", float)
    return Grid(
        seeds,
        tuple(sizes or [FLAGS.train_batch_size]),
        tuple(rates),
        tuple(epochs or [FLAGS.num_train_epochs]),
    )


def _numbers(flag, kind):
    """Return the numbers that a list flag holds, all above 0."""
    numbers = []
    for text in FLAGS[flag].value:
        try:
            numbers.append(kind(text))
        except ValueError:
            numbers.append(0)
        if not 0 < numbers[-1] < math.inf:
            raise UserError(f"--{flag}: {text!r} is no number above 0.")
    if not numbers and FLAGS[flag].default:
        raise UserError(f"--{flag} is empty; give numbers with commas between them.")
    return numbers


def _ask(data):
    """Evaluate and predict as the flags say, with the model that is left."""
    from official_bert.tasks import classifier_reports
    from official_bert.tasks.predictor import Predictor

    if not data.dev and not data.test:
        return
    given = {} if FLAGS.do_train else given_files()
    path = _model_path()
    predictor = Predictor(path, FLAGS.eval_batch_size, data.task, **given)
    files.make_directory(FLAGS.output_dir, "--output_dir")
    if data.dev:
        classifier_reports.evaluate(
            predictor, data.dev, FLAGS.output_dir, FLAGS.eval_batch_size
        )
    predictor.batch_size = FLAGS.predict_batch_size
    if data.test:
        logits = classifier_reports.predict(predictor, data.test, FLAGS.output_dir)
        if FLAGS.glue_submission:
            files.make_directory(FLAGS.glue_submission, "--glue_submission")
            classifier_reports.submit(logits, data.task, FLAGS.glue_submission)


def _inputs():
    names = ("train_file", "dev_file", "test_file", "init_checkpoint", "data_dir")
    return [locate(FLAGS[name].value) for name in names] + [
        path for name, path in given_files().items() if name != "do_lower_case"
    ]


if __name__ == "__main__":
    run(main)
