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
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import aiohttp  # noqa: E402
from absl import flags  # noqa: E402

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
# Texts of each kind; a client's next text is the next in this list.
NUM_TEXTS = 256
TOLERANCE = 1e-5
# A request that waits this long ends the measurement with an error.
TIMEOUT_S = 60
SENTENCE = (
    "the train left on time and we had the carriage to ourselves so we slept until "
    "the guard came by with coffee which was better than the one at the station "
    "although nobody had expected anything of a Sunday in November"
)


def main():
    """Write the models, start the servers, measure; print and write the results."""
    require("model", "output")
    clients = list(map(int, FLAGS.clients))
    python = environment.peer_python(FLAGS.peer_env)
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        urls = _start_all(stack, folder, python)
        texts = {kind: texts_of(*words) for kind, words in NUM_WORDS.items()}
        difference = asyncio.run(largest_difference(urls, texts))
        if difference > TOLERANCE:
            raise UserError(
                f"The servers' probabilities differ by {difference:.1e}, more than "
                f"{TOLERANCE}. They do not serve the same model."
            )
        rows = []
        for kind, count in itertools.product(texts, clients):
            rows += _alternate(urls, kind, texts[kind], count)
    result = {"rows": rows, "largest_difference": difference}
    pathlib.Path(FLAGS.output).write_text(json.dumps(result, indent=1) + "\n", "utf-8")


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


def texts_of(least, most):
    """Return `NUM_TEXTS` texts of `least` to `most` words."""
    draw = random.Random(FLAGS.seed)
    words = SENTENCE.split()
    return [
        " ".join(draw.choices(words, k=draw.randint(least, most)))
        for _ in range(NUM_TEXTS)
    ]


async def largest_difference(urls, texts):
    """Return the largest difference of a probability from the first server's."""
    largest = 0.0
    async with _session() as session:
        for group in texts.values():
            found = []
            for url in urls.values():
                # Sent at once, so that servers with batches join them.
                calls = [_ask(session, url, _body(text)) for text in group[:32]]
                found.append(list(map(_probabilities, await asyncio.gather(*calls))))
            for other in found[1:]:
                for row, expected in zip(other, found[0], strict=True):
                    pairs = zip(row, expected, strict=True)
                    largest = max(largest, *(abs(one - two) for one, two in pairs))
    return largest


def _probabilities(body):
    return json.loads(body)["predictions"][0]["probabilities"]


def _session():
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
    )


def _body(text):
    return json.dumps({"instances": [text]}).encode()


async def _ask(session, url, body):
    async with session.post(f"{url}:predict", data=body) as response:
        content = await response.read()
        if response.status != 200:
            raise UserError(f"{url} returned {response.status}: {content[:200]!r}")
        return content


async def measure(url, bodies, clients, seconds, num_requests):
    """Send requests for some time; return (milliseconds of each, texts per second).

    Args:
      url: of the model.
      bodies: list of the requests' bodies; all clients together repeat them.
      clients: number of clients; each waits for its response.
      seconds: after this time, no client sends another request.
      num_requests: limit of all requests.
    """
    times: list[float] = []
    turn = itertools.islice(itertools.cycle(bodies), num_requests)

    async def client(session, end):
        for body in turn:
            start = time.perf_counter()
            if start >= end:
                return
            await _ask(session, url, body)
            times.append(1000 * (time.perf_counter() - start))

    async with _session() as session:
        start = time.perf_counter()
        calls = [client(session, start + seconds) for _ in range(clients)]
        await asyncio.gather(*calls)
        return times, len(times) / (time.perf_counter() - start)


def _alternate(urls, kind, texts, clients):
    """Return a row of numbers for each server, measured alternately."""
    bodies = list(map(_body, texts))
    times: dict = {name: [] for name in urls}
    rates: dict = {name: [] for name in urls}
    for number in range(FLAGS.rounds + 1):
        # The first round is a short warm-up.
        seconds = FLAGS.seconds if number else min(FLAGS.seconds, 1.5)
        for name, url in urls.items():
            found, rate = asyncio.run(
                measure(url, bodies, clients, seconds, FLAGS.num_requests)
            )
            if number:
                times[name] += found
                rates[name].append(rate)
    rows = []
    for name in urls:
        pairs = zip(rates[OURS], rates[name], strict=True)
        ratios = [ours / theirs for ours, theirs in pairs]
        cuts = statistics.quantiles(times[name], n=100, method="inclusive")
        row = {
            "texts": kind,
            "clients": clients,
            "server": name,
            "texts_per_second": statistics.median(rates[name]),
            "p50_ms": cuts[49],
            "p99_ms": cuts[98],
            "ratio": statistics.median(ratios),
            "least_ratio": min(ratios),
            "greatest_ratio": max(ratios),
        }
        rows.append(row)
        print(
            f"{kind:5} {clients:3} {name:22} {row['texts_per_second']:7.1f} texts/s  "
            f"p50 {row['p50_ms']:7.1f} ms  p99 {row['p99_ms']:7.1f} ms  "
            f"{OURS} / it {row['ratio']:.2f} ({min(ratios):.2f}-{max(ratios):.2f})",
            flush=True,
        )
    return rows


if __name__ == "__main__":
    run(main)
