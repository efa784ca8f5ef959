r"""Run exported training steps with JAX, on a GPU or on CPUs, without TensorFlow.

    python benchmarks/accelerators/run_steps.py --steps=steps --output=results
    python benchmarks/accelerators/run_steps.py --steps=steps --output=results \
        --size=tiny --batch=8 --product=1024 --rounds=3 --steps_per_call=1

`export_steps.py` writes the folder `steps`. The first command is for a GPU, the second
one for CPUs. This command needs NumPy, ml_dtypes and JAX. It does two things:

1. Correctness: ten training steps of tiny, with dropout, from the same weights and
   batches as TensorFlow's on a CPU. Losses and weights must be as close as the
   precision allows (`TOLERANCES`).
2. Speed: the exported step, a large matrix product in the same precision, KerasHub on
   JAX and PyTorch with transformers, each in its own process, alternating. A peer whose
   packages are missing is skipped.

"float32" computes products of float32 matrices with all bits, "tf32" allows TF32. The
results are `results.json` and `table.md` in the folder --output.
"""

import argparse
import datetime
import importlib.util
import json
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from benchmarks.accelerators import exported  # noqa: E402
from benchmarks.yardstick import processes, report  # noqa: E402
from benchmarks.yardstick.comparisons import Comparison  # noqa: E402
from benchmarks.yardstick.targets import (  # noqa: E402
    OURS,
    PRODUCT,
    Ceiling,
    Result,
    Speed,
)
from official_bert.errors import UserError  # noqa: E402

CHECKED = ("tiny", 4, 128)
LOSSES = ("masked_lm_loss", "next_sentence_loss")
# Maximum relative difference of a loss; and of the weights: root mean square of
# the differences divided by that of their changes in ten training steps. With
# TensorFlow on a CPU, float32 and bfloat16 differ by 3.5e-4 and 0.008; the
# bfloat16 tolerances are about five and four times that. TF32 rounds only the
# factors of products, to 11 bits instead of 8. float32 differs only in the
# order of sums.
TOLERANCES = {"float32": (1e-5, 1e-3), "tf32": (5e-4, 0.01), "bfloat16": (2e-3, 0.03)}
PRODUCTS = {"float32": "HIGHEST", "tf32": "DEFAULT", "bfloat16": "DEFAULT"}
KERAS_HUB, PYTORCH = "KerasHub on JAX", "PyTorch"
# name -> (module of `benchmarks`, packages).
PEERS = {
    KERAS_HUB: ("peers.kerashub_jax", ("keras", "keras_hub")),
    PYTORCH: ("peers.pytorch.compiled", ("torch", "transformers")),
}


def main():
    """Check, measure and write the results; return the exit status."""
    given = _flags()
    # Several processes share the GPU's memory.
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    folder = pathlib.Path(given.output)
    folder.mkdir(parents=True, exist_ok=True)
    results = {"checks": {}, "rows": {}}
    for precision in given.precisions:
        if given.check:
            results["checks"][precision] = check(given.steps, precision)
            _write(folder, results)
    for precision in given.precisions:
        if given.speed:
            row = measure(given, precision)
            print("\n".join(report.lines(row)), flush=True)
            results["rows"][row["title"]] = row
            _write(folder, results)
    return int(not all(one["is_met"] for one in results["checks"].values()))


def _flags():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])

    def precisions(text):
        names = text.split(",")
        if unknown := set(names) - set(TOLERANCES):
            raise argparse.ArgumentTypeError(
                f"{min(unknown)!r} is not one of {', '.join(TOLERANCES)}"
            )
        return names

    yes_or_no = argparse.BooleanOptionalAction
    parser.add_argument("--steps", required=True, help="folder of export_steps.py")
    parser.add_argument("--output", required=True, help="folder for the results")
    parser.add_argument("--size", default="base", help="size of the speed test")
    parser.add_argument("--batch", type=int, default=256, help="sequences per batch")
    parser.add_argument("--length", type=int, default=128, help="tokens per sequence")
    parser.add_argument("--precisions", type=precisions, default=list(TOLERANCES))
    parser.add_argument(
        "--product", type=int, default=8192, help="rows and columns of the product"
    )
    parser.add_argument("--rounds", type=int, default=7, help="rounds for each program")
    parser.add_argument("--steps_per_call", type=int, default=4)
    parser.add_argument("--check", action=yes_or_no, default=True)
    parser.add_argument("--speed", action=yes_or_no, default=True)
    given = parser.parse_args()
    if given.rounds < 2:
        parser.error(f"--rounds={given.rounds} has no quartiles. Use 2 or more.")
    return given


def check(folder, precision):
    """Compare ten training steps with TensorFlow's; return the numbers, a dict.

    Args:
      folder: folder of the exported steps.
      precision: a key of `TOLERANCES`.
    """
    from benchmarks.accelerators import on_jax

    name = exported.name_of(*CHECKED, _exported_precision(precision))
    path = pathlib.Path(folder) / f"{name}.npz"
    run = on_jax.Training(folder, name, PRODUCTS[precision])
    if not path.exists():
        raise UserError(f"{path} does not exist. Export the steps with --check.")
    with np.load(path) as found:
        reference = dict(found)
    before, losses = run.weights(), []
    for seed in range(exported.NUM_CHECKED):
        features = run.step.batch_of(seed, run.step.length // 2)
        scalars = run.update(run.put(features))
        losses.append([float(scalars[loss]) for loss in LOSSES])
    expected = reference.pop("losses")
    found = (
        float(np.abs(np.array(losses) / expected - 1).max()),
        _distance(run.weights(), reference) / _distance(before, reference),
    )
    met = all(
        one <= most for one, most in zip(found, TOLERANCES[precision], strict=True)
    )
    print(
        f"{precision}: losses differ by {found[0]:.1e}, weights by {found[1]:.1e} of "
        f"their change: {'within' if met else 'NOT within'} the tolerances "
        f"{TOLERANCES[precision]}",
        flush=True,
    )
    return {
        "step": name,
        "losses": found[0],
        "weights": found[1],
        "tolerances": TOLERANCES[precision],
        "is_met": met,
        **on_jax.versions(),
    }


def _exported_precision(precision):
    return "float32" if precision == "tf32" else precision


def _distance(ones, others):
    """Return the root of the mean square of the differences of all weights."""
    squares = sum(
        np.square(np.subtract(ones[name], others[name], dtype=np.float64)).sum()
        for name in others
    )
    return float(squares / sum(one.size for one in others.values())) ** 0.5


def measure(given, precision):
    """Measure the variants of one precision; return the row, see `report.summarize`.

    Args:
      given: the flags.
      precision: a key of `TOLERANCES`.
    """
    kept = _exported_precision(precision)
    name = exported.name_of(given.size, given.batch, given.length, kept)
    step, _ = exported.read(given.steps, name)
    products, calls = PRODUCTS[precision], given.steps_per_call
    # Each process resolves the folder from its own working directory.
    folder = str(pathlib.Path(given.steps).resolve())
    module = "accelerators.on_jax"
    ours = {"folder": folder, "name": name, "products": products, "steps": calls}
    product = {"size": given.product, "dtype": kept, "products": products}
    work = {"size": given.size, "batch": given.batch, "length": given.length}
    work |= {"precision": kept, "products": products, "steps": calls}
    variants = [
        processes.Variant(OURS, module, "training", ours),
        processes.Variant(PRODUCT, module, "product", product, calls=15),
        *(
            processes.Variant(name, module, "training", work, is_optional=True)
            for name, module in _installed_peers().items()
        ),
    ]
    seconds, memory, versions = processes.take_turns(variants, given.rounds, 3, None)
    units = given.batch * calls
    flops = step.flops * calls
    result = Result(seconds, memory, units, flops, 2.0 * given.product**3)
    targets = []
    if given.size == "base":
        targets = [Ceiling(0.5), Speed((KERAS_HUB, PYTORCH), 1, "the faster peer")]
    title = f"{given.size}, {given.batch} × {given.length}, {precision}"
    comparison = Comparison(title, "sequences", units, variants, targets, flops)
    measured = {"on": datetime.date.today().isoformat(), **versions}
    return report.summarize(comparison, result, measured)


def _installed_peers():
    """Return name -> module of the peers whose packages are installed."""
    found = {}
    for name, (module, packages) in PEERS.items():
        missing = [one for one in packages if importlib.util.find_spec(one) is None]
        if missing:
            print(f"Skipped: {name} needs {' and '.join(missing)}.", flush=True)
        else:
            found[name] = module
    return found


def _write(folder, results):
    """Write `results.json` and `table.md`."""
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    lines = [
        "| ten steps of tiny against TensorFlow on a CPU | losses | weights | met |",
        "|---|---|---|---|",
    ]
    for precision, one in results["checks"].items():
        losses, weights = one["tolerances"]
        lines.append(
            f"| {precision} | {one['losses']:.1e} (≤ {losses:g}) | "
            f"{one['weights']:.1e} (≤ {weights:g}) | "
            f"{'yes' if one['is_met'] else 'no'} |"
        )
    if results["rows"]:
        lines += ["", *report.table(results["rows"])]
    (folder / "table.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except UserError as error:
        sys.exit(str(error))
