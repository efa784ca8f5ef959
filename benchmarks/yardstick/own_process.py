"""What a process that is measured finds out about itself; no library is needed."""

import contextlib
import pathlib
import time


def timed(function, *args):
    """Return the seconds of a call."""
    start = time.perf_counter()
    function(*args)
    return time.perf_counter() - start


def forget_peak():
    """Make what is resident now the peak, where that is allowed."""
    with contextlib.suppress(OSError):
        pathlib.Path("/proc/self/clear_refs").write_text("5")


def peak_memory():
    """Return the peak of this process's resident set, in bytes."""
    status = pathlib.Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])
