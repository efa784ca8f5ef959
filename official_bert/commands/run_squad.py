r"""Fine-tune BERT on SQuAD 1.1 or 2.0, and answer its questions.

    python run_scripts/run_squad.py --model=uncased_L-12_H-768_A-12 \
        --train_file=train-v1.1.json --dev_file=dev-v1.1.json \
        --do_train --do_predict --train_batch_size=12 --learning_rate=3e-5 \
        --num_train_epochs=2 --output_dir=output/squad

    python run_scripts/run_squad.py --model=uncased_L-12_H-768_A-12 \
        --dataset=squad/v2.0 --do_train --do_predict --output_dir=output/squad2

For files of SQuAD 2.0, add --version_2_with_negative. If the questions have answers,
the predictions get the official scores. --do_eval finds the best threshold on the null
odds and stores it in task.json. It does so during training, or for the model in
--output_dir. More in docs/how_to/squad.md.
"""

import os

from absl import flags, logging

from official_bert import files
from official_bert.command_line import (
    dataset_flags,
    fine_tuning_flags,
    found_models,
    training_flags,
)
from official_bert.command_line.flag_values import define_aliases, locate
from official_bert.command_line.model_flags import given_files
from official_bert.errors import UserError
from official_bert.fine_tuning import task_file
from official_bert.tables.datasets import DEV, TEST, TRAIN
from official_bert.tasks.squad import datasets as squad_datasets
from official_bert.tasks.squad import features as squad_features
from official_bert.tasks.squad import files as squad_files
from official_bert.tasks.squad import reports as squad_reports

FILES = ("train_file", "dev_file")
FLAGS = flags.FLAGS
# Flags that the help shows first.
REQUIRED: tuple[str, ...] = ("output_dir",)
MOST_USED: tuple[str, ...] = (
    "do_train",
    "do_predict",
    "model",
    "train_file",
    "dev_file",
    "version_2_with_negative",
    "learning_rate",
    "num_train_epochs",
    "train_batch_size",
    "max_seq_length",
)

flags.DEFINE_string("train_file", None, "SQuAD JSON file to train on, also .gz.")
flags.DEFINE_string("dev_file", None, "SQuAD JSON file with the questions to answer.")
define_aliases("dev_file", "predict_file")
flags.DEFINE_bool(
    "do_predict",
    False,
    "Answer the questions, and score the predictions if the file has answers.",
)
flags.DEFINE_integer("predict_batch_size", 8, "Windows per prediction batch.", 1)
flags.DEFINE_integer(
    "max_seq_length",
    None,
    "Maximum tokens of a window, including the question. Default: 384, or the "
    "setting of the fine-tuned model.",
    lower_bound=5,
)
flags.DEFINE_integer(
    "doc_stride",
    None,
    "Context tokens between the starts of two windows. Default: 128, or the setting "
    "of the fine-tuned model.",
    lower_bound=1,
)
flags.DEFINE_integer(
    "max_query_length",
    None,
    "Maximum tokens of a question. Default: 64, or the setting of the fine-tuned "
    "model.",
    lower_bound=1,
)
flags.DEFINE_integer(
    "n_best_size",
    None,
    "Number of answers to list, and of start and end positions to combine. Default: "
    "20, or the setting of the fine-tuned model.",
    lower_bound=1,
)
flags.DEFINE_integer(
    "max_answer_length",
    None,
    "Maximum tokens of an answer. Default: 30, or the setting of the fine-tuned model.",
    lower_bound=1,
)
flags.DEFINE_bool(
    "version_2_with_negative",
    None,
    "SQuAD 2.0: some questions have no answer. Default: the setting of the "
    "fine-tuned model. In training: as in --dataset, or false for files.",
)
flags.DEFINE_float(
    "null_score_diff_threshold",
    None,
    "If the null odds exceed this threshold, predict no answer. Default: 0, or the "
    "best threshold of the model's last --do_eval.",
)
flags.DEFINE_list(
    "ensemble_dirs",
    [],
    "Directories of several fine-tuned models whose logits are averaged. Lengths, "
    "version and threshold are those of the first model, unless flags override them.",
)
flags.DEFINE_bool("verbose_logging", False, "For old commands; has no effect.")


def main() -> None:
    """Check the flags and the data, then train and predict."""
    fine_tuning_flags.check_actions()
    _check_flags()
    strategy = fine_tuning_flags.start()
    dataset = dataset_flags.opened()
    data = _read_questions(dataset)
    if FLAGS.do_train:
        with fine_tuning_flags.opened_start(strategy) as start:
            job = _make_job(start, dataset, data)
            if not fine_tuning_flags.fine_tune(strategy, job):
                return
    if not fine_tuning_flags.is_chief(strategy):
        return
    if FLAGS.do_eval or FLAGS.do_predict:
        _evaluate_and_predict(dataset, data)
    fine_tuning_flags.describe_run(
        (*FILES, "ensemble_dirs"), [dataset] if dataset else []
    )


def _check_flags():
    uses = {
        "train_file": FLAGS.do_train or FLAGS.train_file,
        "dev_file": FLAGS.do_predict or FLAGS.do_eval or FLAGS.dev_file,
    }
    if not dataset_flags.check(FILES):
        dataset_flags.check_unused_data_dir()
        fine_tuning_flags.require_files(*filter(uses.get, uses))
    if FLAGS.ensemble_dirs and FLAGS.do_train:
        raise UserError(
            "--ensemble_dirs is only for prediction. Train the models first."
        )
    for name in ("model", "bert_config_file", "vocab_file", "do_lower_case"):
        if FLAGS.ensemble_dirs and FLAGS[name].value not in (None, ""):
            raise UserError(
                f"--{name} is for one model and cannot be used with --ensemble_dirs, "
                f"whose directories have their own. Leave --{name} out."
            )


def _source(dataset, flag):
    """Return the path of a flag, or the questions of the dataset that replaces it."""
    if dataset is None:
        return locate(FLAGS[flag].value)
    if flag == "train_file":
        split = dataset.require_split(TRAIN)
    else:
        split = dataset.find_split(DEV) or dataset.find_split(TEST)
        split = split or dataset.require_split(DEV)
    return squad_datasets.read_articles(dataset, split)


def _read_questions(dataset):
    """Return (examples, gold answers or None) to predict, or None if there are none."""
    named = FLAGS.dataset and (FLAGS.do_predict or FLAGS.do_eval)
    if not FLAGS.dev_file and not named:
        return None
    from official_bert.checkpoints import any_format

    path, flag = _source(dataset, "dev_file"), "--dev_file"
    known = _default_task(dataset)
    if not FLAGS.do_train:
        for model in _model_paths():
            with any_format.opened(model):
                pass  # The model exists.
        known = _known_task(_model_paths()[0], dataset)
    with_negative = _task(known).decoding.version_2_with_negative
    examples = squad_files.read_examples(path, False, with_negative, flag)
    gold_answers = squad_files.read_gold_answers(path, flag)
    if gold_answers is None:
        if FLAGS.do_eval:
            raise UserError(
                f"--do_eval: the questions of {path} have no answers. Use a file "
                "with answers."
            )
    elif not with_negative and not all(gold_answers.values()):
        if FLAGS.do_eval or FLAGS.version_2_with_negative is None:
            raise UserError(
                f"--dev_file={path} has questions without an answer. Add "
                "--version_2_with_negative. To answer all questions anyway, without "
                "scores, use --do_predict and --noversion_2_with_negative."
            )
        logging.warning(
            "%s has questions without an answer: predictions are not scored.", path
        )
        gold_answers = None
    return examples, gold_answers


def _task(known):
    """Return the `SquadTask` of the flags, completed from a known task."""
    from official_bert.tasks.squad.training import SquadTask

    values = known.to_dict()
    return SquadTask.from_dict({**values, **training_flags.given(*values)})


def _make_job(start, dataset, questions):
    """Return the `FineTuningJob` of the command."""
    from official_bert.tasks.squad import training as squad

    task = _task(_default_task(dataset))
    start.check_length(task.max_seq_length)
    with_negative = task.decoding.version_2_with_negative
    source = _source(dataset, "train_file")
    examples = squad_files.read_examples(source, True, with_negative, "--train_file")
    features = squad_features.convert_examples(examples, start.tokenizer, *task.lengths)
    if not features:
        raise UserError(
            f"--train_file={source} has no context with words in it. Check the file."
        )
    print(f"{len(examples)} training questions, {len(features)} windows", flush=True)
    dev = None
    if FLAGS.do_eval:
        dev_examples, gold_answers = questions
        windows = squad_features.convert_examples(
            dev_examples, start.tokenizer, *task.lengths
        )
        dev = squad.AnsweredQuestions(
            dev_examples, windows, gold_answers, FLAGS.pad_to_max_seq_length
        )
    # As in the original, an epoch has as many windows as there are questions.
    return squad.make_job(start, task, features, dev, epoch_size=len(examples))


def _evaluate_and_predict(dataset, questions):
    """Predict the answers of --dev_file and score them.

    With --do_eval but without a training, find the best threshold first.
    """
    from official_bert.tasks.squad.predictor import SquadPredictor

    searches = FLAGS.do_eval and not FLAGS.do_train
    examples, gold_answers = questions
    paths = _model_paths()
    size = FLAGS.predict_batch_size if FLAGS.do_predict else FLAGS.eval_batch_size
    given = {} if FLAGS.do_train or FLAGS.ensemble_dirs else given_files()
    # All models of an ensemble use the lengths of the first one.
    task = _task(_known_task(paths[0], dataset))
    pads = FLAGS.pad_to_max_seq_length
    predictors = [SquadPredictor(path, size, task, pads, **given) for path in paths]
    task = predictors[0].task
    predictions = squad_reports.answer(predictors, examples)
    files.make_directory(FLAGS.output_dir, "--output_dir")
    if searches and task.decoding.version_2_with_negative:
        best = squad_reports.best_threshold(task, predictions, gold_answers)
        _keep(best)
        if FLAGS.null_score_diff_threshold is None:
            task, predictions = squad_reports.at_threshold(task, predictions, best)
    with_negative = task.decoding.version_2_with_negative
    if with_negative:
        threshold = task.decoding.null_score_diff_threshold
        warning = squad_reports.silence_warning(predictions, threshold, gold_answers)
        if warning:
            print(warning, flush=True)
    if FLAGS.do_predict:
        squad_reports.write(FLAGS.output_dir, examples, predictions, with_negative)
    if gold_answers is not None:
        squad_reports.score(FLAGS.output_dir, task, predictions, gold_answers)


def _keep(threshold):
    """Write a threshold to `task.json` in --output_dir, or print why not."""
    from official_bert.tasks.squad.training import SquadTask

    directory = FLAGS.output_dir
    if _model_paths() == [directory] and task_file.has_task(directory):
        known, global_step = task_file.read_task(directory, SquadTask)
        known = known.with_threshold(threshold)
        task_file.write_task(directory, known, global_step)
        path = os.path.join(directory, task_file.TASK_FILE)
        print(f"Best threshold {threshold}, saved in {path}", flush=True)
    else:
        print(
            f"Best threshold {threshold}. It is not saved, because --output_dir is "
            "not the evaluated model. Add "
            f"--null_score_diff_threshold={threshold} to use it for predictions.",
            flush=True,
        )


def _model_paths():
    """Return the directory of the model in a list, or those of the ensemble."""
    paths = [found_models.find(path) for path in FLAGS.ensemble_dirs]
    return paths or [fine_tuning_flags.model_path()]


def _known_task(path, dataset):
    """Return the `SquadTask` of a model, or the default one."""
    from official_bert.tasks.squad.training import SquadTask

    if task_file.has_task(path):
        return task_file.read_task(path, SquadTask)[0]
    return _default_task(dataset)


def _default_task(dataset):
    """Return the `SquadTask` of a new model; the dataset sets its version."""
    from official_bert.tasks.squad.training import SquadTask

    values = SquadTask().to_dict()
    if dataset and squad_datasets.has_impossible_questions(dataset):
        values["version_2_with_negative"] = True
    return SquadTask.from_dict(values)
