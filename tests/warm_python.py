"""Python processes that need not import TensorFlow, which takes seconds.

Each is forked from one process that has only imported TensorFlow and Keras: no devices,
no threads, nothing of this project. Scripts therefore see the state of a new process.
Tests of the interpreter's start use `subprocess`.
"""

import atexit
import gc
import multiprocessing
import os
import pathlib
import runpy
import signal
import subprocess
import sys
import tempfile
import threading

from places import TESTS

# On systems where forking is less safe than on Linux, a process starts fresh.
CONTEXT = multiprocessing.get_context(
    "forkserver" if sys.platform == "linux" else "spawn"
)
CONTEXT.set_forkserver_preload(["tensorflow", "keras", "tokenizers", "h5py"])


class Started:
    """A process of `start`, with the needed parts of `subprocess.Popen`."""

    def __init__(self, process, stdout):
        self.pid = process.pid
        self.stdout = stdout
        self._process = process

    @property
    def returncode(self):
        return self._process.exitcode

    def poll(self):
        return self.returncode

    def wait(self, timeout=None):
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(str(self._process), timeout)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout=None):
        """Return (the rest of its output, None); kill it after the timeout."""
        timer = threading.Timer(timeout or 900, self.kill)
        timer.start()
        try:
            output = "" if self.stdout.closed else self.stdout.read()
            self.stdout.close()
            self.wait()
            return output, None
        finally:
            timer.cancel()


def start(arguments, cwd=None, env=None, log=None):
    """Start a script like `python ARGUMENTS`, in its own process group.

    Args:
      arguments: a script's path, or "-c" and a program, then its arguments.
      cwd: its working directory.
      env: its environment; by default ours.
      log: file for its output; by default the result's `stdout`.
    """
    reader, writer = CONTEXT.Pipe(duplex=False)
    settings = {
        "arguments": [str(argument) for argument in arguments],
        "cwd": str(cwd or os.getcwd()),
        "env": dict(env or os.environ),
        "files": (os.devnull, *([str(log)] * 2 if log else [None, None])),
    }
    return Started(*_forked(settings, reader, writer))


def run(arguments, cwd=None, env=None, stdin="", timeout=600):
    """Run a script like `start` until it ends, with a text as its standard input.

    Returns:
      `subprocess.CompletedProcess` with texts; a `TimeoutExpired` is raised if it takes
      too long.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = [pathlib.Path(folder, name) for name in ("in", "out", "err")]
        files[0].write_bytes(stdin.encode("utf-8", "surrogateescape"))
        settings = {
            "arguments": [str(argument) for argument in arguments],
            "cwd": str(cwd or os.getcwd()),
            "env": dict(env or os.environ),
            "files": tuple(map(str, files)),
        }
        process, stdout = _forked(settings, *CONTEXT.Pipe(duplex=False))
        stdout.close()
        started = Started(process, stdout)
        try:
            status = started.wait(timeout)
        finally:
            started.kill()
        texts = [path.read_text() for path in files[1:]]
    return subprocess.CompletedProcess(arguments, status, *texts)


def _forked(settings, reader, writer):
    """Return the process, and its standard output as a stream."""
    process = CONTEXT.Process(target=_begin, args=(settings, writer))
    process.start()
    writer.close()
    stdout = os.fdopen(os.dup(reader.fileno()), encoding="utf-8", errors="replace")
    reader.close()
    # It must have its own group before a signal is sent to that group.
    assert stdout.read(1) == "\n"
    return process, stdout


def _begin(settings, writer):
    """Become the script, in the new process."""
    # The garbage collector can skip the imported objects.
    gc.freeze()
    os.setsid()
    os.environ.clear()
    os.environ.update(settings["env"])
    os.chdir(settings["cwd"])
    os.write(writer.fileno(), b"\n")
    _redirect(settings["files"], writer.fileno())
    writer.close()
    first, *rest = settings["arguments"]
    program = rest.pop(0) if first == "-c" else None
    folder = "" if program else os.path.dirname(os.path.abspath(first))
    sys.path[:] = [folder, *_path()]
    sys.argv = [first, *rest]
    try:
        if program:
            exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})
        else:
            runpy.run_path(first, run_name="__main__")
    finally:
        atexit._run_exitfuncs()


def _redirect(files, stdout):
    """Open files as standard input, output and error; None for `stdout`."""
    for number, name in enumerate(files):
        if name is None:
            os.dup2(stdout, number)
            continue
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND if number else os.O_RDONLY
        opened = os.open(name, flags)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    # The original stream has already checked whether its file can seek.
    buffering = 1 if os.environ.get("PYTHONUNBUFFERED") else -1
    sys.stdout = os.fdopen(1, "w", buffering, closefd=False)


def _path():
    """Return `sys.path` without the paths that the tests have added."""
    plain = [p for p in sys.path if p and not p.startswith(str(TESTS))]
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return [*filter(None, given), *plain]
