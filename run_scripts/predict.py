r"""Ask a fine-tuned classifier: texts in, a line of JSON for each out.

    python run_scripts/predict.py --model_dir=output/reviews --input_file=new.csv \
        --output_file=answers.jsonl

    echo "Wonderful!" | python run_scripts/predict.py --model_dir=output/reviews

Each line of standard input or of a .txt file is a text, or a pair: "text a ||| text b".
Of CSV, TSV and JSON lines the columns are read that the model was fine-tuned on.
"""

import itertools
import json
import os
import sys

from absl import flags
from command_line import locate, require, run, start_tensorflow
from streams import STANDARD, is_stream, lines_of, opened_output

from official_bert import files
from official_bert.errors import UserError

# Texts of a file that are answered together, those of like length side by side.
CHUNK = 1024
FLAGS = flags.FLAGS

flags.DEFINE_string(
    "model_dir", None, "Output directory of a finished run_classifier.py."
)
flags.DEFINE_string(
    "input_file", STANDARD, "Texts: .txt, .csv, .tsv or .jsonl; - is standard input."
)
flags.DEFINE_string("output_file", STANDARD, "JSON lines; - is standard output.")
flags.DEFINE_string(
    "text_column", None, "Of a table: column of the text; default: the training's."
)
flags.DEFINE_string("text_b_column", None, "Likewise, of the second text of pairs.")
flags.DEFINE_integer(
    "batch_size",
    32,
    "Texts that go through the model together; 1 answers each line that a pipe "
    "delivers at once.",
    lower_bound=1,
)


def main():
    """Load the model, then answer as the texts come."""
    require("model_dir")
    if FLAGS.input_file != STANDARD:
        files.require_readable(FLAGS.input_file, "--input_file")
    if not is_stream(FLAGS.output_file):
        files.require_parent(FLAGS.output_file, "--output_file")
        if os.path.realpath(FLAGS.output_file) == os.path.realpath(FLAGS.input_file):
            raise UserError(
                f"--output_file: {FLAGS.output_file} is the input; choose another name."
            )
    if not _is_table() and (FLAGS.text_column or FLAGS.text_b_column):
        raise UserError(
            "--text_column and --text_b_column are for tables (.csv, .tsv, .jsonl); "
            "leave them out."
        )
    start_tensorflow()
    from official_bert.tasks import feature_files
    from official_bert.tasks.classifier_predictor import ClassifierPredictor
    from official_bert.tasks.classifier_reports import as_json

    predictor = ClassifierPredictor(locate(FLAGS.model_dir), FLAGS.batch_size)
    if _is_table():
        texts = _texts_of_table(predictor.task)
    else:
        texts = map(feature_files.split_line, lines_of(FLAGS.input_file))
    with opened_output(FLAGS.output_file) as out:
        for chunk in _chunks(texts):
            for prediction in predictor.predict(chunk):
                out.write(json.dumps(as_json(prediction), ensure_ascii=False) + "\n")
            out.flush()


def _is_table():
    name = FLAGS.input_file.removesuffix(".gz").lower()
    return name.endswith((".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json"))


def _texts_of_table(task):
    from official_bert.tasks import classifier_data

    own = classifier_data.OwnFiles(
        None, None, FLAGS.input_file, FLAGS.text_column, FLAGS.text_b_column
    )
    examples = classifier_data.read_texts(task, own, "--input_file")
    return (
        each.text_a if each.text_b is None else (each.text_a, each.text_b)
        for each in examples
    )


def _chunks(texts):
    """Yield lists of texts: single ones from a terminal, many from a file."""
    size = CHUNK
    if FLAGS.input_file == STANDARD:
        size = 1 if sys.stdin.isatty() else FLAGS.batch_size
    texts = iter(texts)
    while chunk := list(itertools.islice(texts, size)):
        yield chunk


if __name__ == "__main__":
    run(main)
