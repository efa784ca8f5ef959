"""The report of the machine that a run used."""

import json
import os
import pathlib
import platform
import subprocess
import sys
import types

import keras
import numpy as np
import pytest
import tensorflow as tf

import official_bert
from official_bert.training import environment, runs

ONE_DEVICE = tf.distribute.get_strategy()
CPU_INFO = """processor\t: 0
model name\t: A CPU: 2 GHz
processor\t: 1
model name\t: Another
"""


def described(**settings):
    return environment.describe(ONE_DEVICE, **settings)


def test_names_and_versions():
    found = described(precision="bfloat16", xla=True)
    assert set(found) == {
        "replicas",
        "device",
        "intra_op_threads",
        "inter_op_threads",
        "onednn",
        "tensor_float_32",
        "precision",
        "xla",
        "official_bert",
        "python",
        "tensorflow",
        "keras",
        "numpy",
    }
    assert found["replicas"] == 1
    assert (found["precision"], found["xla"]) == ("bfloat16", True)
    assert found["official_bert"] == official_bert.__version__
    assert found["python"] == platform.python_version()
    assert found["tensorflow"] == tf.__version__
    assert found["keras"] == keras.__version__
    assert found["numpy"] == np.__version__


def test_it_is_the_same_each_time_and_after_json():
    assert described() == described()
    assert json.loads(json.dumps(described())) == described()


VARIABLES = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")


def set_threads(monkeypatch, configured, named=(None, None)):
    """Set the number of threads in TensorFlow and in environment variables."""
    kinds = ("intra", "inter")
    for kind, variable, number, text in zip(
        kinds, VARIABLES, configured, named, strict=True
    ):
        getter = f"get_{kind}_op_parallelism_threads"
        monkeypatch.setattr(tf.config.threading, getter, lambda found=number: found)
        if text is None:
            monkeypatch.delenv(variable, raising=False)
        else:
            monkeypatch.setenv(variable, text)


def threads(found):
    return found["intra_op_threads"], found["inter_op_threads"]


def test_threads_as_they_were_set(monkeypatch):
    set_threads(monkeypatch, (3, 5))
    assert threads(described()) == (3, 5)


def test_threads_of_the_environment(monkeypatch):
    set_threads(monkeypatch, (0, 0), ("6", "7"))
    assert threads(described()) == (6, 7)
    set_threads(monkeypatch, (3, 0), ("6", "7"))
    assert threads(described()) == (3, 7)


@pytest.mark.parametrize("named", [(None, None), ("0", ""), ("many", "-1")])
def test_threads_that_were_not_set_are_one_for_each_core(monkeypatch, named):
    """It is the number of cores that this process may use, not of the machine."""
    set_threads(monkeypatch, (0, 0), named)
    cores = {0, 4, 6}
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: cores, raising=False)
    assert threads(described()) == (3, 3)
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 12)
    assert threads(described()) == (12, 12)


@pytest.mark.slow
def test_onednn_as_tensorflow_uses_it():
    code = (
        "import tensorflow as tf; from official_bert.training import environment; "
        "print(environment.describe(tf.distribute.get_strategy())['onednn'])"
    )
    for variable, is_on in (("0", False), ("1", True)):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "TF_ENABLE_ONEDNN_OPTS": variable},
            capture_output=True,
            text=True,
            check=True,
        )
        if platform.machine() == "x86_64":
            assert done.stdout.strip() == str(is_on)


@pytest.mark.parametrize("enabled", [True, False])
def test_tensor_float_32(monkeypatch, enabled):
    monkeypatch.setattr(
        tf.config.experimental, "tensor_float_32_execution_enabled", lambda: enabled
    )
    assert described()["tensor_float_32"] is enabled


def without_gpus(monkeypatch):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])


def test_a_cpu_is_named_by_the_first_line_that_does(monkeypatch):
    without_gpus(monkeypatch)
    monkeypatch.setattr(pathlib.Path, "exists", lambda path: True)
    monkeypatch.setattr(pathlib.Path, "read_text", lambda path: CPU_INFO)
    assert described()["device"] == "A CPU: 2 GHz"


def test_a_system_that_does_not_name_its_cpu(monkeypatch):
    without_gpus(monkeypatch)
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    monkeypatch.setattr(pathlib.Path, "exists", lambda path: True)
    monkeypatch.setattr(pathlib.Path, "read_text", lambda path: "processor: 0\n")
    assert described()["device"] == "arm64"
    monkeypatch.setattr(pathlib.Path, "exists", lambda path: False)
    assert described()["device"] == "arm64"


@pytest.mark.parametrize(
    ("details", "name"), [({"device_name": "NVIDIA X"}, "NVIDIA X"), ({}, "GPU")]
)
def test_a_gpu_is_named_by_its_product(monkeypatch, details, name):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [kind])
    monkeypatch.setattr(
        tf.config.experimental, "get_device_details", lambda device: details
    )
    assert described()["device"] == name


class FakeTpu:
    num_replicas_in_sync = 8


def test_a_tpu(monkeypatch):
    monkeypatch.setattr(tf.distribute, "TPUStrategy", FakeTpu)
    found = environment.describe(FakeTpu())
    assert (found["device"], found["replicas"]) == ("TPU", 8)


def test_the_model_of_an_earlier_end_is_told(tmp_path, capsys):
    settings = types.SimpleNamespace(output_dir=str(tmp_path), last_step=4)
    runs._say_that_a_model_is_older(settings, 2)
    assert capsys.readouterr().out == ""
    (tmp_path / "bert_model.ckpt.index").touch()
    runs._say_that_a_model_is_older(settings, 2)
    assert "contains the final model of an earlier" in capsys.readouterr().out
    runs._say_that_a_model_is_older(settings, 4)
    assert capsys.readouterr().out == ""
