"""`eval_results.txt` in the original's format: sorted lines `key = value`."""

import os
from collections.abc import Mapping

from official_bert import files

FILE = "eval_results.txt"


def write(directory: str | os.PathLike[str], results: Mapping[str, float]) -> None:
    """Write and print the results of an evaluation.

    Args:
      directory: directory of the file.
      results: dict of name -> number.
    """
    lines = [f"{name} = {results[name]}" for name in sorted(results)]
    files.write_text(os.path.join(directory, FILE), "\n".join(lines) + "\n")
    print("***** Eval results *****", *lines, sep="\n  ", flush=True)


def read(directory: str | os.PathLike[str]) -> dict[str, float]:
    """Return the results in a directory, a dict of name -> float."""
    text = files.read_text(os.path.join(directory, FILE), "results")
    pairs = [line.split(" = ") for line in text.splitlines()]
    return {name: float(value) for name, value in pairs}
