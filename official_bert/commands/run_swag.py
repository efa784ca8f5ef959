r"""Fine-tune BERT on SWAG or other multiple choice; evaluate and predict.

    python run_scripts/run_swag.py --flagfile=configs/swag.flags \
        --train_file=swag/train.csv --dev_file=swag/val.csv \
        --model=uncased_L-12_H-768_A-12

    python run_scripts/run_swag.py --train_file=train.jsonl --dev_file=dev.jsonl \
        --model=uncased_L-12_H-768_A-12 --output_dir=output/questions \
        --do_train --do_eval

    python run_scripts/run_swag.py --dataset=hellaswag \
        --model=uncased_L-12_H-768_A-12 --output_dir=output/endings \
        --do_train --do_eval

A file that starts with { is read as JSON lines, whatever its name. Each line is
{"question": …, "choices": [text, …], "answerKey": "B"}, or has the format of ARC's
files, or the columns of SWAG. Other files are read as SWAG's CSV. More in
docs/how_to/multiple_choice.md.
"""

import dataclasses

from absl import flags

from official_bert import files
from official_bert.command_line import (
    dataset_flags,
    fine_tuning_flags,
    training_flags,
)
from official_bert.command_line.flag_values import locate
from official_bert.errors import UserError
from official_bert.fine_tuning.task_file import has_task, read_task
from official_bert.tables.datasets import DEV, TEST, TRAIN
from official_bert.tasks.choice import datasets as choice_datasets
from official_bert.tasks.choice import files as choice_files
from official_bert.tasks.choice.features import convert_choices
from official_bert.tasks.choice.files import is_json_lines

FILES = ("train_file", "dev_file", "test_file")
# File flag -> part of a dataset that replaces the file.
PARTS = dict(zip(FILES, (TRAIN, DEV, TEST), strict=True))
FLAGS = flags.FLAGS
# Flags that the help shows first.
REQUIRED: tuple[str, ...] = ("output_dir",)
MOST_USED: tuple[str, ...] = (
    "do_train",
    "do_eval",
    "do_predict",
    "model",
    "train_file",
    "dev_file",
    "test_file",
    "learning_rate",
    "num_train_epochs",
    "train_batch_size",
)

flags.DEFINE_string(
    "train_file", None, "SWAG's CSV or JSON lines to train on, also .gz."
)
flags.DEFINE_string("dev_file", None, "SWAG's CSV or JSON lines to evaluate on.")
flags.DEFINE_string(
    "test_file",
    None,
    "SWAG's CSV or JSON lines for --do_predict. Answers may be missing.",
)
flags.DEFINE_bool("do_predict", False, "Predict the test set.")
flags.DEFINE_integer(
    "predict_batch_size", 8, "Sequences per prediction batch; each is one choice.", 1
)
flags.DEFINE_integer(
    "max_seq_length",
    None,
    "Maximum tokens of a question with one choice, including [CLS] and [SEP]. "
    "Default: 128, or the setting of the fine-tuned model.",
    lower_bound=3,
)
flags.DEFINE_bool(
    "leave_out_generated",
    False,
    "Leave out the rows of SWAG's training file whose correct ending was written by "
    "a language model.",
)
flags.DEFINE_bool(
    "leave_out_damaged",
    False,
    "Leave out unusable JSON lines and report them, instead of rejecting the file.",
)
FLAGS["train_batch_size"].help = (
    "Examples per training step, over all devices. Each choice of an example is one "
    "sequence: 32 examples of SWAG are 128 sequences. The paper uses 16 examples."
)
FLAGS["micro_batch_size"].help = (
    "Examples, with all their choices, that a device processes at once, to save "
    "memory. The training step stays the same. 0: the device's whole share of the "
    "batch."
)


def main() -> None:
    """Check the flags and the data, then train, evaluate and predict."""
    fine_tuning_flags.check_actions()
    _check_flags()
    strategy = fine_tuning_flags.start()
    dataset = dataset_flags.opened()
    data = _read_data(dataset)
    if FLAGS.do_train:
        with fine_tuning_flags.opened_start(strategy) as start:
            if not fine_tuning_flags.fine_tune(strategy, _make_job(start, data)):
                return
    if not fine_tuning_flags.is_chief(strategy):
        return
    if FLAGS.do_eval or FLAGS.do_predict:
        _evaluate_and_predict(data)
    fine_tuning_flags.describe_run(FILES, [dataset] if dataset else [])


def _check_flags():
    if dataset_flags.check(FILES):
        if FLAGS.leave_out_generated and not FLAGS.do_train:
            raise UserError("--leave_out_generated needs --do_train. Leave it out.")
        return
    dataset_flags.check_unused_data_dir()
    names = fine_tuning_flags.used(*FILES)
    fine_tuning_flags.require_files(*names)
    is_json = [
        is_json_lines(locate(getattr(FLAGS, each)), f"--{each}") for each in names
    ]
    if FLAGS.leave_out_generated and (not FLAGS.do_train or is_json[0]):
        raise UserError(
            "--leave_out_generated works only with --do_train on SWAG's CSV. Leave "
            "it out."
        )
    if FLAGS.leave_out_damaged and not any(is_json):
        raise UserError(
            "--leave_out_damaged works only for JSON lines, and none of the files "
            "has JSON lines. Leave it out."
        )


def _read_data(dataset):
    """Return a dict of flag name -> list of `ChoiceExample`; print notes."""
    data = {}
    for name in fine_tuning_flags.used(*FILES):
        settings = {
            "is_test": name == "test_file",
            "leave_out_generated": FLAGS.leave_out_generated and name == "train_file",
            "leave_out_damaged": FLAGS.leave_out_damaged,
        }
        if dataset:
            data[name], notes = choice_datasets.read_dataset(
                dataset, dataset.require_split(PARTS[name]), **settings
            )
        else:
            data[name], notes = choice_files.read_swag(
                locate(getattr(FLAGS, name)), f"--{name}", **settings
            )
        print(*(f"{note}\n" for note in notes), sep="", end="", flush=True)
    return data


def _make_job(start, data):
    """Return the `FineTuningJob` of the command."""
    from official_bert.tasks.choice import training as choice

    task = choice.ChoiceTask(**training_flags.given("max_seq_length"))
    start.check_length(task.max_seq_length)
    features = {
        name: convert_choices(examples, start.tokenizer, task.max_seq_length)
        for name, examples in data.items()
        if name != "test_file"
    }
    return choice.make_job(
        start, task, features["train_file"], features.get("dev_file")
    )


def _evaluate_and_predict(data):
    """Evaluate and predict with the final model, as the flags say."""
    from official_bert.tasks.choice import reports as choice_reports
    from official_bert.tasks.choice.predictor import ChoicePredictor
    from official_bert.tasks.choice.training import ChoiceTask

    path = fine_tuning_flags.model_path()
    task = read_task(path, ChoiceTask)[0] if has_task(path) else ChoiceTask()
    task = dataclasses.replace(task, **training_flags.given("max_seq_length"))
    predictor = fine_tuning_flags.load_predictor(ChoicePredictor, task)
    files.make_directory(FLAGS.output_dir, "--output_dir")
    if FLAGS.do_eval:
        choice_reports.evaluate(
            predictor, data["dev_file"], FLAGS.output_dir, FLAGS.eval_batch_size
        )
    if FLAGS.do_predict:
        choice_reports.predict(predictor, data["test_file"], FLAGS.output_dir)
