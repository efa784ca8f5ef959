"""The comparison with ONNX Runtime, without it: our files, processes, tables."""

import os
import types

import numpy as np
import pytest
import tiny_model
import warm_python
from places import ROOT

from benchmarks import on_device, workload
from benchmarks.yardstick import processes
from official_bert.errors import UserError
from official_bert.export.tflite import model as device_model
from official_bert.fine_tuning.tflite_model import TfliteModel

pytestmark = pytest.mark.slow

LENGTHS = [8, 16]
SETTINGS = {"vocab_size": 128, "threads": 1}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny") / "model"
    return on_device.open_encoder(tiny_model.write(folder), LENGTHS)


@pytest.fixture(scope="module")
def ours(model, tmp_path_factory):
    return on_device.write_ours(tmp_path_factory.mktemp("files"), model)


def test_rows():
    row = workload.random_row(9, 128)
    assert list(row) == ["input_ids", "input_mask", "segment_ids"]
    assert row["input_mask"] == [1] * 9
    assert row["segment_ids"] == [0] * 4 + [1] * 5
    assert set(row["input_ids"]) <= set(range(128))
    assert row == workload.random_row(9, 128)


def test_our_process_computes(ours, tmp_path):
    settings = SETTINGS | {"lengths": LENGTHS, "output_dir": str(tmp_path)}
    variant = on_device.variant("ours", ours["int8"], settings)
    seconds, memory, versions = processes.take_turns([variant], 3, 2, None)
    [(runtime, version)] = versions.items()
    assert f"{runtime} {version}".startswith(("TensorFlow 2.", "LiteRT "))
    assert len(seconds["ours"]) == 3
    assert all(0 < second < 10 for second in seconds["ours"])
    assert 0 < memory["ours"] < 1e9
    written = sorted(path.name for path in tmp_path.iterdir())
    assert written == ["16.npz", "8.npz"]


def test_our_outputs_are_those_of_the_model(model, ours):
    exact = []
    for length in LENGTHS:
        row = workload.random_row(length, 128)
        outputs = model.compute({key: np.array([ids]) for key, ids in row.items()})
        exact.append({key: value.numpy() for key, value in outputs.items()})
    greatest = {}
    for name, path in ours.items():
        assert TfliteModel(path).lengths == LENGTHS
        outputs = on_device.read_outputs(path, LENGTHS, SETTINGS, None)
        assert [one["sequence_output"].shape[1] for one in outputs] == LENGTHS
        greatest[name] = on_device.difference(outputs, exact)["greatest"]
    assert list(greatest) == ["float32", "int8"]
    assert greatest["float32"] < 1e-5 < greatest["int8"] < 0.2


def test_a_process_that_ends_is_told(tmp_path):
    path = tmp_path / "damaged.tflite"
    path.write_bytes(b"nothing")
    with pytest.raises(
        UserError, match=r"damaged.tflite could not be measured: (.|\n)*ValueError"
    ):
        on_device.read_outputs(str(path), [8], SETTINGS, None)


def test_memory_is_of_each_file(ours):
    sides = {on_device.OURS: ours}
    measured = on_device.measure_memory(sides, SETTINGS | {"lengths": [8]}, None)
    assert [one["format"] for one in measured] == ["float32", "int8"]
    for one in measured:
        assert one["runtime"].startswith(("TensorFlow 2.", "LiteRT "))
        assert one["file"] == os.path.getsize(ours[one["format"]])
        assert 0 < one["peak"] < 1e9
    measured = [{"who": "ours", "format": "int8", "file": 23.1e6, "peak": 41.4e6}]
    header, line = on_device.memory_lines(measured, 128)
    assert header.endswith("row of 128")
    assert line.split() == ["int8", "ours", "23.1", "41.4"]


def test_difference():
    some = [{"a": np.array([[1.0, 2.0]]), "b": np.array([3.0])}]
    others = [{"a": np.array([[1.5, 2.0]]), "b": np.array([1.0])}]
    found = on_device.difference(some, others)
    assert found == {"greatest": 2.0, "mean": pytest.approx(2.5 / 3)}
    lines = list(on_device.difference_lines({"ours": {"float32": found}}))
    assert lines[1:] == ["float32  ours          2.0e+00 8.3e-01"]


def test_sides_are_compared(monkeypatch):
    of_path = {"a.tflite": 1.0004, "b.tflite": 1.25, "a.onnx": 1.0, "b.onnx": 2.0}

    def read_outputs(path, lengths, settings, peer_python):
        assert (settings, peer_python) == (SETTINGS, "python")
        return [{"pooled_output": np.array([[of_path[path]]])} for _ in lengths]

    monkeypatch.setattr(on_device, "read_outputs", read_outputs)
    sides = {
        who: {"float32": f"a.{end}", "int8": f"b.{end}"}
        for who, end in (("ours", "tflite"), ("ONNX Runtime", "onnx"))
    }
    found = on_device.compare(sides, LENGTHS, SETTINGS, "python")
    greatest = {
        who: {name: one["greatest"] for name, one in formats.items()}
        for who, formats in found.items()
    }
    assert greatest == {
        "ours": {"float32": pytest.approx(4e-4), "int8": 0.25},
        "ONNX Runtime": {"int8": 1.0},
    }
    for wrong in (1.002, np.nan):
        of_path["a.tflite"] = wrong
        with pytest.raises(
            UserError, match=r"sides differ by .* in float32, but only 1e-03"
        ):
            on_device.compare(sides, LENGTHS, SETTINGS, "python")


def test_ratios_of_turns():
    seconds = {
        "ours": [0.001, 0.002, 0.004],
        "ONNX Runtime": [0.003, 0.004, 0.004],
    }
    found = on_device.summary(seconds)
    assert found["milliseconds"] == {"ours": 2, "ONNX Runtime": 4}
    # From the ratios 3, 2 and 1.
    assert found["theirs_over_ours"] == {
        "lower_quartile": 1.5,
        "median": 2,
        "upper_quartile": 2.5,
    }
    line = on_device.latency_line({"format": "int8", "length": 64} | found)
    assert line.split() == "int8 64 2.00 ms 4.00 ms 2.00 (1.50-2.50)".split()  # noqa: SIM905


def test_other_models_are_told(model, tmp_path):
    path = tiny_model.write(tmp_path / "model")
    with pytest.raises(UserError, match=r"reads 32 tokens, not 64. Remove this length"):
        on_device.open_encoder(path, [16, 64])
    assert on_device.open_encoder(path, [16, 32]).lengths == (16, 32)


def test_fine_tuned_models_are_told(monkeypatch):
    classifier = types.SimpleNamespace(predictor=object(), what="classifier")
    monkeypatch.setattr(device_model, "open_device_model", lambda path: classifier)
    with pytest.raises(UserError, match=r"--model: m is a classifier, but outputs"):
        on_device.open_encoder("m", LENGTHS)


@pytest.mark.parametrize(
    "flags, told",
    [
        (["--output=a.json"], "error: Give --model: Hugging Face directory"),
        (["--model=m"], "error: Give --output: JSON file"),
        (["--lengths=32,many"], "error: --lengths: 'many' is not a row length. Give"),
        (["--lengths=2,128"], "error: --lengths: '2' is not a row length. Give"),
        (
            ["--lengths=64,32"],
            "error: --memory_length=128 is not in --lengths. Use",
        ),
        (["--rounds=1"], "error: flag --rounds=1: "),
        (["--model=missing"], "error: No checkpoint at missing"),
    ],
)
def test_unusable_flags_are_told(tmp_path, flags, told):
    given = [] if told.startswith("error: Give") else ["--model=m", "--output=a.json"]
    done = warm_python.run(
        [ROOT / "benchmarks" / "on_device.py", *given, *flags], cwd=tmp_path
    )
    assert done.returncode in (1, 2)
    assert done.stderr.startswith(told), done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())
