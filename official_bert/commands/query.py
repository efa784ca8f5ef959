r"""Query a served model: one line of JSON per input.

    python run_scripts/query.py --model_name=reviews --text="Wonderful!"

    echo '{"text": "Wonderful!"}' | \
        python run_scripts/query.py --url=http://127.0.0.1:8501 --model_name=reviews

The server is serve.py or TF Serving. Each line of standard input is one input:
a JSON object of input name -> value (such as {"question": ..., "context": ...}), or a
text. For a classifier of pairs, write "text a ||| text b".
"""

import itertools
import json
import sys

from absl import flags

from official_bert import given_paths
from official_bert.command_line.flag_values import require
from official_bert.command_line.streams import STANDARD, lines_of, opened_output
from official_bert.command_line.tensorflow_start import start_tensorflow
from official_bert.errors import UserError
from official_bert.serving import clients
from official_bert.tables.text_pairs import split_line

FLAGS = flags.FLAGS
# Flags that the help shows first.
REQUIRED: tuple[str, ...] = ("model_name",)
MOST_USED: tuple[str, ...] = (
    "text",
    "text_b",
    "input_file",
    "url",
    "grpc",
    "signature_name",
    "version",
    "batch_size",
    "timeout_s",
)

flags.DEFINE_string("url", "http://127.0.0.1:8501", "URL of the server's REST API.")
flags.DEFINE_string(
    "grpc",
    None,
    "host:port of TF Serving's gRPC API, such as 127.0.0.1:8500. Replaces --url. "
    "Needs tensorflow-serving-api.",
)
flags.DEFINE_string("model_name", None, "Name of the model on the server.")
flags.DEFINE_integer(
    "version",
    None,
    "Version of the model. Default: the newest.",
    lower_bound=0,
    upper_bound=2**63 - 1,
)
flags.DEFINE_string(
    "signature_name", None, "Signature of the model. Default: serving_default."
)
flags.DEFINE_string("text", None, "Text to send, instead of standard input.")
flags.DEFINE_string("text_b", None, "Second text of a pair.")
flags.DEFINE_string(
    "input_file",
    STANDARD,
    "File of inputs, one per line, as described above; - is standard input.",
)
flags.DEFINE_integer("batch_size", 32, "Inputs per request.", lower_bound=1)
flags.DEFINE_float(
    "timeout_s", 60.0, "Seconds to wait for a response.", lower_bound=0.01
)


def main() -> None:
    """Send the inputs as they arrive and print the predictions."""
    require(*REQUIRED)
    if FLAGS.text_b is not None and FLAGS.text is None:
        raise UserError("--text_b is the second text of a pair. Give --text too.")
    if FLAGS.text is not None and FLAGS.input_file != STANDARD:
        raise UserError("Give either --text or --input_file, not both.")
    if FLAGS.input_file != STANDARD:
        given_paths.require_readable(FLAGS.input_file, "--input_file")
    model = FLAGS.model_name, FLAGS.version, FLAGS.signature_name, FLAGS.timeout_s
    if FLAGS.grpc:
        predict = start_tensorflow(lambda: clients.predict_by_grpc(FLAGS.grpc, *model))
    else:
        predict = clients.predict_by_rest(FLAGS.url, *model)
    by_hand = FLAGS.text is None and FLAGS.input_file == STANDARD and sys.stdin.isatty()
    rows = _rows()
    with opened_output(STANDARD) as out:
        while batch := [*itertools.islice(rows, 1 if by_hand else FLAGS.batch_size)]:
            for prediction in predict(batch):
                out.write(json.dumps(prediction, ensure_ascii=False) + "\n")
            out.flush()


def _rows():
    """Yield the inputs to send, dicts of input name -> value."""
    if FLAGS.text is not None:
        row = {"text": FLAGS.text}
        yield row if FLAGS.text_b is None else {**row, "text_b": FLAGS.text_b}
        return
    for number, line in enumerate(lines_of(FLAGS.input_file), 1):
        if number == 1:
            line = line.removeprefix("\ufeff")  # Remove a byte order mark.
        text = split_line(line)
        if line.startswith("{"):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise UserError(
                    f"Line {number} starts with "
                    f"{{ but is not a JSON object ({error}). "
                    'Write such a text as {"text": "..."}.'
                ) from error
            yield row
        elif isinstance(text, str):
            yield {"text": text}
        else:
            yield dict(zip(("text", "text_b"), text, strict=True))
