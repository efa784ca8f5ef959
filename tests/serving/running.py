"""Run a server within the tests' process, and send requests to it."""

import asyncio
import contextlib
import http.client
import json
import socket
import threading
import urllib.parse

from aiohttp import web

from official_bert.serving import server


@contextlib.contextmanager
def running(versions, **limits):
    """Serve in a thread and yield the URL; at the end, the thread must have ended."""
    ready, loop = threading.Event(), asyncio.new_event_loop()
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(
        target=server.Server(versions, **limits).run,
        args=(listener, ready.set),
        kwargs={"handle_signals": False, "loop": loop},
    )
    thread.start()
    try:
        assert ready.wait(60)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        loop.call_soon_threadsafe(_stop)
        thread.join(60)
        assert not thread.is_alive()
        listener.close()


def _stop():
    """Stop a server like a signal, which only the main thread would get."""
    raise web.GracefulExit


def ask(url, method="GET", path="", body=None, headers=(), timeout=60):
    """Return (status, JSON of the response)."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=timeout)
    with contextlib.closing(connection):
        connection.request(method, path, body, dict(headers))
        answer = connection.getresponse()
        content = answer.read()
    assert answer.getheader("Content-Type").startswith("application/json"), content
    return answer.status, json.loads(content) if content else None


def predict(url, request, path="/v1/models/answers:predict", **options):
    """Post a request, which is bytes or a JSON value."""
    if not isinstance(request, bytes):
        request = json.dumps(request).encode()
    return ask(url, "POST", path, request, **options)
