"""The fastest flags that make a too large training step fit."""

import dataclasses
import itertools
from collections.abc import Callable

from official_bert.training.plans import estimate
from official_bert.training.plans.chips import Slice
from official_bert.training.plans.plan import Plan
from official_bert.training.plans.workload import Workload


@dataclasses.dataclass(frozen=True)
class Remedy:
    """Flags that make a step fit.

    Attributes:
      flags: text for a command line.
      plan: `Plan` of the step with these flags.
    """

    flags: str
    plan: Plan


def candidates(work: Workload, slice_: Slice, num_chips: int) -> list[Workload]:
    """Return changed workloads that need less memory, the cheapest first.

    Workloads with the same precision come first, because their training step has the
    same result. The order is then by estimated time of a step, then by number of flags.
    Smaller micro-batches read the weights more often. Recomputation adds operations.
    """
    sizes = [work.micro_batch_size]
    size = work.rows_at_once
    while size % 2 == 0:
        size //= 2
        sizes.append(size)
    precisions = [work.precision]
    if work.precision == "float32":
        precisions.append(slice_.chip.half)
    found = [
        dataclasses.replace(
            work, micro_batch_size=size, recompute=recompute, precision=precision
        )
        for size, recompute, precision in itertools.product(
            sizes, {work.recompute, True}, precisions
        )
    ]

    def cost(changed):
        seconds = estimate.estimate(changed, slice_, num_chips).step_seconds
        flags = changed.changes(work)
        return changed.precision != work.precision, seconds, len(flags.split())

    return sorted((one for one in found if one != work), key=cost)


def find(
    work: Workload,
    measured: Plan,
    slice_: Slice,
    make_plan: Callable[[Workload], Plan],
    announce: Callable[[str], None] = lambda flags: None,
) -> Remedy | None:
    """Return the first candidate that fits, or None.

    Compiling takes minutes, so candidates whose estimated memory is too large are
    skipped. Each compiled plan corrects the estimate.

    Args:
      work: `Workload` that does not fit.
      measured: its `Plan`.
      slice_: `Slice`.
      make_plan: function: `Workload` -> its `Plan`.
      announce: function that is called with the flags of each candidate.
    """
    capacity = slice_.chip.memory
    if estimate.argument_bytes(work) > capacity:
        return None  # No flag reduces weights and moments.
    if not measured.hbm_gb and _memory(work, 1.0) <= capacity:
        return None  # The compiler refused the step for another reason.
    factor = _factor(work, measured)
    remaining = candidates(work, slice_, measured.chips)
    while remaining:
        likely = [one for one in remaining if _memory(one, factor) <= capacity]
        # If no estimate fits, try the smallest candidate: the estimate may be wrong.
        smallest = min(remaining, key=lambda one: _memory(one, factor))
        chosen = likely[0] if likely else smallest
        flags = chosen.changes(work)
        announce(flags)
        plan = make_plan(chosen)
        if plan.fits:
            return Remedy(flags, plan)
        if not likely:
            return None
        remaining.remove(chosen)
        factor = max(factor, _factor(chosen, plan))
    return None


def _memory(work, factor):
    return estimate.argument_bytes(work) + factor * estimate.temporary_bytes(work)


def _factor(work, plan):
    """Return measured temporaries / estimated ones; 1 if they are unknown."""
    return plan.temp_gb * 1e9 / estimate.temporary_bytes(work) or 1.0
