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

from absl import flags

from official_bert import files
from official_bert.command_line import fine_tuning_flags, training_flags
from official_bert.command_line.flag_values import locate, require
from official_bert.command_line.model_flags import given_files
from official_bert.constants import LONG_TEXT, TRUNCATE
from official_bert.errors import UserError

FILES = ("train_file", "dev_file", "test_file")
FLAGS = flags.FLAGS

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
    "train_file",
    None,
    "Your own data to train on, instead of a task of GLUE: CSV, TSV or JSON lines, "
    "also .gz.",
)
flags.DEFINE_string(
    "dev_file",
    None,
    "Your own data to evaluate on; without it --do_train splits off --dev_fraction of "
    "the training file.",
)
flags.DEFINE_string(
    "test_file", None, "Your own data for --do_predict; labels may be missing."
)
flags.DEFINE_string(
    "text_column",
    None,
    "Column of the texts in your own data, by name or number; default: found by its "
    "looks.",
)
flags.DEFINE_string("text_b_column", None, "Column of the second text of pairs.")
flags.DEFINE_string(
    "label_column", None, "Column of the labels; default: found by its looks."
)
flags.DEFINE_enum(
    "label_kind",
    None,
    ("single_label", "multi_label", "regression"),
    "What labels are; default: found by their looks.",
)
flags.DEFINE_string(
    "label_separator", None, "What stands between labels in a cell of multi_label data."
)
flags.DEFINE_bool(
    "has_header",
    None,
    "Whether the first row names the columns; default: found by its looks.",
)
flags.DEFINE_float(
    "dev_fraction", 0.1, "Of the training rows, for --do_eval without --dev_file."
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
    LONG_TEXT,
    "What becomes of longer texts. truncate (the default): cut off, as in the "
    "original. window: read through overlapping windows, whose logits are averaged.",
)
flags.DEFINE_bool(
    "bilstm", False, "Train with a new BiLSTM on top of the model (Table 5)."
)
flags.DEFINE_string(
    "glue_submission",
    None,
    "Folder for the GLUE server's files; zipped once those of all tasks are there.",
)


def main():
    """Check everything that can be checked, then train, evaluate and predict."""
    require("output_dir")
    _check_flags()
    strategy = fine_tuning_flags.start()
    data = _read_data()
    if FLAGS.do_train:
        with fine_tuning_flags.opened_start(strategy) as start:
            if not fine_tuning_flags.fine_tune(strategy, _make_job(start, data)):
                return
    if fine_tuning_flags.is_chief(strategy):
        _evaluate_and_predict(data)
        fine_tuning_flags.describe_run(*FILES, "data_dir")


def _check_flags():
    training_flags.require_one_of("do_train", "do_eval", "do_predict")
    own = [FLAGS.train_file, FLAGS.dev_file, FLAGS.test_file]
    if any(own) and (FLAGS.task_name or FLAGS.data_dir or FLAGS.tfds):
        raise UserError(
            "--task_name with --data_dir or --tfds is for GLUE's tasks, --train_file, "
            "--dev_file and --test_file are for your own data; give one of the two."
        )
    if not any(own):
        if not FLAGS.task_name:
            raise UserError(
                "Give --train_file (--dev_file, --test_file), a table of your own, or "
                "--task_name and --data_dir, a task of GLUE."
            )
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
    fine_tuning_flags.check(evaluates=FLAGS.do_eval)


def _check_submission(is_own):
    from official_bert.tasks.glue.tasks import find_task

    if is_own or not FLAGS.do_predict:
        raise UserError("--glue_submission is for --do_predict of a GLUE task.")
    task = find_task(FLAGS.task_name)
    if not task.submission:
        raise UserError(
            f"--glue_submission: the GLUE server takes no {task.name}; leave it out."
        )
    files.make_directory(FLAGS.glue_submission, "--glue_submission")


def _read_data():
    """Return the `ClassifierData` of the command."""
    from official_bert.fine_tuning.task_file import has_task, read_task
    from official_bert.tasks.classifier import data as classifier_data
    from official_bert.tasks.classifier.task import ClassifierTask

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
    if not FLAGS.do_train and (
        has_task(fine_tuning_flags.model_path()) or not FLAGS.task_name
    ):
        known, _ = read_task(fine_tuning_flags.model_path(), ClassifierTask)
    length = FLAGS.max_seq_length or (known.max_seq_length if known else 128)
    long_text = FLAGS.long_text or (known.long_text if known else TRUNCATE)
    if FLAGS.task_name:
        data = _read_glue(length, long_text, wanted)
        if known:
            classifier_data.check_same_answers(
                known, data.task, fine_tuning_flags.model_path()
            )
        return data.with_bilstm(known.bilstm if known else FLAGS.bilstm)
    paths = {name: locate(FLAGS[name].value) for name in FILES}
    own = training_flags.settings(classifier_data.OwnFiles, **paths)
    if known:
        return classifier_data.read_own_for(known, own, length, long_text, wanted)
    data = classifier_data.read_own(own, length, long_text, wanted)
    return data.with_bilstm(FLAGS.bilstm)


def _read_glue(length, long_text, wanted):
    from official_bert.tasks.classifier import data as classifier_data
    from official_bert.tasks.glue import files as glue_files
    from official_bert.tasks.glue import tfds as glue_tfds
    from official_bert.tasks.glue.tasks import find_task

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
    from official_bert.fine_tuning.config_labels import labels_of

    with any_format.opened(fine_tuning_flags.model_path()) as checkpoint:
        return labels_of(checkpoint.config) if checkpoint.config else ()


def _make_job(start, data):
    """Return the `FineTuningJob` of the command."""
    from official_bert.tasks.classifier import features as classifier_features
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
    """Evaluate and predict as the flags say, with the model that is left."""
    from official_bert.tasks.classifier import reports as classifier_reports
    from official_bert.tasks.classifier.predictor import ClassifierPredictor

    if not data.dev and not data.test:
        return
    given = {} if FLAGS.do_train else given_files()
    path = fine_tuning_flags.model_path()
    # Of a training its own, whose threshold may have been changed since.
    task = None if FLAGS.do_train else data.task
    predictor = ClassifierPredictor(path, FLAGS.eval_batch_size, task, **given)
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
