"""Run commands from a command; both end in good order when one is stopped."""

import signal
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

from official_bert.command_line.flag_values import ROOT


def exit_at_sigterm() -> None:
    """Let SIGTERM end a command as an exception does.

    By itself it ends this process alone, and those that it started go on.
    """
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def run_script(name: str, arguments: Iterable[str], **options: Any) -> tuple[int, Any]:
    """Run another command; if this process is stopped, let it save and end first.

    `subprocess.run` would kill it.

    Args:
      name: its file in `run_scripts`.
      arguments: list of str.
      **options: for `subprocess.Popen`, such as where its output goes.

    Returns:
      (its exit status, what it printed if `stdout` is a pipe, else None).
    """
    command = [sys.executable, str(ROOT / "run_scripts" / name), *arguments]
    with subprocess.Popen(command, **options) as child:
        try:
            output, _ = child.communicate()
        except BaseException as error:
            # Ctrl-C has reached the child as well, SIGTERM may have not.
            if not isinstance(error, KeyboardInterrupt):
                child.terminate()
            child.communicate()
            raise
    return child.returncode, output
