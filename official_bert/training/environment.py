"""The environment of a run, which decides the last bits of its results."""

import os
import pathlib
import platform
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import official_bert
from official_bert import machine
from official_bert.modeling.kernels.fused_layer_norm import has_onednn
from official_bert.training import strategies


def describe(strategy: tf.distribute.Strategy, **settings: Any) -> dict[str, Any]:
    """Return the facts that must be equal for two runs to be bit-identical.

    Args:
      strategy: the `tf.distribute` strategy.
      **settings: settings of the computation: precision, XLA and so on.

    Returns:
      dict of plain values.
    """
    return {
        "replicas": strategy.num_replicas_in_sync,
        "device": _device_name(strategy),
        "intra_op_threads": _threads(
            tf.config.threading.get_intra_op_parallelism_threads(),
            "TF_NUM_INTRAOP_THREADS",
        ),
        "inter_op_threads": _threads(
            tf.config.threading.get_inter_op_parallelism_threads(),
            "TF_NUM_INTEROP_THREADS",
        ),
        # oneDNN's kernels round differently from TensorFlow's own.
        "onednn": has_onednn(),
        "tensor_float_32": tf.config.experimental.tensor_float_32_execution_enabled(),
        **settings,
        "official_bert": official_bert.__version__,
        "python": platform.python_version(),
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
        "numpy": np.__version__,
    }


def _threads(configured, variable):
    """Return a number of threads; TensorFlow's 0 means one per core."""
    named = os.environ.get(variable, "")
    if configured or (named.isdigit() and int(named)):
        return configured or int(named)
    return machine.available_cores()


def _device_name(strategy):
    """Return the product name of the training device; all replicas have the same."""
    if strategies.is_tpu(strategy):
        return "TPU"
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        details = tf.config.experimental.get_device_details(gpus[0])
        return details.get("device_name", "GPU")
    info = pathlib.Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    return names[0] if names else platform.machine()
