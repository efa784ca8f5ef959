"""Run commands from a command; if one is stopped, both end cleanly."""

import contextlib
import os
import pathlib
import signal
import site
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import Any

_PARENT = pathlib.Path(__file__).resolve().parents[2]


def exit_at_sigterm() -> None:
    """Let SIGTERM end a command the way an exception does.

    By default SIGTERM ends only this process, and its child processes keep running.
    """
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


@contextlib.contextmanager
def child_process(
    name: str, arguments: Iterable[str], **options: Any
) -> Iterator[subprocess.Popen[Any]]:
    """Run another command of this package in a child process, as a context manager.

    If the block ends with an error, or after SIGTERM, the child saves and ends first.
    `subprocess.run` would kill it.

    Args:
      name: command, as in `official-bert NAME`.
      arguments: list of str.
      **options: options of `subprocess.Popen`, such as the target of its output.
    """
    # -P: a file in the working directory must not hide a module.
    command = [sys.executable, "-P", "-m", "official_bert", name, *arguments]
    environment = _with_package(options.pop("env", os.environ))
    # Delay SIGTERM until the child is known. Otherwise SIGTERM could end this process
    # between the child's start and `Popen`'s return, and the child would keep running.
    held: list[int] = []
    handler = signal.signal(signal.SIGTERM, lambda number, frame: held.append(number))
    try:
        child = subprocess.Popen(command, env=environment, **options)
    except BaseException:
        signal.signal(signal.SIGTERM, handler)
        raise
    try:
        signal.signal(signal.SIGTERM, handler)
        if held:
            signal.raise_signal(signal.SIGTERM)
        yield child
    except BaseException as error:
        # Ctrl-C has reached the child too, but SIGTERM may not have.
        if not isinstance(error, KeyboardInterrupt):
            child.terminate()
        raise
    finally:
        if child.returncode is None:
            child.communicate()


def _with_package(environment):
    """Return an environment in which Python finds this package, also in a checkout."""
    installed = [*site.getsitepackages(), site.getusersitepackages()]
    if str(_PARENT) in map(os.path.realpath, installed):
        return environment
    paths = [str(_PARENT), environment.get("PYTHONPATH")]
    return {**environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def run_child(name: str, arguments: Iterable[str], **options: Any) -> tuple[int, Any]:
    """Run another command until it ends.

    Args:
      name: see `child_process`.
      arguments: see `child_process`.
      **options: see `child_process`.

    Returns:
      (exit status, output if `stdout` is a pipe, else None).
    """
    with child_process(name, arguments, **options) as child:
        output, _ = child.communicate()
    return child.returncode, output
