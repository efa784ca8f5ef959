"""Measure a `.tflite` of this project. See `benchmarks/contender.py`.

It does not import TensorFlow if LiteRT is installed.
"""

import functools
import importlib
import importlib.metadata

import numpy as np

from benchmarks import workload
from official_bert.fine_tuning.tflite_model import SIGNATURE, interpreter


def _import_runtime():
    """Return {name: version} of the runtime that `interpreter` uses."""
    try:
        importlib.import_module("ai_edge_litert.interpreter")
        return {"LiteRT": importlib.metadata.version("ai-edge-litert")}
    except ImportError:
        import tensorflow as tf

        # Only an attribute access imports the interpreter.
        _ = tf.lite.Interpreter
        return {"TensorFlow": tf.__version__}


# Imported with this module, so that it does not count as memory of a model.
_RUNTIME = _import_runtime()


def versions():
    """Return library -> version."""
    return _RUNTIME


def rows(path, **settings):
    """Return a function that computes rows; see `workload.row_calls`."""
    compute = open_model(path, settings.pop("threads"))
    return workload.row_calls(compute, np.int32, **settings)


def open_model(path, threads):
    """Load a `.tflite`.

    Returns:
      function: dict of name -> int32 [1, S] -> dict of name -> array [1, …].
    """
    loaded = interpreter(path, threads)
    runner = functools.cache(loaded.get_signature_runner)
    return lambda row: runner(SIGNATURE.format(row["input_ids"].shape[1]))(**row)
