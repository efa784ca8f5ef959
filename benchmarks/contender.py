"""A process that does one thing over and over and tells how long it took.

    python benchmarks/contender.py MODULE FUNCTION '{"argument": "value"}'

`yardstick/processes.py` starts it. MODULE is one of `contenders`, and its FUNCTION,
called with the arguments, returns a function that does the thing once. A line of stdout
tells of the versions. Then each line of stdin is a number of calls, and each answer a
line of JSON: `seconds` of the calls, and `memory`, the peak in bytes beyond what the
process had when the module was imported and nothing was made yet.

It needs the standard library alone, since it runs in environments of others too.
"""

import contextlib
import importlib
import json
import os
import pathlib
import sys
import time


def main():
    """Make the function, then call it as often as is asked."""
    module, name, arguments = sys.argv[1:]
    answers = _own_stdout()
    made = importlib.import_module(f"contenders.{module}")
    _forget_peak()
    before = _peak_memory()
    call = getattr(made, name)(**json.loads(arguments))
    print(json.dumps({"versions": made.versions()}), file=answers)
    for line in sys.stdin:
        seconds = [_timed(call) for _ in range(int(line))]
        memory = _peak_memory() - before
        print(json.dumps({"seconds": seconds, "memory": memory}), file=answers)


def _own_stdout():
    """Return stdout as a file of lines; what libraries print goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return answers


def _timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _forget_peak():
    """Make what is resident now the peak, where that is allowed."""
    with contextlib.suppress(OSError):
        pathlib.Path("/proc/self/clear_refs").write_text("5")


def _peak_memory():
    """Return the peak of this process's resident set, in bytes."""
    status = pathlib.Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


if __name__ == "__main__":
    main()
