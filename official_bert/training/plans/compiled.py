"""Plans made by the TPU compiler, which runs in a separate process."""

import contextlib
import dataclasses
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

from official_bert.errors import UserError
from official_bert.training.plans import estimate, hlo_text, plan, tpu_compiler
from official_bert.training.plans.chips import GIBI, Slice
from official_bert.training.plans.plan import GIGA, Plan
from official_bert.training.plans.workload import Workload

PACKAGES = ("jax", "jaxlib", "libtpu")
# The compiler's messages for a program that is too large: "(35.07G) exceeds available
# HBM (15.75G)", or "Used 17.2G of 15.75G hbm". G means 2^30 bytes.
_NEEDED = re.compile(r"\(([\d.]+)([KMGT])\) exceeds|Used ([\d.]+)([KMGT]) of")
_UNITS = {"K": GIBI / 2**20, "M": GIBI / 2**10, "G": GIBI, "T": GIBI * 2**10}


def require_compiler() -> None:
    """Raise `UserError` unless the packages of the extra `plan` are installed."""
    if not all(map(importlib.util.find_spec, PACKAGES)):
        raise UserError(
            "Planning for TPUs needs the TPU compiler. Install it with: "
            "pip install 'official-bert[plan]'"
        )


def compile_plan(
    program: bytes,
    slice_: Slice,
    num_chips: int,
    work: Workload,
    progress: Callable[[float], None] = lambda seconds: None,
) -> Plan:
    """Compile a training step for a TPU slice and return its `Plan`.

    Args:
      program: output of `program.export_step`, for one replica of `num_chips`.
      slice_: `Slice` of TPUs.
      num_chips: number of chips that train.
      work: `Workload` of the program.
      progress: function that is called about once a second with the elapsed seconds.

    Raises:
      UserError: the compiler's packages are missing.
    """
    require_compiler()
    assert slice_.compiler_name is not None
    arguments = [slice_.compiler_name, str(num_chips)]
    with _program_file(program) as path:
        status, output, errors = _run_compiler([path, *arguments], progress)
    if status:
        return refused(slice_, num_chips, work, _first_problem(errors))
    costs = json.loads(output.splitlines()[-1])
    text, parts = costs["text"], work.num_parts
    # All matrix products are in the loop over the micro-batches.
    more_bytes = 1 + (parts - 1) * hlo_text.loop_share(text, parts) if parts > 1 else 1
    return plan.with_costs(
        Plan(slice_.name, num_chips, False, True),
        slice_,
        work.precision,
        flops=costs["flops"] * parts,
        bytes_accessed=costs["bytes_accessed"] * more_bytes,
        main_memory_bytes=hlo_text.main_memory_bytes(text, parts),
        # Outputs that do not reuse the memory of arguments need memory too.
        argument_gb=(
            costs["argument_bytes"] + costs["output_bytes"] - costs["alias_bytes"]
        )
        / GIGA,
        temp_gb=costs["temp_bytes"] / GIGA,
        code_gb=costs["code_bytes"] / GIGA,
        collectives=hlo_text.find_collectives(text),
        host=hlo_text.find_host_operations(text),
    )


def refused(slice_: Slice, num_chips: int, work: Workload, problem: str) -> Plan:
    """Return the `Plan` of a step that does not compile.

    Its memory is the number in the compiler's message, or 0.

    Args:
      slice_: `Slice`.
      num_chips: number of chips that train.
      work: `Workload`.
      problem: the compiler's message.
    """
    made = Plan(slice_.name, num_chips, False, False, problem)
    capacity = slice_.chip.memory / GIGA
    arguments = estimate.argument_bytes(work) / GIGA
    needed = needed_bytes(problem) / GIGA
    if needed:
        made = dataclasses.replace(
            made, argument_gb=arguments, temp_gb=max(0.0, needed - arguments)
        )
    return dataclasses.replace(made, capacity_gb=capacity)


def needed_bytes(problem: str) -> float:
    """Return the memory in bytes that a compiler message states; 0 if none."""
    found = _NEEDED.search(problem)
    if not found:
        return 0.0
    number, unit = (part for part in found.groups() if part)
    return float(number) * _UNITS[unit]


@contextlib.contextmanager
def _program_file(program: bytes) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "step.hlo.pb")
        with open(path, "wb") as file:
            file.write(program)
        yield path


def _run_compiler(arguments, progress):
    """Return (status, standard output, standard error) of the compiler's process."""
    # -P keeps the modules of this folder out of the compiler's import path.
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
    """Return the line with the compiler's exception, without its details."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    telling = [
        line for line in lines if "RESOURCE_EXHAUSTED" in line or "Error" in line
    ]
    return (telling or lines or ["the compiler failed without a message"])[-1][:300]
