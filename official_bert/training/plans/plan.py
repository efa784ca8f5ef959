"""A plan: whether a training step fits a chip, its time, and what limits it."""

import contextlib
import dataclasses
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from official_bert.errors import UserError
from official_bert.training.plans import tpu_compiler
from official_bert.training.plans.chips import Slice

PACKAGES = ("jax", "jaxlib", "libtpu")
GIGA = 1e9
# What XLA and the runtime keep of a TPU's memory.
RESERVED_BYTES = 0.26e9


@dataclasses.dataclass(frozen=True)
class Plan:
    """What one training step costs on each chip of a slice.

    Attributes:
      topology: name of the slice.
      chips: chips that train.
      estimated: whether the numbers are estimates, for GPUs, and not the compiler's.
      compiles: whether the compiler accepts the step; None where there is no compiler.
      problem: the first line of what the compiler says otherwise.
      flops: operations of a step.
      bytes_accessed: bytes that its operations read and write.
      argument_gb: weights, moments and the batch, in GB (10^9 bytes).
      temp_gb: activations and other temporaries.
      code_gb: the program.
      hbm_gb: the sum of the three.
      capacity_gb: the memory of a chip that a program can use.
      collectives: name -> [how many, bytes of the results].
      compute_seconds: `flops` at the chip's peak rate in the step's precision.
      memory_seconds: `bytes_accessed` at the chip's bandwidth.
    """

    topology: str
    chips: int
    estimated: bool
    compiles: bool | None
    problem: str = ""
    flops: float = 0.0
    bytes_accessed: float = 0.0
    argument_gb: float = 0.0
    temp_gb: float = 0.0
    code_gb: float = 0.0
    capacity_gb: float = 0.0
    collectives: dict[str, list[int]] = dataclasses.field(default_factory=dict)
    compute_seconds: float = 0.0
    memory_seconds: float = 0.0

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
        """What limits the step: "compute" or "memory"."""
        is_compute = self.compute_seconds >= self.memory_seconds
        return "compute" if is_compute else "memory"

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers, for JSON."""
        names = ("hbm_gb", "fits", "step_seconds", "bound")
        return dataclasses.asdict(self) | {name: getattr(self, name) for name in names}


def require_compiler() -> None:
    """Raise `UserError` unless the packages of the extra `plan` are installed."""
    if not all(map(importlib.util.find_spec, PACKAGES)):
        raise UserError(
            "A plan for TPUs needs the TPU's compiler. Install it with: "
            "pip install 'official-bert[plan]'"
        )


def compile_plan(
    program: bytes,
    slice_: Slice,
    num_chips: int,
    precision: str,
    progress: Callable[[float], None] = lambda seconds: None,
) -> Plan:
    """Compile a training step for a TPU slice; return its `Plan`.

    Args:
      program: of `program.export_step`, of one replica of `num_chips`.
      slice_: `Slice` of TPUs.
      num_chips: chips of the slice that train.
      precision: of the step.
      progress: function that is called about every second with the seconds so far.

    Raises:
      UserError: the compiler's packages are missing.
    """
    require_compiler()
    name, chip = slice_.compiler_name, slice_.chip
    assert name is not None
    capacity = (chip.memory - RESERVED_BYTES) / GIGA
    plan = Plan(slice_.name, num_chips, False, True, capacity_gb=capacity)
    with _program_file(program) as path:
        status, output, errors = _run_compiler([path, name, str(num_chips)], progress)
    if status:
        problem = _first_problem(errors)
        return dataclasses.replace(plan, compiles=False, problem=problem)
    costs = json.loads(output.splitlines()[-1])
    return dataclasses.replace(
        plan,
        flops=costs["flops"],
        bytes_accessed=costs["bytes_accessed"],
        argument_gb=costs["argument_bytes"] / GIGA,
        temp_gb=costs["temp_bytes"] / GIGA,
        code_gb=costs["code_bytes"] / GIGA,
        collectives=costs["collectives"],
        compute_seconds=costs["flops"] / peak_flops(slice_, precision),
        memory_seconds=costs["bytes_accessed"] / chip.bandwidth,
    )


def peak_flops(slice_: Slice, precision: str) -> float:
    """Return the operations per second of a chip in a precision."""
    chip = slice_.chip
    return chip.float32_flops if precision == "float32" else chip.flops


@contextlib.contextmanager
def _program_file(program: bytes) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "step.hlo.pb")
        with open(path, "wb") as file:
            file.write(program)
        yield path


def _run_compiler(arguments, progress):
    """Return (status, standard output, standard error) of the compiler's process."""
    # -P: the modules of this folder are not for it.
    command = [sys.executable, "-P", tpu_compiler.__file__, *arguments]
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True
        )
        try:
            while True:
                try:
                    output, _ = process.communicate(timeout=1)
                    break
                except subprocess.TimeoutExpired:
                    progress(time.monotonic() - began)
        finally:
            process.kill()
        errors.seek(0)
        return process.returncode, output, errors.read()


def _first_problem(errors):
    """Return the line of the compiler's exception, without its long details."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    telling = [
        line for line in lines if "RESOURCE_EXHAUSTED" in line or "Error" in line
    ]
    return (telling or lines or ["the compiler ended without a message"])[-1][:300]


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 2 * 3600:
        return f"{seconds:,.0f} s"
    days = seconds / 86400
    return f"{days:.2g} days" if days < 10 else f"{math.ceil(days)} days"
