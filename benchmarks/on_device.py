r"""Compare a `.tflite` with ONNX Runtime: latency, memory, differences.

    python benchmarks/on_device.py --model=all-MiniLM-L6-v2 --output=on_device.json

Both sides convert an encoder from one Hugging Face directory, in float32 and
with 8-bit weights: ours like `export_model.py --format=tflite`, ONNX Runtime's
from PyTorch as described in `peers/onnx_runtime.py`. First their outputs are
compared, on a random row of each length without padding. Then a separate
process loads each file, and two processes compute one row at a time,
alternating. A turn is a warm-up call and --calls more; the fastest call counts.
Ratios compare neighboring turns.

Memory is the peak resident set of a process that loads a file and computes rows
of --memory_length, minus the peak after the import of the runtime. It includes
the mapped pages of the file. Signatures of other lengths need memory even if
they are not called, so a `.tflite` with only one signature is measured too. The
numbers come from /proc of Linux. ONNX Runtime has a separate environment, in
--peer_env.
"""

import dataclasses
import functools
import os
import pathlib
import statistics
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from absl import flags  # noqa: E402

from benchmarks.peers import environment  # noqa: E402
from benchmarks.yardstick.processes import Variant, take_turns  # noqa: E402
from official_bert import files  # noqa: E402
from official_bert.command_line.flag_values import require  # noqa: E402
from official_bert.command_line.program import run  # noqa: E402
from official_bert.command_line.tensorflow_start import start_tensorflow  # noqa: E402
from official_bert.errors import UserError  # noqa: E402

FLAGS = flags.FLAGS

flags.DEFINE_string("model", None, "Hugging Face directory of the weights.")
flags.DEFINE_list("lengths", ["32", "64", "128", "256", "384"], "Row lengths.")
flags.DEFINE_integer("rounds", 20, "Turns of each side.", lower_bound=2)
flags.DEFINE_integer("calls", 3, "Counted calls per turn.", lower_bound=1)
flags.DEFINE_integer("threads", None, "Threads; default: one per core.", 1)
flags.DEFINE_integer(
    "memory_length", 128, "Row length for the memory measurement, one of --lengths."
)
flags.DEFINE_string("peer_env", "build/peers", "Folder of ONNX Runtime's environment.")
flags.DEFINE_string("output", None, "JSON file for all numbers.")
OURS, THEIRS = "ours", "ONNX Runtime"
OURS_ONE_LENGTH = "ours, one length"
FORMATS = ("float32", "int8")
# Allowed rounding; another model or activation differs by more.
TOLERANCE = 1e-3
MEGABYTE = 1e6


def main():
    """Compare outputs, then latency, then memory; print tables, write JSON."""
    require("model", "output")
    lengths = read_lengths()
    model = open_encoder(FLAGS.model, lengths)
    settings = {
        "vocab_size": len(model.tokenizer.vocab),
        "threads": FLAGS.threads or os.cpu_count(),
    }
    with tempfile.TemporaryDirectory() as folder:
        python = environment.peer_python(FLAGS.peer_env)
        one_length = dataclasses.replace(model, lengths=(FLAGS.memory_length,))
        sides = {
            OURS: write_ours(folder, model),
            OURS_ONE_LENGTH: write_ours(folder, one_length, "one_"),
            THEIRS: _write_theirs(folder),
        }
        results = {"cores": os.cpu_count(), "threads": settings["threads"]}
        results["differences"] = compare(sides, lengths, settings, python)
        _show(difference_lines(results["differences"]))
        results["latency"] = _measure_latency(sides, lengths, settings, python)
        memory_settings = settings | {"lengths": [FLAGS.memory_length]}
        results["memory"] = measure_memory(sides, memory_settings, python)
    _show(memory_lines(results["memory"], FLAGS.memory_length))
    files.write_json(FLAGS.output, results)


def _show(lines):
    print("\n".join(lines), flush=True)


def read_lengths():
    """Return --lengths as ascending numbers.

    Raises:
      UserError: a length is not a number, or --memory_length is not among them.
    """
    for length in FLAGS.lengths:
        if not length.isdecimal() or int(length) < 3:
            raise UserError(
                f"--lengths: {length!r} is not a row length. Give numbers from "
                "3, such as 32,64,128."
            )
    lengths = sorted(set(map(int, FLAGS.lengths)))
    if FLAGS.memory_length not in lengths:
        raise UserError(
            f"--memory_length={FLAGS.memory_length} is not in --lengths. Use "
            f"one of {', '.join(map(str, lengths))}."
        )
    return lengths


def open_encoder(path, lengths):
    """Load an encoder as a `DeviceModel` of these lengths.

    Raises:
      UserError: the encoder does not exist, is fine-tuned, or reads only
        shorter rows.
    """
    start_tensorflow()
    from official_bert.export.tflite.model import open_device_model

    model = open_device_model(path)
    if model.predictor:
        raise UserError(
            f"--model: {path} is a {model.what}, but outputs of encoders are "
            "compared. Give a pre-trained encoder."
        )
    if lengths[-1] > model.lengths[-1]:
        raise UserError(
            f"--lengths: {path} reads {model.lengths[-1]} tokens, not "
            f"{lengths[-1]}. Remove this length."
        )
    return dataclasses.replace(model, lengths=tuple(lengths))


def write_ours(folder, model, prefix=""):
    """Write a `DeviceModel` as `.tflite`; return dict of format -> path."""
    from official_bert.export.tflite import converter

    paths = {}
    for name in FORMATS:
        paths[name] = os.path.join(folder, f"{prefix}{name}.tflite")
        fixed = model.with_fixed_lengths()
        # The converter's output is only useful if it fails.
        content = start_tensorflow(functools.partial(converter.convert, fixed, name))
        with open(paths[name], "wb") as written:
            written.write(content)
    return paths


def _write_theirs(folder):
    """Write the files of ONNX Runtime; return dict of format -> path."""
    environment.run(FLAGS.peer_env, "onnx_runtime", [FLAGS.model, folder])
    return {name: os.path.join(folder, f"{name}.onnx") for name in FORMATS}


def variant(who, path, settings):
    """Return the `Variant` that computes rows with a file.

    Args:
      who: name of the side.
      path: a `.tflite` or ONNX file.
      settings: dict of `threads` and the arguments of `workload.row_calls`.
    """
    is_ours = path.endswith(".tflite")
    module = "ours_tflite" if is_ours else "peers.onnx_runtime"
    arguments = {"path": path, **settings}
    return Variant(who, module, "rows", arguments, in_peer_env=not is_ours)


def compare(sides, lengths, settings, peer_python):
    """Compare a row of each length with ONNX Runtime in float32.

    Args:
      sides: dict of side -> dict of format -> path.
      lengths: list of int.
      settings: see `variant`.
      peer_python: path of the Python of peers.

    Returns:
      dict of side -> dict of format -> `difference` of the two.

    Raises:
      UserError: our float32 is not the same model.
    """
    outputs = {
        (who, name): read_outputs(sides[who][name], lengths, settings, peer_python)
        for who in (OURS, THEIRS)
        for name in FORMATS
    }
    exact = outputs.pop((THEIRS, FORMATS[0]))
    differences = {OURS: {}, THEIRS: {}}
    for (who, name), values in outputs.items():
        differences[who][name] = difference(values, exact)
    greatest = differences[OURS][FORMATS[0]]["greatest"]
    if not greatest <= TOLERANCE:
        raise UserError(
            f"--model: the outputs of both sides differ by {greatest:.1e} in "
            f"float32, but only {TOLERANCE:.0e} is allowed. Give a BERT encoder "
            "with its pooler."
        )
    return differences


def read_outputs(path, lengths, settings, peer_python):
    """Return the outputs of a row of each length, a list of dicts of float32 [1, …]."""
    outputs = []
    with tempfile.TemporaryDirectory() as folder:
        settings = settings | {"lengths": lengths, "output_dir": folder}
        take_turns([variant(path, path, settings)], 1, 1, peer_python)
        for length in lengths:
            with np.load(os.path.join(folder, f"{length}.npz")) as values:
                outputs.append(dict(values))
    return outputs


def difference(some, others):
    """Return the maximum and mean differences of outputs.

    Args:
      some: list of dicts of arrays.
      others: list of dicts with the same keys and shapes.
    """
    errors = np.concatenate(
        [
            np.abs(one[name] - other[name]).ravel()
            for one, other in zip(some, others, strict=True)
            for name in one | other
        ]
    )
    return {"greatest": float(errors.max()), "mean": float(errors.mean())}


def _measure_latency(sides, lengths, settings, peer_python):
    """Measure each format and length, and print a line for each.

    Returns:
      list of dicts: `format`, `length`, the values of `summary`, and the
      seconds.
    """
    measured = []
    _show([LATENCY_HEADER])
    for name in FORMATS:
        for length in lengths:
            variants = [
                variant(who, sides[who][name], settings | {"lengths": [length]})
                for who in (OURS, THEIRS)
            ]
            seconds, _, _ = take_turns(
                variants, FLAGS.rounds, 1 + FLAGS.calls, peer_python
            )
            key = {"format": name, "length": length}
            measured.append(key | summary(seconds) | {"seconds": seconds})
            _show([latency_line(measured[-1])])
    return measured


def summary(seconds):
    """Return medians of both sides, and quartiles of each round's ratios."""
    ratios = [
        theirs / ours
        for ours, theirs in zip(seconds[OURS], seconds[THEIRS], strict=True)
    ]
    names = ("lower_quartile", "median", "upper_quartile")
    quartiles = statistics.quantiles(ratios, n=4, method="inclusive")
    return {
        "milliseconds": {
            who: 1000 * statistics.median(times) for who, times in seconds.items()
        },
        "theirs_over_ours": dict(zip(names, quartiles, strict=True)),
    }


def measure_memory(sides, settings, peer_python):
    """Return a list of dicts: `who`, `format`, `runtime`, `file` and `peak` in bytes.

    A separate process loads each file.
    """
    measured = []
    for name in FORMATS:
        for who, paths in sides.items():
            variants = [variant(who, paths[name], settings)]
            _, memory, versions = take_turns(variants, 1, 1, peer_python)
            [(runtime, version)] = versions.items()
            measured.append(
                {
                    "who": who,
                    "format": name,
                    "runtime": f"{runtime} {version}",
                    "file": os.path.getsize(paths[name]),
                    "peak": memory[who],
                }
            )
    return measured


def difference_lines(differences):
    """Yield the printed lines about the outputs."""
    yield f"difference from {THEIRS} in float32: greatest, mean"
    for who, formats in differences.items():
        for name, one in formats.items():
            yield f"{name:8} {who:13} {one['greatest']:.1e} {one['mean']:.1e}"


LATENCY_HEADER = (
    f"\nformat   length {OURS:>10} {THEIRS:>13}   {THEIRS} / {OURS} (quartiles)"
)


def latency_line(measured):
    """Return the printed line for one format and length."""
    times, ratios = measured["milliseconds"], measured["theirs_over_ours"]
    return (
        f"{measured['format']:8} {measured['length']:6} {times[OURS]:7.2f} ms "
        f"{times[THEIRS]:10.2f} ms   {ratios['median']:.2f} "
        f"({ratios['lower_quartile']:.2f}-{ratios['upper_quartile']:.2f})"
    )


def memory_lines(measured, length):
    """Yield the printed lines about memory."""
    yield f"\nformat   {'MB':20}     file   peak of a row of {length}"
    for one in measured:
        file, peak = one["file"] / MEGABYTE, one["peak"] / MEGABYTE
        yield f"{one['format']:8} {one['who']:20} {file:8.1f} {peak:6.1f}"


if __name__ == "__main__":
    run(main)
