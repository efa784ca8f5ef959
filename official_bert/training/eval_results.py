"""`eval_results.txt`, as the original writes it: sorted `key = value`."""

import os

from official_bert import files


def write(directory, results):
    """Write and print the results of an evaluation.

    Args:
      directory: for the file.
      results: dict of name -> number.
    """
    lines = [f"{name} = {results[name]}" for name in sorted(results)]
    path = os.path.join(directory, "eval_results.txt")
    files.write_text(path, "\n".join(lines) + "\n")
    print("***** Eval results *****", *lines, sep="\n  ", flush=True)
