"""Write `run.json`: everything needed to repeat a run."""

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

# Packages whose versions affect a result.
PACKAGES = ("tensorflow", "keras", "numpy", "tokenizers", "absl-py")


def write_run_json(
    path: str | os.PathLike[str],
    inputs: Iterable[str | os.PathLike[str] | None],
    datasets: Iterable[dict[str, Any]] = (),
) -> None:
    """Write everything needed to repeat this run: command, flags, versions, hashes.

    All input bytes are hashed, about one second per gigabyte. A hash of only a part
    could not distinguish two inputs.

    Args:
      path: file to write, by convention `run.json` in an output directory or
        `<output>.run.json` next to an output file.
      inputs: input files, directories (all their files), and checkpoint prefixes (all
        `<prefix>.*`). Inputs that do not exist on disk are recorded as null; None is
        skipped.
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
    """Return the files of a directory or of a checkpoint prefix."""
    if files.is_directory(name):
        found = files.find_in(name, "*")
    else:
        found = files.find_in(*os.path.split(glob.escape(name) + ".*"))
    return list(filter(files.is_file, found))


def _arguments():
    """Return the arguments of Python, usable for another start."""
    if os.path.basename(sys.argv[0]) == "__main__.py":
        return ["-m", official_bert.__name__, *sys.argv[1:]]
    return sys.argv
