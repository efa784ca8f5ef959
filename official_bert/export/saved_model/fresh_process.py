"""Run an export like a server: in a process that imports only TensorFlow.

    python -P fresh_process.py EXPORT REQUESTS.json ANSWERS.json [MODULE]

The requests are a list of `{"signature": …, "inputs": {name: nested lists}}`.
The answers are a list of `{name: nested lists}`, with text outputs as flat
lists. MODULE has operations that the export needs: tensorflow_text. The script
does not import this package or Keras, and fails if anything that it loads
imports this package.
"""

import importlib
import json
import sys
from typing import Any

# The number of arguments without MODULE.
ARGUMENTS = 3

if __name__ == "__main__" and len(sys.argv) == 1 + ARGUMENTS:
    # TensorFlow imports Keras if it is installed; an export must not need it. (The
    # Python package of TensorFlow Text needs it.)
    sys.modules["keras"] = None  # type: ignore[assignment]

import tensorflow as tf  # noqa: E402


def main(
    export: str, requests_path: str, answers_path: str, module: str | None = None
) -> None:
    """Run all requests and write the answers."""
    if module:
        importlib.import_module(module)
    model = tf.saved_model.load(export)
    with open(requests_path, encoding="utf-8") as file:
        requests = json.load(file)
    answers = [run(model, request) for request in requests]
    with open(answers_path, "w", encoding="utf-8") as file:
        json.dump(answers, file)
    if "official_bert" in sys.modules:
        sys.exit("The export imports official_bert, but must run without it.")


def run(model: Any, request: dict[str, Any]) -> dict[str, list]:
    """Return the outputs of one request as lists."""
    function = model.signatures[request["signature"]]
    _, specs = function.structured_input_signature
    inputs = {
        name: tf.constant(values, specs[name].dtype)
        for name, values in request["inputs"].items()
    }
    return {name: _listed(value) for name, value in function(**inputs).items()}


def _listed(tensor):
    array = tensor.numpy()
    if tensor.dtype != tf.string:
        return array.tolist()
    return [part.decode() for part in array.reshape(-1)]


if __name__ == "__main__":
    main(*sys.argv[1:])
