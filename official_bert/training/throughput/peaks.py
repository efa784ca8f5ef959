"""The peak rate of the training devices, the reference of utilization (MFU)."""

import functools
import os
import re
import time

import tensorflow as tf

from official_bert.training import strategies
from official_bert.training.plans.chips import GPUS, TPUS, Chip

# Patterns of device names that NVIDIA's driver reports. Cards with the same chip on a
# slower board (PCIe, NVL) have other peaks and are not in the table.
_GPU_NAMES = {
    r"\bH200\b(?!.*\bNVL\b)": "h200",
    r"\bH100\b(?!.*\b(PCIe|NVL|MIG)\b)": "h100",
    r"\bA100\b(?!.*\bMIG\b)": "a100",
    r"\bL4\b": "l4",
    r"\bV100-SXM": "v100",
    r"\bT4\b": "t4",
}
# Lowest compute capability of GPUs that multiply float32 in TF32.
_TF32_SINCE = (8, 0)
# The number in Google Cloud's accelerator types, such as v4-32, counts either chips
# (1 here) or the two cores of each chip (2 here).
_CORES_PER_NUMBER = {"v4": 2, "v5p": 2, "v5litepod": 1, "v5e": 1, "v6e": 1}
_TPU_NAMES = {"v5litepod": "v5e"}

# Sizes [size, size] of the matrix product that measures a CPU, tried until one is long.
_SIZES, _SHORT_SECONDS, _MEASURED_SECONDS = (512, 1024, 2048, 4096), 0.005, 0.2


def peak_flops(strategy: tf.distribute.Strategy, precision: str) -> float | None:
    """Return the peak operations per second of all devices of a run.

    TPUs and GPUs have their vendor's peak for dense products. For a CPU it is the
    measured rate of a large matrix product.

    Args:
      strategy: a `tf.distribute` strategy.
      precision: one of `constants.PRECISIONS`.

    Returns:
      float, or None for a device that is not in the table.
    """
    replicas = strategy.num_replicas_in_sync
    if strategies.is_tpu(strategy):
        accelerator = os.environ.get("TPU_ACCELERATOR_TYPE", "")
        return _tpu_peak(accelerator, replicas, precision)
    if tf.config.list_logical_devices("GPU"):
        details = tf.config.experimental.get_device_details(
            tf.config.list_physical_devices("GPU")[0]
        )
        has_tf32 = tf.config.experimental.tensor_float_32_execution_enabled()
        peak = _gpu_peak(details, precision, has_tf32)
        return peak and replicas * peak
    # Logical devices share their machine's CPU. Each worker has its own CPU.
    machines = replicas if strategies.is_multi_worker(strategy) else 1
    return machines * measured_product(precision)


def _tpu_peak(accelerator, replicas, precision):
    """Return the peak of a slice by its accelerator type, or None."""
    kind, _, number = accelerator.partition("-")
    chip = TPUS.get(_TPU_NAMES.get(kind, kind))
    if chip is None or kind not in _CORES_PER_NUMBER or not number.isdigit():
        return None
    chips = int(number) // _CORES_PER_NUMBER[kind]
    # TensorFlow has one replica per chip, or one per core with two cores per chip. With
    # another number, the variable does not describe this slice.
    if replicas not in (chips, 2 * chips):
        return None
    return chips * _rate(chip, precision)


def _gpu_peak(details, precision, has_tf32):
    """Return the peak of a GPU from TensorFlow's device details, or None."""
    name = details.get("device_name", "")
    found = [key for pattern, key in _GPU_NAMES.items() if re.search(pattern, name)]
    if not found:
        return None
    # The table's float32 rate is TF32 on these GPUs. It has no plain float32 rate.
    uses_tf32 = details.get("compute_capability", (0, 0)) >= _TF32_SINCE
    if precision == "float32" and uses_tf32 and not has_tf32:
        return None
    return _rate(GPUS[found[0]], precision)


def _rate(chip: Chip, precision: str) -> float:
    return chip.float32_flops if precision == "float32" else chip.flops


@functools.cache
def measured_product(precision: str) -> float:
    """Return the operations per second of a large matrix product on this CPU.

    It uses the precision and the threads of the run and takes a fraction of a second.
    Other processes make it slower, so utilization may later exceed 1.
    """
    dtype = tf.as_dtype(precision)
    with tf.device("CPU:0"):
        for size in _SIZES:
            matrix = tf.ones([size, size], dtype)
            _seconds_of_product(matrix)  # The first run also prepares the kernel.
            best = _seconds_of_product(matrix)
            if best >= _SHORT_SECONDS:
                break
        ends = time.monotonic() + _MEASURED_SECONDS
        while time.monotonic() < ends:
            best = min(best, _seconds_of_product(matrix))
    return 2 * size**3 / best


def _seconds_of_product(matrix):
    began = time.perf_counter()
    tf.matmul(matrix, matrix).numpy()
    return time.perf_counter() - began
