r"""Fine-tune BERT to tag named entities; evaluate it; tag files.

    python run_scripts/run_ner.py --model=cased_L-12_H-768_A-12 \
        --train_file=train.txt --dev_file=valid.txt --test_file=test.txt \
        --do_train --do_eval --do_predict --learning_rate=5e-5 --output_dir=output/ner

    python run_scripts/run_ner.py --model=cased_L-12_H-768_A-12 \
        --dataset=conll2003 --do_train --do_eval --do_predict --output_dir=output/ner

Files have CoNLL columns (one word per line, its tag last, a blank line between
sentences) or are JSON lines: {"text": …, "entities": [{"start", "end", "label"}]}. More
in docs/how_to/ner.md.
"""

import dataclasses

from absl import flags, logging

from official_bert import files
from official_bert.command_line import (
    dataset_flags,
    fine_tuning_flags,
    training_flags,
)
from official_bert.command_line.flag_values import locate
from official_bert.constants import FEATURE_LAYERS
from official_bert.errors import UserError
from official_bert.fine_tuning.task_file import has_task, read_task
from official_bert.tables.datasets import DEV, TEST, TRAIN
from official_bert.tasks.ner import datasets as ner_datasets
from official_bert.tasks.ner import features as ner_features
from official_bert.tasks.ner import sentences as ner_sentences
from official_bert.tasks.ner.files import has_tags, read_ner_file

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

flags.DEFINE_string("train_file", None, "CoNLL columns or JSON lines to train on.")
flags.DEFINE_string("dev_file", None, "CoNLL columns or JSON lines to evaluate on.")
flags.DEFINE_string(
    "test_file",
    None,
    "CoNLL columns or JSON lines to tag. Existing tags are used for scores; other "
    "columns are kept.",
)
flags.DEFINE_bool("do_predict", False, "Tag the test file.")
flags.DEFINE_integer("predict_batch_size", 8, "Windows per prediction batch.", 1)
flags.DEFINE_integer(
    "max_seq_length",
    None,
    "Maximum tokens of a window. Neighboring sentences fill the window. Default: "
    "128, or the setting of the fine-tuned model.",
    lower_bound=3,
)
flags.DEFINE_integer(
    "doc_stride",
    None,
    "Tokens between the starts of two windows. Default: half a window, or the "
    "setting of the fine-tuned model.",
    lower_bound=1,
)
flags.DEFINE_bool(
    "one_sentence",
    None,
    "Read each sentence alone, without neighboring sentences. Default: no, or the "
    "setting of the fine-tuned model. Always on with --dataset.",
)
flags.DEFINE_bool(
    "label_all_pieces",
    None,
    "Train on all WordPiece tokens of a word, not only the first.",
)
flags.DEFINE_enum(
    "feature_based",
    None,
    FEATURE_LAYERS,
    "Do not fine-tune BERT: train a two-layer BiLSTM on these layers (Table 7).",
)
flags.DEFINE_bool(
    "bilstm", None, "Add a new BiLSTM on top of the fine-tuned model (Table 5)."
)

# Flags that define a `NerTask`: READING can change for prediction, TRAINING cannot.
READING = ("max_seq_length", "doc_stride", "one_sentence")
TRAINING = ("label_all_pieces", "feature_based", "bilstm")


def main() -> None:
    """Check the flags and the data, then train, evaluate and tag."""
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
        _evaluate_and_predict(dataset, data)
    fine_tuning_flags.describe_run(FILES, [dataset] if dataset else [])


def _check_flags():
    if FLAGS.bilstm and FLAGS.feature_based:
        raise UserError("--feature_based already has a BiLSTM. Leave --bilstm out.")
    if not dataset_flags.check(FILES):
        dataset_flags.check_unused_data_dir()
        fine_tuning_flags.require_files(*fine_tuning_flags.used(*FILES))
    elif FLAGS.one_sentence is False:
        raise UserError(
            "--noone_sentence cannot be used with --dataset, whose sentences have no "
            "order and no documents. Leave it out, or read files."
        )


def _read_data(dataset):
    """Return a dict of flag name -> `NerData`, of all files that a training needs.

    Without a training it is empty, because the labels come from the model.
    """
    if not FLAGS.do_train:
        return {}
    train = _read(dataset, "train_file")
    if not train.labels:
        raise UserError(
            f"--train_file: {FLAGS.dataset or FLAGS.train_file} has no entities to "
            "learn: all its words are tagged O."
        )
    return {"train_file": train, **_read_asked(dataset, train.labels)}


def _read_asked(dataset, labels):
    """Return a dict of flag name -> `NerData`, of the files to evaluate and tag."""
    used = fine_tuning_flags.used(*FILES)
    return {flag: _read(dataset, flag, labels) for flag in used if flag != "train_file"}


def _make_job(start, data):
    """Return the `FineTuningJob` of the command."""
    from official_bert.tasks.ner import training as ner

    train = data["train_file"]
    tags = ner_features.tag_names(train.labels)
    as_columns = ner_sentences.has_joined_words(train.documents)
    given = _given_reading() | training_flags.given(*TRAINING)
    task = ner.NerTask(tags, **given, words_as_columns=as_columns)
    start.check_length(task.max_seq_length)
    if start.tokenizer.do_lower_case:
        logging.warning(
            "The model is uncased. A cased model, as in the paper, finds names better."
        )
    features = ner.convert(task, train.documents, start.tokenizer)
    dev = data["dev_file"].documents if FLAGS.do_eval else None
    return ner.make_job(start, task, features, dev)


def _known_task(path):
    """Return a model's `NerTask`, with the reading settings of the flags.

    It is None if the model does not define its tags; the model's loader then raises the
    error.
    """
    from official_bert.checkpoints import any_format
    from official_bert.tasks.ner import training as ner

    known: ner.NerTask | None = None
    if has_task(path):
        known, _ = read_task(path, ner.NerTask)
    else:
        with any_format.opened(path) as checkpoint:
            if checkpoint.config:
                known = ner.task_of(checkpoint.config)
    if known is None:
        return None
    for name, value in training_flags.given(*TRAINING).items():
        if value != getattr(known, name):
            raise UserError(
                f"--{name} differs from the training of {path}, and works only with "
                "--do_train. Leave it out, or train with it."
            )
    return dataclasses.replace(known, **_given_reading())


def _given_reading():
    """Return the given values of `READING`; a dataset has no documents."""
    always = {"one_sentence": True} if FLAGS.dataset else {}
    return training_flags.given(*READING) | always


def _read(dataset, flag, labels=None):
    """Return the `NerData` of a file or of the dataset; log its contents."""
    if dataset:
        split = dataset.require_split(PARTS[flag])
        data = ner_datasets.read_sentences(dataset, split, labels)
    else:
        path = locate(getattr(FLAGS, flag))
        with_tags = flag != "test_file" or has_tags(path, "--test_file")
        data = read_ner_file(path, f"--{flag}", labels, with_tags)
    for note in data.notes:
        logging.info("%s", note)
    return data


def _evaluate_and_predict(dataset, data):
    """Evaluate and tag with the final model, as the flags say."""
    from official_bert.tasks.ner import reports as ner_reports
    from official_bert.tasks.ner.predictor import NerPredictor

    task = _known_task(fine_tuning_flags.model_path())
    predictor = fine_tuning_flags.load_predictor(NerPredictor, task)
    data = data or _read_asked(dataset, predictor.task.labels)
    files.make_directory(FLAGS.output_dir, "--output_dir")
    if FLAGS.do_eval:
        documents = data["dev_file"].documents
        ner_reports.evaluate(
            predictor, documents, FLAGS.output_dir, FLAGS.eval_batch_size
        )
    if FLAGS.do_predict:
        documents = data["test_file"].documents
        ner_reports.predict(predictor, documents, FLAGS.output_dir)
