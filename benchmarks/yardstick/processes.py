"""Processes that each measure one variant, and their turns."""

import contextlib
import dataclasses
import json
import pathlib
import subprocess
import sys
import tempfile
import time

from official_bert.errors import UserError

WORKER = pathlib.Path(__file__).resolve().parent.parent / "contender.py"
# Between turns. Threads that wait for work keep a core busy for some milliseconds.
PAUSE = 0.05


@dataclasses.dataclass(frozen=True)
class Variant:
    """Something to measure.

    Attributes:
      name: for people.
      module: of `benchmarks`, such as "peers.kerashub".
      function: of that module, which makes what is called.
      arguments: of that function, fit for JSON.
      in_peer_env: whether it runs in the environment of PyTorch.
      calls: in a turn; None for as many as the others.
      flops: of the matrix products of a call; None for as many as ours.
    """

    name: str
    module: str
    function: str
    arguments: dict
    in_peer_env: bool = False
    calls: int | None = None
    flops: float | None = None


def take_turns(variants, rounds, calls, peer_python):
    """Start a process for each variant and let them compute in turns.

    One process computes at a time, in the order given, so that the turns of two
    variants in a round are neighbours in time.

    Args:
      variants: list of `Variant`.
      rounds: turns of each, behind one that does not count.
      calls: in a turn; the fastest of them is the turn's.
      peer_python: path of the Python of peers.

    Returns:
      (dict of name -> seconds of each of its turns, a list; dict of name -> peak
      of its memory in bytes; dict of library -> version).

    Raises:
      UserError: a process ended.
    """
    with contextlib.ExitStack() as stack:
        asks, versions = {}, {}
        for one in variants:
            python = peer_python if one.in_peer_env else sys.executable
            found, ask = stack.enter_context(_measuring(one, python))
            versions |= found["versions"]
            # Traces, compiles and takes memory.
            ask(2)
            asks[one.name] = ask
        seconds = {name: [] for name in asks}
        memory = {}
        for _ in range(rounds):
            for one in variants:
                time.sleep(PAUSE)
                answer = asks[one.name](one.calls or calls)
                seconds[one.name].append(min(answer["seconds"]))
                memory[one.name] = answer["memory"]
        return seconds, memory, versions


def _measuring(variant, python):
    """Run a variant's process; see `answering` and `benchmarks/contender.py`."""
    arguments = json.dumps(variant.arguments)
    command = [python, WORKER, variant.module, variant.function, arguments]
    return answering(command, variant.name)


@contextlib.contextmanager
def answering(command, name):
    """Run a process that answers lines of JSON with lines of JSON.

    Args:
      command: its words.
      name: for messages.

    Yields:
      (its first line, which nobody asked for; function: what is asked -> answer).

    Raises:
      UserError: it ended.
    """
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(list(map(str, command)), stderr=errors, **pipes)

        def receive():
            line = process.stdout.readline()
            if not line:
                errors.seek(0)
                told = errors.read().decode(errors="replace")[-800:]
                raise UserError(f"{name} could not be measured: {told}")
            return json.loads(line)

        def ask(asked):
            # If it has ended, its last words say why.
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps(asked) + "\n")
                process.stdin.flush()
            return receive()

        try:
            yield receive(), ask
        finally:
            process.kill()
            process.communicate()
