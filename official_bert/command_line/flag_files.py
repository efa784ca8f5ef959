"""The command line, with flag files that are found from any directory.

absl reads flag files too, but only from the working directory, and its messages
name neither the file nor the line of a mistake.
"""

import os
import re

from absl import flags

from official_bert import files
from official_bert.command_line.flag_values import ROOT, locate
from official_bert.errors import UserError

_FLAG_FILE = re.compile(r"--?flagfile(?:=(.*))?$")
# What Python says of a flag that is not a number, and what is said here.
_NOT_INT = ("invalid literal for int() with base 10:", "not a whole number:")
_NOT_FLOAT = ("could not convert string to float:", "not a number:")


def parse_flags(argv):
    """Set the flags from a command line; a later flag overrides an earlier one.

    Args:
      argv: list of str, the program's name first. `--flagfile=x` or `--flagfile x`
        stands for the flags in the file.

    Raises:
      UserError: a flag is unknown or has an impossible value, or a flag file is
        missing or includes itself.
    """
    _parse(argv[1:], "", ())


def _parse(arguments, origin, open_files):
    """Set the flags in a list of arguments.

    Args:
      arguments: list of str.
      origin: "" or "file, line n: ", for messages.
      open_files: the flag files that this one was reached through.
    """
    before = []
    arguments = iter(arguments)
    for argument in arguments:
        match = _FLAG_FILE.match(argument)
        if not match:
            before.append(argument)
            continue
        _set_flags(before, origin)
        before = []
        name = match[1] if match[1] is not None else next(arguments, "")
        _read_flag_file(name.strip(), open_files)
    _set_flags(before, origin)


def _set_flags(arguments, origin):
    try:
        # absl takes the first one for the program's name.
        rest = flags.FLAGS(["", *arguments])[1:]
    except (flags.Error, ValueError) as error:
        message = str(error).replace(*_NOT_INT).replace(*_NOT_FLOAT)
        raise UserError(f"{origin}{message} (--help shows the flags)") from error
    if rest:
        message = f"{origin}{rest[0]!r} is not a flag; flags look like --name=value"
        if rest[0].lower() in ("true", "false"):
            message += ", such as --do_train=true"
        raise UserError(f"{message} (--help shows them)")


def _read_flag_file(name, open_files):
    """Set the flags in a file: one a line, `#` or `//` starts a comment."""
    path = locate(os.path.expanduser(name))
    if not os.path.isfile(path):
        raise UserError(
            f"--flagfile: {name!r} is neither in {os.getcwd()} nor in {ROOT}."
        )
    if os.path.realpath(path) in open_files:
        raise UserError(f"--flagfile: {path} includes itself.")
    open_files += (os.path.realpath(path),)
    text = files.read_text(path, "a flag file")
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if line and not line.startswith(("#", "//")):
            words = line.split(maxsplit=1)
            arguments = words if _FLAG_FILE.match(words[0]) else [line]
            _parse(arguments, f"{path}, line {number}: ", open_files)
