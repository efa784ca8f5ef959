"""A part of a text that is kept apart from training."""

import itertools
import os
from collections.abc import Sequence

from official_bert import files
from official_bert.errors import UserError

# One document of so many is held out.
EVERY = 20
# What the two texts were made of.
INPUTS_FILE = "inputs.json"


def split_off(paths: Sequence[str], folder: str | os.PathLike[str]) -> tuple[str, str]:
    """Write the documents of text files into two: to train on, and held out.

    Args:
      paths: text files of one sentence a line, a blank line between documents, as
        `create_pretraining_data.py` reads them.
      folder: for `train.txt` and `heldout.txt`; those of the same files stay.

    Returns:
      (path of the one, path of the other).

    Raises:
      UserError: there are too few documents, or those that are there are of other
        files.
    """
    targets = os.path.join(folder, "train.txt"), os.path.join(folder, "heldout.txt")
    inputs = os.path.join(folder, INPUTS_FILE)
    made_of = {"sha256": [files.sha256_of(path) for path in paths]}
    if all(map(os.path.exists, [*targets, inputs])):
        if files.read_json(inputs, "what a text was made of") != made_of:
            raise UserError(
                f"--input_file: the text in {folder} was made of other files; choose "
                "another --output_dir."
            )
        return targets
    parts: tuple[list[str], list[str]] = ([], [])
    count = 0
    for path in paths:
        lines = files.read_text(path, "a text file").split("\n")
        groups = itertools.groupby(lines, lambda line: bool(line.strip()))
        for has_text, document in groups:
            if has_text:
                count += 1
                parts[count % EVERY == 0].append("\n".join(document) + "\n")
    if not parts[1]:
        raise UserError(
            f"--input_file has {count} documents, and one of {EVERY} is held out: give "
            "more, with blank lines between them, or name held-out text with "
            "--dev_file."
        )
    for target, documents in zip(targets, parts, strict=True):
        files.write_text(target, "\n".join(documents))
    files.write_json(inputs, made_of)
    return targets
