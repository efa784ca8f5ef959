"""Run a command: flags in, exit status out, a user's mistake as one sentence.

Flag files are read here and not by absl, which reads them from the working directory
only, and whose messages name neither the file nor the line of a mistake.
"""

import difflib
import errno
import io
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
# Names of flags that a command need not know. absl applies them to a whole list.
_UNDEFOK = re.compile(r"--?undefok=")
# How to get a package that is missing.
_INSTALL = (
    "pip install -r requirements.txt, or run the script with the .venv/bin/python "
    "that make test makes; doctor.py lists what else is missing."
    if IS_CHECKOUT
    else f"pip install {PROGRAM}; doctor.py lists what else is missing."
)
# What Python says of a flag that is not a number, and what is said here.
_NOT_INT = ("invalid literal for int() with base 10:", "not a whole number:")
_NOT_FLOAT = ("could not convert string to float:", "not a number:")


class _UsersForm(Formatter):
    """Names commands as the user of this process types them."""

    def format(self, record):
        return in_users_form(super().format(record))


def run(
    main: Callable[[], int | None],
    define_flags: Callable[[list[str]], None] | None = None,
    command_line: Sequence[str] | None = None,
) -> NoReturn:
    """Parse the command line, call `main()` and exit with its status.

    `absl.app.run` prints a traceback for mistakes of users, and its help lists the
    flags of all libraries.

    `main` may return a status; None is 0. A `UserError`, a missing package or a
    full disk becomes one line on stderr and status 1, an unusable flag one line and
    status 2. Ctrl-C ends with status 130 and a closed pipe (`| head`) with
    141, both without a traceback.

    Args:
      main: function without arguments, of the command's module.
      define_flags: function: list of all arguments, flag files read -> None. It
        defines flags of a command that depend on what is given.
      command_line: the arguments; default: those of the process.
    """
    arguments = list(sys.argv[1:] if command_line is None else command_line)
    needs_help = [arg.lstrip("-") for arg in arguments if _HELP_FLAG.fullmatch(arg)]
    try:
        # Help comes even if a flag file is missing.
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
        # A label or a path may have letters that a terminal cannot show.
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
        # Here, not at the interpreter's end, where it could not be caught.
        sys.stdout.flush()
        return status
    except UserError as error:
        return _complain(error, 1)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "official_bert"):
            raise
        return _complain(f"{package} is not installed: {_INSTALL}", 1)
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
    except Exception as error:
        of_store = object_store.error_of(error)
        if of_store is None:
            raise
        return _complain(of_store, 1)
    finally:
        # Drop what stdout cannot take, lest the interpreter's last flush complain.
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
    """Set the flags from those of `_expand`; a later flag overrides an earlier one."""
    undefok = [one for group, _ in groups for one in group if _UNDEFOK.match(one)]
    for arguments, origin in groups:
        try:
            # absl takes the first one for the program's name.
            rest = flags.FLAGS(["", *undefok, *arguments])[1:]
        except (flags.Error, ValueError) as error:
            message = str(error).replace(*_NOT_INT).replace(*_NOT_FLOAT)
            raise UserError(f"{origin}{message} (--help shows the flags)") from error
        if rest:
            message = f"{origin}{rest[0]!r} is not a flag; flags look like --name=value"
            if rest[0].lower() in ("true", "false"):
                message += ", such as --do_train=true"
            raise UserError(f"{message} (--help shows them)")


def _expand(arguments, origin, open_files):
    """Return a list of (arguments, their origin), flag files read.

    `--flagfile=x` or `--flagfile x` stands for the flags in the file.

    The origin is "" or "file, line n: ", for messages; `open_files` are the flag files
    through which the arguments were reached, so that none includes itself.
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
    """Return the groups of a file: a flag a line, `#` or `//` starts a comment."""
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
    """Return the path of a flag file; `tiny` stands for `configs/tiny.flags`."""
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
        f"--flagfile: {name!r} is neither in {os.getcwd()} nor in {ROOT}.{hint}"
    )
