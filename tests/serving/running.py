"""A server within the tests' process, and asking one."""

import asyncio
import contextlib
import http.client
import json
import socket
import threading
import urllib.parse

from official_bert.serving import server


@contextlib.contextmanager
def running(versions, **limits):
    """Serve in a thread; yield the URL. At the end it must be all over."""
    started = threading.Event()
    bound = socket.create_server(("127.0.0.1", 0))
    parts = {}

    async def serve():
        parts["stop"], parts["loop"] = asyncio.Event(), asyncio.get_running_loop()
        try:
            parts["unfinished"] = await server.serve(
                versions, server.Limits(**limits), bound, started.set, parts["stop"]
            )
        finally:
            started.set()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        assert started.wait(60)
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    finally:
        parts["loop"].call_soon_threadsafe(parts["stop"].set)
        thread.join(60)
        assert not thread.is_alive()
        bound.close()


def ask(url, method="GET", path="", body=None, headers=(), timeout=60):
    """Return (status, what the JSON of the answer says)."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=timeout)
    with contextlib.closing(connection):
        connection.request(method, path, body, dict(headers))
        answer = connection.getresponse()
        content = answer.read()
    assert answer.getheader("Content-Type").startswith("application/json"), content
    return answer.status, json.loads(content) if content else None


def predict(url, request, path="/v1/models/answers:predict", **options):
    """Post a request, which is bytes or what JSON can hold."""
    if not isinstance(request, bytes):
        request = json.dumps(request).encode()
    return ask(url, "POST", path, request, **options)
