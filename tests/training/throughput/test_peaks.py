"""The peak rate of devices, by the names from TensorFlow and Google Cloud."""

import pytest
import tensorflow as tf

from official_bert.training import strategies
from official_bert.training.plans.chips import GPUS, TPUS
from official_bert.training.throughput import peaks
from official_bert.training.throughput.peaks import peak_flops

GPU_CASES = {
    "NVIDIA H100 80GB HBM3": "h100",
    "NVIDIA H200": "h200",
    "NVIDIA A100-SXM4-40GB": "a100",
    "NVIDIA A100 80GB PCIe": "a100",
    "NVIDIA L4": "l4",
    "Tesla V100-SXM2-16GB": "v100",
    "Tesla T4": "t4",
    # The same chips, but slower, or a part of one.
    "NVIDIA H100 PCIe": None,
    "NVIDIA H100 NVL": None,
    "NVIDIA H200 NVL": None,
    "NVIDIA A100-SXM4-40GB MIG 1g.5gb": None,
    "NVIDIA L40S": None,
    "NVIDIA GeForce RTX 4090": None,
    "": None,
}


class Strategy:
    """A stand-in for a strategy with N replicas."""

    def __init__(self, num_replicas_in_sync):
        self.num_replicas_in_sync = num_replicas_in_sync


@pytest.fixture
def on_gpu(monkeypatch):
    """Let TensorFlow report a GPU with these details."""

    def has(name, capability=(9, 0), tf32=True):
        config = tf.config
        details = {"device_name": name, "compute_capability": capability}
        for names in ("list_logical_devices", "list_physical_devices"):
            monkeypatch.setattr(config, names, lambda kind: ["GPU:0"])
        monkeypatch.setattr(
            config.experimental, "get_device_details", lambda _: details
        )
        monkeypatch.setattr(
            config.experimental, "tensor_float_32_execution_enabled", lambda: tf32
        )

    return has


@pytest.mark.parametrize("name", GPU_CASES)
def test_gpus(on_gpu, name):
    on_gpu(name)
    gpu = GPUS.get(GPU_CASES[name])
    found = peak_flops(Strategy(8), "bfloat16")
    assert found == (8 * gpu.flops if gpu else None)


def test_float32_on_gpus(on_gpu):
    """The table has TF32 rates. Without TF32, or with it off, the peak differs."""
    on_gpu("NVIDIA H100 80GB HBM3", (9, 0))
    assert peak_flops(Strategy(1), "float32") == GPUS["h100"].float32_flops
    on_gpu("NVIDIA H100 80GB HBM3", (9, 0), tf32=False)
    assert peak_flops(Strategy(1), "float32") is None
    assert peak_flops(Strategy(1), "float16") == GPUS["h100"].flops
    on_gpu("Tesla T4", (7, 5), tf32=False)
    assert peak_flops(Strategy(1), "float32") == GPUS["t4"].float32_flops


@pytest.mark.parametrize(
    ("accelerator", "replicas", "chip", "chips"),
    [
        ("v4-32", 16, "v4", 16),
        ("v4-32", 32, "v4", 16),
        ("v5p-8", 4, "v5p", 4),
        ("v5litepod-16", 16, "v5e", 16),
        ("v6e-8", 8, "v6e", 8),
        # A slice that is not the strategy's; unknown chips; no value.
        ("v4-32", 8, None, 0),
        ("v3-8", 8, None, 0),
        ("v4", 4, None, 0),
        ("", 4, None, 0),
    ],
)
def test_tpus(monkeypatch, accelerator, replicas, chip, chips):
    monkeypatch.setattr(strategies, "is_tpu", lambda strategy: True)
    monkeypatch.setenv("TPU_ACCELERATOR_TYPE", accelerator)
    found = peak_flops(Strategy(replicas), "bfloat16")
    assert found == (chips * TPUS[chip].flops if chip else None)
    if chip:
        in_float32 = peak_flops(Strategy(replicas), "float32")
        assert in_float32 == pytest.approx(found / 6)


def test_a_cpu_is_measured_once(monkeypatch):
    peaks.measured_product.cache_clear()
    calls = []
    seconds_of = peaks._seconds_of_product

    def noted(matrix):
        assert matrix.dtype == tf.float32 and "CPU" in matrix.device
        calls.append(matrix.shape[0])
        return seconds_of(matrix)

    monkeypatch.setattr(peaks, "_seconds_of_product", noted)
    first = peak_flops(tf.distribute.get_strategy(), "float32")
    # Every processor makes more than 1e9 operations a second, and less than 1e15.
    assert 1e9 < first < 1e15
    assert len(calls) >= 2 and calls == sorted(calls)
    count = len(calls)
    # Logical devices share the CPU.
    assert peak_flops(Strategy(2), "float32") == first
    assert len(calls) == count


def test_sizes_grow_until_a_product_takes_a_while(monkeypatch):
    peaks.measured_product.cache_clear()
    monkeypatch.setattr(peaks, "_MEASURED_SECONDS", 0.0)
    seconds = {512: 0.001, 1024: 0.004, 2048: 0.016}
    monkeypatch.setattr(
        peaks, "_seconds_of_product", lambda matrix: seconds[matrix.shape[0]]
    )
    assert peaks.measured_product("float32") == 2 * 2048**3 / 0.016
    peaks.measured_product.cache_clear()
