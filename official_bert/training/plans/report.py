"""A plan as one screen of text."""

import math

from official_bert.training.plans.chips import Slice
from official_bert.training.plans.plan import Plan
from official_bert.training.plans.remedy import Remedy

# Number of training steps to report if the run's number is unknown.
USUAL_STEPS = 1000
NO_REMEDY = (
    "No combination of --micro_batch_size, --recompute and --precision fits. Use more "
    "chips, or chips with more memory."
)


def screen(
    plan: Plan,
    slice_: Slice,
    what: str,
    num_train_steps: int,
    remedy: Remedy | None = None,
    note: str = "",
) -> str:
    """Return the report of a `Plan`.

    Args:
      plan: `Plan`.
      slice_: its `Slice`.
      what: description of the step: model, batch, length and precision.
      num_train_steps: training steps of the run; 0 if unknown.
      remedy: `Remedy` of a plan that does not fit; None without a remedy.
      note: a sentence about the number of steps, or "".
    """
    source = "an estimate" if plan.estimated else "compiled by the TPU compiler"
    chips = f"{plan.chips} x {slice_.chip.name}"
    lines = [f"{what}, on {chips} ({plan.topology}): {source}", ""]
    rows = [*_memory(plan)]
    if plan.compiles is False:
        rows.append(("the step does not compile", plan.problem))
    else:
        rows += [*_work(plan), *_time(plan, num_train_steps)]
    lines += [f"  {name:28}{value}".rstrip() for name, value in rows]
    if note:
        lines.append(f"  {'':28}{note}")
    if not plan.fits:
        lines += ["", _remedy(remedy, num_train_steps) if remedy else NO_REMEDY]
    return "\n".join(lines)


def _memory(plan):
    if not plan.hbm_gb:
        yield "memory per chip", f"unknown; a chip has {plan.capacity_gb:.1f} GB"
        return
    verdict = "fits" if plan.fits else "DOES NOT FIT"
    numbers = f"{plan.hbm_gb:.2f} of {plan.capacity_gb:.1f} GB"
    yield "memory per chip", f"{numbers}: {verdict}"
    yield "  weights, moments, batch", f"{plan.argument_gb:.2f} GB"
    yield "  activations, gradients", f"{plan.temp_gb:.2f} GB"
    if plan.code_gb:
        yield "  program", f"{plan.code_gb:.2f} GB"


def _work(plan):
    flops, size = f"{plan.flops:.3g}", f"{plan.main_memory_bytes / 1e9:.3g} GB"
    compute, transfer = duration(plan.compute_seconds), duration(plan.memory_seconds)
    yield "operations per step", f"{flops}, {compute} at the chip's peak"
    yield "memory traffic per step", f"{size}, {transfer} at the chip's bandwidth"
    if not plan.estimated:
        accessed = f"{plan.bytes_accessed / 1e9:.3g} GB"
        yield "bytes accessed", f"{accessed}, with transfers within the chip"
    yield "roofline", f"{duration(plan.step_seconds)}, limited by {plan.bound}"
    for name, (count, size) in plan.collectives.items():
        yield name, f"{count}, {size / 1e6:,.0f} MB"
    if plan.collectives:
        seconds = duration(plan.collective_seconds)
        longer = plan.collective_seconds > plan.step_seconds
        warning = ": longer than the rest of the step" if longer else ""
        yield "  on the interconnect", f"at least {seconds}{warning}"
    if not plan.estimated:
        hosts = ", ".join(plan.host)
        yield "operations on the host", f"{hosts}: THE STEP WAITS" if hosts else "none"


def _time(plan, num_train_steps):
    steps = num_train_steps or USUAL_STEPS
    seconds, hours = run_seconds(plan, steps), chip_hours(plan, steps)
    text = f"at least {duration(seconds)}, {hours:,.1f} chip hours"
    yield f"{steps:,} steps", text


def _remedy(remedy, num_train_steps):
    plan = remedy.plan
    steps = num_train_steps or USUAL_STEPS
    how = "estimated" if plan.estimated else "compiled"
    return (
        f"It fits with {remedy.flags} ({how}): {plan.hbm_gb:.2f} GB, roofline "
        f"{duration(plan.step_seconds)}, {steps:,} steps at least "
        f"{duration(run_seconds(plan, steps))}."
    )


def run_seconds(plan: Plan, num_train_steps: int) -> float:
    """Return the minimum duration of a run in seconds."""
    return plan.step_seconds * num_train_steps


def chip_hours(plan: Plan, num_train_steps: int) -> float:
    """Return the minimum duration of a run in hours, times its number of chips."""
    return run_seconds(plan, num_train_steps) / 3600 * plan.chips


def duration(seconds: float) -> str:
    """Return a duration as text in a suitable unit."""
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 100:
        return f"{seconds:.3g} s"
    if seconds < 2 * 3600:
        return f"{seconds / 60:.0f} minutes"
    if seconds < 2 * 86400:
        return f"{seconds / 3600:.2g} hours"
    days = seconds / 86400
    return f"{days:.2g} days" if days < 10 else f"{math.ceil(days)} days"
