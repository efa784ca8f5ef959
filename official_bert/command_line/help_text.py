"""The help of a command: its docstring, then its own flags in groups."""

import re
import sys
import textwrap

from absl import flags

from official_bert.command_line.flag_values import own_flags

WIDTH = 80
TITLE = "Flags, with their defaults"
# The help of flags that do nothing begins with this.
OLD = "For old commands"
OLD_TITLE = "Accepted for old commands"
_FLAG_FILE = """\
  --flagfile
      A file of flags, one a line; looked for in the working directory,
      then in the project's root."""


def help_text(main):
    """Return the docstring of a command's module, and its flags with defaults.

    absl's help also lists the flags of every library. Flags of a module with a
    `HELP_TITLE` stand under that.

    Args:
      main: the command's function.
    """
    groups = {TITLE: []}
    for flag in own_flags():
        module = sys.modules.get(flags.FLAGS.find_module_defining_flag(flag.name))
        title = getattr(module, "HELP_TITLE", TITLE)
        if flag.help.startswith(OLD):
            title = OLD_TITLE
        groups.setdefault(title, []).append(_describe_flag(flag))
    groups[TITLE].append(_FLAG_FILE)
    # Old flags come last.
    groups[OLD_TITLE] = groups.pop(OLD_TITLE, [])
    texts = [
        "\n".join([f"{title}:", *lines]) for title, lines in groups.items() if lines
    ]
    docstring = sys.modules[main.__module__].__doc__.strip()
    return "\n\n".join([docstring, *texts]) + "\n"


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
    lines = textwrap.wrap(text, WIDTH - 6, break_on_hyphens=False)
    return "\n      ".join([f"  --{flag.name}{default}", *lines])
