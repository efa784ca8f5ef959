"""The first signal is a request; a later signal has its ordinary effect."""

import signal
import subprocess
import sys
import threading

import pytest
from places import ROOT

from official_bert.training import stopping
from official_bert.training.stopping import StopRequest

SIGNALS = [signal.SIGTERM, signal.SIGINT]


@pytest.fixture
def arrived():
    """The signals that reach the test's handlers, which were set before."""
    numbers = []
    before = {
        number: signal.signal(number, lambda number, _: numbers.append(number))
        for number in SIGNALS
    }
    yield numbers
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def later(monkeypatch):
    """Let any second signal be a new request."""
    monkeypatch.setattr(stopping, "ONE_REQUEST_SECONDS", 0.0)


def handlers():
    return [signal.getsignal(number) for number in SIGNALS]


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_is_noted(arrived, number):
    with StopRequest() as request:
        assert not request
        assert request.signal is None
        signal.raise_signal(number)
        assert request
        assert request.signal == number
    assert arrived == []


@pytest.mark.parametrize("second", SIGNALS)
@pytest.mark.parametrize("first", SIGNALS)
def test_the_second_signal_does_what_it_did_before(arrived, later, first, second):
    with StopRequest() as request:
        signal.raise_signal(first)
        signal.raise_signal(second)
        assert arrived == [second]
        assert request.signal == first


@pytest.mark.parametrize("second", SIGNALS)
def test_signals_at_once_are_one_wish(arrived, monkeypatch, second):
    """The group and the parent both send one. The save in progress is not lost."""
    now = [100.0]
    monkeypatch.setattr(stopping.time, "monotonic", lambda: now[0])
    with StopRequest() as request:
        signal.raise_signal(signal.SIGTERM)
        now[0] += stopping.ONE_REQUEST_SECONDS / 2
        signal.raise_signal(second)
        assert (arrived, request.signal) == ([], signal.SIGTERM)
        now[0] += stopping.ONE_REQUEST_SECONDS
        signal.raise_signal(second)
        assert arrived == [second]


@pytest.mark.parametrize("number", [None, *SIGNALS])
def test_handlers_are_put_back(arrived, number):
    before = handlers()
    with StopRequest():
        assert all(one != other for one, other in zip(handlers(), before, strict=True))
        if number is not None:
            signal.raise_signal(number)
    assert handlers() == before


def test_handlers_are_put_back_after_an_error(arrived):
    before = handlers()
    with pytest.raises(ZeroDivisionError), StopRequest():
        _ = 1 / 0
    assert handlers() == before


def test_a_second_ctrl_c_interrupts(later):
    """This uses Python's initial handler."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), StopRequest() as request:
            signal.raise_signal(signal.SIGINT)
            assert request
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_changes_nothing(arrived):
    found = []

    def look():
        with StopRequest() as request:
            found.append((handlers(), bool(request)))

    before = handlers()
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [(before, False)]
    assert handlers() == before


# A process that continues after the first signal and ends with the second.
WORKER = """
import signal
from official_bert.training import stopping
stopping.ONE_REQUEST_SECONDS = 0.0
with stopping.StopRequest() as request:
    print("working", flush=True)
    while not request:
        signal.sigtimedwait([], 0.01)
    print("noted", int(request.signal), flush=True)
    while True:
        signal.sigtimedwait([], 0.01)
"""


@pytest.mark.skipif(not hasattr(signal, "sigtimedwait"), reason="no POSIX signals")
def test_a_process_dies_of_the_second_sigterm():
    with subprocess.Popen(
        [sys.executable, "-c", WORKER], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as worker:
        try:
            assert worker.stdout.readline() == "working\n"
            worker.terminate()
            assert worker.stdout.readline() == f"noted {int(signal.SIGTERM)}\n"
            worker.terminate()
            assert worker.wait(timeout=60) == -signal.SIGTERM
        finally:
            worker.kill()
