r"""Ask a fine-tuned model of any task: a line of JSON comes out for each question.

A classifier, texts or pairs, "text a ||| text b", a line each, or a table:

    python run_scripts/predict.py --model_dir=output/reviews --input_file=new.csv \
        --output_file=answers.jsonl

    echo "Wonderful!" | python run_scripts/predict.py --model_dir=output/reviews

A tagger, texts, a line each, or lines of {"text": ...}:

    echo "Anna is in Rome." | python run_scripts/predict.py --model_dir=output/ner

SQuAD, lines of {"question": ..., "context": ...}, or pairs:

    echo "Who is in Rome? ||| Anna is in Rome." | \
        python run_scripts/predict.py --model_dir=output/squad

Multiple choice, lines of {"prompt": ..., "choices": [...]}, or SWAG's CSV:

    python run_scripts/predict.py --model_dir=output/swag --input_file=questions.jsonl

A pre-trained encoder, exported for devices (.tflite), gives a vector for each text.

The directory, or the .tflite, tells the task. A classifier reads of CSV, TSV and JSON
lines the columns that it was fine-tuned on. For the others a line that begins with { is
JSON.
"""

import functools
import itertools
import json
import os
import sys

from absl import flags

from official_bert import files
from official_bert.command_line.flag_values import locate, require
from official_bert.command_line.streams import (
    STANDARD,
    is_stream,
    lines_of,
    opened_output,
)
from official_bert.command_line.tensorflow_start import start_tensorflow
from official_bert.errors import UserError

# Texts of a file that are answered together, those of like length side by side.
CHUNK = 1024
TABLES = (".csv", ".tsv", ".tab")
JSON_LINES = (".jsonl", ".ndjson", ".json")
FLAGS = flags.FLAGS

flags.DEFINE_string(
    "model_dir",
    None,
    "Output directory of a finished fine-tuning; a fine-tuned model of Hugging Face; "
    "or a .tflite.",
)
flags.DEFINE_string(
    "input_file",
    STANDARD,
    "What is asked: .txt, .jsonl, and of some tasks .csv or .tsv, also .gz; - is "
    "standard input.",
)
flags.DEFINE_string("output_file", STANDARD, "JSON lines; - is standard output.")
flags.DEFINE_string(
    "text_column",
    None,
    "Of a classifier's table: column of the text; default: the training's.",
)
flags.DEFINE_string(
    "text_b_column",
    None,
    "Column of the second text of pairs; default: the training's.",
)
flags.DEFINE_bool(
    "has_header",
    None,
    "Whether the first row of a CSV or TSV names its columns; default: as in training, "
    "or by its looks if --text_column is a number.",
)
flags.DEFINE_integer(
    "batch_size",
    32,
    "Texts that go through the model together, or windows of contexts, or choices; 1 "
    "answers each line that a pipe delivers at once.",
    lower_bound=1,
)


def main():
    """Load the model, then answer as the questions come."""
    require("model_dir")
    _check_files()
    start_tensorflow()
    from official_bert.tasks.predictor import load

    predictor = load(locate(FLAGS.model_dir), FLAGS.batch_size)
    questions, answer = _way_of(predictor)
    with opened_output(FLAGS.output_file) as out:
        for chunk in _chunks(questions):
            for record in answer(chunk):
                out.write(json.dumps(record, ensure_ascii=False) + "\n")
            out.flush()


def _check_files():
    if FLAGS.input_file != STANDARD:
        files.require_readable(FLAGS.input_file, "--input_file")
    if not is_stream(FLAGS.output_file):
        files.require_parent(FLAGS.output_file, "--output_file")
        if os.path.realpath(FLAGS.output_file) == os.path.realpath(FLAGS.input_file):
            raise UserError(
                f"--output_file: {FLAGS.output_file} is the input; choose another name."
            )
    if not _ends_with(TABLES + JSON_LINES) and _columns():
        raise UserError(
            f"{_columns()} is for tables (.csv, .tsv, .jsonl); leave it out."
        )


def _columns():
    """Return the first of the flags on a table's columns that is given, or None."""
    names = ("text_column", "text_b_column", "has_header")
    given = (f"--{name}" for name in names if FLAGS[name].value not in (None, ""))
    return next(given, None)


def _ends_with(endings):
    return FLAGS.input_file.removesuffix(".gz").lower().endswith(endings)


def _way_of(predictor):
    """Return (questions, function: list of them -> iterable of dicts for JSON)."""
    from official_bert.tasks import prediction_inputs
    from official_bert.tasks.choice.training import ChoiceTask
    from official_bert.tasks.ner.training import NerTask
    from official_bert.tasks.squad.training import SquadTask

    if predictor.task is None:
        return _pairs_of_lines(), functools.partial(_encode, predictor)
    task = predictor.task.TASK
    if task not in (NerTask.TASK, SquadTask.TASK, ChoiceTask.TASK):
        return _texts(predictor.task), functools.partial(_classify, predictor)
    if _columns():
        raise UserError(
            f"{_columns()} is for classifiers, and the model in {FLAGS.model_dir} is "
            f"of the task {task}; leave it out."
        )
    if task == ChoiceTask.TASK:
        return _prompts(), functools.partial(_choose, predictor)
    if task == NerTask.TASK:
        return _lines(prediction_inputs.texts), functools.partial(_tag, predictor)
    return _lines(prediction_inputs.questions), functools.partial(_answer, predictor)


def _texts(task):
    """Return the texts and pairs for a classifier."""
    if _ends_with(TABLES + JSON_LINES):
        return _texts_of_table(task)
    return _pairs_of_lines()


def _pairs_of_lines():
    from official_bert.pretrained import feature_files

    return map(feature_files.split_line, lines_of(FLAGS.input_file))


def _texts_of_table(task):
    from official_bert.tasks.classifier import data as classifier_data

    own = classifier_data.OwnFiles(
        None,
        None,
        FLAGS.input_file,
        FLAGS.text_column,
        FLAGS.text_b_column,
        has_header=FLAGS.has_header,
    )
    examples = classifier_data.read_texts(task, own, "--input_file")
    return (
        each.text_a if each.text_b is None else (each.text_a, each.text_b)
        for each in examples
    )


def _lines(read):
    """Return what lines hold; of JSON lines all are read before the first answer.

    Args:
      read: a function of `prediction_inputs`.
    """
    if _ends_with(TABLES):
        raise UserError(
            f"--input_file: {FLAGS.input_file} is a table, which the model in "
            f"{FLAGS.model_dir} does not read; give lines of text or of JSON."
        )
    is_json = _ends_with(JSON_LINES)
    found = read(lines_of(FLAGS.input_file), _input_name(), is_json)
    return list(found) if is_json else found


def _prompts():
    """Return the prompts and choices; those of a file all at once."""
    from official_bert.tasks import prediction_inputs
    from official_bert.tasks.choice import files as choice_files

    if FLAGS.input_file == STANDARD:
        return prediction_inputs.prompts(lines_of(STANDARD), _input_name())
    return choice_files.read_prompts(FLAGS.input_file, "--input_file")


def _input_name():
    return "Standard input" if FLAGS.input_file == STANDARD else FLAGS.input_file


def _encode(predictor, texts):
    for text, vector in zip(texts, predictor.predict(texts), strict=True):
        rounded = [round(value, 6) for value in vector.tolist()]
        yield {"text": text, "pooled_output": rounded}


def _classify(predictor, texts):
    from official_bert.tasks.classifier.reports import as_json

    return map(as_json, predictor.predict(texts))


def _tag(predictor, texts):
    for text, found in zip(texts, predictor.predict(texts), strict=True):
        entities = [
            {"start": e.start, "end": e.end, "label": e.label, "text": e.text}
            for e in found
        ]
        yield {"text": text, "entities": entities}


def _answer(predictor, pairs):
    for answer in predictor.predict_all(pairs):
        record = {"answer": answer.text, "start": answer.start, "end": answer.end}
        record["score"] = round(answer.score, 6)
        if answer.null_score is not None:
            record["null_score"] = round(answer.null_score, 6)
        yield {**record, "probability": round(answer.probability, 6)}


def _choose(predictor, pairs):
    from official_bert.tasks.choice.reports import as_json

    return map(as_json, predictor.predict_all(pairs))


def _chunks(texts):
    """Yield lists of texts: single ones from a terminal, many from a file."""
    size = CHUNK
    if FLAGS.input_file == STANDARD:
        size = 1 if sys.stdin.isatty() else FLAGS.batch_size
    texts = iter(texts)
    while chunk := list(itertools.islice(texts, size)):
        yield chunk
