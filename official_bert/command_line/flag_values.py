"""List a command's own flags, check required ones, and locate the files they name."""

import functools
import glob
import os
from typing import overload

from absl import flags

from official_bert import files
from official_bert.errors import UserError
from official_bert.files import is_remote

CONFIGS = files.shipped("configs")
# The checkout's root, or the package folder of an installation.
ROOT = CONFIGS.parent
IS_CHECKOUT = not (ROOT / "__init__.py").exists()
# absl's help text of an alias starts with this.
_ALIAS_HELP = "Alias for --"

# Define a flag whose value is a whole number of at least 1.
define_positive = functools.partial(flags.DEFINE_integer, lower_bound=1)


def define_aliases(name: str, *aliases: str) -> None:
    """Define alternative names of a flag, such as those of google-research/bert.

    `own_flags`, and therefore `run.json`, leaves them out. If several values are given,
    the last one counts, under any of the names.
    """
    module = flags.FLAGS.find_module_defining_flag(name)
    for alias in aliases:
        flags.DEFINE_alias(alias, name, module_name=module)


def aliases_of(name: str) -> list[str]:
    """Return the alternative names of a flag."""
    own = (flags.FLAGS[each] for each in flags.FLAGS)
    return [each.name for each in own if each.help == f"{_ALIAS_HELP}{name}."]


@functools.cache
def own_flags() -> list[flags.Flag]:
    """Return the flags that a command or its helpers defined, without aliases.

    absl's own flags are left out. The command's own flags come first. The result is
    cached at the first call, because libraries that are loaded later add flags.
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
    """Return `path`, or the file or glob of that name in the project.

    This makes `configs/base.flags` and the files that it names work from any directory.
    An installed package contains only the configs.
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
