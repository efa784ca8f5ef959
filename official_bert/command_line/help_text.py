"""Format the help of a command: its docstring, then its flags in groups.

absl's own help also lists the flags of every library.
"""

import re
import sys
import textwrap
from types import ModuleType

from absl import flags

from official_bert.command_line.command_table import in_users_form
from official_bert.command_line.flag_values import aliases_of, own_flags

_WIDTH = 80
_REQUIRED_TITLE = "Required"
_MOST_USED_TITLE = "Most used, with their defaults"
_TITLE = "Flags, with their defaults"
_OTHER_TITLE = "Other flags of the command"
# The help text of flags without effect starts with this.
_OLD = "For old commands"
_OLD_TITLE = "Accepted for old commands"
_FLAG_FILE = "flagfile"
_FLAG_FILE_HELP = f"""\
  --{_FLAG_FILE}
      A file with one flag per line. It is searched for in the working
      directory, then in the project's root. tiny means configs/tiny.flags."""
_SHORT, _FULL = ("h", "helpshort"), "helpfull"


def help_text(module: ModuleType, flag: str) -> str:
    """Return the help of a command.

    Args:
      module: the command's module. Its `REQUIRED` and `MOST_USED` name the flags that
        come first. Flags of a module with a `HELP_TITLE` are listed under that title.
      flag: "h" or "helpshort": the docstring, required and most used flags. "help":
        also all other flags in groups. "helpfull": also the flags without effect.
    """
    assert module.__doc__ is not None
    first = {
        _REQUIRED_TITLE: _existing(getattr(module, "REQUIRED", ())),
        _MOST_USED_TITLE: _existing(getattr(module, "MOST_USED", ())),
    }
    groups = {title: [*map(_describe, names)] for title, names in first.items()}
    shown = [name for names in first.values() for name in names]
    others, old = _others(shown)
    if flag not in _SHORT or not shown:
        groups |= others
    if flag == _FULL:
        groups[_OLD_TITLE] = old
    texts = [
        "\n".join([f"{title}:", *lines]) for title, lines in groups.items() if lines
    ]
    notes = _notes(flag, bool(shown and others), bool(old))
    text = "\n\n".join([module.__doc__.strip(), *texts, *notes]) + "\n"
    return in_users_form(text)


def _existing(names):
    """Return the names that are flags; `plan` has the flags of only one command."""
    return [name for name in names if name == _FLAG_FILE or name in flags.FLAGS]


def _others(shown):
    """Return (title -> lines of each group, lines of old flags), without `shown`."""
    title = _OTHER_TITLE if shown else _TITLE
    groups: dict[str, list[str]] = {title: []}
    old = []
    for flag in own_flags():
        if flag.name in shown:
            continue
        if flag.help.startswith(_OLD):
            old.append(_describe(flag.name))
            continue
        defining = flags.FLAGS.find_module_defining_flag(flag.name)
        module = sys.modules.get(defining or "")
        own_title = getattr(module, "HELP_TITLE", title)
        groups.setdefault(own_title, []).append(_describe(flag.name))
    if _FLAG_FILE not in shown:
        groups[title].append(_FLAG_FILE_HELP)
    return groups, old


def _notes(flag, has_others, has_old):
    """Return the last line: how to see more."""
    more = ["--help shows all flags."] if flag in _SHORT and has_others else []
    if has_old and flag != _FULL:
        more.append("--helpfull also shows the flags without effect, for old commands.")
    return [" ".join(more)] if more else []


def _describe(name):
    """Return `--name=default` and the wrapped help of one flag."""
    if name == _FLAG_FILE:
        return _FLAG_FILE_HELP
    flag = flags.FLAGS[name]
    default = flag.default
    if isinstance(default, list):
        default = ",".join(map(str, default))
    default = "" if default in (None, "") else f"={default}"
    # absl appends this to the help of flags that may be repeated.
    text = re.sub(r";\s+repeat this option.*", "", " ".join(flag.help.split()))
    # Allow line breaks between the values of an enum, but not inside a value.
    text = re.sub(r"^<\S*>:", lambda match: match[0].replace("|", " | "), text)
    aliases = ", ".join(f"--{alias}" for alias in aliases_of(name))
    if aliases:
        text += f" Also: {aliases}."
    lines = textwrap.wrap(text, _WIDTH - 6, break_on_hyphens=False)
    return "\n      ".join([f"  --{name}{default}", *lines])
