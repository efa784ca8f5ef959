"""A plan: whether a training step fits a chip, its duration, and its bottleneck."""

import dataclasses
from typing import Any

from official_bert.training.plans.chips import Slice

GIGA = 1e9


@dataclasses.dataclass(frozen=True)
class Plan:
    """The cost of one training step on each chip of a slice.

    Attributes:
      topology: name of the slice.
      chips: number of chips that train.
      estimated: True for estimates (GPUs), False for the compiler's numbers.
      compiles: whether the compiler accepts the step; None for estimates.
      problem: first line of the compiler's message if it does not.
      flops: operations per step.
      bytes_accessed: bytes that the operations read and write. This is the compiler's
        count and includes transfers within the chip.
      main_memory_bytes: bytes read from and written to the main memory.
      argument_gb: weights, moments and the batch, in GB (10^9 bytes).
      temp_gb: gradients, activations and other temporaries, in GB.
      code_gb: the program, in GB.
      capacity_gb: the memory of a chip that a program can use, in GB.
      collectives: name -> [number of operations, bytes of their results].
      host: operations that involve the host, by their names in the compiled program.
      compute_seconds: time for `flops` at the chip's peak rate in this precision.
      memory_seconds: time for `main_memory_bytes` at the chip's bandwidth.
      collective_seconds: minimum time of the collectives on the interconnect.
    """

    topology: str
    chips: int
    estimated: bool
    compiles: bool | None
    problem: str = ""
    flops: float = 0.0
    bytes_accessed: float = 0.0
    main_memory_bytes: float = 0.0
    argument_gb: float = 0.0
    temp_gb: float = 0.0
    code_gb: float = 0.0
    capacity_gb: float = 0.0
    collectives: dict[str, list[int]] = dataclasses.field(default_factory=dict)
    host: list[str] = dataclasses.field(default_factory=list)
    compute_seconds: float = 0.0
    memory_seconds: float = 0.0
    collective_seconds: float = 0.0

    @property
    def hbm_gb(self) -> float:
        """Memory that the step needs on a chip, in GB."""
        return self.argument_gb + self.temp_gb + self.code_gb

    @property
    def fits(self) -> bool:
        """Whether the step compiles and fits the chip's memory."""
        return self.compiles is not False and self.hbm_gb <= self.capacity_gb

    @property
    def step_seconds(self) -> float:
        """The roofline time of a step: the longer of computing and transferring."""
        return max(self.compute_seconds, self.memory_seconds)

    @property
    def bound(self) -> str:
        """The bottleneck of the step: "compute" or "memory"."""
        is_compute = self.compute_seconds >= self.memory_seconds
        return "compute" if is_compute else "memory"

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers, for JSON."""
        names = ("hbm_gb", "fits", "step_seconds", "bound")
        return dataclasses.asdict(self) | {name: getattr(self, name) for name in names}


def with_costs(plan: Plan, slice_: Slice, precision: str, **costs: Any) -> Plan:
    """Return a plan with these fields and the resulting times and capacity.

    Args:
      plan: `Plan`.
      slice_: its `Slice`.
      precision: precision of the step.
      **costs: fields of `Plan`, with `flops`, `main_memory_bytes`, `collectives`.
    """
    sent = sum(size for _, size in costs["collectives"].values())
    return dataclasses.replace(
        plan,
        **costs,
        capacity_gb=slice_.chip.memory / GIGA,
        compute_seconds=costs["flops"] / peak_flops(slice_, precision),
        memory_seconds=costs["main_memory_bytes"] / slice_.chip.bandwidth,
        collective_seconds=_all_reduce_seconds(sent, slice_, plan.chips),
    )


def _all_reduce_seconds(size, slice_, num_chips):
    """Return the minimum time in seconds of an all-reduce of `size` bytes.

    Each of N chips sends (N - 1) / N of the bytes to be summed, and the same number of
    bytes of the sums (Patarasuk & Yuan, 2009). All links of a chip send at once.
    """
    sent = 2 * size * (num_chips - 1) / num_chips
    return sent / slice_.chip.interconnect


def peak_flops(slice_: Slice, precision: str) -> float:
    """Return the operations per second of a chip in a precision."""
    chip = slice_.chip
    return chip.float32_flops if precision == "float32" else chip.flops
