"""Serve a folder of `export_model.py --format=web`, to try it on one machine."""

import contextlib
import http.server
import os
import signal
import socket
import threading
from collections.abc import Callable
from typing import Any

from official_bert.export.web.headers import HEADERS

# Files of a page of `export_model.py --format=web`.
_PAGE, _MODEL = "index.html", "model.json"


def is_page(directory: str | os.PathLike[str]) -> bool:
    """Return whether a folder is an export for browsers."""
    names = (_PAGE, _MODEL)
    return all(os.path.isfile(os.path.join(directory, name)) for name in names)


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files with the headers for threads, without folder listings."""

    protocol_version = "HTTP/1.1"
    extensions_map = {
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".json": "application/json",
        ".wasm": "application/wasm",
        ".svg": "image/svg+xml",
        ".md": "text/plain; charset=utf-8",
        ".txt": "text/plain; charset=utf-8",
    }

    def end_headers(self) -> None:
        """Add headers to each response."""
        for name, value in HEADERS.items():
            self.send_header(name, value)
        # A new export must replace an old one at the next visit.
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def list_directory(self, path: str | os.PathLike[str]) -> None:
        """Refuse to list a folder."""
        self.send_error(404, "File not found")

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: a page requests twenty files."""


class _Server(http.server.ThreadingHTTPServer):
    """A server on a socket that already listens."""

    def __init__(self, listener: socket.socket, directory: str | os.PathLike[str]):
        super().__init__(
            listener.getsockname()[:2],
            lambda *args: _Handler(*args, directory=os.fspath(directory)),
            bind_and_activate=False,
        )
        self.socket.close()
        self.socket = listener

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect before the response is sent."""


def run(
    listener: socket.socket,
    directory: str | os.PathLike[str],
    announce: Callable[[], None],
) -> None:
    """Serve a folder until SIGINT or SIGTERM.

    Args:
      listener: listening socket.
      directory: the folder.
      announce: function without arguments, called when the server is ready.
    """
    server = _Server(listener, directory)

    def stop(number, frame):
        # `shutdown` waits for the loop that runs in this thread.
        threading.Thread(target=server.shutdown).start()

    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(ValueError):  # Only the main thread gets signals.
            signal.signal(number, stop)
    announce()
    server.serve_forever(poll_interval=0.1)
