"""Run a command: flags in, exit status out, a user's mistake as one sentence.

Flag files are read here and not by absl, which reads them from the working directory
only, and whose messages name neither the file nor the line of a mistake.
"""

import errno
import io
import os
import re
import sys
import textwrap
from collections.abc import Callable
from logging import Formatter
from typing import NoReturn

from absl import flags, logging

from official_bert import files
from official_bert.command_line.flag_values import ROOT, locate, own_flags
from official_bert.errors import UserError

_FLAG_FILE = re.compile(r"--?flagfile(?:=(.*))?$")
# Names of flags that a command need not know. absl applies them to a whole list.
_UNDEFOK = re.compile(r"--?undefok=")
# What Python says of a flag that is not a number, and what is said here.
_NOT_INT = ("invalid literal for int() with base 10:", "not a whole number:")
_NOT_FLOAT = ("could not convert string to float:", "not a number:")

_HELP_WIDTH = 80
_HELP_TITLE = "Flags, with their defaults"
# The help of flags that do nothing begins with this.
_OLD = "For old commands"
_OLD_TITLE = "Accepted for old commands"
_FLAG_FILE_HELP = """\
  --flagfile
      A file of flags, one a line; looked for in the working directory,
      then in the project's root."""


def run(
    main: Callable[[], int | None],
    define_flags: Callable[[list[str]], None] | None = None,
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
    """
    arguments = sys.argv[1:]
    needs_help = any(re.fullmatch(r"-h|--?help(short|full)?", arg) for arg in arguments)
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
        sys.exit(_guarded(lambda: print(_help_text(main), end="")))
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
        # Drop what stdout cannot take, lest the interpreter's last flush complain.
        try:
            sys.stdout.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message, status):
    """Print a message as one line on stderr and return the exit status."""
    print(f"error: {' '.join(str(message).split())}", file=sys.stderr)
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
    path = locate(os.path.expanduser(name))
    if not os.path.isfile(path):
        raise UserError(
            f"--flagfile: {name!r} is neither in {os.getcwd()} nor in {ROOT}."
        )
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


def _help_text(main):
    """Return the docstring of a command's module, and its flags with defaults.

    absl's help also lists the flags of every library. Flags of a module with a
    `HELP_TITLE` stand under that, old flags come last.
    """
    groups: dict[str, list[str]] = {_HELP_TITLE: []}
    for flag in own_flags():
        defining = flags.FLAGS.find_module_defining_flag(flag.name)
        module = sys.modules.get(defining or "")
        title = getattr(module, "HELP_TITLE", _HELP_TITLE)
        if flag.help.startswith(_OLD):
            title = _OLD_TITLE
        groups.setdefault(title, []).append(_describe_flag(flag))
    groups[_HELP_TITLE].append(_FLAG_FILE_HELP)
    groups[_OLD_TITLE] = groups.pop(_OLD_TITLE, [])
    texts = [
        "\n".join([f"{title}:", *lines]) for title, lines in groups.items() if lines
    ]
    docstring = sys.modules[main.__module__].__doc__
    assert docstring is not None
    return "\n\n".join([docstring.strip(), *texts]) + "\n"


def _describe_flag(flag):
    """Return `--name=default` and the wrapped help of one flag."""
    default = flag.default
    if isinstance(default, list):
        default = ",".join(map(str, default))
    default = "" if default in (None, "") else f"={default}"
    # absl appends this to the help of flags that may be repeated.
    text = re.sub(r";\s+repeat this option.*", "", " ".join(flag.help.split()))
    # So that the lines can be broken between the values of an enum, not in them.
    text = re.sub(r"^<\S*>:", lambda match: match[0].replace("|", " | "), text)
    lines = textwrap.wrap(text, _HELP_WIDTH - 6, break_on_hyphens=False)
    return "\n      ".join([f"  --{flag.name}{default}", *lines])
