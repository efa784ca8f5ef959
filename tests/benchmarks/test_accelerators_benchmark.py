"""The exported training step on JAX's client trains like TensorFlow."""

import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from places import ROOT

from benchmarks.accelerators import exported
from official_bert.errors import UserError

pytestmark = pytest.mark.slow

FOLDER = ROOT / "benchmarks" / "accelerators"
has_jax = importlib.util.find_spec("jax") is not None
needs_jax = pytest.mark.skipif(not has_jax, reason="JAX is not installed")


def run(script, *arguments):
    # JAX would look for a TPU if the TPU's compiler is installed.
    env = {**os.environ, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, FOLDER / script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=env, check=False)


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    folder = tmp_path_factory.mktemp("steps")
    flags = ["--sizes=tiny", "--lengths=128", "--batch=4", "--precisions=float32"]
    done = run("export_steps.py", f"--out={folder}", *flags)
    assert done.returncode == 0, done.stderr
    return folder


def test_arguments_and_results(steps):
    step, program = exported.read(steps, "tiny_4x128_float32")
    assert len(program) > 1e6
    names = [one["name"] for one in step.arguments]
    assert names[:2] == ["input_ids", "input_mask"]
    assert len(set(names)) == len(names)
    # The results end with the new values of all variables.
    assert [one["name"] for one in step.results][-len(names) + 7 :] == names[7:]
    shapes = {one["name"]: one["shape"] for one in step.arguments}
    assert shapes["bert/embeddings/word_embeddings/adam_m"] == [30522, 128]


@needs_jax
def test_ten_steps_are_those_of_tensorflow(steps, tmp_path):
    flags = [f"--output={tmp_path}", "--no-speed", "--precisions=float32,tf32"]
    done = run("run_steps.py", f"--steps={steps}", *flags)
    assert done.returncode == 0, done.stdout + done.stderr
    checks = json.loads((tmp_path / "results.json").read_text())["checks"]
    assert list(checks) == ["float32", "tf32"]
    for one in checks.values():
        # CPUs have no TF32. The compilers are two versions of XLA.
        assert 0 <= one["losses"] < 1e-6
        assert 0 < one["weights"] < 1e-4
    assert "| float32 | " in (tmp_path / "table.md").read_text()


@needs_jax
def test_other_numbers_are_not_within_the_tolerance(steps, tmp_path):
    name = "tiny_4x128_float32"
    for suffix in (".json", ".hlo.pb.gz"):
        (tmp_path / f"{name}{suffix}").symlink_to(steps / f"{name}{suffix}")
    with np.load(steps / f"{name}.npz") as found:
        reference = dict(found)
    reference["losses"][3] *= 1 + 1e-4
    np.savez(tmp_path / f"{name}.npz", **reference)
    flags = [f"--output={tmp_path}", "--no-speed", "--precisions=float32"]
    done = run("run_steps.py", f"--steps={tmp_path}", *flags)
    assert done.returncode == 1
    assert "NOT within" in done.stdout


def test_missing_steps(tmp_path):
    with pytest.raises(UserError, match=r"only: none\. Export it with"):
        exported.read(tmp_path, "base_256x128_bfloat16")


def test_first_values():
    word = exported.first_value("bert/a/kernel", [100, 100], "float32")
    assert word.dtype == np.float32
    assert abs(word.std() - 0.02) < 1e-3
    assert (exported.first_value("bert/a/LayerNorm/gamma", [4], "float32") == 1).all()
    moment = exported.first_value("bert/a/LayerNorm/gamma/adam_v", [4], "float32")
    assert not moment.any()
    assert exported.first_value("global_step", [], "int64") == 0
