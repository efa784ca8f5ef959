r"""Predict with a fine-tuned model of any task: one line of JSON per input.

A classifier reads texts or pairs ("text a ||| text b"), one per line, or a table:

    python run_scripts/predict.py --model=output/reviews --input_file=new.csv \
        --output_file=answers.jsonl

    python run_scripts/predict.py --model=output/reviews --text="Wonderful!"

A tagger reads texts, one per line, or lines of {"text": ...}:

    echo "Anna is in Rome." | python run_scripts/predict.py --model=output/ner

A SQuAD model reads lines of {"question": ..., "context": ...}, or pairs:

    python run_scripts/predict.py --model=output/squad \
        --text="Who is in Rome? ||| Anna is in Rome."

A multiple-choice model reads lines of {"prompt": ..., "choices": [...]}, or SWAG's CSV:

    python run_scripts/predict.py --model=output/swag --input_file=questions.jsonl

An embedding model prints the vector of each text, or the similarity of each pair ("text
a ||| text b"). A pre-trained encoder that was exported for devices (.tflite) prints the
vector of each text.

The model's files name its task. From CSV, TSV and JSON lines, a classifier reads the
columns that it was fine-tuned on. For other tasks, a line that starts with { is JSON.
"""

import itertools
import json
import sys

from absl import flags

from official_bert import files, given_paths
from official_bert.command_line import found_models
from official_bert.command_line.flag_values import define_aliases, require
from official_bert.command_line.streams import (
    STANDARD,
    is_stream,
    lines_of,
    opened_output,
)
from official_bert.command_line.tensorflow_start import start_tensorflow
from official_bert.constants import CLASSIFIER, EMBEDDING, MULTIPLE_CHOICE, NER, SQUAD
from official_bert.errors import UserError
from official_bert.tables.text_pairs import split_line
from official_bert.tasks import prediction_inputs
from official_bert.tasks.choice.files import read_prompts
from official_bert.tasks.classifier.data import OwnFiles, read_texts

# Texts of a file that are predicted together. Those of similar length share a batch.
CHUNK = 1024
TABLES = (".csv", ".tsv", ".tab")
JSON_LINES = (".jsonl", ".ndjson", ".json")
FLAGS = flags.FLAGS
# Flags that the help shows first.
REQUIRED: tuple[str, ...] = ("model",)
MOST_USED: tuple[str, ...] = (
    "text",
    "input_file",
    "output_file",
    "text_column",
    "text_b_column",
    "has_header",
    "batch_size",
)

flags.DEFINE_string(
    "model",
    None,
    "Output directory of a finished fine-tuning; a fine-tuned model of Hugging Face, "
    "by path or name; or a .tflite file.",
)
define_aliases("model", "model_dir", "init_checkpoint")
flags.DEFINE_multi_string(
    "text", [], "Input, as a line of --input_file would be. Can be repeated."
)
flags.DEFINE_string(
    "input_file",
    STANDARD,
    "Inputs of the model: .txt or .jsonl, for some tasks .csv or .tsv, also .gz; - "
    "is standard input.",
)
flags.DEFINE_string(
    "output_file",
    STANDARD,
    "File for the predictions, JSON lines; - is standard output.",
)
flags.DEFINE_string(
    "text_column",
    None,
    "Column of the text in a classifier's table. Default: as in training.",
)
flags.DEFINE_string(
    "text_b_column",
    None,
    "Column of the second text of pairs. Default: as in training.",
)
flags.DEFINE_bool(
    "has_header",
    None,
    "Whether the first row of a CSV or TSV file names the columns. Default: as in "
    "training, or detected if --text_column is a number.",
)
flags.DEFINE_integer(
    "batch_size",
    32,
    "Number of texts, context windows or choices per batch. With 1, each line from a "
    "pipe is predicted at once.",
    lower_bound=1,
)


def main() -> None:
    """Load the model and predict each input."""
    require(*REQUIRED)
    _check_files()
    path = found_models.find(FLAGS.model)
    start_tensorflow()
    from official_bert.tasks.predictor import load

    predictor = load(path, FLAGS.batch_size)
    inputs, size = iter(_inputs_for(predictor.task)), CHUNK
    if FLAGS.input_file == STANDARD and not FLAGS.text:
        # On a terminal, predict each line at once.
        size = 1 if sys.stdin.isatty() else FLAGS.batch_size
    with opened_output(FLAGS.output_file) as out:
        while chunk := list(itertools.islice(inputs, size)):
            results = predictor.predict_all(chunk)
            for one, result in zip(chunk, results, strict=True):
                record = predictor.to_json(one, result)
                out.write(json.dumps(record, ensure_ascii=False) + "\n")
            out.flush()


def _check_files():
    if FLAGS.text and FLAGS.input_file != STANDARD:
        raise UserError("Give --text or --input_file, not both.")
    if FLAGS.input_file != STANDARD:
        given_paths.require_readable(FLAGS.input_file, "--input_file")
    if not is_stream(FLAGS.output_file):
        given_paths.require_parent(FLAGS.output_file, "--output_file")
        if files.real(FLAGS.output_file) == files.real(FLAGS.input_file):
            raise UserError(
                f"--output_file={FLAGS.output_file} is also the input. Choose "
                "another name."
            )
    if not _ends_with(TABLES + JSON_LINES) and _columns():
        raise UserError(
            f"{_columns()} works only for tables (.csv, .tsv, .jsonl). Leave it out."
        )


def _columns():
    """Return the first given flag about table columns, or None."""
    names = ("text_column", "text_b_column", "has_header")
    given = (f"--{name}" for name in names if FLAGS[name].value not in (None, ""))
    return next(given, None)


def _lines():
    """Return an iterable of the given texts, or of the lines of --input_file."""
    return [text.strip() for text in FLAGS.text] or lines_of(FLAGS.input_file)


def _ends_with(endings):
    return FLAGS.input_file.removesuffix(".gz").lower().endswith(endings)


def _inputs_for(task):
    """Return an iterable of the model's inputs in --input_file.

    Args:
      task: the model's task; None for a pre-trained encoder.
    """
    is_table = _ends_with(TABLES + JSON_LINES)
    if task is None or (task.TASK in (CLASSIFIER, EMBEDDING) and not is_table):
        return map(split_line, _lines())
    if task.TASK == CLASSIFIER:
        return _texts_of_table(task)
    if _columns():
        raise UserError(
            f"{_columns()} is only for classifiers, but the model in {FLAGS.model} "
            f"has the task {task.TASK}. Leave it out."
        )
    is_stdin = FLAGS.input_file == STANDARD
    name = "Standard input" if is_stdin else FLAGS.input_file
    if FLAGS.text:
        name = "--text"
    if task.TASK == MULTIPLE_CHOICE:
        if is_stdin:
            return prediction_inputs.prompts(_lines(), name)
        return read_prompts(FLAGS.input_file, "--input_file")
    if _ends_with(TABLES):
        raise UserError(
            f"--input_file={FLAGS.input_file} is a table, which the model in "
            f"{FLAGS.model} cannot read. Give lines of text or JSON."
        )
    readers = {
        EMBEDDING: prediction_inputs.texts,
        NER: prediction_inputs.texts,
        SQUAD: prediction_inputs.questions,
    }
    read = readers.get(task.TASK)
    if read is None:
        raise UserError(
            f"{FLAGS.model} has the task {task.TASK!r}, whose inputs predict.py "
            "cannot read. Use official_bert.Predictor in Python."
        )
    is_json = _ends_with(JSON_LINES)
    inputs = read(_lines(), name, is_json)
    # Read all JSON lines before the first prediction, to report errors early.
    return list(inputs) if is_json else inputs


def _texts_of_table(task):
    columns = (FLAGS.text_column, FLAGS.text_b_column)
    own = OwnFiles(None, None, FLAGS.input_file, *columns, has_header=FLAGS.has_header)
    examples = read_texts(task, own, "--input_file")
    return (
        each.text_a if each.text_b is None else (each.text_a, each.text_b)
        for each in examples
    )
