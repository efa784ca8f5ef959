"""The yardstick: ratios, targets, tables, and a run of its shortest row."""

import dataclasses
import json

import numpy as np
import pytest
import warm_python
from places import ROOT

from benchmarks import workload
from benchmarks.yardstick import cost_model, processes, report, rows, targets
from official_bert.errors import UserError

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
    # 3 / 1, 4 / 2, 6 / 4: their median is not that of the times, 4 / 2.
    assert RESULT.ratios("KerasHub") == [1.75, 2.0, 2.5]
    assert RESULT.ratios("KerasHub jit")[1] == 2.0
    # The product takes 0.5, 0.125 and 0.25 of our time, for a third of the operations.
    assert RESULT.share_of_ceiling("ours") == 0.75


@pytest.mark.parametrize(
    ("target", "found", "is_met"),
    [
        (targets.Speed(rows.KERAS_HUBS, 2.0, "KerasHub's best"), 2.0, True),
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
def test_targets(target, found, is_met):
    assert target.found(RESULT) == found
    assert target.is_met(found) is is_met


def test_what_was_not_measured_is_not_met():
    row = rows.Row("x", "an update", "rows", 8, [], [targets.Speed(("Y",), 1, "Y")])
    summary = report.row_summary(row, RESULT, MEASURED)
    verdict = {"target": "≥ 1 × Y", "found": None, "is_met": None}
    assert summary["targets"] == [verdict | {"over": ["Y"], "least": 1}]
    assert "≥ 1 × Y: not measured" in report.table({"x": summary})[2]


def test_table_and_chart(tmp_path):
    aims = [targets.Ceiling(0.8), targets.Speed(rows.KERAS_HUBS, 2, "KerasHub's best")]
    row = rows.Row("x", "an update", "rows", 8, [1, 2], aims)
    summary = report.row_summary(row, RESULT, MEASURED)
    line = report.table({"x": summary})[2]
    assert "| an update | 4 rows/s | 75% |" in line
    assert "KerasHub 2.00 (1.75–2.50)" in line
    assert "≥ 0.80 of the matrix product: 0.75, missed" in line
    assert "| 3.00 GB; KerasHub 1.33; KerasHub jit 1.67 |" in line
    lines = report.table({"x": summary, "y": summary})
    assert lines[-1] == "* x, y: on 2026-01-02, processor a chip"
    pytest.importorskip("matplotlib")
    report.write_chart({"x": summary}, tmp_path / "chart.png")
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")


def test_nothing_is_faster_than_the_product():
    row = rows.Row("x", "an update", "rows", 8, [1])
    result = dataclasses.replace(RESULT, flops=41.0)
    with pytest.raises(ValueError, match="an update is faster than the matrix"):
        report.row_summary(row, result, MEASURED)


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


def test_a_contender_that_fails_says_why():
    broken = processes.Contender("broken", "ours", "training", {"size": "huge"})
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


def test_an_unknown_row():
    command = [ROOT / "benchmarks" / "run.py", "--rows=help,tee", "--output=x"]
    done = warm_python.run(command)
    assert done.returncode == 1
    assert "--rows: 'tee' is none of train-tiny" in done.stderr
