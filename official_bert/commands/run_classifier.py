r"""Fine-tune BERT on a GLUE task or on your table; evaluate and predict.

    python run_scripts/run_classifier.py --task_name=MRPC --data_dir=glue_data/MRPC \
        --model=uncased_L-12_H-768_A-12 --output_dir=output/mrpc \
        --do_train --do_eval --learning_rate=2e-5 --num_train_epochs=3

    python run_scripts/run_classifier.py --train_file=reviews.csv \
        --model=uncased_L-12_H-768_A-12 --output_dir=output/reviews \
        --do_train --do_eval

    python run_scripts/run_classifier.py --dataset=imdb_reviews \
        --model=uncased_L-12_H-768_A-12 --output_dir=output/imdb \
        --do_train --do_eval --do_predict

To resume a stopped run, repeat the command. At the end, the output directory is a model
with its labels: use it as predict.py --model=…. More in
docs/how_to/classification.md.
"""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

from absl import flags

from official_bert import files
from official_bert.command_line import (
    dataset_flags,
    fine_tuning_flags,
    training_flags,
)
from official_bert.command_line.flag_values import locate, require
from official_bert.constants import LONG_TEXT, TRUNCATE
from official_bert.errors import UserError
from official_bert.fine_tuning.config_labels import labels_of
from official_bert.fine_tuning.task_file import has_task, read_task
from official_bert.tables.dataset_opening import require_tfds
from official_bert.tables.datasets import parse_name
from official_bert.tasks.classifier import data as classifier_data
from official_bert.tasks.classifier import features as classifier_features
from official_bert.tasks.classifier.datasets import as_own_files
from official_bert.tasks.classifier.task import ClassifierTask
from official_bert.tasks.glue import tfds as glue_tfds
from official_bert.tasks.glue.tasks import find_task

if TYPE_CHECKING:
    from official_bert.fine_tuning.job import FineTuningJob

FILES = ("train_file", "dev_file", "test_file")
COLUMNS = ("text_column", "text_b_column", "label_column", "label_kind")
FLAGS = flags.FLAGS
# Flags that the help shows first.
REQUIRED: tuple[str, ...] = ("output_dir",)
MOST_USED: tuple[str, ...] = (
    "do_train",
    "do_eval",
    "model",
    "task_name",
    "data_dir",
    "train_file",
    "dev_file",
    "learning_rate",
    "num_train_epochs",
    "train_batch_size",
)

flags.DEFINE_string(
    "task_name",
    None,
    "CoLA, SST-2, MRPC, STS-B, QQP, MNLI, MNLI-mm, AX, QNLI, RTE, WNLI or XNLI.",
)
FLAGS["data_dir"].help = (
    "Folder of the task's TSV files, or of all of GLUE. With --dataset: folder of "
    "tensorflow-datasets (default: TFDS_DATA_DIR, or the folder that "
    "tensorflow-datasets uses)."
)
flags.DEFINE_bool("tfds", False, "With --task_name: same as --dataset=glue/TASK_NAME.")
flags.DEFINE_string(
    "train_file",
    None,
    "Your training data, instead of a GLUE task: CSV, TSV or JSON lines, also .gz.",
)
flags.DEFINE_string(
    "dev_file",
    None,
    "Your evaluation data. Without it, --do_train holds out --dev_fraction of the "
    "training file.",
)
flags.DEFINE_string(
    "test_file", None, "Your data for --do_predict. Labels may be missing."
)
flags.DEFINE_string(
    "text_column",
    None,
    "Column of the texts in your data, by name or number. Default: detected.",
)
flags.DEFINE_string("text_b_column", None, "Column of the second text of pairs.")
flags.DEFINE_string("label_column", None, "Column of the labels. Default: detected.")
flags.DEFINE_enum(
    "label_kind",
    None,
    ("single_label", "multi_label", "regression"),
    "Type of the labels. Default: detected.",
)
flags.DEFINE_string(
    "label_separator",
    None,
    "Separator between the labels in a cell of multi_label data.",
)
flags.DEFINE_bool(
    "has_header",
    None,
    "Whether the first row names the columns. Default: detected.",
)
flags.DEFINE_float(
    "dev_fraction",
    0.1,
    "Fraction of the training rows to hold out for --do_eval without --dev_file.",
)
flags.DEFINE_bool("do_predict", False, "Predict the test set.")
flags.DEFINE_integer("predict_batch_size", 8, "Texts per prediction batch.", 1)
flags.DEFINE_integer(
    "max_seq_length",
    None,
    "Maximum tokens of a text or pair, including [CLS] and [SEP]. Default: 128, or "
    "the setting of the fine-tuned model.",
    lower_bound=3,
)
flags.DEFINE_enum(
    "long_text",
    None,
    LONG_TEXT,
    "Handling of longer texts. truncate (default): cut, as in the original. window: "
    "read overlapping windows and average their logits.",
)
flags.DEFINE_bool(
    "bilstm", False, "Train with a new BiLSTM on top of the model (Table 5)."
)
flags.DEFINE_string(
    "glue_submission",
    None,
    "Folder for the GLUE server's files. They are zipped when the files of all tasks "
    "exist.",
)


def main() -> None:
    """Check the flags and the data, then train, evaluate and predict."""
    run()


def run(
    adapt: "Callable[[FineTuningJob], FineTuningJob]" = lambda job: job,
) -> None:
    """Run the command; `adapt` may change the `FineTuningJob` of the training."""
    fine_tuning_flags.check_actions()
    _check_flags()
    strategy = fine_tuning_flags.start()
    data = _read_data()
    if FLAGS.do_train:
        with fine_tuning_flags.opened_start(strategy) as start:
            job = adapt(_make_job(start, data))
            if not fine_tuning_flags.fine_tune(strategy, job):
                return
    if not fine_tuning_flags.is_chief(strategy):
        return
    if FLAGS.do_eval or FLAGS.do_predict:
        _evaluate_and_predict(data)
    # run.json identifies --dataset by name, version and checksums.
    folder = () if data.datasets else ("data_dir",)
    fine_tuning_flags.describe_run((*FILES, *folder), data.datasets)


def _check_flags():
    if dataset_flags.check((*FILES, "task_name", "tfds")):
        _check_named()
    else:
        _check_files()
    if FLAGS.glue_submission:
        _check_submission()


def _check_files():
    """Raise `UserError` unless the flags name exactly one kind of data."""
    is_own = any(FLAGS[name].value for name in FILES)
    if is_own and (FLAGS.task_name or FLAGS.data_dir or FLAGS.tfds):
        raise UserError(
            "--task_name, --data_dir and --tfds are for GLUE tasks; --train_file, "
            "--dev_file and --test_file are for your own data. Use only one kind."
        )
    if is_own:
        required = fine_tuning_flags.used(*FILES)
        if FLAGS.do_train and FLAGS.do_eval:  # It can be split off.
            required.remove("dev_file")
        require(*required)
    elif not FLAGS.task_name:
        raise UserError(
            "No data given. Give --train_file (--dev_file, --test_file) for your own "
            "table, --task_name and --data_dir for a GLUE task, or --dataset for a "
            "dataset by name."
        )
    elif FLAGS.tfds:
        require_tfds("--tfds")
        dataset_flags.check_data_dir()
    else:
        require("data_dir")


def _check_named():
    """Raise `UserError` for flags that contradict --dataset."""
    task = _glue_task()
    for name in COLUMNS:
        if task and FLAGS[name].value:
            raise UserError(
                f"--{name} cannot be used with --dataset={FLAGS.dataset}, a GLUE "
                f"task whose columns and labels are fixed. Leave --{name} out."
            )
    if FLAGS.has_header is not None:
        raise UserError("--has_header is only for files. Leave it out.")


def _check_submission():
    task = _glue_task()
    if not task or not FLAGS.do_predict:
        raise UserError("--glue_submission needs --do_predict and a GLUE task.")
    if not task.submission:
        raise UserError(
            f"--glue_submission: the GLUE server does not accept {task.name}. Leave "
            "--glue_submission out."
        )
    files.make_directory(FLAGS.glue_submission, "--glue_submission")


def _glue_task():
    """Return the `GlueTask` of --task_name or --dataset, or None."""
    if FLAGS.task_name:
        return find_task(FLAGS.task_name)
    return glue_tfds.task_of(parse_name(FLAGS.dataset)) if FLAGS.dataset else None


def _read_data():
    """Return the `ClassifierData` of the command."""
    wanted = fine_tuning_flags.used(
        classifier_data.TRAIN, classifier_data.DEV, classifier_data.TEST
    )
    path = fine_tuning_flags.model_path()
    known, glue_task = None, _glue_task()
    if not FLAGS.do_train and (has_task(path) or not glue_task):
        known, _ = read_task(path, ClassifierTask)
    length = FLAGS.max_seq_length or (known.max_seq_length if known else 128)
    long_text = FLAGS.long_text or (known.long_text if known else TRUNCATE)
    if glue_task:
        data = _read_glue(glue_task, length, long_text, wanted)
        if known:
            classifier_data.check_same_answers(known, data.task, path)
    else:
        paths = {name: locate(FLAGS[name].value) for name in FILES}
        own = training_flags.settings(classifier_data.OwnFiles, **paths)
        dataset = dataset_flags.opened()
        if dataset:
            own = as_own_files(dataset, own, wanted)
        if known:
            data = classifier_data.read_own_for(known, own, length, long_text, wanted)
        else:
            data = classifier_data.read_own(own, length, long_text, wanted)
        data = dataclasses.replace(data, datasets=(dataset,) if dataset else ())
    bilstm = known.bilstm if known else FLAGS.bilstm
    task = dataclasses.replace(data.task, bilstm=bilstm)
    return dataclasses.replace(data, task=task)


def _read_glue(task, length, long_text, wanted):
    from official_bert.checkpoints import any_format

    source = locate(FLAGS.data_dir)
    if FLAGS.tfds or FLAGS.dataset:
        version = parse_name(FLAGS.dataset).version if FLAGS.dataset else None
        source = glue_tfds.GlueDatasets(source, version)
    if not FLAGS.do_train:
        with any_format.opened(fine_tuning_flags.model_path()) as checkpoint:
            labels = labels_of(checkpoint.config) if checkpoint.config else ()
        task = classifier_data.in_order_of(task, labels)
    return classifier_data.read_glue(task, source, length, long_text, wanted)


def _make_job(start, data):
    """Return the `FineTuningJob` of the command."""
    from official_bert.tasks.classifier import training as classifier

    start.check_length(data.task.max_seq_length)
    train = classifier_features.encode(data.task, data.train, start.tokenizer)
    dev_windows = None
    if FLAGS.do_eval:
        dev = next(iter(data.dev.values()))
        dev_windows = classifier_features.encode(data.task, dev, start.tokenizer)
    train_features = [one for each in train for one in each]
    return classifier.make_job(start, data.task, train_features, dev_windows)


def _evaluate_and_predict(data):
    """Evaluate and predict with the final model, as the flags say."""
    from official_bert.tasks.classifier import reports as classifier_reports
    from official_bert.tasks.classifier.predictor import ClassifierPredictor

    # After training, use the saved task: its threshold may have changed.
    task = None if FLAGS.do_train else data.task
    predictor = fine_tuning_flags.load_predictor(ClassifierPredictor, task)
    files.make_directory(FLAGS.output_dir, "--output_dir")
    if data.dev:
        classifier_reports.evaluate(
            predictor, data.dev, FLAGS.output_dir, FLAGS.eval_batch_size
        )
    if data.test:
        logits = classifier_reports.predict(predictor, data.test, FLAGS.output_dir)
        if FLAGS.glue_submission:
            files.make_directory(FLAGS.glue_submission, "--glue_submission")
            classifier_reports.submit(logits, data.task, FLAGS.glue_submission)
