"""A command's own flags: which they are, which must be given, files they name."""

import functools
import glob
import os
from typing import overload

from absl import flags

from official_bert import files
from official_bert.errors import UserError
from official_bert.files import is_remote

CONFIGS = files.shipped("configs")
# The checkout, or in an installation the folder of the package.
ROOT = CONFIGS.parent
IS_CHECKOUT = not (ROOT / "__init__.py").exists()
# absl's help of an alias begins with this.
_ALIAS_HELP = "Alias for --"

# Defines a flag that is a whole number of at least 1: its name, default and help.
define_positive = functools.partial(flags.DEFINE_integer, lower_bound=1)


def define_aliases(name: str, *aliases: str) -> None:
    """Define further names of a flag, such as those of google-research/bert.

    `own_flags`, and so `run.json`, leaves them out. The last of several values counts,
    whatever name it was given by.
    """
    module = flags.FLAGS.find_module_defining_flag(name)
    for alias in aliases:
        flags.DEFINE_alias(alias, name, module_name=module)


def aliases_of(name: str) -> list[str]:
    """Return the further names of a flag."""
    own = (flags.FLAGS[each] for each in flags.FLAGS)
    return [each.name for each in own if each.help == f"{_ALIAS_HELP}{name}."]


@functools.cache
def own_flags() -> list[flags.Flag]:
    """Return the flags that a command or its helpers defined, without aliases.

    absl's are left out. The command's own come first. All are as they are at the first
    call: libraries that are loaded later add theirs.
    """
    modules = flags.FLAGS.flags_by_module_dict()
    own = sorted(
        (module for module in modules if not module.startswith("absl.")),
        key=lambda module: not module.startswith("official_bert.commands."),
    )
    found = [flag for module in own for flag in modules[module]]
    return [flag for flag in found if not flag.help.startswith(_ALIAS_HELP)]


def require(*names: str) -> None:
    """Raise `UserError` for the first of these flags that was not given."""
    for name in names:
        if not flags.FLAGS[name].value:
            raise UserError(f"Give --{name}: {flags.FLAGS[name].help}")


@overload
def locate(path: str) -> str: ...


@overload
def locate(path: None) -> None: ...


def locate(path: str | None) -> str | None:
    """Return `path`, or what has that name or fits that glob in the project.

    So `configs/base.flags` and what it names work from any directory. An installed
    package has the configs only.
    """
    if (
        path
        and not is_remote(path)
        and not os.path.exists(path)
        and not glob.glob(path)
    ):
        from_root = str(ROOT / path)
        is_ours = IS_CHECKOUT or path.startswith(f"{CONFIGS.name}/")
        if is_ours and (os.path.exists(from_root) or glob.glob(from_root)):
            return from_root
    return path
