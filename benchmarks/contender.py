"""Measure one function in this process: seconds and memory.

    echo 5 | python benchmarks/contender.py MODULE FUNCTION '{"argument": "value"}'

`yardstick/processes.py` starts it. MODULE is `ours` or a peer such as
`peers.kerashub`. Its FUNCTION, called with the arguments, returns a function
that does the work once. The first line of stdout has the versions. Then each
line of stdin is a number of calls, and stdout gets one line of JSON for it:
`seconds` of each call, its `cpu_seconds` over all threads, and `memory`. Memory
is the peak in bytes, minus the peak after the import of the module. A module
may define `device_memory`, which returns the peak of a GPU's memory (0 without
a GPU).

It uses only the standard library, because it also runs in the peers'
environment.
"""

import contextlib
import importlib
import json
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


def main():
    """Make the function, then call it as often as each line of stdin requests."""
    module_name, name, arguments = sys.argv[1:]
    stdout = _own_stdout()
    module = importlib.import_module(f"benchmarks.{module_name}")
    _forget_peak()
    before = _peak_memory()
    device_memory = getattr(module, "device_memory", lambda: 0)
    call = getattr(module, name)(**json.loads(arguments))
    print(json.dumps({"versions": module.versions()}), file=stdout)
    for line in sys.stdin:
        times = [_seconds_of(call) for _ in range(int(line))]
        turn = {
            "seconds": [seconds for seconds, _ in times],
            "cpu_seconds": [cpu_seconds for _, cpu_seconds in times],
            "memory": device_memory() or _peak_memory() - before,
        }
        print(json.dumps(turn), file=stdout)


def _own_stdout():
    """Return stdout as a line-buffered file; redirect other output to stderr."""
    stdout = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return stdout


def _seconds_of(call):
    """Return a call's duration, and the processor time of all threads, in seconds."""
    start, cpu_start = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - start, time.process_time() - cpu_start


def _forget_peak():
    """Reset the peak memory to the current memory, if the system allows it."""
    with contextlib.suppress(OSError):
        pathlib.Path("/proc/self/clear_refs").write_text("5")


def _peak_memory():
    """Return the peak of this process's resident set, in bytes."""
    status = pathlib.Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


if __name__ == "__main__":
    main()
