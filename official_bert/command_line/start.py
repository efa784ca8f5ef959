"""Start a command of `official_bert.commands` by its name."""

import importlib
import sys
from typing import NoReturn


def run_command(name: str) -> NoReturn:
    """Parse the command line, run a command and exit with its status.

    Args:
      name: of a module in `official_bert.commands`.
    """
    try:
        importlib.import_module("absl")
    except ModuleNotFoundError:
        sys.exit(
            "error: absl-py is not installed: pip install -r requirements.txt, or run "
            "the script with the .venv/bin/python that make test makes."
        )
    from official_bert.command_line.program import run

    command = importlib.import_module(f"official_bert.commands.{name}")
    run(command.main, getattr(command, "define_flags", None))
