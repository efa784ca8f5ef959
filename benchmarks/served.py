"""`serve.py` as a process of its own, for the benchmarks of endpoints."""

import contextlib
import pathlib
import re
import subprocess
import sys

SERVE = pathlib.Path(__file__).resolve().parent.parent / "run_scripts" / "serve.py"


def start(directory, *arguments):
    """Start a server; return (its process, the URL of its model)."""
    server = subprocess.Popen(
        [sys.executable, SERVE, f"--model_dir={directory}", "--port=0", *arguments],
        stdout=subprocess.PIPE,
        text=True,
    )
    return server, re.search(r"http://\S+", server.stdout.readline())[0]


@contextlib.contextmanager
def served(directory, *arguments):
    """Yield the URL of a model for as long as a server runs."""
    server, url = start(directory, *arguments)
    try:
        yield url
    finally:
        server.terminate()
        server.communicate()
