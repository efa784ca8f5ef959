"""The comparison of servers under load, without the peers: clients and numbers."""

import asyncio
import collections
import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from benchmarks import load_clients
from official_bert.errors import UserError

A_BODY = [load_clients.body_of("a")]
Measured = collections.namedtuple("Measured", "url texts most")


@contextlib.contextmanager
def running(answer, delay=0.005):
    """Run a server; yield its URL, the texts it got, and its most requests at once."""
    texts, at_once, most = [], [0], [0]
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # One packet per response, without waiting for an ACK.

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                texts.extend(body["instances"])
                at_once[0] += 1
                most[0] = max(most[0], at_once[0])
            threading.Event().wait(delay)
            with lock:
                at_once[0] -= 1
            status, content = answer(body["instances"])
            content = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever).start()
    try:
        yield Measured(f"http://127.0.0.1:{server.server_port}/m", texts, most)
    finally:
        server.shutdown()
        server.server_close()


def constant(*probabilities):
    rows = {"predictions": [{"probabilities": probabilities}]}
    return lambda texts: (200, rows)


def measured(url, bodies, **settings):
    return asyncio.run(load_clients.measure(url, bodies, **settings))


def test_requests_are_limited_in_number():
    bodies = [load_clients.body_of(text) for text in "abc"]
    with running(constant(0.5)) as server:
        times, rate = measured(
            server.url, bodies, clients=2, seconds=60, num_requests=7
        )
    assert sorted(server.texts) == sorted("abcabca")
    assert len(times) == 7
    assert all(time > 5 for time in times)  # Milliseconds; the server waits 5.
    # Two clients, each with at most one request per 5 ms.
    assert 0 < rate < 2 / 0.005


def test_requests_are_limited_in_time():
    with running(constant(0.5)) as server:
        times, rate = measured(
            server.url,
            A_BODY,
            clients=1,
            seconds=0.3,
            num_requests=10**6,
        )
    assert 1 <= len(times) <= 60
    assert rate < 1 / 0.005


def test_clients_wait_for_their_responses():
    with running(constant(0.5), delay=0.05) as server:
        measured(
            server.url,
            A_BODY,
            clients=8,
            seconds=60,
            num_requests=80,
        )
    assert 4 <= server.most[0] <= 8


def test_an_error_of_the_server_ends_the_measurement():
    with (
        running(lambda texts: (503, {"error": "full"})) as server,
        pytest.raises(UserError, match="returned 503: .*full"),
    ):
        measured(
            server.url,
            A_BODY,
            clients=2,
            seconds=9,
            num_requests=9,
        )


def test_difference_of_two_servers():
    with running(constant(0.5, 0.5)) as one, running(constant(0.25, 0.75)) as other:
        urls = {"one": one.url, "other": other.url}
        texts = {"short": ["a", "b"]}
        assert asyncio.run(load_clients.largest_difference(urls, texts)) == 0.25
        assert sorted(one.texts) == sorted(other.texts) == ["a", "b"]
        del urls["other"]
        assert asyncio.run(load_clients.largest_difference(urls, texts)) == 0


def test_texts_have_their_lengths_and_depend_on_the_seed():
    texts = load_clients.texts_of(6, 20, 1)
    assert len(texts) == load_clients.NUM_TEXTS
    assert {len(text.split()) for text in texts} == set(range(6, 21))
    assert texts == load_clients.texts_of(6, 20, 1)
    assert texts != load_clients.texts_of(6, 21, 1)


def test_rows_have_the_ratio_to_the_first():
    with running(constant(1), 0.002) as fast, running(constant(1), 0.04) as slow:
        urls = {"fast": fast.url, "slow": slow.url}
        ours, theirs = load_clients.alternate(urls, ["a"], 2, 2, 0.3, 1000)
    assert [ours["server"], theirs["server"]] == ["fast", "slow"]
    assert ours["ratio"] == ours["least_ratio"] == 1
    assert theirs["ratio"] > 2
    assert theirs["texts_per_second"] < 2 / 0.04
    assert 40 < theirs["p50_ms"] <= theirs["p99_ms"]
