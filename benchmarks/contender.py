"""A process that does one thing over and over and tells how long it took.

    python benchmarks/contender.py MODULE FUNCTION '{"argument": "value"}'

`yardstick/processes.py` starts it. MODULE is `ours` or one of the peers, as
`peers.kerashub`, and its FUNCTION,
called with the arguments, returns a function that does the thing once. A line of stdout
tells of the versions. Then each line of stdin is a number of calls, and each answer a
line of JSON: `seconds` of the calls, and `memory`, the peak in bytes beyond what the
process had when the module was imported and nothing was made yet.

It needs the standard library alone, since it runs in environments of others too.
"""

import importlib
import json
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.yardstick.own_process import forget_peak, peak_memory, timed  # noqa: E402


def main():
    """Make the function, then call it as often as is asked."""
    module, name, arguments = sys.argv[1:]
    answers = _own_stdout()
    made = importlib.import_module(f"benchmarks.{module}")
    forget_peak()
    before = peak_memory()
    call = getattr(made, name)(**json.loads(arguments))
    print(json.dumps({"versions": made.versions()}), file=answers)
    for line in sys.stdin:
        seconds = [timed(call) for _ in range(int(line))]
        memory = peak_memory() - before
        print(json.dumps({"seconds": seconds, "memory": memory}), file=answers)


def _own_stdout():
    """Return stdout as a file of lines; what libraries print goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return answers


if __name__ == "__main__":
    main()
