"""Run processes that each measure one variant, in alternating turns."""

import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from official_bert.errors import UserError

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Seconds between turns. Idle threads keep a core busy for some milliseconds.
PAUSE = 0.05


@dataclasses.dataclass(frozen=True)
class Variant:
    """A measured variant.

    Attributes:
      name: name for readers.
      module: a module of `benchmarks`, such as "peers.kerashub".
      function: its function that returns the measured function.
      arguments: arguments of `function`, as JSON values.
      in_peer_env: whether it runs in PyTorch's environment.
      calls: calls per turn; None for the same number as the others.
      flops: operations of the matrix products of a call; None for the same as
        ours.
      is_optional: whether the others are measured if it fails at the start.
      environment: variables of its process.
      checkout: folder of the repository whose code runs.
    """

    name: str
    module: str
    function: str
    arguments: dict
    in_peer_env: bool = False
    calls: int | None = None
    flops: float | None = None
    is_optional: bool = False
    environment: dict = dataclasses.field(default_factory=dict)
    checkout: pathlib.Path = ROOT


def take_turns(variants, rounds, calls, peer_python, clock="seconds"):
    """Start a process for each variant, and let them compute in alternating turns.

    One process computes at a time, in the given order, so that the turns of two
    variants in a round are neighbors in time.

    Args:
      variants: list of `Variant`.
      rounds: counted turns of each variant, after a warm-up turn.
      calls: calls per turn; the fastest one counts.
      peer_python: path of the peers' Python.
      clock: "seconds", or "cpu_seconds" of all threads, which other work on the
        machine hardly changes.

    Returns:
      (dict of name -> seconds of each of its turns, a list; dict of name -> peak
      of its memory in bytes; dict of library -> version).

    Raises:
      UserError: a process ended.
    """
    with contextlib.ExitStack() as stack:
        measures, versions = {}, {}
        for variant in variants:
            python = peer_python if variant.in_peer_env else sys.executable
            try:
                libraries, measure = stack.enter_context(_running(variant, python))
                # Traces, compiles and allocates memory.
                measure(2)
            except UserError as error:
                if not variant.is_optional:
                    raise
                print(f"Skipped: {error}", flush=True)
                continue
            versions |= libraries
            measures[variant.name] = measure
        seconds = {name: [] for name in measures}
        memory = {}
        for _ in range(rounds):
            for variant in variants:
                if variant.name not in measures:
                    continue
                time.sleep(PAUSE)
                turn = measures[variant.name](variant.calls or calls)
                seconds[variant.name].append(min(turn[clock]))
                memory[variant.name] = turn["memory"]
        return seconds, memory, versions


@contextlib.contextmanager
def _running(variant, python):
    """Run a variant's process; see `benchmarks/contender.py`.

    Yields:
      (dict of library -> version; function: number of calls -> dict of their
      `seconds` and the peak `memory`).

    Raises:
      UserError: the process ended.
    """
    arguments = json.dumps(variant.arguments)
    worker = variant.checkout / "benchmarks" / "contender.py"
    command = [python, worker, variant.module, variant.function, arguments]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            list(map(str, command)),
            stderr=errors,
            env={**os.environ, **variant.environment},
            **pipes,
        )

        def receive():
            line = process.stdout.readline()
            if not line:
                errors.seek(0)
                last_words = errors.read().decode(errors="replace")[-800:]
                raise UserError(f"{variant.name} could not be measured: {last_words}")
            return json.loads(line)

        def measure(calls):
            # If the process has ended, its stderr says why.
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(f"{calls}\n")
                process.stdin.flush()
            return receive()

        try:
            yield receive()["versions"], measure
        finally:
            process.kill()
            process.communicate()
