"""Write a server's extra files: batching, warm-up requests, Compose file, README."""

import json
import os
from typing import Any

import tensorflow as tf

from official_bert import files
from official_bert.constants import CORE_OPS, TF_TEXT_OPS
from official_bert.export import samples, sources
from official_bert.export.saved_model.exports import Export
from official_bert.export.saved_model.signatures import SERVING
from official_bert.export.saved_model.verify import columns_of
from official_bert.generated_files import write_unless_edited

IMAGE = "tensorflow/serving:2.19.1"
WARMUP = os.path.join("assets.extra", "tf_serving_warmup_requests")

BATCHING = """\
# For --enable_batching and --batching_parameters_file: the server batches the texts of
# simultaneous requests. It then rejects requests with more rows than max_batch_size.
# It must not pad, because it would fill masks with ones.
max_batch_size { value: 256 }
batch_timeout_micros { value: 1000 }
num_batch_threads { value: 2 }
max_enqueued_batches { value: 1000 }
pad_variable_length_inputs: false
"""

COMPOSE = """\
# docker compose up
services:
  "{name}":
    image: {image}
    ports: ["127.0.0.1:8500:8500", "127.0.0.1:8501:8501"]
    volumes: ["./:/models/{name}:ro"]
    environment: {{MODEL_NAME: "{name}"}}
    # For many simultaneous requests with one text each:
    # command: ["--enable_batching=true",
    #           "--batching_parameters_file=/models/{name}/batching_parameters.txt"]
"""


# Tokenizer operations -> their description.
TOKENIZERS = {
    CORE_OPS: "It uses only TensorFlow's standard operations.",
    TF_TEXT_OPS: "Its tokenizer uses operations of TensorFlow Text. The image "
    f"{IMAGE} contains them. In Python, import tensorflow_text before you load the "
    "model.",
}


def write_assets(directory: str | os.PathLike[str], export: Export) -> None:
    """Write the files of the model into `assets/` of a version's folder."""
    assets = os.path.join(directory, "assets")
    os.makedirs(assets, exist_ok=True)
    sources.write_names(assets, export.tokenizer, export.labels)
    for name, path in export.files.items():
        files.copy(path, os.path.join(assets, name))


def write_warmup(
    directory: str | os.PathLike[str], export: Export, model_name: str
) -> bool:
    """Write the requests that a server runs before it accepts others.

    There is one for each padded row length.

    Returns:
      whether they were written; this needs the package tensorflow-serving-api.
    """
    try:
        from tensorflow_serving.apis import predict_pb2, prediction_log_pb2
    except ImportError:
        return False
    path = os.path.join(directory, WARMUP)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    specs = export.signatures[SERVING].specs
    with tf.io.TFRecordWriter(path) as writer:
        for row in samples.rows_of(SERVING, specs, export.lengths):
            request = predict_pb2.PredictRequest()
            request.model_spec.name = model_name
            request.model_spec.signature_name = SERVING
            for name, values in columns_of([row]).items():
                request.inputs[name].CopyFrom(tf.make_tensor_proto(values))
            log = prediction_log_pb2.PredictionLog(
                predict_log=prediction_log_pb2.PredictLog(request=request)
            )
            writer.write(log.SerializeToString())
    return True


def write_server_files(
    directory: str | os.PathLike[str], export: Export, model_name: str, answer: Any
) -> list[str]:
    """Write the files next to the version folders, except those that users changed.

    `answer` is the model's prediction for `samples.first_row`, in REST form.

    Returns:
      list of str, the names of files that were kept because they were edited.
    """
    compose = COMPOSE.format(name=model_name, image=IMAGE)
    readme = _readme(export, model_name, answer)
    return [
        name
        for name, text, comment in (
            ("batching_parameters.txt", BATCHING, "# {}"),
            ("docker-compose.yml", compose, "# {}"),
            ("README.md", readme, "<!-- {} -->"),
        )
        if not write_unless_edited(os.path.join(directory, name), text, comment)
    ]


def _readme(export, model_name, answer):
    row = samples.first_row(export.signatures[SERVING].specs)
    # REST needs no name for a single input.
    instance = next(iter(row.values())) if len(row) == 1 else row
    request = json.dumps({"instances": [instance]}, ensure_ascii=False)
    request = request.replace("'", "'\\''")
    lines = [
        f"# {model_name}: {export.what}",
        "",
        "A SavedModel for TensorFlow Serving. It takes raw text. "
        + TOKENIZERS[export.tokenizer_ops],
        "",
        "    docker compose up",
        f"    curl -d '{request}' \\",
        f"        http://127.0.0.1:8501/v1/models/{model_name}:predict",
        "",
        "answers",
        "",
        "    " + json.dumps({"predictions": [answer]}, ensure_ascii=False),
        "",
        "| signature | inputs |",
        "|---|---|",
        *(
            f"| `{name}` | {_inputs(signature.specs)} |"
            for name, signature in export.signatures.items()
        ),
        "",
        f"Rows are padded to {', '.join(map(str, export.lengths))} tokens: the "
        "smallest length that fits the longest row of a request.",
    ]
    if export.labels:
        lines += [
            "",
            f"Labels, in the order of their numbers: {', '.join(export.labels)}.",
        ]
    return "\n".join(lines) + "\n"


def _inputs(specs):
    shapes = {1: "[batch]", 2: "[batch, …]", 3: "[batch, choices, …]"}
    return ", ".join(
        f"`{name}` {spec.dtype.name} {shapes[spec.shape.rank]}"
        for name, spec in specs.items()
    )
