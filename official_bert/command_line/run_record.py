"""`run.json`: what it takes to repeat a run."""

import glob
import os
import sys
import time
from collections.abc import Iterable
from typing import Any

import official_bert
from official_bert import files, machine
from official_bert.command_line import found_models
from official_bert.command_line.flag_values import own_flags

# Their versions decide a result.
PACKAGES = ("tensorflow", "keras", "numpy", "tokenizers", "absl-py")


def write_run_json(
    path: str | os.PathLike[str],
    inputs: Iterable[str | os.PathLike[str] | None],
    datasets: Iterable[dict[str, Any]] = (),
) -> None:
    """Write what it takes to repeat this run: command, flags, versions, hashes.

    Every byte that went in is hashed, about a second per gigabyte: a hash of
    a part would call two different inputs the same.

    Args:
      path: the file to write, by convention `run.json` in an output directory
        or `<output>.run.json` beside an output file.
      inputs: what went in: files, directories (their files are taken),
        checkpoint prefixes (`<prefix>.*` is taken). What is not on the disk,
        is recorded with null; None is left out.
      datasets: records of the datasets that were read by name.
    """
    hashes: dict[str, str | None] = {}
    for name in map(str, filter(None, inputs)):
        paths = [name] if files.is_file(name) else _files_of(name)
        own: dict[str, str | None] = {path: files.sha256_of(path) for path in paths}
        hashes |= own or {name: None}
    listed = list(datasets)
    files.write_json(
        path,
        {
            "command": [os.path.basename(sys.executable), *_arguments()],
            "directory": os.getcwd(),
            "flags": {flag.name: flag.value for flag in own_flags()},
            "versions": {
                "official_bert": official_bert.__version__,
                "python": sys.version.split()[0],
                **machine.installed_versions(PACKAGES),
            },
            "inputs": hashes,
            "models": found_models.describe(hashes),
            **({"datasets": listed} if listed else {}),
            "written": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        },
    )


def _files_of(name):
    """Return the files that a directory or a checkpoint's prefix stands for."""
    if files.is_directory(name):
        found = files.find_in(name, "*")
    else:
        found = files.find_in(*os.path.split(glob.escape(name) + ".*"))
    return list(filter(files.is_file, found))


def _arguments():
    """Return what Python was started with, fit for another start."""
    if os.path.basename(sys.argv[0]) == "__main__.py":
        return ["-m", official_bert.__name__, *sys.argv[1:]]
    return sys.argv
