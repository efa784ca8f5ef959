r"""Train sentence embeddings: similar texts get similar vectors.

    python run_scripts/run_embedding.py --train_file=pairs.csv --dev_file=dev.csv \
        --model=uncased_L-12_H-768_A-12 --output_dir=output/faq \
        --do_train --do_eval

    python run_scripts/run_embedding.py --dataset=glue/stsb \
        --model=uncased_L-12_H-768_A-12 --output_dir=output/similarity \
        --do_train --do_eval

    python run_scripts/run_embedding.py --do_eval --model=output/faq \
        --output_dir=output/search --corpus_file=corpus.jsonl \
        --queries_file=queries.jsonl --relevance_file=qrels.tsv

A row is a pair of texts, optionally with hard negatives or a score, or a text with the
name of its group. In a .txt file, each line is a text. The negatives of a text are all
other texts of the batch, on all devices. --micro_batch_size=N makes large batches fit
into memory (gradient caching); the training step still uses the whole batch. More in
docs/how_to/embeddings.md.
"""

import dataclasses

from absl import flags, logging

from official_bert import files
from official_bert.command_line import (
    dataset_flags,
    fine_tuning_flags,
    found_models,
    training_flags,
)
from official_bert.command_line.flag_values import locate, require
from official_bert.constants import (
    EMBEDDING_LOSSES,
    INFO_NCE,
    LONG_TEXT,
    POOLINGS,
    SIMCSE,
    WINDOW,
)
from official_bert.errors import UserError
from official_bert.tables.datasets import DEV, TEST, TRAIN
from official_bert.tasks.embedding import datasets as embedding_datasets
from official_bert.tasks.embedding import files as embedding_files
from official_bert.tasks.embedding.task import EmbeddingTask

FILES = ("train_file", "dev_file", "test_file")
# File flag -> part of a dataset that replaces the file.
PARTS = dict(zip(FILES, (TRAIN, DEV, TEST), strict=True))
RETRIEVAL_FILES = ("corpus_file", "queries_file", "relevance_file")
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
    "loss",
    "learning_rate",
    "num_train_epochs",
    "train_batch_size",
)

flags.DEFINE_string(
    "train_file", None, "Training texts: .csv, .tsv, .jsonl or .txt, also .gz."
)
flags.DEFINE_string("dev_file", None, "Pairs to evaluate on, in the same format.")
flags.DEFINE_string(
    "test_file", None, "For --do_predict: pairs to compare, or texts for vectors."
)
flags.DEFINE_list(
    "text_columns",
    [],
    "Columns of the texts: anchor, positive, then hard negatives. Default: columns "
    "with the usual names.",
)
flags.DEFINE_string(
    "score_column", None, "Column of the similarity of the two texts. Default: score."
)
flags.DEFINE_string(
    "group_column",
    None,
    "Column of the group of each text. Texts of one group have the same meaning. "
    "Default: group.",
)
flags.DEFINE_bool(
    "has_header",
    None,
    "Whether the first row of a CSV or TSV file names the columns. Default: detected.",
)
flags.DEFINE_bool("do_predict", False, "Predict the test set.")
flags.DEFINE_integer("predict_batch_size", 32, "Texts per prediction batch.", 1)
flags.DEFINE_integer(
    "max_seq_length",
    None,
    "Maximum tokens of a text, including [CLS] and [SEP]. Default: 128, or the "
    "setting of the model in --model.",
    lower_bound=3,
)
flags.DEFINE_enum(
    "loss",
    None,
    EMBEDDING_LOSSES,
    "info_nce: find the positive among all texts of the batch. cosent: rank pairs by "
    "their scores. cosine: make cosines equal the scores. simcse: info_nce of each "
    "text with itself under a different dropout mask. Default: chosen from the "
    "training file.",
)
flags.DEFINE_float(
    "temperature",
    0.05,
    "Divisor of cosines in the loss, except for --loss=cosine.",
    1e-6,
)
flags.DEFINE_bool(
    "symmetric",
    True,
    "With --loss=info_nce, also search for the anchor of each positive.",
)
flags.DEFINE_float(
    "max_score",
    None,
    "With --loss=cosine: score of two texts with the same meaning. Default: the "
    "highest score of the training file.",
)
flags.DEFINE_float(
    "min_score",
    None,
    "Train only on pairs with at least this score. With --loss=info_nce, the other "
    "pairs would count as texts with the same meaning.",
)
flags.DEFINE_enum(
    "pooling",
    None,
    POOLINGS,
    "Vector of a text: the mean of its token vectors, the vector of [CLS], or the "
    "pooled output. Default: mean, or the setting of the model in --model.",
)
flags.DEFINE_bool(
    "normalize",
    None,
    "Whether vectors have length 1. Default: yes, or the setting of the model in "
    "--model.",
)
flags.DEFINE_list(
    "matryoshka_sizes",
    [],
    "Train vectors that can be cut to these sizes, for example 384,128,64.",
)
flags.DEFINE_integer(
    "vector_size", None, "Keep only this number of leading values of a vector.", 1
)
flags.DEFINE_enum(
    "long_text",
    None,
    LONG_TEXT,
    "Handling of longer texts. truncate (default): cut. window: read windows and "
    "average their vectors, also in training.",
)
flags.DEFINE_string(
    "corpus_file",
    None,
    'With --do_eval: documents to search, {"_id": ..., "text": ...} or plain lines.',
)
flags.DEFINE_string(
    "queries_file", None, "Queries for --corpus_file, in the same format."
)
flags.DEFINE_string(
    "relevance_file", None, "Rows of query id, document id, and gain (0 or higher)."
)
FLAGS["train_batch_size"].help = (
    "Examples per training step, over all devices. Each text is compared with all "
    "texts of the batch, so larger batches train better vectors."
)
FLAGS["micro_batch_size"].help = (
    "Examples that a device processes at once, to save memory. The training step "
    "still uses the whole batch (gradient caching, about a third slower). 0: the "
    "device's whole share of the batch."
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
    datasets = [dataset] if dataset else []
    fine_tuning_flags.describe_run((*FILES, *RETRIEVAL_FILES), datasets)


def _used():
    """Return the names of the data flags that this run reads."""
    names = fine_tuning_flags.used(*FILES)
    is_optional = FLAGS.corpus_file and not (FLAGS.dev_file or FLAGS.dataset)
    return [name for name in names if name != "dev_file" or not is_optional]


def _check_flags():
    if dataset_flags.check(FILES):
        if FLAGS.has_header is not None:
            raise UserError("--has_header is only for files. Leave it out.")
    else:
        dataset_flags.check_unused_data_dir()
        fine_tuning_flags.require_files(*_used())
    given = [name for name in RETRIEVAL_FILES if FLAGS[name].value]
    if given:
        if not FLAGS.do_eval:
            raise UserError(f"--{given[0]} needs --do_eval. Add --do_eval.")
        require(*RETRIEVAL_FILES)
        fine_tuning_flags.require_files(*RETRIEVAL_FILES)
    has_dev = FLAGS.dev_file or FLAGS.dataset
    if FLAGS.do_train and FLAGS.do_eval and not has_dev:
        raise UserError(
            "--do_train with --do_eval needs --dev_file, which selects the best "
            "model. Give it, or evaluate the corpus in a second run."
        )
    _sizes()


def _sizes():
    """Return the numbers of --matryoshka_sizes, largest first."""
    for text in FLAGS.matryoshka_sizes:
        if not text.strip().isdecimal() or not int(text):
            raise UserError(
                f"--matryoshka_sizes: {text!r} is not a whole number above 0."
            )
    return tuple(sorted(set(map(int, FLAGS.matryoshka_sizes)), reverse=True))


def _read_data(dataset):
    """Return a dict of flag name -> list of `EmbeddingExample`.

    Args:
      dataset: `Dataset` that replaces the files; None reads the files.
    """
    columns = embedding_files.ColumnNames(
        tuple(FLAGS.text_columns),
        FLAGS.score_column,
        FLAGS.group_column,
        FLAGS.has_header,
    )
    data = {}
    for name in _used():
        if dataset:
            split, with_scores = dataset.require_split(PARTS[name]), name != "test_file"
            data[name] = embedding_datasets.read_dataset(
                dataset, split, columns, with_scores
            )
        else:
            path = locate(getattr(FLAGS, name))
            data[name] = embedding_files.read_examples(path, f"--{name}", columns)
    return data


def _task(path, config=None):
    """Return the `EmbeddingTask` of the flags, completed from a model's directory.

    Args:
      path: path of the model; None without one.
      config: its `BertConfig`, which limits the length.
    """
    from official_bert.tasks.embedding.directories import described_task

    task = (described_task(path) if path else None) or EmbeddingTask()
    if config:
        length = min(task.max_seq_length, config.max_position_embeddings)
        task = dataclasses.replace(task, max_seq_length=length)
    names = ("max_seq_length", "pooling", "normalize", "long_text")
    task = dataclasses.replace(task, **training_flags.given(*names))
    if FLAGS.vector_size:
        task = dataclasses.replace(task, size=FLAGS.vector_size)
    if task.long_text == WINDOW and task.max_seq_length < 5:
        raise UserError(
            f"--max_seq_length={task.max_seq_length} is too short: windows need at "
            "least 5 tokens. Use a larger value."
        )
    return task


def _check_dropout(start):
    """Raise `UserError` if the training has no dropout."""
    reason = "--loss=simcse compares two copies of a text that differ only in dropout"
    if not start.dropout:
        raise UserError(f"{reason}. Leave --nodropout out.")
    rates = start.config.hidden_dropout_prob, start.config.attention_probs_dropout_prob
    if not any(rates):
        raise UserError(
            f"{reason}, but the model's bert_config.json has no dropout. Set "
            "hidden_dropout_prob and attention_probs_dropout_prob in it, for example "
            "to 0.1."
        )


def _make_job(start, data):
    """Return the `FineTuningJob` of the command."""
    from official_bert.tasks.embedding import evaluation, training
    from official_bert.tasks.embedding.features import convert_training

    task = _task(found_models.find(FLAGS.model), start.config)
    start.check_length(task.max_seq_length)
    train = _train_examples(data["train_file"])
    loss = _loss(train)
    if loss.name == SIMCSE:
        _check_dropout(start)
    width = start.config.hidden_size
    for flag, sizes in (
        ("matryoshka_sizes", loss.sizes),
        ("vector_size", [task.size or 1]),
    ):
        if max(sizes, default=1) > width:
            raise UserError(
                f"--{flag}: {max(sizes)} exceeds the vector size {width}. Use a "
                "smaller number."
            )
    dev = None
    if "dev_file" in data:
        dev = evaluation.of_examples(data["dev_file"], "--dev_file")
        task = dataclasses.replace(task, metrics=dev.metrics)
    features = convert_training(train, start.tokenizer, task, loss.name)
    return training.make_job(start, task, loss, features, dev)


def _train_examples(examples):
    """Return the training examples with at least --min_score."""
    if FLAGS.min_score is None:
        if FLAGS.loss == INFO_NCE and len({one.score for one in examples}) > 1:
            logging.warning(
                "--loss=info_nce ignores the scores and uses all pairs as texts with "
                "the same meaning. Add --min_score to use only pairs with high scores."
            )
        return examples
    kept = [
        example
        for example in examples
        if example.score is not None and example.score >= FLAGS.min_score
    ]
    if not kept:
        raise UserError(
            f"--min_score={FLAGS.min_score:g}: no training pair has this score. Use a "
            "lower value, or name the scores with --score_column."
        )
    print(f"Training pairs: {len(kept)} of {len(examples)}, by score.", flush=True)
    return kept


def _loss(examples):
    """Return the `LossSettings` of the flags; `UserError` if the data do not fit."""
    from official_bert.modeling.embedding.losses import LossSettings

    name = FLAGS.loss or embedding_files.default_loss(examples)
    embedding_files.check_loss(examples, name, "--train_file")
    highest = FLAGS.max_score
    if highest is None:
        highest = max((example.score or 0.0 for example in examples), default=0.0)
    if name == "cosine" and highest <= 0:
        raise UserError(
            f"--max_score={highest:g} is invalid. It is the score of two texts with "
            "the same meaning and must be above 0."
        )
    print(f"Loss: {name}.", flush=True)
    symmetric = FLAGS.symmetric and name != SIMCSE
    return LossSettings(name, FLAGS.temperature, symmetric, _sizes(), highest or 1.0)


def _evaluate_and_predict(data):
    """Evaluate and predict with the final model, as the flags say."""
    from official_bert.tasks.embedding import corpus, evaluation, reports
    from official_bert.tasks.embedding.vectors import EmbeddingPredictor

    path = fine_tuning_flags.model_path()
    predictor = fine_tuning_flags.load_predictor(EmbeddingPredictor, _task(path))
    files.make_directory(FLAGS.output_dir, "--output_dir")
    if FLAGS.do_eval:
        dev, scores = None, {}
        if "dev_file" in data:
            dev = evaluation.of_examples(data["dev_file"], "--dev_file")
        if FLAGS.corpus_file:
            paths = [locate(getattr(FLAGS, name)) for name in RETRIEVAL_FILES]
            scores = corpus.evaluate(predictor, *paths)
        reports.evaluate(
            predictor, dev, scores, FLAGS.output_dir, FLAGS.eval_batch_size
        )
    if FLAGS.do_predict:
        reports.predict(predictor, data["test_file"], FLAGS.output_dir)
