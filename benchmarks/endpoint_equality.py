r"""Compare an endpoint with Python on a real dev set.

    python benchmarks/endpoint_equality.py --model_dir=output/mrpc --rows=dev.jsonl

The rows are JSON lines with the names of the model's inputs, such as {"text":
"…"}. `serve.py` serves an export of the model. Python's predictor, the
signature for raw text, and the signature for token ids (computed by Python) are
compared row by row, the latter two over HTTP. The exit status is 1 if a label,
an answer or an offset differs, or a number differs by more than 1e-5 (relative
above 1).
"""

import json
import pathlib
import sys
import tempfile
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from absl import flags, logging  # noqa: E402

from benchmarks.served import served  # noqa: E402
from official_bert.command_line.flag_values import locate, require  # noqa: E402
from official_bert.command_line.program import run  # noqa: E402
from official_bert.command_line.tensorflow_start import start_tensorflow  # noqa: E402

FLAGS = flags.FLAGS

flags.DEFINE_string(
    "model_dir",
    None,
    "Directory of a fine-tuned model of any task, or of a pre-trained model.",
)
flags.DEFINE_string("rows", None, "JSON lines file with rows of its inputs.")
flags.DEFINE_integer(
    "max_rows", None, "Maximum number of rows, from the beginning of the file."
)

BATCH = 16
TOLERANCE = 1e-5


def main():
    """Export, serve, predict, compare."""
    require("model_dir", "rows")
    start_tensorflow()
    logging.set_verbosity(
        logging.ERROR
    )  # Hide repeated warnings about truncated texts.
    from official_bert.export.saved_model import check_rows, exports, writer
    from official_bert.export.saved_model.signatures import SERVING, TOKENS

    export = exports.open_export(locate(FLAGS.model_dir))
    rows = check_rows.read(FLAGS.rows, export.signatures[SERVING].specs)
    rows = rows[: FLAGS.max_rows]
    with tempfile.TemporaryDirectory() as folder:
        writer.write(f"{folder}/model", export, "model")
        with served(f"{folder}/model", "--timeout_s=600") as url:
            text = _compare(url, SERVING, _text_batches(export, rows))
            tokens = _compare(url, TOKENS, _token_batches(export, rows))
    for name, (number, differing, difference) in (("raw text", text), ("ids", tokens)):
        print(
            f"{export.what}, {name}: {number} rows, {differing} outputs differ; "
            f"numbers by at most {difference:.1e}"
        )
    return 1 if text[1] or tokens[1] else 0


def _parts(rows):
    return [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)]


def _text_batches(export, rows):
    """Yield (inputs as lists, Python's predictions as a dict of arrays)."""
    from official_bert.export.saved_model.signatures import SERVING
    from official_bert.export.saved_model.verify import columns_of

    for part in _parts(rows):
        inputs = columns_of(part)
        yield inputs, export.answers[SERVING](**inputs)


def _token_batches(export, rows):
    """Yield the same for rows of ids, `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`.

    The predictions are outputs of the Keras model, compiled as in predictors;
    without compilation the last digits differ.
    """
    import tensorflow as tf

    from official_bert.fine_tuning.outputs import compile_model
    from official_bert.tables.examples import Example
    from official_bert.tasks.classifier.features import convert_example, pad_features

    score = compile_model(
        lambda batch, kernels: _kept(export.keras_model(batch, kernels=kernels))
    )
    size = export.lengths[-1]
    for part in _parts(rows):
        pairs = [list(row.values()) for row in part]
        features = [
            convert_example(Example(0, *pair), export.tokenizer, size) for pair in pairs
        ]
        batch = pad_features(features, max(len(one.input_ids) for one in features))
        outputs = score(batch)
        if set(outputs) == {"logits"} and outputs["logits"].ndim == 2:
            outputs = {"probabilities": tf.nn.softmax(outputs["logits"]).numpy()}
        yield {name: value.tolist() for name, value in batch.items()}, outputs


def _kept(outputs):
    """Return the model outputs that an endpoint has."""
    if "pooled_output" in outputs:
        return {n: outputs[n] for n in ("pooled_output", "sequence_output")}
    return outputs


def _compare(url, signature, batches):
    """Return (rows, outputs that differ, greatest difference of a number)."""
    from official_bert.export.saved_model.verify import error_of

    number, differing, difference = 0, 0, 0.0
    for inputs, expected in batches:
        body = {"signature_name": signature, "inputs": inputs}
        request = json.dumps(body).encode()
        with urllib.request.urlopen(f"{url}:predict", request, timeout=900) as answer:
            outputs = json.load(answer)["outputs"]
        number += len(next(iter(inputs.values())))
        if len(expected) == 1 and not isinstance(outputs, dict):
            outputs = {name: outputs for name in expected}
        for name, wanted in expected.items():
            error = error_of(_flat(outputs[name], wanted), wanted)
            differing += not error <= TOLERANCE
            difference = max(difference, error)
    return number, differing, difference


def _flat(value, wanted):
    """Return texts as one list, the form for `error_of`."""
    while wanted.dtype == object and value and isinstance(value[0], list):
        value = [one for row in value for one in row]
    return value


if __name__ == "__main__":
    run(main)
