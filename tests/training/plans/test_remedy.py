"""The search for flags that make a step fit, with a formula as the compiler."""

import dataclasses

import pytest
from workloads import SLICE, TINY, TOO_LARGE

from official_bert.training.plans import estimate, plan, remedy
from official_bert.training.plans.chips import parse_topology


def compiler(factor=1.0, slice_=SLICE):
    """Return (function: workload -> plan, list of the workloads that it got)."""
    seen = []

    def compile_(work):
        seen.append(work)
        made = estimate.estimate(work, slice_, 4)
        made = dataclasses.replace(made, estimated=False, compiles=True)
        return dataclasses.replace(made, temp_gb=factor * made.temp_gb)

    return compile_, seen


def find(work, factor=1.0, slice_=SLICE):
    compile_, seen = compiler(factor, slice_)
    announced = []
    found = remedy.find(work, compile_(work), slice_, compile_, announced.append)
    assert announced == [one.changes(work) for one in seen[1:]]
    return found, seen[1:]


def test_the_estimate_leads_to_the_first_that_fits():
    found, seen = find(TOO_LARGE)
    assert found.plan.fits and len(seen) == 1
    # The same training step, with the largest micro-batch that fits.
    assert found.flags == "--micro_batch_size=16"


@pytest.mark.parametrize("factor", [0.7, 1.5, 3.0])
def test_what_the_compiler_says_corrects_the_estimate(factor):
    found, seen = find(TOO_LARGE, factor)
    assert found.plan.fits and len(seen) <= 2


def test_cheapest_first():
    ordered = remedy.candidates(TOO_LARGE, SLICE, 4)
    flags = [one.changes(TOO_LARGE) for one in ordered]
    assert len(set(flags)) == len(flags)
    kept = [one.precision == "float32" for one in ordered]
    assert kept == sorted(kept, reverse=True)
    seconds = [estimate.estimate(one, SLICE, 4).step_seconds for one in ordered]
    assert seconds[: sum(kept)] == sorted(seconds[: sum(kept)])
    # If compute is the bottleneck, splitting costs nothing, and recomputing a third.
    assert flags.index("--micro_batch_size=16") < flags.index("--recompute")
    assert "--precision=bfloat16 --micro_batch_size=1 --recompute" in flags


def test_two_flags_if_one_is_not_enough():
    # An odd number of sequences cannot be halved.
    found, _ = find(dataclasses.replace(TOO_LARGE, rows=63))
    assert found.flags == "--recompute"
    small = dataclasses.replace(SLICE.chip, memory=12e9)
    small_slice = dataclasses.replace(SLICE, chip=small)
    found, _ = find(dataclasses.replace(TOO_LARGE, rows=63), slice_=small_slice)
    assert found.flags == "--precision=bfloat16 --recompute"


def test_a_known_micro_batch_only_shrinks():
    work = dataclasses.replace(TOO_LARGE, micro_batch_size=16)
    sizes = {one.micro_batch_size for one in remedy.candidates(work, SLICE, 4)}
    assert sizes == {16, 8, 4, 2, 1}


def test_nothing_helps_against_weights():
    small = dataclasses.replace(SLICE.chip, memory=3e9)
    found, seen = find(TOO_LARGE, slice_=dataclasses.replace(SLICE, chip=small))
    assert found is None and seen == []


def test_a_hopeless_estimate_gets_one_try():
    found, seen = find(TOO_LARGE, 400.0)
    assert found is None
    assert len(seen) == 1
    assert seen[0].micro_batch_size == 1 and seen[0].recompute


def test_a_refusal_without_numbers_is_searched_too():
    compile_, seen = compiler()
    unknown = plan.Plan(SLICE.name, 4, False, False, "too large")
    found = remedy.find(TOO_LARGE, unknown, SLICE, compile_)
    assert found.flags == "--micro_batch_size=16"


def test_no_search_if_memory_is_not_the_reason():
    compile_, seen = compiler()
    unknown = plan.Plan(SLICE.name, 4, False, False, "INTERNAL: a bug")
    assert remedy.find(TINY, unknown, SLICE, compile_) is None
    assert seen == []


def test_gpus():
    t4 = parse_topology("t4")
    work = dataclasses.replace(TOO_LARGE, is_compiled=False)
    found = remedy.find(
        work,
        estimate.estimate(work, t4, 1),
        t4,
        lambda changed: estimate.estimate(changed, t4, 1),
    )
    assert found.plan.fits and found.plan.estimated
    precisions = {one.precision for one in remedy.candidates(work, t4, 1)}
    assert precisions == {"float32", "float16"}
