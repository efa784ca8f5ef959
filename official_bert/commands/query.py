r"""Query a served model: texts or rows in, a line of JSON for each out.

    python run_scripts/query.py --model_name=reviews --text="Wonderful!"

    echo '{"text": "Wonderful!"}' | \
        python run_scripts/query.py --url=http://127.0.0.1:8501 --model_name=reviews

The server is serve.py or TF Serving. Each line of standard input is a row. It is
an object of input name -> value (such as {"question": ..., "context": ...}), or a
text, or for a classifier of pairs "text a ||| text b".
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
# What the help shows first.
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

flags.DEFINE_string("url", "http://127.0.0.1:8501", "Of the server's REST side.")
flags.DEFINE_string(
    "grpc",
    None,
    "host:port of TF Serving's gRPC side, such as 127.0.0.1:8500; then --url is not "
    "used. Needs tensorflow-serving-api.",
)
flags.DEFINE_string("model_name", None, "Name of the model at the server.")
flags.DEFINE_integer(
    "version",
    None,
    "Its version; default: the newest.",
    lower_bound=0,
    upper_bound=2**63 - 1,
)
flags.DEFINE_string("signature_name", None, "Its signature; default: serving_default.")
flags.DEFINE_string("text", None, "A text to send, instead of standard input.")
flags.DEFINE_string("text_b", None, "The second text of a pair.")
flags.DEFINE_string(
    "input_file", STANDARD, "Lines as described above; - is standard input."
)
flags.DEFINE_integer("batch_size", 32, "Rows that are sent together.", lower_bound=1)
flags.DEFINE_float(
    "timeout_s", 60.0, "Seconds to wait for an answer.", lower_bound=0.01
)


def main() -> None:
    """Send the rows as they come and print what comes back."""
    require(*REQUIRED)
    if FLAGS.text_b is not None and FLAGS.text is None:
        raise UserError("--text_b is the second text of a pair: give --text as well.")
    if FLAGS.text is not None and FLAGS.input_file != STANDARD:
        raise UserError("Give --text or --input_file, not both.")
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
    """Yield the rows to send, dicts of input name -> value."""
    if FLAGS.text is not None:
        row = {"text": FLAGS.text}
        yield row if FLAGS.text_b is None else {**row, "text_b": FLAGS.text_b}
        return
    for number, line in enumerate(lines_of(FLAGS.input_file), 1):
        if number == 1:
            line = line.removeprefix("\ufeff")  # A byte order mark.
        text = split_line(line)
        if line.startswith("{"):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise UserError(
                    f"Line {number} begins with {{ but is no JSON object ({error}); "
                    'write such a text as {"text": "..."}.'
                ) from error
            yield row
        elif isinstance(text, str):
            yield {"text": text}
        else:
            yield dict(zip(("text", "text_b"), text, strict=True))
