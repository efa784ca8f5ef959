"""Compare the outputs of an export, run in a fresh process, with Python's."""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from official_bert.constants import INPUTS, TF_TEXT_OPS
from official_bert.errors import UserError
from official_bert.export import expected, samples
from official_bert.export.saved_model import fresh_process
from official_bert.export.saved_model.exports import Export
from official_bert.export.saved_model.signatures import SERVING, TOKENS

# Maximum difference of a number: absolute up to 1, relative above (`error_of`).
TOLERANCE = 1e-5
# Outputs that are sums of two logits.
SUMS_OF_LOGITS = ("score", "null_score")


@dataclasses.dataclass(frozen=True)
class Case:
    """A request with the expected outputs.

    Attributes:
      signature: its name.
      inputs: dict of input name -> nested lists.
      wanted: dict of output name -> array, computed in Python.
    """

    signature: str
    inputs: dict[str, list]
    wanted: dict[str, np.ndarray]

    @property
    def num_rows(self) -> int:
        """Return the number of rows of the inputs."""
        return len(next(iter(self.inputs.values())))


def verify(
    directory: str | os.PathLike[str],
    export: Export,
    rows: Iterable[dict[str, str | list[str]]] | None = None,
    python: str = sys.executable,
    tolerance: float = TOLERANCE,
) -> dict[str, Any]:
    """Compare an export on disk with Python.

    Args:
      directory: the version's folder.
      export: the exported `Export`.
      rows: additional inputs for its first signature, a list of dict; or None.
      python: interpreter of the fresh process; it must have TensorFlow.
      tolerance: see `TOLERANCE`.

    Returns:
      dict: `rows`, the number of compared rows, and `difference`, the greatest.

    Raises:
      UserError: an output differs, or the export cannot be loaded.
    """
    cases = cases_of(export, rows)
    requests = [{"signature": one.signature, "inputs": one.inputs} for one in cases]
    modules = ["tensorflow_text"] if export.tokenizer_ops == TF_TEXT_OPS else []
    answers = ask_fresh_process(directory, requests, python, *modules)
    differences = [
        difference(case, answer, tolerance)
        for case, answer in zip(cases, answers, strict=True)
    ]
    return {"rows": sum(one.num_rows for one in cases), "difference": max(differences)}


def cases_of(
    export: Export, rows: Iterable[dict[str, str | list[str]]] | None = None
) -> list[Case]:
    """Return inputs of an export with Python's outputs, for each kind of request.

    Args:
      export: `Export`.
      rows: additional inputs for its first signature, a list of dict; or None.
    """
    cases = []
    for name, answer in export.answers.items():
        specs = export.signatures[name].specs
        of_name = samples.rows_of(name, specs, export.lengths)
        if name == SERVING:
            of_name += rows or []
        cases += [Case(name, each, answer(**each)) for each in _batches(of_name)]
    ids, mask = expected.token_rows(export.tokenizer, samples.TEXTS, export.lengths[-1])
    if export.signatures[TOKENS].specs[INPUTS[0]].shape.rank > 2:
        ids, mask = ids[:, None], mask[:, None]
    tokens = dict(zip(INPUTS, (ids, mask, np.zeros_like(ids)), strict=True))
    outputs = export.signatures[TOKENS].compute(**tokens)
    outputs = {name: tensor.numpy() for name, tensor in outputs.items()}
    lists = {name: value.tolist() for name, value in tokens.items()}
    return [*cases, Case(TOKENS, lists, outputs)]


def _batches(rows):
    """Yield rows as inputs, grouped by their number of choices."""
    groups: dict[int, list] = {}
    for row in rows:
        groups.setdefault(len(row.get("choices", ())), []).append(row)
    yield from map(columns_of, groups.values())


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, list]:
    """Return rows, dicts with the same keys, as one dict of lists."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def ask_fresh_process(
    directory: str | os.PathLike[str],
    requests: Sequence[Mapping[str, Any]],
    python: str = sys.executable,
    *modules: str,
) -> list[dict[str, list]]:
    """Run an export in a separate process and return its outputs.

    See `fresh_process`. `modules`: its MODULE, if the export needs one.

    Raises:
      UserError: the process failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        questions, results = (os.path.join(folder, n) for n in ("in.json", "out.json"))
        pathlib.Path(questions).write_text(json.dumps(requests), "utf-8")
        script = fresh_process.__file__
        # The process must find only the packages installed with TensorFlow.
        left_out = ("PYTHONPATH", "PYTHONSAFEPATH")
        environment = {k: v for k, v in os.environ.items() if k not in left_out}
        done = subprocess.run(
            [
                python,
                "-P",
                script,
                os.path.abspath(directory),
                questions,
                results,
                *modules,
            ],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            cwd=folder,
        )
        if done.returncode:
            known = ["TensorFlow", *modules]
            raise UserError(
                f"The export cannot run in a process with only {' and '.join(known)}: "
                f"{done.stderr[-600:]}"
            )
        return json.loads(pathlib.Path(results).read_text("utf-8"))


def difference(
    case: Case, outputs: Mapping[str, list], tolerance: float = TOLERANCE
) -> float:
    """Return the greatest difference of numbers from a case.

    Raises:
      UserError: a number differs by more than the tolerance, or a text differs.
    """
    errors = {
        name: error_of(outputs.get(name), wanted, _smallest_scale(case.wanted, name))
        for name, wanted in case.wanted.items()
    }
    for name, error in errors.items():
        # Written with "not", because NaN must fail too.
        if not error <= tolerance:
            raise UserError(
                f"Not exported: the signature {case.signature} returns another "
                f"{name} than Python (they differ by {error:.0e})."
            )
    return max(errors.values(), default=0.0)


def _smallest_scale(wanted, name):
    """Return the size of numbers below which their errors are absolute.

    A score of SQuAD is the sum of two logits. These can cancel, but their rounding
    errors do not. The other scores show how large logits are.
    """
    if name not in SUMS_OF_LOGITS:
        return 1.0
    sums = [wanted[one].reshape(-1) for one in SUMS_OF_LOGITS if one in wanted]
    sizes = np.abs(np.concatenate(sums).astype(float))
    return float(np.max(sizes[np.isfinite(sizes)], initial=1.0))


def error_of(
    output: list | None, wanted: np.ndarray, smallest_scale: float = 1.0
) -> float:
    """Return the difference of an output, as lists, from the expected array.

    It is relative to the expected number, or to the smallest scale if that is larger.
    """
    if output is None:
        return float("inf")
    if wanted.dtype == object:
        return float(output != [text.decode() for text in wanted.reshape(-1)])
    values = np.array(output, wanted.dtype)
    if values.size != wanted.size:
        return float("inf")
    values, wanted = values.reshape(-1).astype(float), wanted.reshape(-1).astype(float)
    with np.errstate(invalid="ignore"):  # Infinite values give NaN.
        errors = np.abs(values - wanted) / np.maximum(smallest_scale, np.abs(wanted))
    return float(np.max(errors, initial=0.0))
