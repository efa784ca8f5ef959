"""A command's own flags: which they are, which must be given, files they name."""

import functools
import glob
import os
import pathlib
from typing import overload

from absl import flags

from official_bert.errors import UserError
from official_bert.files import is_remote

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Defines a flag that is a whole number of at least 1: its name, default and help.
define_positive = functools.partial(flags.DEFINE_integer, lower_bound=1)


@functools.cache
def own_flags() -> list[flags.Flag]:
    """Return the flags that a command or its helpers defined, absl's left out.

    The command's own come first. All are as they are at the first call:
    libraries that are loaded later add theirs.
    """
    modules = flags.FLAGS.flags_by_module_dict()
    own = sorted(
        (module for module in modules if not module.startswith("absl.")),
        key=lambda module: not module.startswith("official_bert.commands."),
    )
    return [flag for module in own for flag in modules[module]]


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
    """Return `path`, or what has that name or fits that glob under the root.

    So `configs/base.flags` and what it names work from any directory.
    """
    if (
        path
        and not is_remote(path)
        and not os.path.exists(path)
        and not glob.glob(path)
    ):
        from_root = str(ROOT / path)
        if os.path.exists(from_root) or glob.glob(from_root):
            return from_root
    return path
