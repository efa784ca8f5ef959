r"""Compare servers of one classifier under load: texts per second and latency.

    python benchmarks/load.py --model=all-MiniLM-L6-v2 --output=load.json

The time of a request includes HTTP, tokenizer and model. The servers are `serve.py`
with its defaults and with --noenable_batching, ONNX Runtime with the library
`tokenizers`, alone and with batches, and transformers' text-classification pipeline
(PyTorch). All have the same weights and the same web framework. All run at once, but
only one has clients at a time, and they alternate. Clients and servers share the cores.
A client sends its next text when it has its response.

The number of requests and the seconds of each measurement are limited. All addresses
are 127.0.0.1.
"""

import asyncio
import contextlib
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from absl import flags  # noqa: E402

from benchmarks import load_clients  # noqa: E402
from benchmarks.peers import environment  # noqa: E402
from benchmarks.served import served  # noqa: E402
from official_bert.command_line.flag_values import require  # noqa: E402
from official_bert.command_line.program import run  # noqa: E402
from official_bert.errors import UserError  # noqa: E402

FLAGS = flags.FLAGS

flags.DEFINE_string(
    "model", None, "A classifier or encoder, a directory in Hugging Face's format."
)
flags.DEFINE_string("output", None, "JSON file for all numbers.")
flags.DEFINE_list("clients", ["1", "8", "32"], "Numbers of clients at the same time.")
flags.DEFINE_integer("rounds", 5, "Measurements of each server.", 1)
flags.DEFINE_float("seconds", 4, "Seconds of a measurement.", 0.1)
flags.DEFINE_integer("num_requests", 5_000, "Limit of requests of a measurement.", 1)
flags.DEFINE_integer("seed", 1, "Seed for the texts.")
flags.DEFINE_string("peer_env", "build/peers", "Folder of the peers' environment.")
flags.DEFINE_string(
    "batching_parameters_file", None, "Passed to serve.py. Default: its defaults."
)

OURS, OURS_ALONE = "serve.py", "serve.py, no batching"
ONNX, ONNX_BATCHES = "ONNX Runtime", "ONNX Runtime, batches"
PIPELINE = "transformers pipeline"
# Name -> arguments of `text_server`: library, batch, and threads per product. Two
# threads compute products of one thread, or one thread those of two.
PEERS = {
    ONNX: ("onnx", 1, 1),
    ONNX_BATCHES: ("onnx", 64, 2),
    PIPELINE: ("pipeline", 1, 2),
}
# Kind of text -> least and most words.
NUM_WORDS = {"short": (6, 20), "long": (150, 330)}
TOLERANCE = 1e-5


def main():
    """Write the models, start the servers, measure; print and write the results."""
    require("model", "output")
    clients = list(map(int, FLAGS.clients))
    python = environment.peer_python(FLAGS.peer_env)
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        urls = _start_all(stack, folder, python)
        texts = {
            kind: load_clients.texts_of(*words, FLAGS.seed)
            for kind, words in NUM_WORDS.items()
        }
        difference = asyncio.run(load_clients.largest_difference(urls, texts))
        if difference > TOLERANCE:
            raise UserError(
                f"The servers' probabilities differ by {difference:.1e}, more than "
                f"{TOLERANCE}. They do not serve the same model."
            )
        rows = []
        limits = (FLAGS.rounds, FLAGS.seconds, FLAGS.num_requests)
        for kind, count in itertools.product(texts, clients):
            for row in load_clients.alternate(urls, texts[kind], count, *limits):
                rows.append({"texts": kind} | row)
                _show(rows[-1])
    result = {"rows": rows, "largest_difference": difference}
    pathlib.Path(FLAGS.output).write_text(json.dumps(result, indent=1) + "\n", "utf-8")


def _show(row):
    print(
        "{texts:5} {clients:3} {server:22} {texts_per_second:7.1f} texts/s  "
        "p50 {p50_ms:7.1f} ms  p99 {p99_ms:7.1f} ms  serve.py / it {ratio:.2f} "
        "({least_ratio:.2f}-{greatest_ratio:.2f})".format(**row),
        flush=True,
    )


def _start_all(stack, folder, python):
    """Write all files and start all servers; return name -> URL of the model."""
    classifier, export = folder / "classifier", folder / "exports" / "m"
    module = [python, "-m", "benchmarks.peers.text_server"]
    _call([*module, "write", FLAGS.model, classifier])
    script = ROOT / "run_scripts" / "export_model.py"
    _call(
        [sys.executable, script, f"--model={classifier}", f"--export_dir={export}"],
    )
    file = FLAGS.batching_parameters_file
    ours = [f"--batching_parameters_file={file}"] if file else []
    urls = {
        OURS: stack.enter_context(served(export, *ours)),
        OURS_ALONE: stack.enter_context(served(export, "--noenable_batching")),
    }
    for name, (library, *numbers) in PEERS.items():
        command = [*module, "serve", library, classifier, *numbers]
        urls[name] = stack.enter_context(_peer(command))
    return urls


def _call(command):
    done = subprocess.run(
        list(map(str, command)), cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise UserError(f"{command[1]} failed: {done.stderr[-500:]}")


@contextlib.contextmanager
def _peer(command):
    """Run a peer's server; yield its URL."""
    server = subprocess.Popen(
        list(map(str, command)), cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        found = next(filter(None, (re.search(r"http://\S+", x) for x in server.stdout)))
        yield found[0]
    finally:
        server.terminate()
        server.communicate()


if __name__ == "__main__":
    run(main)
