"""Start a command of `official_bert.commands` by name."""

import importlib
import sys
from collections.abc import Sequence
from typing import NoReturn

import official_bert
from official_bert.command_line import command_table
from official_bert.errors import UserError

_HELP = ("help", "-h", "-help", "--help", "--helpshort", "--helpfull")


def main() -> NoReturn:
    """Run `official-bert COMMAND ...` and exit with the command's status.

    Without a command, list the commands.
    """
    first, *rest = sys.argv[1:] or ["help"]
    if first in _HELP and not rest:
        print(command_table.listing())
        sys.exit(0)
    if first in ("--version", "version"):
        print(f"{command_table.PROGRAM} {official_bert.__version__}")
        sys.exit(0)
    if first in _HELP:
        first, rest = rest[0], ["--help"]
    try:
        command = command_table.find(first)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    run_command(command.module, rest)


def run_command(module: str, arguments: Sequence[str] | None = None) -> NoReturn:
    """Parse the command line, run a command and exit with its status.

    Args:
      module: name of a module in `official_bert.commands`.
      arguments: the flags; default: those of the process.
    """
    try:
        importlib.import_module("absl")
    except ModuleNotFoundError:
        sys.exit(
            "error: absl-py is not installed. Run pip install official-bert, or in a "
            "checkout pip install -r requirements.txt."
        )
    from official_bert.command_line.program import run

    command = importlib.import_module(f"official_bert.commands.{module}")
    run(command.main, getattr(command, "define_flags", None), arguments)
