"""Run a command: flags in, exit status out, a user's mistake as one sentence."""

import errno
import io
import os
import re
import sys
from logging import Formatter

from absl import logging

from official_bert.command_line.flag_files import parse_flags
from official_bert.command_line.flag_values import own_flags
from official_bert.command_line.help_text import help_text
from official_bert.errors import UserError


def run(main):
    """Parse the command line, call `main()` and exit with its status.

    `absl.app.run` prints a traceback for mistakes of users, and its help lists the
    flags of all libraries.

    `main` may return a status; None is 0. A `UserError`, a missing package or a
    full disk becomes one line on stderr and status 1, an unusable flag one line and
    status 2. Ctrl-C ends with status 130 and a closed pipe (`| head`) with
    141, both without a traceback.
    """
    if any(re.fullmatch(r"-h|--?help(short|full)?", arg) for arg in sys.argv[1:]):
        sys.exit(_guarded(lambda: print(help_text(main), end="")))
    try:
        parse_flags(sys.argv)
    except UserError as error:
        sys.exit(_complain(error, 2))
    own_flags()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A label or a path may have letters that a terminal cannot show.
        sys.stdout.reconfigure(errors="backslashreplace")
    logging.use_absl_handler()
    logging.set_verbosity(logging.INFO)
    # Log lines of commands are for people: no time stamps, no line numbers.
    logging.get_absl_handler().setFormatter(Formatter("%(message)s"))
    sys.exit(_guarded(main))


def _guarded(main):
    """Call `main` and return the exit status; see `run`."""
    try:
        status = main()
        # Here, not at the interpreter's end, where it could not be caught.
        sys.stdout.flush()
        return status
    except UserError as error:
        return _complain(error, 1)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "official_bert"):
            raise
        return _complain(
            f"{package} is not installed: pip install -r requirements.txt, or run the "
            "script with the .venv/bin/python that make test makes; doctor.py tells "
            "what else is missing.",
            1,
        )
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 141
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        where = f" of {error.filename}" if error.filename else ""
        return _complain(
            f"No space left on the disk{where}: free some and run the command again.",
            1,
        )
    finally:
        _settle_stdout()


def _settle_stdout():
    """Drop what stdout cannot take, lest the interpreter's last flush complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message, status):
    """Print a message as one line on stderr and return the exit status."""
    print(f"error: {' '.join(str(message).split())}", file=sys.stderr)
    return status
