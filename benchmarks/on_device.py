r"""A `.tflite` beside ONNX Runtime on the same weights: latency, memory, differences.

    python benchmarks/on_device.py --model=all-MiniLM-L6-v2 --output=on_device.json

Both sides make their files of an encoder from one Hugging Face directory, in float32
and with weights of 8 bits: ours as `export_model.py --format=tflite` does, ONNX
Runtime's from PyTorch as `peers/onnx_runtime.py` says. First their outputs are
compared, on a random row of each length without padding. Then each file is loaded by a
process of its own, and the processes compute in turns, one at a time, a row at a time.
A turn is one call that does not count and --calls that do; the fastest of them is the
turn's. Its ratio is that of two turns made one after the other.

Memory is the peak resident set of a process that loads a file and computes rows of
--memory_length, less what the process had before, with the runtime imported; the mapped
pages of the file are in it. Signatures of other lengths cost memory even if they are
not called, so a .tflite with the one signature is measured, too. It is read from
/proc, as Linux has it. ONNX Runtime gets an environment of its own, in --peer_env.
"""

import contextlib
import dataclasses
import functools
import importlib
import importlib.metadata
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from absl import flags  # noqa: E402

from benchmarks.peers import environment  # noqa: E402
from benchmarks.yardstick.own_process import forget_peak, peak_memory, timed  # noqa: E402
from benchmarks.yardstick.processes import PAUSE, answering  # noqa: E402
from official_bert import files  # noqa: E402
from official_bert.command_line.program import require, run, start_tensorflow  # noqa: E402
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
flags.DEFINE_string(
    "answering",
    None,
    "For the benchmark itself: be the process that computes with this file.",
)

OURS, THEIRS = "ours", "ONNX Runtime"
OURS_ONE_LENGTH = "ours, one length"
FORMATS = ("float32", "int8")
# What rounding may do; another model, or another activation, differs by more.
TOLERANCE = 1e-3
MEGABYTE = 1e6


def main():
    """Compare outputs, then latency, then memory; print tables, write JSON."""
    threads = FLAGS.threads or os.cpu_count()
    if FLAGS.answering:
        return answer(FLAGS.answering, threads)
    require("model", "output")
    lengths = read_lengths()
    model = open_encoder(FLAGS.model, lengths)
    rows = {
        length: random_row(length, len(model.tokenizer.vocab)) for length in lengths
    }
    with tempfile.TemporaryDirectory() as folder:
        python = environment.peer_python(FLAGS.peer_env)
        theirs = python, _write_theirs(folder)
        ours = sys.executable, write_ours(folder, model)
        one_length = dataclasses.replace(model, lengths=(FLAGS.memory_length,))
        ours_alone = sys.executable, write_ours(folder, one_length, "one_")
        sides = {OURS: ours, THEIRS: theirs}
        results = {"cores": os.cpu_count(), "threads": threads}
        results["differences"] = compare(sides, rows, threads, folder)
        _show(difference_lines(results["differences"]))
        results["latency"] = _measure_latency(sides, rows, threads)
        sides = {OURS: ours, OURS_ONE_LENGTH: ours_alone, THEIRS: theirs}
        results["memory"] = measure_memory(sides, rows[FLAGS.memory_length], threads)
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


def random_row(length, vocab_size):
    """Return ids of two segments as dict of name -> list of `length` ints."""
    ids = np.random.default_rng(length).integers(vocab_size, size=length)
    return {
        "input_ids": ids.tolist(),
        "input_mask": [1] * length,
        "segment_ids": [int(place >= length // 2) for place in range(length)],
    }


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


def answer(path, threads):
    """Be a process that computes: read requests from stdin until it ends.

    A line of stdout tells of the runtime. Then each line of stdin is a request as JSON:
    `row`, dict of name -> list of S ints; `calls` that count; `outputs`, null or the
    `.npz` file to write them to. Each answer is a line of JSON: `seconds` of the calls,
    and `memory`, the peak in bytes beyond what there was before the file was loaded.

    Args:
      path: of a `.tflite` or an ONNX file.
      threads: to compute with.
    """
    is_ours = path.endswith(".tflite")
    runtime, dtype, open_model = (_import_ours if is_ours else _import_theirs)()
    forget_peak()
    before = peak_memory()
    compute = open_model(path, threads)
    print(json.dumps({"runtime": runtime}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        row = {name: np.array([ids], dtype) for name, ids in asked["row"].items()}
        # The first call of a length takes memory and lays out the computation.
        outputs = compute(row)
        seconds = [timed(compute, row) for _ in range(asked["calls"])]
        if asked["outputs"]:
            np.savez(asked["outputs"], **outputs)
        memory = peak_memory() - before
        print(json.dumps({"seconds": seconds, "memory": memory}), flush=True)


def _import_ours():
    """Return (runtime and version, dtype of ids, function that loads a file)."""
    from official_bert.fine_tuning.tflite_model import SIGNATURE, interpreter

    try:
        importlib.import_module("ai_edge_litert.interpreter")
        runtime = f"LiteRT {importlib.metadata.version('ai-edge-litert')}"
    except ImportError:
        version, _ = start_tensorflow(_import_tensorflow)
        runtime = f"TensorFlow {version}"

    def open_model(path, threads):
        loaded = interpreter(path, threads)
        runner = functools.cache(loaded.get_signature_runner)
        return lambda row: runner(SIGNATURE.format(row["input_ids"].shape[1]))(**row)

    return runtime, np.int32, open_model


def _import_tensorflow():
    """Return its version and its interpreter, which is imported where first named."""
    import tensorflow as tf

    return tf.__version__, tf.lite.Interpreter


def _import_theirs():
    """Return (runtime and version, dtype of ids, function that loads a file)."""
    from benchmarks.peers import onnx_runtime

    runtime = f"{THEIRS} {importlib.metadata.version('onnxruntime')}"
    return runtime, np.int64, onnx_runtime.open_model


@contextlib.contextmanager
def computing(python, path, threads):
    """Run a process that computes with a file; see `answer`.

    Yields:
      (what it tells of its runtime, function: row, calls, outputs -> its answer, dict).

    Raises:
      UserError: it ended.
    """
    command = [python, __file__, f"--answering={path}", f"--threads={threads}"]
    with answering(command, path) as (told, ask):

        def ask_for(row, calls=0, outputs=None):
            return ask({"row": row, "calls": calls, "outputs": outputs})

        yield told["runtime"], ask_for


def compare(sides, rows, threads, folder):
    """Compare the outputs of all rows with those of ONNX Runtime in float32.

    Returns:
      dict of side -> dict of format -> `difference` of the two.

    Raises:
      UserError: our float32 is not the same model.
    """
    outputs = {
        (who, name): read_outputs(python, paths[name], rows.values(), threads, folder)
        for who, (python, paths) in sides.items()
        for name in FORMATS
    }
    exact = outputs[THEIRS, FORMATS[0]]
    found = {OURS: {}, THEIRS: {}}
    for (who, name), values in outputs.items():
        if values is not exact:
            found[who][name] = difference(values, exact)
    greatest = found[OURS][FORMATS[0]]["greatest"]
    if not greatest <= TOLERANCE:
        raise UserError(
            f"--model: the outputs of both sides differ by {greatest:.1e} in float32, "
            f"and {TOLERANCE:.0e} is allowed; give an encoder of BERT with its pooler."
        )
    return found


def read_outputs(python, path, rows, threads, folder):
    """Return the outputs of rows, a list of dicts of float32 [1, …]."""
    written = os.path.join(folder, "outputs.npz")
    outputs = []
    with computing(python, path, threads) as (_, ask):
        for row in rows:
            ask(row, outputs=written)
            with np.load(written) as values:
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


def _measure_latency(sides, rows, threads):
    """Measure each format and length, printing a line of each as it is done.

    Returns:
      list of dicts: `format`, `length`, what `summary` returns, and the seconds.
    """
    measured = []
    _show([LATENCY_HEADER])
    for name in FORMATS:
        with contextlib.ExitStack() as stack:
            asks = {
                who: stack.enter_context(computing(python, paths[name], threads))[1]
                for who, (python, paths) in sides.items()
            }
            for length, row in rows.items():
                seconds = take_turns(asks, row, FLAGS.rounds, FLAGS.calls)
                key = {"format": name, "length": length}
                measured.append(key | summary(seconds) | {"seconds": seconds})
                _show([latency_line(measured[-1])])
    return measured


def take_turns(asks, row, rounds, calls):
    """Return dict of side -> the fastest call of each of its turns, in seconds.

    Args:
      asks: dict of side -> function; see `computing`.
      row: dict of name -> list of ints.
      rounds: turns of each.
      calls: that count in a turn.
    """
    seconds = {who: [] for who in asks}
    for _ in range(rounds):
        for who, ask in asks.items():
            time.sleep(PAUSE)
            seconds[who].append(min(ask(row, calls)["seconds"]))
    return seconds


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


def measure_memory(sides, row, threads):
    """Return list of dicts: `who`, `format`, `runtime`, `file` and `peak` in bytes.

    Each file is loaded by a process of its own, which nothing else has used.
    """
    measured = []
    for name in FORMATS:
        for who, (python, paths) in sides.items():
            with computing(python, paths[name], threads) as (runtime, ask):
                peak = ask(row, 2)["memory"]
            size = os.path.getsize(paths[name])
            key = {"who": who, "format": name, "runtime": runtime}
            measured.append(key | {"file": size, "peak": peak})
    return measured


def difference_lines(differences):
    """Yield what is printed of the outputs."""
    yield f"difference from {THEIRS} in float32: greatest, mean"
    for who, formats in differences.items():
        for name, found in formats.items():
            yield f"{name:8} {who:13} {found['greatest']:.1e} {found['mean']:.1e}"


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
