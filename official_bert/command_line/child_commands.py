"""Run commands from a command; both end in good order when one is stopped."""

import os
import pathlib
import signal
import site
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

_PARENT = pathlib.Path(__file__).resolve().parents[2]


def exit_at_sigterm() -> None:
    """Let SIGTERM end a command as an exception does.

    By itself it ends this process alone, and those that it started go on.
    """
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def start_child(
    name: str, arguments: Iterable[str], **options: Any
) -> subprocess.Popen[Any]:
    """Start another command of this package in a process of its own.

    Args:
      name: of the command, as in `official-bert NAME`.
      arguments: list of str.
      **options: for `subprocess.Popen`, such as where its output goes.
    """
    # -P: a file of the working directory must not hide a module.
    command = [sys.executable, "-P", "-m", "official_bert", name, *arguments]
    environment = _with_package(options.pop("env", os.environ))
    return subprocess.Popen(command, env=environment, **options)


def _with_package(environment):
    """Return an environment in which Python finds this package, also in a checkout."""
    installed = [*site.getsitepackages(), site.getusersitepackages()]
    if str(_PARENT) in map(os.path.realpath, installed):
        return environment
    paths = [str(_PARENT), environment.get("PYTHONPATH")]
    return {**environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def run_child(name: str, arguments: Iterable[str], **options: Any) -> tuple[int, Any]:
    """Run another command; if this process is stopped, let it save and end first.

    `subprocess.run` would kill it.

    Args:
      name: see `start_child`.
      arguments: likewise.
      **options: likewise.

    Returns:
      (its exit status, what it printed if `stdout` is a pipe, else None).
    """
    with start_child(name, arguments, **options) as child:
        try:
            output, _ = child.communicate()
        except BaseException as error:
            # Ctrl-C has reached the child as well, SIGTERM may have not.
            if not isinstance(error, KeyboardInterrupt):
                child.terminate()
            child.communicate()
            raise
    return child.returncode, output
