"""A plan as one screen of text."""

from official_bert.training.plans.chips import Slice
from official_bert.training.plans.plan import Plan, duration


def screen(
    plan: Plan, slice_: Slice, what: str, num_train_steps: int, remedy: str = ""
) -> str:
    """Return the report on a `Plan`.

    Args:
      plan: `Plan`.
      slice_: its `Slice`.
      what: the step: model, batch, length and precision.
      num_train_steps: steps of the run.
      remedy: flags that make the step fit; "" if it fits, or if nothing helps.
    """
    source = "estimate" if plan.estimated else "compiled by the TPU's compiler"
    chips = f"{plan.chips} x {slice_.chip.name}"
    lines = [f"{what}, on {chips} ({plan.topology}): {source}"]
    if plan.compiles is False:
        lines += ["", f"The step does not compile: {plan.problem}"]
        if remedy:
            lines.append(f"It compiles and fits with {remedy}.")
        return "\n".join(lines)
    verdict = "fits" if plan.fits else "DOES NOT FIT"
    rows = [
        (
            "memory per chip",
            f"{plan.hbm_gb:.2f} of {plan.capacity_gb:.1f} GB: {verdict}",
        ),
        ("  weights, moments, batch", f"{plan.argument_gb:.2f} GB"),
        ("  activations, temporaries", f"{plan.temp_gb:.2f} GB"),
        ("  program", f"{plan.code_gb:.2f} GB"),
        (
            "operations per step",
            f"{plan.flops:.3g}, {duration(plan.compute_seconds)} at the chip's peak",
        ),
        (
            "bytes per step",
            f"{plan.bytes_accessed / 1e9:.3g} GB, {duration(plan.memory_seconds)} at "
            "the chip's bandwidth",
        ),
        ("roofline", f"{duration(plan.step_seconds)}, limited by {plan.bound}"),
        *(
            (name, f"{count}, {size / 1e6:,.0f} MB")
            for name, (count, size) in plan.collectives.items()
        ),
    ]
    run = plan.step_seconds * num_train_steps
    hours = run / 3600 * plan.chips
    rows.append(
        (
            f"{num_train_steps:,} steps",
            f"at least {duration(run)}, {hours:,.1f} chip hours",
        )
    )
    lines += ["", *(f"  {name:28}{value}" for name, value in rows)]
    if remedy:
        lines += ["", f"It fits with {remedy} (compiled)."]
    return "\n".join(lines)
