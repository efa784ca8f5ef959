"""Run the command in official_bert/commands/distill.py."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from official_bert.command_line.start import run_command  # noqa: E402

if __name__ == "__main__":
    run_command("distill")
