r"""Test an endpoint under load and malformed requests: latency, throughput, errors.

    python benchmarks/serving.py --model_dir=output/reviews --output=serving.json

It exports a classifier of single texts twice: with the usual lengths, and with
rows always padded to the longest. It serves both with `serve.py` and measures
them alternately. Then eight clients send --num_requests requests of all kinds,
including malformed ones, while a new version is written. Finally the server is
killed during a switch and restarted. Every response is compared with Python's
prediction.
"""

import collections
import itertools
import json
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from absl import flags  # noqa: E402

from benchmarks.served import served, start  # noqa: E402
from official_bert.command_line.flag_values import locate, require  # noqa: E402
from official_bert.command_line.program import run  # noqa: E402
from official_bert.command_line.tensorflow_start import start_tensorflow  # noqa: E402

FLAGS = flags.FLAGS

flags.DEFINE_string("model_dir", None, "A fine-tuned classifier of single texts.")
flags.DEFINE_string("output", None, "JSON file for all numbers.")
flags.DEFINE_integer("rounds", 20, "Timed requests of each kind.", 1)
flags.DEFINE_integer("num_requests", 10_000, "Number of mixed requests.", 0)
flags.DEFINE_integer("seed", 1, "Seed for the order of the mixed requests.")

CLIENTS = 8
POLL = "--poll_s=0.05"
SENTENCE = "the train left on time and we had the carriage to ourselves so we slept"
BATCHES, NUM_WORDS = (1, 8, 32), (12, 56, 240)
TOLERANCE = 1e-5
ANSWERS_BEFORE_KILL = 100

# Name -> (path after the model's URL, body, expected status).
BAD = {
    "not JSON": (":predict", b"{", 400),
    "empty body": (":predict", b"", 400),
    "a number": (":predict", b'{"instances": [1]}', 400),
    "nothing": (":predict", b"{}", 400),
    "no rows": (":predict", b'{"instances": []}', 400),
    "wrong name": (":predict", b'{"instances": [{"words": "a"}]}', 400),
    "no such signature": (
        ":predict",
        b'{"signature_name": "x", "instances": ["a"]}',
        400,
    ),
    "ragged": (
        ":predict",
        b'{"signature_name": "tokens", "inputs": {"input_ids": [[1], [1, 2]]}}',
        400,
    ),
    "both forms": (":predict", b'{"instances": ["a"], "inputs": ["a"]}', 400),
    "no such version": ("/versions/999:predict", b'{"instances": ["a"]}', 404),
}


def main():
    """Export, serve, measure, send malformed requests; print and write the results."""
    require("model_dir", "output")
    start_tensorflow()
    from official_bert.tasks.classifier.predictor import ClassifierPredictor

    predictor = ClassifierPredictor(locate(FLAGS.model_dir))
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        short, padded = os.path.join(folder, "m"), os.path.join(folder, "padded", "m")
        _export(short)
        _export(padded, f"--lengths={predictor.task.max_seq_length}")
        with served(short, POLL) as url, served(padded) as padded_url:
            figures["latency"] = _latencies(url)
            figures["padding"] = _ratio_to_padding(url, padded_url)
        figures["mixed"] = _mixed(short, predictor)
        figures["kill"] = _killed_in_a_switch(short, predictor)
    pathlib.Path(FLAGS.output).write_text(json.dumps(figures, indent=2) + "\n", "utf-8")
    wrong = figures["mixed"]["wrong"] + figures["kill"]["wrong"]
    return 1 if wrong else 0


def _export(directory, *arguments):
    subprocess.run(
        [
            sys.executable,
            ROOT / "run_scripts" / "export_model.py",
            f"--model_dir={FLAGS.model_dir}",
            f"--export_dir={directory}",
            *arguments,
        ],
        check=True,
        capture_output=True,
    )


def _ask(url, body):
    """Send a request; return (status, JSON)."""
    try:
        with urllib.request.urlopen(url, body, timeout=120) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def _text(num_words, start=0):
    return " ".join(
        itertools.islice(itertools.cycle(SENTENCE.split()), start, start + num_words)
    )


def _timed(url, texts):
    """Return the milliseconds of one request."""
    body = json.dumps({"instances": texts}).encode()
    start = time.perf_counter()
    status, _ = _ask(f"{url}:predict", body)
    assert status == 200
    return 1000 * (time.perf_counter() - start)


def _latencies(url):
    """Return rows of numbers for each request size and text length."""
    rows = []
    print("texts  words    p50 ms    p95 ms    p99 ms   texts/s")
    for batch, words in itertools.product(BATCHES, NUM_WORDS):
        texts = [_text(words, number) for number in range(batch)]
        _timed(url, texts)
        times = [_timed(url, texts) for _ in range(FLAGS.rounds)]
        cuts = statistics.quantiles(times, n=100, method="inclusive")
        row = {
            "texts": batch,
            "words": words,
            **{f"p{part}_ms": cuts[part - 1] for part in (50, 95, 99)},
            "texts_per_second": 1000 * batch / statistics.fmean(times),
        }
        rows.append(row)
        print("{:5} {:6} {:9.1f} {:9.1f} {:9.1f} {:9.1f}".format(*row.values()))
    return rows


def _ratio_to_padding(url, padded_url):
    """Return the speed ratio of short and padded texts, measured alternately."""
    texts = [_text(NUM_WORDS[0], number) for number in range(8)]
    ratios = []
    for _ in range(FLAGS.rounds + 1):
        ratios.append(_timed(padded_url, texts) / _timed(url, texts))
    ratio = statistics.median(ratios[1:])
    print(f"padded to the longest / usual lengths, 8 short texts: {ratio:.1f} x")
    return {"ratio": ratio, "least": min(ratios[1:]), "greatest": max(ratios[1:])}


def _expected(predictor):
    """Return a list of (text, probabilities) for various texts."""
    texts = [_text(1 + 3 * number, number) for number in range(40)]
    texts += ["", "Zoë 😀 我们", "x" * 300, "a" * 1_000_000]
    found = predictor.predict(texts)
    return [
        (text, list(one.probabilities.values()))
        for text, one in zip(texts, found, strict=True)
    ]


def _check(url, expected):
    """Send one text; return whether the prediction is right."""
    text, probabilities = expected
    status, answer = _ask(
        f"{url}:predict", json.dumps({"instances": [{"text": text}]}).encode()
    )
    if status != 200:
        return False
    found = answer["predictions"][0]["probabilities"]
    pairs = zip(found, probabilities, strict=True)
    return all(abs(one - other) < TOLERANCE for one, other in pairs)


def _check_bad(url, kind):
    """Send a malformed request; return whether its status is the expected one."""
    path, body, status = BAD[kind]
    found, answer = _ask(url + path, body)
    return found == status and list(answer) == ["error"]


def _mixed(directory, predictor):
    """Return the counts of requests of all kinds, while a version is added."""
    expected = _expected(predictor)
    order = random.Random(FLAGS.seed)
    jobs = []
    for _ in range(FLAGS.num_requests):
        if order.random() < 0.3:
            jobs.append((_check_bad, order.choice(sorted(BAD))))
        else:
            # Long texts are rare.
            weights = [1] * (len(expected) - 1) + [0.02]
            jobs.append((_check, order.choices(expected, weights)[0]))
    counts = collections.Counter()
    with served(directory, POLL) as url:
        start = time.perf_counter()
        with ThreadPoolExecutor(CLIENTS) as clients:
            done = [clients.submit(check, url, what) for check, what in jobs]
            _add_version(directory)
            for (check, _), job in zip(jobs, done, strict=True):
                kind = "malformed" if check is _check_bad else "answered"
                counts[kind if job.result() else "wrong"] += 1
        seconds = time.perf_counter() - start
        status, answer = _ask(url, None)
        versions = [one["version"] for one in answer["model_version_status"]]
    print(
        f"{len(jobs)} mixed requests: {counts['answered']} answered, "
        f"{counts['malformed']} malformed ones rejected, {counts['wrong']} "
        f"wrong; {len(jobs) / seconds:.0f} per second; version {versions[0]} at "
        "the end"
    )
    return {**dict.fromkeys(("answered", "malformed", "wrong"), 0), **counts}


def _add_version(directory):
    """Write the next version like `export_model.py`; it appears at once."""
    number = 1 + max(int(name) for name in os.listdir(directory) if name.isdigit())
    temporary = os.path.join(directory, f"{number}.tmp")
    shutil.copytree(os.path.join(directory, "1"), temporary)
    os.replace(temporary, os.path.join(directory, str(number)))


def _killed_in_a_switch(directory, predictor):
    """Kill the server while it switches; return the counts of responses."""
    expected = _expected(predictor)[:20]
    counts = collections.Counter(answered=0, wrong=0, unanswered=0)
    server, url = start(directory, POLL)
    is_over = threading.Event()

    def ask_on(number):
        for one in itertools.islice(itertools.cycle(expected), number, None):
            if is_over.is_set():
                return
            try:
                counts["answered" if _check(url, one) else "wrong"] += 1
            except (OSError, ValueError):
                counts["unanswered"] += 1
                return

    with ThreadPoolExecutor(CLIENTS) as clients:
        for number in range(CLIENTS):
            clients.submit(ask_on, number)
        while counts["answered"] < ANSWERS_BEFORE_KILL and not counts["unanswered"]:
            time.sleep(0.01)
        _add_version(directory)
        time.sleep(random.Random(FLAGS.seed).uniform(0.05, 0.5))
        server.send_signal(signal.SIGKILL)
        server.communicate()
        is_over.set()
    with served(directory, POLL) as new_url:
        right = sum(_check(new_url, one) for one in expected)
    counts["wrong"] += len(expected) - right
    print(
        f"killed during a switch: {counts['answered']} responses before, "
        f"{counts['wrong']} of them wrong; {counts['unanswered']} connections "
        f"broken; after the restart, {right} of {len(expected)} predictions are "
        "right"
    )
    return dict(counts)


if __name__ == "__main__":
    run(main)
