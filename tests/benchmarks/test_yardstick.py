"""The yardstick: ratios, targets, tables, and a run of its shortest row."""

import contextlib
import dataclasses
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
import warm_python
from places import ROOT

from benchmarks import workload
from benchmarks.yardstick import (
    comparisons,
    cost_model,
    instructions,
    processes,
    report,
    targets,
)
from official_bert.errors import UserError

pytestmark = pytest.mark.slow

RESULT = targets.Result(
    seconds={
        "ours": [1.0, 2.0, 4.0],
        "KerasHub": [3.0, 4.0, 6.0],
        "KerasHub jit": [2.0, 3.0, 20.0],
        "matrix product": [0.5, 0.25, 1.0],
    },
    memory={"ours": 3e9, "KerasHub": 4e9, "KerasHub jit": 5e9, "matrix product": 1},
    units=8,
    flops=30.0,
    product_flops=10.0,
)

MEASURED = {"on": "2026-01-02", "processor": "a chip"}


def test_ratios_are_of_neighbours_in_time():
    # 3 / 1, 4 / 2, 6 / 4: the median ratio differs from the ratio of medians, 4
    # / 2.
    assert RESULT.ratios("KerasHub") == [1.75, 2.0, 2.5]
    assert RESULT.ratios("KerasHub jit")[1] == 2.0
    # The product takes 0.5, 0.125 and 0.25 of our time, for a third of the operations.
    assert RESULT.share_of_ceiling("ours") == 0.75


@pytest.mark.parametrize(
    ("target", "value", "is_met"),
    [
        (targets.Speed(comparisons.KERAS_HUBS, 2.0, "KerasHub's best"), 2.0, True),
        (targets.Speed(("KerasHub",), 2.1, "KerasHub"), 2.0, False),
        (targets.Ceiling(0.75), 0.75, True),
        (targets.Ceiling(0.76), 0.75, False),
        (targets.Memory("ours", "KerasHub", 0.75), 0.75, True),
        (targets.Memory("ours", "KerasHub", 0.74), 0.75, False),
        (targets.Rate(4, "MB"), 4.0, True),
        (targets.Rate(5, "MB"), 4.0, False),
        (targets.Seconds(4), 4.0, True),
        (targets.Seconds(3), 4.0, False),
    ],
)
def test_targets(target, value, is_met):
    assert target.value(RESULT) == value
    assert target.is_met(value) is is_met


def test_what_was_not_measured_is_not_met():
    compared = comparisons.Comparison(
        "an update", "rows", 8, [], [targets.Speed(("Y",), 1, "Y")]
    )
    summary = report.summarize(compared, RESULT, MEASURED)
    verdict = {"target": "≥ 1 × Y", "found": None, "is_met": None}
    assert summary["targets"] == [verdict | {"over": ["Y"], "least": 1}]
    assert "≥ 1 × Y: not measured" in report.table({"x": summary})[2]


def test_table_and_chart(tmp_path):
    aims = [
        targets.Ceiling(0.8),
        targets.Speed(comparisons.KERAS_HUBS, 2, "KerasHub's best"),
    ]
    compared = comparisons.Comparison("an update", "rows", 8, [1, 2], aims)
    summary = report.summarize(compared, RESULT, MEASURED)
    line = report.table({"x": summary})[2]
    assert "| an update | 4 rows/s | 75% |" in line
    assert "KerasHub 2.00 (1.75–2.50)" in line
    assert "≥ 0.80 of the matrix product: 0.75, missed" in line
    assert "| 3.00 GB; KerasHub 1.33; KerasHub jit 1.67 |" in line
    lines = report.table({"x": summary, "y": summary})
    assert lines[-1] == "* x, y: on 2026-01-02, processor a chip"
    pytest.importorskip("matplotlib")
    report.write_chart({"train-tiny": summary}, tmp_path / "chart.png")
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")


def test_nothing_is_faster_than_the_product():
    assert not RESULT.is_faster_than_product()
    assert dataclasses.replace(RESULT, flops=41.0).is_faster_than_product()
    assert not dataclasses.replace(RESULT, flops=None).is_faster_than_product()


def test_an_unusable_row_is_not_drawn(tmp_path):
    compared = comparisons.Comparison("an update", "rows", 8, [1, 2])
    good = report.summarize(compared, RESULT, MEASURED)
    bad = report.summarize_unusable(compared, RESULT, MEASURED, "noise")
    assert report.lines(bad) == ["\nan update", "  unusable: noise"]
    assert report.table({"x": bad})[2] == "| an update | unusable: noise |  |  |  |  |"
    pytest.importorskip("matplotlib")
    report.write_chart({"train-tiny": bad}, tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()
    both = {"train-tiny": bad, "full-tiny": good}
    for name, summaries in (("a.png", both), ("b.png", {"full-tiny": good})):
        report.write_chart(summaries, tmp_path / name)
    pictures = [(tmp_path / name).read_bytes() for name in ("a.png", "b.png")]
    assert pictures[0] == pictures[1]


def test_who_computes_more_has_its_own_operations():
    result = dataclasses.replace(RESULT, other_flops={"KerasHub": 60.0})
    # The product takes 1/6, 1/16 and 1/6 of its time, for a sixth of the operations.
    assert result.share_of_ceiling("KerasHub") == 1.0
    assert result.share_of_ceiling("ours") == 0.75


def test_the_cost_model_finds_the_costs_of_points():
    costs = {"numbers": 2e-9, "weights": 5e-9}
    points = []
    for size, batch, length in [("tiny", 8, 128), ("mini", 4, 64), ("mini", 8, 128)]:
        point = cost_model.work(size, batch, length) | {"flops_per_second": 1e11}
        points.append(point | {"seconds": cost_model.predicted(point, costs)})
        products = cost_model.seconds_of_products(point)
        assert 0 < products < points[-1]["seconds"]
    assert cost_model.fit(points) == pytest.approx(costs, rel=1e-6)
    assert points[0]["weights"] == 4_433_468


def test_texts_are_written_and_read(tmp_path):
    texts = [([5, 6, 7], [0, 0, 1], 1), ([8], [0], 0)]
    workload.write_texts(tmp_path / "texts.npz", texts)
    found = workload.read_texts(tmp_path / "texts.npz")
    assert [(a.tolist(), b.tolist(), label) for a, b, label in found] == texts


def test_batch_has_the_shapes_of_records():
    batch = workload.pretraining_batch(1200, 3)
    lengths = batch["input_mask"].sum(axis=1)
    assert batch["input_ids"].shape == (3, 128)
    assert ((batch["input_ids"] > 0) == (batch["input_mask"] > 0)).all()
    assert (batch["masked_lm_positions"] < lengths[:, np.newaxis]).all()


def test_variants_take_turns(monkeypatch):
    measured = []

    @contextlib.contextmanager
    def running(variant, python):
        def measure(calls):
            measured.append((variant.name, python, calls))
            return {"seconds": [3.0, len(measured), 9.0], "memory": len(measured)}

        yield {f"library of {variant.name}": "1.0"}, measure

    monkeypatch.setattr(processes, "_running", running)
    ours = processes.Variant("ours", "", "", {})
    theirs = processes.Variant("theirs", "", "", {}, in_peer_env=True, calls=7)
    seconds, memory, versions = processes.take_turns([ours, theirs], 2, 5, "python")
    # The first turn warms up.
    turn = [("ours", sys.executable, 5), ("theirs", "python", 7)]
    warm_up = [(name, python, 2) for name, python, _ in turn]
    assert measured == [*warm_up, *turn, *turn]
    assert seconds == {"ours": [3.0, 3.0], "theirs": [3.0, 3.0]}
    assert memory == {"ours": 5, "theirs": 6}
    assert versions == {"library of ours": "1.0", "library of theirs": "1.0"}


def test_a_variant_that_fails_says_why():
    broken = processes.Variant("broken", "ours", "training", {"size": "huge"})
    with pytest.raises(UserError, match="(?s)broken could not.*TypeError"):
        processes.take_turns([broken], 2, 1, None)


def test_a_row_is_measured_once(tmp_path):
    command = [ROOT / "benchmarks" / "run.py", "--rows=help", "--rounds=2"]
    command += ["--nopeers", f"--output={tmp_path}"]
    done = warm_python.run(command)
    assert done.returncode == 0, done.stderr
    assert "to --help" in done.stdout
    first = (tmp_path / "yardstick.json").read_text()
    found = json.loads(first)["help"]
    assert len(found["seconds"]["ours"]) == 2
    assert found["targets"][0]["found"] == max(found["median_seconds"].values())
    done = warm_python.run(command)
    assert (done.returncode, done.stdout) == (0, "")
    assert (tmp_path / "yardstick.json").read_text() == first


# The real command on two rows with invented measurements. Every process takes a
# second per call: too little for the operations of a training step.
MADE_UP = """
from benchmarks import run
from benchmarks.yardstick import processes

def take_turns(variants, rounds, calls, peer_python):
    names = [one.name for one in variants]
    print("measured", names[-1])
    times = {name: [1.0] * rounds for name in names}
    if "matrix product" in names:
        times["ours"] = [SECONDS.pop(0)] * rounds
    return times, dict.fromkeys(names, 5e9), {"a_library": "1.0"}

processes.take_turns = take_turns
run.run(run.main)
"""


@pytest.mark.parametrize("seconds, is_usable", [([1, 1], False), ([1, 1000], True)])
def test_a_row_faster_than_the_product(tmp_path, seconds, is_usable):
    flags = ["--rows=train-tiny,help", "--rounds=2", "--nopeers"]
    flags.append(f"--output={tmp_path}")

    def run(*seconds):
        return warm_python.run(["-c", f"SECONDS = {list(seconds)}\n{MADE_UP}", *flags])

    done = run(*seconds)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    # The row is measured twice, and the next row follows in any case.
    assert done.stdout.count("measured matrix product") == 2
    assert done.stdout.count("measured again") == 1
    summaries = json.loads((tmp_path / "yardstick.json").read_text())
    assert list(summaries) == ["train-tiny", "help"]
    unusable = summaries["train-tiny"].get("unusable")
    table = (tmp_path / "table.md").read_text()
    if is_usable:
        assert unusable is None
        assert "unusable" not in done.stdout + table
        return
    assert unusable == "faster than the matrix product, measured 2 times"
    assert f"unusable: {unusable}" in done.stdout
    assert "| tiny: training step, 32 × 64 to 128 | unusable: faster than" in table
    assert "train-tiny, help: on 20" in table
    # The row is unusable, so the same command measures it again.
    done = run(1000)
    assert done.stdout.count("measured matrix product") == 1
    assert "measured run_" not in done.stdout
    assert "unusable" not in (tmp_path / "table.md").read_text()


def test_an_unknown_row():
    command = [ROOT / "benchmarks" / "run.py", "--rows=help,tee", "--output=x"]
    done = warm_python.run(command)
    assert done.returncode == 1
    assert "--rows: 'tee' is not one of train-tiny" in done.stderr


def test_optional_variants_that_fail_are_skipped(capsys):
    product = processes.Variant("product", "ours", "product", {})
    missing = processes.Variant("other", "ours", "missing", {}, is_optional=True)
    seconds, memory, _ = processes.take_turns([missing, product], 2, 1, None)
    assert list(seconds) == list(memory) == ["product"]
    assert "Skipped: other could not be measured" in capsys.readouterr().out


def test_programs_without_avx512(monkeypatch, tmp_path):
    if shutil.which("gcc") is None or shutil.which("objdump") is None:
        pytest.skip("this machine has no compiler or no disassembler")
    for name in ("LD_AUDIT", "AVX2_ONLY_ADDRESSES"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(instructions, "PACKAGES", ["numpy"])
    instructions.leave_out_avx512(tmp_path, [sys.prefix])
    program = (
        "from numpy._core._multiarray_umath import __cpu_features__ as has\n"
        "print(has['AVX2'], has['AVX512F'], has['AVX512_SPR'])"
    )
    printed = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert printed.split() == ["True", "False", "False"]


def test_a_second_call_knows_the_addresses(monkeypatch, tmp_path, capsys):
    library = tmp_path / "lib" / "python3.11" / "site-packages" / "numpy" / "one.so"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"one")
    monkeypatch.setattr(instructions, "_cpuid_addresses", lambda library: ["1a", "2b"])
    for _ in range(2):
        instructions._write_addresses(
            tmp_path / "list.txt", tmp_path / "known.json", [tmp_path]
        )
    assert capsys.readouterr().out == "Disassembling one.so\n"
    expected = f"1a {library.resolve()}\n2b {library.resolve()}\n"
    assert (tmp_path / "list.txt").read_text() == expected


def test_a_machine_that_cannot_leave_out_avx512(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(UserError, match="Use another machine"):
        instructions.leave_out_avx512(tmp_path, [])


def test_a_machine_without_a_compiler(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(shutil, "which", lambda tool: None)
    with pytest.raises(UserError, match="needs gcc. On Debian, run apt install"):
        instructions.leave_out_avx512(tmp_path, [])
