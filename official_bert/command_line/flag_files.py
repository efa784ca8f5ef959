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
# Names of flags that a command need not know. absl applies them to a whole list.
_UNDEFOK = re.compile(r"--?undefok=")
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
    groups = _expand(argv[1:], "", ())
    undefok = [one for group, _ in groups for one in group if _UNDEFOK.match(one)]
    for arguments, origin in groups:
        _set_flags([*undefok, *arguments], origin)


def _expand(arguments, origin, open_files):
    """Return a list of (arguments, their origin), flag files read.

    Args:
      arguments: list of str.
      origin: "" or "file, line n: ", for messages.
      open_files: the flag files that this one was reached through.
    """
    groups = [([], origin)]
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
