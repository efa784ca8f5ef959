"""Runs scripts of this folder as processes, some as workers of one cluster."""

import contextlib
import json
import os
import pathlib
import socket

import warm_python

FOLDER = pathlib.Path(__file__).parent
TIMEOUT = 900


def start(script, *arguments, **changes):
    """Start a script of this folder, or a script given by its path."""
    paths = f"{FOLDER.parent}:{FOLDER.parent.parent}:{FOLDER}"
    environment = {**os.environ, "PYTHONPATH": paths}
    return warm_python.start([FOLDER / script, *arguments], env=environment | changes)


def finish(process):
    """Return the output of a process, which must succeed."""
    output, _ = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 0, output[-3000:]
    return output


@contextlib.contextmanager
def running(*processes):
    """At the end, kill the processes that still run."""
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def cluster(size=2):
    """Return a `TF_CONFIG` for each worker of a cluster on this machine."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(size)]
        for each in sockets:
            each.bind(("localhost", 0))
        hosts = [f"localhost:{each.getsockname()[1]}" for each in sockets]
    return [
        json.dumps(
            {
                "cluster": {"worker": hosts},
                "task": {"type": "worker", "index": index},
            }
        )
        for index in range(size)
    ]
