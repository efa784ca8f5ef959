"""The server's limits, concurrent requests, new versions, and shutdown."""

import concurrent.futures
import gzip
import json
import socket
import threading
import time
import urllib.parse

import pytest
from serving import saved_models
from serving.running import ask, predict, running

from official_bert.serving import model_versions, saved_model

LIMIT = 200_000
ONE = {"instances": ["good"]}


def slow(seconds):
    return {"signature_name": "slow", "instances": [seconds]}


def is_good(answer):
    status, value = answer
    return status == 200 and value["predictions"][0]["score"] == 1.0


@pytest.fixture(scope="module")
def small_url(versions):
    """Return a server with small limits, a short timeout and one slot."""
    limits = {"max_request_bytes": LIMIT, "timeout_s": 0.7, "max_concurrent": 1}
    with running(versions, **limits) as url:
        assert is_good(predict(url, ONE))
        yield url


def connected(url):
    """Return a socket that is connected to the server."""
    parts = urllib.parse.urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), timeout=30)


def body_of(size):
    start, end = b'{"instances": ["', b'"]}'
    return start + b"x" * (size - len(start) - len(end)) + end


@pytest.mark.parametrize("size", [LIMIT + 1, 10 * LIMIT])
@pytest.mark.parametrize("how", ["whole", "in chunks", "packed"])
def test_too_long_a_request(small_url, size, how):
    body, headers = body_of(size), {}
    if how == "packed":
        body, headers = gzip.compress(body), {"Content-Encoding": "gzip"}
    elif how == "in chunks":
        body = iter([body[:1000], body[1000:]])
    path = "/v1/models/answers:predict"
    status, value = ask(small_url, "POST", path, body, headers)
    assert status == 413
    assert list(value) == ["error"] and str(LIMIT) in value["error"]
    assert is_good(predict(small_url, ONE))


def test_as_long_as_a_request_may_be(small_url):
    status, value = predict(small_url, body_of(LIMIT))
    assert status == 200
    assert len(value["predictions"][0]["echo"]) > LIMIT - 30
    packed = gzip.compress(json.dumps(ONE).encode())
    assert is_good(predict(small_url, packed, headers={"Content-Encoding": "gzip"}))


def test_a_packed_body_that_is_damaged(small_url, caplog):
    status, value = predict(small_url, ONE, headers={"Content-Encoding": "gzip"})
    assert (status, list(value)) == (400, ["error"])
    assert is_good(predict(small_url, ONE))
    assert "Traceback" not in caplog.text


def test_too_long_a_time(small_url):
    started = time.monotonic()
    status, value = predict(small_url, slow(1.4))
    assert time.monotonic() - started < 1.3
    assert (status, list(value)) == (504, ["error"])
    assert "0.7 s" in value["error"]
    # A request that timed out while waiting is not computed, so the next one runs.
    assert predict(small_url, slow(5.0))[0] == 504
    assert is_good(predict(small_url, ONE))


def test_a_body_that_never_comes(small_url):
    with connected(small_url) as client:
        client.sendall(
            b"POST /v1/models/answers:predict HTTP/1.1\r\nHost: x\r\n"
            b"Content-Length: 100\r\n\r\n{"
        )
        assert is_good(predict(small_url, ONE))
        assert client.recv(1000).startswith(b"HTTP/1.1 504 ")


def test_a_client_that_goes_away(small_url):
    for _ in range(3):
        with connected(small_url) as client:
            client.sendall(b"POST /v1/models/answers:predict HTTP/1.1\r\nHost: x\r\n")
            client.sendall(b"Content-Length: 100\r\n\r\n{")
    body = json.dumps(slow(0.2)).encode()
    with connected(small_url) as client:
        client.sendall(b"POST /v1/models/answers:predict HTTP/1.1\r\nHost: x\r\n")
        client.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    assert is_good(predict(small_url, ONE))


@pytest.mark.parametrize("sent", [b"good\r\n\r\n", b"\0\xff" * 100, b"GET / \r\n\r\n"])
def test_what_is_no_http(small_url, sent, caplog):
    with connected(small_url) as client:
        client.sendall(sent + b"\r\n\r\n")
        assert client.recv(1000).split()[1] == b"400"
    assert is_good(predict(small_url, ONE))
    assert "Traceback" not in caplog.text


def test_as_many_are_computed_at_once_as_is_said(versions, monkeypatch):
    real, lock, counts = saved_model.run, threading.Lock(), [0, 0]

    def run(*arguments):
        with lock:
            counts[0] += 1
            counts[1] = max(counts)
        time.sleep(0.1)
        with lock:
            counts[0] -= 1
        return real(*arguments)

    monkeypatch.setattr(saved_model, "run", run)
    pool = concurrent.futures.ThreadPoolExecutor(6)
    with running(versions, max_concurrent=2) as url, pool:
        answers = list(pool.map(lambda _: predict(url, ONE), range(6)))
    assert all(map(is_good, answers))
    assert counts == [0, 2]


def test_many_at_a_time_each_get_their_own(own_url):
    def ask_some(number):
        for turn in range(15):
            texts = [f"{number}-{turn}-{row}" for row in range(turn % 4 + 1)]
            status, value = predict(own_url, {"instances": texts})
            if turn % 5 == 4:
                # A bad request does not affect the others.
                assert predict(own_url, b"{")[0] == 400
            assert status == 200
            assert [row["echo"] for row in value["predictions"]] == texts
        return number

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        assert list(pool.map(ask_some, range(12))) == list(range(12))


@pytest.mark.slow
def test_new_versions_take_over_and_no_request_is_lost(tmp_path):
    saved_models.write(tmp_path, 1)
    versions = model_versions.open_model("answers", str(tmp_path))
    done = False

    def ask_on(url):
        seen, is_last = [], False
        while not is_last:
            # One request starts after the last version is served.
            is_last = done
            answer = predict(url, ONE)
            assert is_good(answer), answer
            seen.append(answer[1]["predictions"][0]["version"])
        return seen

    with running(versions, poll_s=0.05) as url:
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            asking = [pool.submit(ask_on, url) for _ in range(4)]
            # Requests during all of this time, with the model they started with.
            long = pool.submit(predict, url, slow(0.5))
            for version in (2, 3):
                saved_models.write(tmp_path, version)
                wait_for_version(url, version)
            done = True
            seen = [each.result() for each in asking]
        assert long.result()[0] == 200
        states = ask(url, path="/v1/models/answers")[1]["model_version_status"]
    for each in seen:
        assert each == sorted(each)
        assert each[-1] == 3
    assert {version for each in seen for version in each} == {1, 2, 3}
    assert [(each["version"], each["state"]) for each in states] == [
        ("3", "AVAILABLE"),
        ("2", "END"),
        ("1", "END"),
    ]


def wait_for_version(url, version):
    for _ in range(1200):
        if ask(url, path=f"/v1/models/answers/versions/{version}/metadata")[0] == 200:
            return
        time.sleep(0.05)
    raise AssertionError(f"version {version} did not come")


def test_the_end_waits_for_requests_and_takes_no_more(versions):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with running(versions) as url, connected(url):
            answer = pool.submit(predict, url, slow(0.8))
            time.sleep(0.3)
        status, value = answer.result()
    assert (status, value) == (200, {"predictions": [pytest.approx(0.8)]})
    with pytest.raises(ConnectionRefusedError):
        connected(url)


def test_a_defect_of_ours_is_an_error_too(versions, monkeypatch, caplog):
    def fail(*arguments):
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(versions, "get", fail)
    with running(versions) as url:
        answer = predict(url, ONE)
    assert answer == (500, {"error": "ZeroDivisionError: a defect"})
    assert "Traceback" in caplog.text


def test_looking_for_versions_goes_on_after_a_failure(versions, monkeypatch, caplog):
    calls = []

    def fail():
        calls.append(None)
        raise OSError("gone")

    monkeypatch.setattr(versions, "refresh", fail)
    with running(versions, poll_s=0.02) as url:
        for _ in range(500):
            if len(calls) > 2:
                break
            time.sleep(0.02)
        assert is_good(predict(url, ONE))
    assert len(calls) > 2
    assert "trying again" in caplog.text
