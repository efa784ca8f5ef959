r"""A `.tflite` beside ONNX Runtime on the same weights: latency, memory, differences.

    python benchmarks/on_device.py --model=all-MiniLM-L6-v2 --output=on_device.json

Both sides make their files of an encoder from one Hugging Face directory, in float32
and with weights of 8 bits: ours as `export_model.py --format=tflite` does, ONNX
Runtime's from PyTorch as `peers/onnx_runtime.py` says. First their outputs are
compared, on a random row of each length without padding. Then each file is loaded by a
process of its own, and two processes compute in turns, one at a time, a row at a time.
A turn is a call that warms up and --calls more; the fastest of them is the turn's. A
ratio is that of two neighboring turns.

Memory is the peak resident set of a process that loads a file and computes rows of
--memory_length, less the peak before, with the runtime imported; the mapped pages of
the file are in it. Signatures of other lengths cost memory even if they are not called,
so a .tflite with the one signature is measured, too. It is read from /proc of Linux.
ONNX Runtime gets an environment of its own, in --peer_env.
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
flags.DEFINE_list("lengths", ["32", "64", "128", "256", "384"], "Lengths of rows.")
flags.DEFINE_integer("rounds", 20, "Turns of each side.", lower_bound=2)
flags.DEFINE_integer("calls", 3, "Calls in a turn that count.", lower_bound=1)
flags.DEFINE_integer("threads", None, "Threads; default: one for each core.", 1)
flags.DEFINE_integer(
    "memory_length", 128, "The length, of --lengths, that memory is measured with."
)
flags.DEFINE_string("peer_env", "build/peers", "Folder of ONNX Runtime's environment.")
flags.DEFINE_string("output", None, "JSON file for all figures.")
OURS, THEIRS = "ours", "ONNX Runtime"
OURS_ONE_LENGTH = "ours, one length"
FORMATS = ("float32", "int8")
# What rounding may do; another model, or another activation, differs by more.
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
    """Return --lengths as rising numbers.

    Raises:
      UserError: one is no number, or --memory_length is not among them.
    """
    for length in FLAGS.lengths:
        if not length.isdecimal() or int(length) < 3:
            raise UserError(
                f"--lengths: {length!r} is no length of rows; give numbers from 3, as "
                "32,64,128."
            )
    lengths = sorted(set(map(int, FLAGS.lengths)))
    if FLAGS.memory_length not in lengths:
        raise UserError(
            f"--memory_length {FLAGS.memory_length} is not among --lengths: give one "
            f"of {', '.join(map(str, lengths))}."
        )
    return lengths


def open_encoder(path, lengths):
    """Load an encoder as a `DeviceModel` of these lengths.

    Raises:
      UserError: there is none, it is fine-tuned, or its rows are shorter.
    """
    start_tensorflow()
    from official_bert.export.tflite.model import open_device_model

    model = open_device_model(path)
    if model.predictor:
        raise UserError(
            f"--model: {path} is a {model.what}; give a pre-trained encoder, the "
            "outputs of which are compared."
        )
    if lengths[-1] > model.lengths[-1]:
        raise UserError(
            f"--lengths: {path} reads {model.lengths[-1]} tokens, not {lengths[-1]}; "
            "leave that out."
        )
    return dataclasses.replace(model, lengths=tuple(lengths))


def write_ours(folder, model, prefix=""):
    """Write a `DeviceModel` as `.tflite`; return dict of format -> path."""
    from official_bert.export.tflite import converter

    paths = {}
    for name in FORMATS:
        paths[name] = os.path.join(folder, f"{prefix}{name}.tflite")
        fixed = model.with_fixed_lengths()
        # What the converter says on its way is for nobody, unless it fails.
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
      who: side, for people.
      path: of a `.tflite` or an ONNX file.
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
            f"--model: the outputs of both sides differ by {greatest:.1e} in float32, "
            f"and {TOLERANCE:.0e} is allowed; give an encoder of BERT with its pooler."
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
    """Return the greatest and the mean difference of outputs.

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
    """Measure each format and length, printing a line of each as it is done.

    Returns:
      list of dicts: `format`, `length`, what `summary` returns, and the seconds.
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
    """Return medians of both sides, and the spread of the ratios of each round."""
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
    """Return list of dicts: `who`, `format`, `runtime`, `file` and `peak` in bytes.

    Each file is loaded by a process of its own.
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
    """Yield what is printed of the outputs."""
    yield f"difference from {THEIRS} in float32: greatest, mean"
    for who, formats in differences.items():
        for name, one in formats.items():
            yield f"{name:8} {who:13} {one['greatest']:.1e} {one['mean']:.1e}"


LATENCY_HEADER = (
    f"\nformat   length {OURS:>10} {THEIRS:>13}   {THEIRS} / {OURS} (quartiles)"
)


def latency_line(measured):
    """Return what is printed of one format and length."""
    times, ratios = measured["milliseconds"], measured["theirs_over_ours"]
    return (
        f"{measured['format']:8} {measured['length']:6} {times[OURS]:7.2f} ms "
        f"{times[THEIRS]:10.2f} ms   {ratios['median']:.2f} "
        f"({ratios['lower_quartile']:.2f}-{ratios['upper_quartile']:.2f})"
    )


def memory_lines(measured, length):
    """Yield what is printed of memory."""
    yield f"\nformat   {'MB':20}     file   peak of a row of {length}"
    for one in measured:
        file, peak = one["file"] / MEGABYTE, one["peak"] / MEGABYTE
        yield f"{one['format']:8} {one['who']:20} {file:8.1f} {peak:6.1f}"


if __name__ == "__main__":
    run(main)
