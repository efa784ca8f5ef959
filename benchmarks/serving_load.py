r"""Throughput and latency of a classifier's server with 1, 8 and 32 clients.

    python benchmarks/serving_load.py --model=output/sst2_hf --output=load.json

--model is a Hugging Face directory of a classifier of single texts, for example of
`convert_checkpoint.py`. All servers use its weights and compute in float32:

- ours: the SavedModel of `export_model.py`, served by `serve.py` with and without
  batching;
- ONNX Runtime with `tokenizers`, and a transformers pipeline (PyTorch), each behind
  aiohttp, the web framework of `serve.py` (`benchmarks/peers/classifier_servers.py`).

Each client sends one text, waits for the answer and sends the next, with new texts
of SST-2's form. The servers take turns; while one is measured, the others are idle.
The clients use the same cores.
"""

import asyncio
import contextlib
import itertools
import os
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
from official_bert import files  # noqa: E402
from official_bert.command_line.flag_values import require  # noqa: E402
from official_bert.command_line.program import run  # noqa: E402
from official_bert.errors import UserError  # noqa: E402

FLAGS = flags.FLAGS

flags.DEFINE_string("model", None, "Hugging Face directory of a classifier.")
flags.DEFINE_string("output", None, "JSON file for all numbers.")
flags.DEFINE_integer("rounds", 3, "Turns of each server.", 1)
flags.DEFINE_float("seconds", 4.0, "Seconds of each turn.", 0.1)
flags.DEFINE_integer("seed", 1, "Seed of the texts.")
flags.DEFINE_string("peer_env", "build/peers", "Folder of the peers' environment.")

CLIENTS = (1, 8, 32)
# Words of a text: a sentence of a review, and a paragraph.
WORDS = {"short": (6, 24), "long": (120, 200)}
OURS, ALONE = "official_bert", "official_bert --noenable_batching"
PEERS = {
    "ONNX Runtime, 2 requests x 1 thread": "onnx-2x1",
    "ONNX Runtime, 1 request x 2 threads": "onnx-1x2",
    "transformers pipeline": "pipeline",
}
VOCABULARY = (
    "the a of and is it that film movie story actor scene plot never always very too "
    "good bad funny slow warm dull bright clever empty lovely strange honest moving "
    "people watch love hate find make feel think through with without about because"
)
TOLERANCE = 1e-4


def main():
    """Start the servers, compare their answers, measure them, and print a table."""
    require("model", "output")
    with contextlib.ExitStack() as stack:
        urls = _start(stack)
        _compare_answers(urls)
        times = {}
        for turn in range(FLAGS.rounds):
            print(f"round {turn + 1} of {FLAGS.rounds}", flush=True)
            for clients, length in itertools.product(CLIENTS, WORDS):
                for name, url in urls.items():
                    texts = _texts(length, f"{FLAGS.seed} {turn}")
                    found = asyncio.run(_load(url, clients, texts, FLAGS.seconds))
                    times.setdefault((name, clients, length), []).append(found)
    rows = [_row(*key, turns) for key, turns in times.items()]
    _print(rows)
    files.write_json(FLAGS.output, {"seed": FLAGS.seed, "rows": rows})


def _start(stack):
    """Return name -> URL of all servers."""
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    export = os.path.join(folder, "classifier")
    command = [sys.executable, ROOT / "run_scripts" / "export_model.py"]
    arguments = [f"--model={FLAGS.model}", f"--export_dir={export}"]
    subprocess.run([*command, *arguments], check=True, stdout=subprocess.DEVNULL)
    urls = {
        OURS: stack.enter_context(served(export)),
        ALONE: stack.enter_context(served(export, "--noenable_batching")),
    }
    urls = {name: f"{url}:predict" for name, url in urls.items()}
    python = environment.peer_python(FLAGS.peer_env)
    for name, kind in PEERS.items():
        process = subprocess.Popen(
            [python, "-m", "benchmarks.peers.classifier_servers", kind, FLAGS.model],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )
        stack.callback(process.wait)
        stack.callback(process.terminate)
        for line in process.stdout:
            if found := re.search(r"http://\S+", line):
                urls[name] = found[0]
                break
        if name not in urls:
            raise UserError(f"benchmarks/peers: the server of {name} ended.")
    return urls


def _texts(length, seed):
    """Yield texts without end."""
    numbers = random.Random(f"{length} {seed}")
    while True:
        count = numbers.randint(*WORDS[length])
        yield " ".join(numbers.choices(VOCABULARY.split(), k=count))


async def _ask(session, url, text):
    """Return the probabilities of a text."""
    async with session.post(url, json={"instances": [text]}) as answer:
        assert answer.status == 200, await answer.text()
        (found,) = (await answer.json())["predictions"]
    return found["probabilities"] if isinstance(found, dict) else found


def _compare_answers(urls):
    """Require that all servers return the same probabilities."""

    async def answers(url):
        async with aiohttp.ClientSession() as session:
            texts = [*itertools.islice(_texts("short", "c"), 20)]
            texts += itertools.islice(_texts("long", "c"), 5)
            return [await _ask(session, url, text) for text in texts]

    found = {name: asyncio.run(answers(url)) for name, url in urls.items()}
    for name, rows in found.items():
        pairs = zip(itertools.chain(*rows), itertools.chain(*found[OURS]), strict=True)
        worst = max(abs(one - other) for one, other in pairs)
        print(f"{name}: greatest difference of a probability {worst:.1e}")
        assert worst < TOLERANCE


async def _load(url, clients, texts, seconds):
    """Return the milliseconds of all requests that are answered in some seconds."""
    connector = aiohttp.TCPConnector(limit=clients)
    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.gather(*(_ask(session, url, next(texts)) for _ in range(clients)))
        times, end = [], time.perf_counter() + seconds

        async def client():
            while (began := time.perf_counter()) < end:
                await _ask(session, url, next(texts))
                times.append(1000 * (time.perf_counter() - began))

        began = time.perf_counter()
        await asyncio.gather(*(client() for _ in range(clients)))
        return times, time.perf_counter() - began


def _row(name, clients, length, turns):
    """Return a row of numbers; the rate is the median of the turns."""
    cuts = statistics.quantiles(
        itertools.chain(*(times for times, _ in turns)), n=100, method="inclusive"
    )
    return {
        "server": name,
        "clients": clients,
        "texts": length,
        "requests_per_second": statistics.median(len(t) / s for t, s in turns),
        "p50_ms": cuts[49],
        "p99_ms": cuts[98],
    }


def _print(rows):
    """Print the table, with ratios to ours."""
    ours = {(r["clients"], r["texts"]): r for r in rows if r["server"] == OURS}
    print(f"{'server':38}clients texts  requests/s  ours /   p50 ms   p99 ms")
    for row in sorted(rows, key=lambda row: (row["texts"], row["clients"])):
        rate = row["requests_per_second"]
        base = ours[row["clients"], row["texts"]]["requests_per_second"]
        print(
            f"{row['server']:38}{row['clients']:7} {row['texts']:6} {rate:10.1f} "
            f"{base / rate:7.2f} {row['p50_ms']:8.1f} {row['p99_ms']:8.1f}"
        )


if __name__ == "__main__":
    run(main)
