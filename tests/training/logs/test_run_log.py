"""The logs of a run, without duplicate rows."""

import json
import math
import sys

import pytest
import tensorflow as tf

from official_bert.training import pretraining
from official_bert.training.logs import run_log as logs
from official_bert.training.logs.run_log import Meter, RunLog, read_metrics
from official_bert.training.reports import report_of, weighted_means

ROW = {
    "loss": 3.5,
    "masked_lm_loss": 3.0,
    "masked_lm_accuracy": 0.25,
    "next_sentence_loss": 0.5,
    "next_sentence_accuracy": 0.75,
    "sequences_per_second": 10.0,
}


def test_means_are_weighted():
    """By hand: 10/4 and 2/1 give 12/5, not the mean of 2.5 and 2."""
    reports = [
        {"a": 10.0, "a/weight": 4.0, "rate": 0.1},
        {"a": 2.0, "a/weight": 1.0, "rate": 0.2},
    ]
    assert weighted_means(reports) == {"a": 2.4, "rate": 0.2}
    empty = [{"a": 0.0, "a/weight": 0.0}]
    assert weighted_means(empty) == {"a": 0.0}
    assert report_of({"a": (1, 2)}) == {"a": 1, "a/weight": 2}


def test_meter():
    meter = Meter()
    for value in (1.0, 3.0):
        meter.add(
            {
                "x_loss": tf.constant(value),
                "x_loss/weight": tf.constant(1.0),
                "y_loss": tf.constant(8.0),
                "y_loss/weight": tf.constant(2.0),
                "x_accuracy": tf.constant(1.0),
                "x_accuracy/weight": tf.constant(4.0),
            }
        )
    row = meter.means(batch_size=16)
    assert row["x_loss"] == 2.0 and row["y_loss"] == 4.0
    assert row["loss"] == 6.0
    assert row["x_accuracy"] == 0.25
    assert row["sequences_per_second"] > 0
    # The operations of the model are unknown.
    assert "model_flops_per_second" not in row
    meter.add({"x_loss": tf.constant(7.0), "x_loss/weight": tf.constant(1.0)})
    assert meter.means(16)["loss"] == 7.0


def test_a_call_of_several_steps_is_several_reports():
    """Weights and last values are those of single steps, also after a shorter call."""
    numbers = {
        "x_loss": [1.0, 3.0, 8.0],
        "x_loss/weight": [1.0, 2.0, 4.0],
        "skipped_in_row": [0, 0, 1],
    }
    steps = [{n: tf.constant(v[i]) for n, v in numbers.items()} for i in range(3)]
    calls = [
        {n: tf.constant(values[part]) for n, values in numbers.items()}
        for part in (slice(0, 2), slice(2, 3))
    ]
    rows = []
    for reports in (steps, calls):
        meter = Meter()
        for report in reports:
            meter.add(report)
        rows.append({n: v for n, v in meter.means(8).items() if n not in logs.RATES})
    assert rows[0] == rows[1] == {"loss": 12 / 7, "x_loss": 12 / 7, "skipped_in_row": 1}


def test_nothing_is_read_from_the_devices_before_a_log_line():
    class OnDevice:
        """A value with a shape, but without a number yet."""

        shape = tf.TensorShape([])

    meter = Meter()
    for _ in range(3):
        meter.add({"x_loss": OnDevice(), "x_loss/weight": OnDevice()}, 1.0)
    with pytest.raises((TypeError, ValueError)):
        meter.means(16)


def test_utilization(monkeypatch):
    """By hand: two steps of 3e12 operations in 4 seconds, on devices with 6e12/s."""
    now = [0.0]
    monkeypatch.setattr(logs.time, "monotonic", lambda: now[0])
    report = {"x_loss": tf.constant(1.0), "x_loss/weight": tf.constant(1.0)}
    found = []
    for peak in (6e12, None):
        meter = Meter(peak)
        for _ in range(2):
            meter.add(report, 3e12)
        now[0] += 4
        found.append(meter.means(16))
        # Each report counts only once.
        meter.add(report, 1e12)
        now[0] += 1
        assert meter.means(16)["model_flops_per_second"] == 1e12
    assert found[0]["model_flops_per_second"] == found[1]["model_flops_per_second"]
    assert found[0]["model_flops_per_second"] == 1.5e12
    assert found[0]["mfu"] == 0.25 and "mfu" not in found[1]


@pytest.mark.parametrize(
    ("rates", "text"),
    [
        ({}, "10 seq/s"),
        ({"model_flops_per_second": 57.34e9}, "10 seq/s  57.3 GFLOP/s"),
        ({"model_flops_per_second": 0.546e9}, "10 seq/s  546 MFLOP/s"),
        ({"model_flops_per_second": 999.6e9}, "10 seq/s  1 TFLOP/s"),
        (
            {"model_flops_per_second": 412.4e12, "mfu": 0.4169},
            "10 seq/s  412 TFLOP/s  MFU 41.7%",
        ),
    ],
)
def test_rates_for_people(rates, text, tmp_path, capsys):
    assert logs.describe_rates({"sequences_per_second": 10.0, **rates}) == text
    with RunLog(str(tmp_path), 10, describe=pretraining.describe) as log:
        log.training(1, {**ROW, **rates})
    assert f"{text}  ETA" in capsys.readouterr().out
    (row,) = read_metrics(tmp_path)
    assert row == {"step": 1, **ROW, **rates}


def write(directory, steps, first=0):
    with RunLog(str(directory), 10, first, describe=pretraining.describe) as log:
        for step in range(first + 1, max(steps, default=0) + 1):
            log.step()
            if step not in steps:
                continue
            log.training(step, {**ROW, "loss": float(step)})
            log.evaluation(step, ROW)


def test_rows(tmp_path, capsys):
    write(tmp_path, [2, 4])
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").open()]
    assert [row["step"] for row in rows] == [2, 2, 4, 4]
    assert rows[0] == {"step": 2, **ROW, "loss": 2.0}
    assert rows[1] == {"step": 2, **{f"eval_{name}": v for name, v in ROW.items()}}
    out = capsys.readouterr().out
    assert "step 2/10  loss 2.000  mlm 3.000 (25.0%)  nsp 0.500 (75.0%)" in out
    assert "ETA" in out and "step 4  held-out: loss 3.500  mlm 3.000" in out


def test_rows_after_the_resumed_step_are_dropped(tmp_path):
    write(tmp_path, [2, 4, 6])
    write(tmp_path, [6, 8], first=5)
    assert [row["step"] for row in read_metrics(tmp_path)] == [2, 2, 4, 4, 6, 6, 8, 8]
    write(tmp_path, [8], first=4)
    assert [row["step"] for row in read_metrics(tmp_path)] == [2, 2, 4, 4, 8, 8]


def test_a_fresh_run_forgets_an_unsaved_one(tmp_path):
    write(tmp_path, [2, 4])
    write(tmp_path, [], first=0)
    assert read_metrics(tmp_path) == []


def test_torn_last_line(tmp_path):
    write(tmp_path, [2, 4])
    path = tmp_path / "metrics.jsonl"
    path.write_text(path.read_text()[:-20])
    assert [row["step"] for row in read_metrics(tmp_path)] == [2, 2, 4]
    write(tmp_path, [6], first=4)
    assert [row["step"] for row in read_metrics(tmp_path)] == [2, 2, 4, 6, 6]


def test_killed_while_dropping_rows(tmp_path, monkeypatch):
    """The old rows stay until the new file is complete."""
    write(tmp_path, [2, 4])
    before = (tmp_path / "metrics.jsonl").read_bytes()

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", killed)
    with pytest.raises(KeyboardInterrupt):
        RunLog(str(tmp_path), 10, 2)
    assert (tmp_path / "metrics.jsonl").read_bytes() == before


def test_what_is_no_number_is_null(tmp_path):
    with RunLog(str(tmp_path), 10) as log:
        log.training(1, {**ROW, "loss": math.nan, "gradient_norm": math.inf})
    (row,) = read_metrics(tmp_path)
    assert row["loss"] is None and row["gradient_norm"] is None
    assert "NaN" not in (tmp_path / "metrics.jsonl").read_text()


def test_progress_bar_on_a_terminal(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    write(tmp_path, [5, 10])
    captured = capsys.readouterr()
    assert "10/10" in captured.err
    assert "loss 10.000" in captured.err
    assert "held-out" in captured.out
    assert "step 5/10" not in captured.out


def test_without_tensorboard(tmp_path, monkeypatch):
    monkeypatch.setattr(logs.importlib.util, "find_spec", lambda name: None)
    write(tmp_path, [1])
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.jsonl"]


def test_with_tensorboard(tmp_path):
    pytest.importorskip("tensorboard")
    write(tmp_path, [1, 2])
    (path,) = (tmp_path / "events").iterdir()
    found = {}
    for event in tf.compat.v1.train.summary_iterator(str(path)):
        for value in event.summary.value:
            found.setdefault(value.tag, []).append(
                (event.step, float(tf.make_ndarray(value.tensor)))
            )
    assert found["loss"] == [(1, 1.0), (2, 2.0)]
    assert found["eval_masked_lm_accuracy"] == [(1, 0.25), (2, 0.25)]
