"""`serve.py` as a separate process, for the benchmarks of endpoints."""

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
    """Run a server; yield the URL of its model."""
    server, url = start(directory, *arguments)
    try:
        yield url
    finally:
        server.terminate()
        server.communicate()
