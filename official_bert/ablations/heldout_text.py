"""Split text files into a training part and a held-out part."""

import itertools
import os
from collections.abc import Sequence

from official_bert import files
from official_bert.errors import UserError

# One of this number of documents is held out.
EVERY = 20
# Hashes of the files that the two texts were made from.
INPUTS_FILE = "inputs.json"


def split_off(paths: Sequence[str], folder: str | os.PathLike[str]) -> tuple[str, str]:
    """Split the documents of text files into a training file and a held-out file.

    Args:
      paths: text files with one sentence per line and a blank line between documents,
        as `create_pretraining_data.py` reads them.
      folder: folder for `train.txt` and `heldout.txt`. Existing ones made from the same
        files are kept.

    Returns:
      (path of the training file, path of the held-out file).

    Raises:
      UserError: there are too few documents, or existing files were made from other
        texts.
    """
    targets = os.path.join(folder, "train.txt"), os.path.join(folder, "heldout.txt")
    inputs = os.path.join(folder, INPUTS_FILE)
    made_of = {"sha256": [files.sha256_of(path) for path in paths]}
    if all(map(os.path.exists, [*targets, inputs])):
        if files.read_json(inputs, "the inputs of a text") != made_of:
            raise UserError(
                f"--input_file: the text in {folder} was made from other files. "
                "Choose another --output_dir."
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
            f"--input_file has only {count} documents, but one in {EVERY} is held "
            "out. Give more documents, with blank lines between them, or give "
            "held-out text with --dev_file."
        )
    for target, documents in zip(targets, parts, strict=True):
        files.write_text(target, "\n".join(documents))
    files.write_json(inputs, made_of)
    return targets
