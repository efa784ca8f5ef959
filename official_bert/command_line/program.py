"""Run a command: parse flags, set the exit status, report user errors in one line.

This module reads flag files itself. absl reads them only from the working directory,
and its error messages name neither the file nor the line.
"""

import difflib
import errno
import io
import math
import os
import re
import sys
from collections.abc import Callable, Sequence
from logging import Formatter
from typing import NoReturn

from absl import flags, logging

from official_bert import files, object_store
from official_bert.command_line.command_table import PROGRAM, in_users_form
from official_bert.command_line.flag_values import (
    CONFIGS,
    IS_CHECKOUT,
    ROOT,
    locate,
    own_flags,
)
from official_bert.command_line.help_text import help_text
from official_bert.errors import UserError

_HELP_FLAG = re.compile(r"-h|--?help(short|full)?")
_FLAG_FILE = re.compile(r"--?flagfile(?:=(.*))?$")
# Flags that a command may ignore if unknown. absl applies them to the whole list.
_UNDEFOK = re.compile(r"--?undefok=")
# How to install a missing package.
_INSTALL = (
    "pip install -r requirements.txt, or run the script with the .venv/bin/python "
    "that make test creates. doctor.py lists other missing packages."
    if IS_CHECKOUT
    else f"pip install {PROGRAM}. doctor.py lists other missing packages."
)
# Python's message for a flag that is not a number, and our replacement.
_NOT_INT = ("invalid literal for int() with base 10:", "not a whole number:")
_NOT_FLOAT = ("could not convert string to float:", "not a number:")


class _UsersForm(Formatter):
    """Writes command names as the user of this process types them."""

    def format(self, record):
        return in_users_form(super().format(record))


def run(
    main: Callable[[], int | None],
    define_flags: Callable[[list[str]], None] | None = None,
    command_line: Sequence[str] | None = None,
) -> NoReturn:
    """Parse the command line, call `main()` and exit with its status.

    `absl.app.run` prints a traceback for user errors, and its help lists the flags of
    all libraries.

    `main` may return a status; None means 0. A `UserError`, a missing package or a full
    disk prints one line on stderr and gives status 1. An unusable flag prints one line
    and gives status 2. Ctrl-C gives status 130 and a closed pipe (`| head`) gives 141,
    both without a traceback.

    Args:
      main: function without arguments, of the command's module.
      define_flags: function: list of all arguments, with flag files expanded -> None.
        It defines flags that depend on other arguments.
      command_line: the arguments; default: those of the process.
    """
    arguments = list(sys.argv[1:] if command_line is None else command_line)
    needs_help = [arg.lstrip("-") for arg in arguments if _HELP_FLAG.fullmatch(arg)]
    try:
        # Show help even if a flag file is missing.
        groups = [(arguments, "")] if needs_help else _expand(arguments, "", ())
        if define_flags:
            define_flags([argument for group, _ in groups for argument in group])
        if not needs_help:
            _parse_flags(groups)
    except UserError as error:
        sys.exit(_complain(error, 2))
    if needs_help:
        module = sys.modules[main.__module__]
        sys.exit(_guarded(lambda: print(help_text(module, needs_help[0]), end="")))
    own_flags()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A label or a path may contain characters that a terminal cannot show.
        sys.stdout.reconfigure(errors="backslashreplace")
    logging.use_absl_handler()
    logging.set_verbosity(logging.INFO)
    # Log lines of commands are for people: no time stamps, no line numbers.
    logging.get_absl_handler().setFormatter(_UsersForm("%(message)s"))
    sys.exit(_guarded(main))


def _guarded(main):
    """Call `main` and return the exit status; see `run`."""
    try:
        status = main()
        # Flush here: an error at the interpreter's exit could not be caught.
        sys.stdout.flush()
        return status
    except UserError as error:
        return _complain(error, 1)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "official_bert"):
            raise
        return _complain(f"{package} is not installed. Run: {_INSTALL}", 1)
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
            f"No space left on the disk{where}. Free some space and run the command "
            "again.",
            1,
        )
    except Exception as error:
        of_store = object_store.error_of(error)
        if of_store is None:
            raise
        return _complain(of_store, 1)
    finally:
        # Discard unwritable output, or the interpreter's last flush prints an error.
        try:
            sys.stdout.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message, status):
    """Print a message as one line on stderr and return the exit status."""
    line = in_users_form(" ".join(str(message).split()))
    print(f"error: {line}", file=sys.stderr)
    return status


def _parse_flags(groups):
    """Set the flags from the groups of `_expand`; later flags override earlier ones."""
    undefok = [one for group, _ in groups for one in group if _UNDEFOK.match(one)]
    for arguments, origin in groups:
        try:
            # absl treats the first argument as the program's name.
            rest = flags.FLAGS(["", *undefok, *arguments])[1:]
        except (flags.Error, ValueError) as error:
            message = str(error).replace(*_NOT_INT).replace(*_NOT_FLOAT)
            raise UserError(f"{origin}{message} (--help shows the flags)") from error
        if rest:
            message = f"{origin}{rest[0]!r} is not a flag; flags look like --name=value"
            if rest[0].lower() in ("true", "false"):
                message += ", such as --do_train=true"
            raise UserError(f"{message} (--help shows them)")
    for name in flags.FLAGS:
        value = flags.FLAGS[name].value
        # The bounds of a flag do not exclude nan.
        if isinstance(value, float) and not math.isfinite(value):
            raise UserError(f"--{name}={value} is invalid. Give a finite number.")


def _expand(arguments, origin, open_files):
    """Return a list of (arguments, their origin), with flag files expanded.

    `--flagfile=x` or `--flagfile x` stands for the flags in the file.

    Args:
      arguments: list of str.
      origin: "" or "file, line n: ", for messages.
      open_files: flag files that led to these arguments, so that no file includes
        itself.
    """
    groups: list[tuple[list[str], str]] = [([], origin)]
    arguments = iter(arguments)
    for argument in arguments:
        match = _FLAG_FILE.match(argument)
        if match:
            name = match[1] if match[1] is not None else next(arguments, "")
            groups += _read_flag_file(name.strip(), open_files)
            groups.append(([], origin))
        else:
            groups[-1][0].append(argument)
    return groups


def _read_flag_file(name, open_files):
    """Return the groups of a file: one flag per line; `#` or `//` starts a comment."""
    path = _find_flag_file(name)
    if os.path.realpath(path) in open_files:
        raise UserError(f"--flagfile: {path} includes itself.")
    open_files += (os.path.realpath(path),)
    groups = []
    text = files.read_text(path, "a flag file")
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if line and not line.startswith(("#", "//")):
            words = line.split(maxsplit=1)
            arguments = words if _FLAG_FILE.match(words[0]) else [line]
            groups += _expand(arguments, f"{path}, line {number}: ", open_files)
    return groups


def _find_flag_file(name):
    """Return the path of a flag file; `tiny` means `configs/tiny.flags`."""
    short = str(CONFIGS / f"{name.removesuffix('.flags')}.flags")
    for path in (locate(os.path.expanduser(name)), short):
        if name and os.path.isfile(path):
            return path
    ours = sorted(
        path.relative_to(CONFIGS).with_suffix("").as_posix()
        for path in CONFIGS.rglob("*.flags")
    )
    nearest = difflib.get_close_matches(name.removesuffix(".flags"), ours, 1)
    hint = f" Did you mean --flagfile={nearest[0]}?" if nearest else ""
    raise UserError(
        f"--flagfile={name}: no such file in {os.getcwd()} or {ROOT}.{hint}"
    )
