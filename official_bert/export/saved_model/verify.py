"""Is an export what Python is? A fresh process is asked, and its answers compared."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from official_bert.constants import INPUTS
from official_bert.errors import UserError
from official_bert.export import samples
from official_bert.export.saved_model import fresh_process
from official_bert.export.saved_model.signatures import SERVING, TOKENS

# The greatest difference of a number, or, above 1, of one part of it.
TOLERANCE = 1e-5


def verify(directory, export, rows=None, python=sys.executable, tolerance=TOLERANCE):
    """Compare an export on the disk with Python.

    Args:
      directory: the version's folder.
      export: `Export` that it was made of.
      rows: list of dict, inputs of its first signature, to compare besides the
        samples; or None.
      python: the interpreter of the process, which has TensorFlow.
      tolerance: see `TOLERANCE`.

    Returns:
      dict: `rows`, how many were compared, and `difference`, the greatest.

    Raises:
      UserError: an answer differs, or the export cannot be loaded.
    """
    requests, wanted = [], []
    for name, answer in export.answers.items():
        specs = export.signatures[name].specs
        of_name = samples.rows_of(name, specs, export.lengths)
        if name == SERVING:
            of_name += rows or []
        for inputs in _requests_of(of_name):
            requests.append({"signature": name, "inputs": inputs})
            wanted.append(answer(**inputs))
    tokens = _token_rows(export)
    requests.append({"signature": TOKENS, "inputs": _lists(tokens)})
    wanted.append(_arrays(export.signatures[TOKENS].compute(**tokens)))
    answers = ask_fresh_process(directory, requests, python)
    differences = [
        _difference(request, given, expected, tolerance)
        for request, given, expected in zip(requests, answers, wanted, strict=True)
    ]
    num_rows = sum(len(next(iter(one["inputs"].values()))) for one in requests)
    return {"rows": num_rows, "difference": max(differences)}


def _requests_of(rows):
    """Yield rows as inputs, those with as many choices together."""
    groups = {}
    for row in rows:
        groups.setdefault(len(row.get("choices", ())), []).append(row)
    yield from map(columns_of, groups.values())


def columns_of(rows):
    """Return rows, dicts with the same keys, as a dict of lists."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def ask_fresh_process(directory, requests, python=sys.executable):
    """Return the answers of an export in a process of its own.

    See `fresh_process`.

    Raises:
      UserError: it ended with an error.
    """
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = (os.path.join(folder, n) for n in ("asked", "answered"))
        pathlib.Path(asked).write_text(json.dumps(requests), "utf-8")
        script = fresh_process.__file__
        # It finds only what is installed beside TensorFlow.
        left_out = ("PYTHONPATH", "PYTHONSAFEPATH")
        environment = {k: v for k, v in os.environ.items() if k not in left_out}
        done = subprocess.run(
            [python, "-P", script, os.path.abspath(directory), asked, answered],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            cwd=folder,
        )
        if done.returncode:
            raise UserError(
                "A fresh process with TensorFlow alone cannot use the export: "
                f"{done.stderr[-600:]}"
            )
        return json.loads(pathlib.Path(answered).read_text("utf-8"))


def _token_rows(export):
    """Return a dict of `INPUTS`, int32 [B, S] or [B, C, S], of the sample texts."""
    vocab, encode = export.tokenizer.vocab, export.tokenizer.encode
    size = export.lengths[-1]
    ids = np.zeros((len(samples.TEXTS), size), np.int32)
    for row, text in enumerate(samples.TEXTS):
        pieces = [vocab["[CLS]"], *encode(text)[: size - 2], vocab["[SEP]"]]
        ids[row, : len(pieces)] = pieces
    mask = (ids != 0).astype(np.int32)
    rank = export.signatures[TOKENS].specs[INPUTS[0]].shape.rank
    shape = (len(ids), *(1,) * (rank - 2), size)
    values = (ids, mask, np.zeros_like(ids))
    return {n: v.reshape(shape) for n, v in zip(INPUTS, values, strict=True)}


def _lists(arrays):
    return {name: array.tolist() for name, array in arrays.items()}


def _arrays(tensors):
    return {name: tensor.numpy() for name, tensor in tensors.items()}


def _difference(request, given, expected, tolerance):
    """Return the greatest difference of numbers; `UserError` if it is too great."""
    greatest = 0.0
    for name, wanted in expected.items():
        error = error_of(given.get(name), wanted)
        # Not "greater than": no number is not a small difference.
        if not error <= tolerance:
            raise UserError(
                f"Not exported: the signature {request['signature']} gives another "
                f"{name} than Python (they differ by {error:.0e})."
            )
        greatest = max(greatest, error)
    return greatest


def error_of(given, wanted):
    """Return by how much an output, as lists, differs from what is wanted, an array."""
    if given is None:
        return float("inf")
    if wanted.dtype == object:
        return float(given != [text.decode() for text in wanted.reshape(-1)])
    found = np.array(given, wanted.dtype)
    if found.size != wanted.size:
        return float("inf")
    found = found.reshape(wanted.shape).astype(np.float64)
    scale = np.maximum(1, np.abs(wanted.astype(np.float64)))
    with np.errstate(invalid="ignore"):  # Infinite; the result is no number then.
        return float(np.max(np.abs(found - wanted) / scale, initial=0.0))
