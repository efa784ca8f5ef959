"""Plans: their arithmetic and their text."""

import dataclasses
import json

import pytest
from workloads import SLICE

from official_bert.training.plans import plan, report
from official_bert.training.plans.remedy import Remedy

COSTS = {
    "flops": 2e12,
    "bytes_accessed": 200e9,
    "main_memory_bytes": 61.5e9,
    "argument_gb": 1.5,
    "temp_gb": 2.0,
    "code_gb": 0.1,
    "collectives": {"all-reduce": [3, 440_000_000]},
}


def make(precision="bfloat16", compiles=True, **changes):
    made = plan.Plan(SLICE.name, 4, False, compiles)
    return plan.with_costs(made, SLICE, precision, **COSTS | changes)


def test_roofline():
    made = make()
    assert made.compiles and made.fits and not made.estimated
    assert made.hbm_gb == pytest.approx(3.6)
    assert made.compute_seconds == pytest.approx(2e12 / 197e12)
    assert made.memory_seconds == pytest.approx(61.5e9 / 0.82e12)
    assert (made.step_seconds, made.bound) == (made.memory_seconds, "memory")
    # In float32 the same products take six passes.
    slow = make("float32")
    assert slow.compute_seconds == pytest.approx(6 * made.compute_seconds)
    assert make(flops=2e13).bound == "compute"


def test_time_of_collectives():
    # Each of 4 chips sends 3/4 of the bytes twice, at 200 GB/s.
    assert make().collective_seconds == pytest.approx(2 * 0.75 * 0.44 / 200)
    alone = plan.with_costs(
        plan.Plan(SLICE.name, 1, False, True), SLICE, "float32", **COSTS
    )
    assert alone.collective_seconds == 0


def test_screen():
    text = report.screen(make(), SLICE, "a model", 1_000_000)
    assert text.splitlines()[0] == (
        "a model, on 4 x TPU v5e (v5e:2x2): compiled by the TPU compiler"
    )
    assert "3.60 of 16.9 GB: fits" in text
    assert "75 ms, limited by memory" in text
    assert "memory traffic per step     61.5 GB, 75 ms at the chip's bandwidth" in text
    assert "bytes accessed              200 GB, with transfers within the chip" in text
    assert "all-reduce                  3, 440 MB" in text
    assert "on the interconnect       at least 3.3 ms\n" in text
    assert "operations on the host      none" in text
    # 1e6 steps of 75 ms are 75,000 s, or 20.8 hours on each of 4 chips.
    assert "at least 21 hours, 83.3 chip hours" in text


def test_screen_of_unknown_steps():
    text = report.screen(make(), SLICE, "a model", 0, note="how to learn them")
    assert "1,000 steps                 at least 75 s" in text
    assert text.endswith("how to learn them")


def test_screen_of_a_slow_interconnect():
    text = report.screen(
        make(collectives={"all-reduce": [1, 10**11]}), SLICE, "a model", 10
    )
    assert "at least 750 ms: longer than the rest of the step" in text


def test_screen_of_a_step_that_waits_for_the_host():
    text = report.screen(make(host=["infeed", "send"]), SLICE, "a model", 10)
    assert "operations on the host      infeed, send: THE STEP WAITS" in text


def test_screen_of_an_estimate():
    made = dataclasses.replace(make(code_gb=0.0), estimated=True, compiles=None)
    text = report.screen(made, SLICE, "a model", 10)
    assert text.splitlines()[0].endswith(": an estimate")
    for word in ("host", "program", "bytes accessed"):
        assert word not in text


def test_screen_of_what_does_not_fit():
    made = make(temp_gb=16.2)
    assert made.hbm_gb == pytest.approx(17.8) and not made.fits
    text = report.screen(made, SLICE, "a model", 10, Remedy("--recompute", make()))
    assert "17.80 of 16.9 GB: DOES NOT FIT" in text
    assert text.splitlines()[-1] == (
        "It fits with --recompute (compiled): 3.60 GB, roofline 75 ms, 10 steps at "
        "least 750 ms."
    )
    assert report.screen(made, SLICE, "a model", 10).endswith(report.NO_REMEDY)


def test_screen_of_what_does_not_compile():
    made = plan.Plan(SLICE.name, 4, False, False, "INTERNAL: a bug", capacity_gb=16.9)
    text = report.screen(made, SLICE, "a model", 10)
    assert "memory per chip             unknown; a chip has 16.9 GB" in text
    assert "the step does not compile   INTERNAL: a bug" in text


def test_json():
    found = json.loads(json.dumps(make().to_dict()))
    assert {
        *("topology", "chips", "compiles", "flops", "bytes_accessed", "temp_gb"),
        *("argument_gb", "hbm_gb", "step_seconds", "bound", "host"),
        "main_memory_bytes",
    } <= set(found)


def test_durations():
    found = [report.duration(seconds) for seconds in (0.00193, 19.34, 600, 86400, 4e6)]
    assert found == ["1.93 ms", "19.3 s", "10 minutes", "24 hours", "47 days"]
