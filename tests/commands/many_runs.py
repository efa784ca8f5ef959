"""Run a script many times in one process, because TensorFlow starts slowly.

    python many_runs.py run_pretraining < runs.json

Reads a JSON list of {"arguments": [...], "stdin": text}. Writes a JSON list of
{"status", "stdout", "stderr", "logged", "seconds"} on the last line. "logged" contains
the log lines that a normal run writes to stderr.
"""

import contextlib
import importlib
import io
import json
import pathlib
import sys
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from absl import flags, logging  # noqa: E402

from official_bert.command_line import program as command_line  # noqa: E402


def run_once(script, arguments, stdin=""):
    """Run the script's `main` as the command line does."""
    for name in flags.FLAGS:
        flags.FLAGS[name].unparse()
    flags.FLAGS.unparse_flags()
    name = script.__name__.rpartition(".")[2]
    sys.argv = [f"{name}.py", *arguments]
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin.encode("utf-8", "surrogateescape")))
    out, err, logged, status = io.StringIO(), io.StringIO(), io.StringIO(), None
    logging.get_absl_handler().python_handler.setStream(logged)
    started = time.monotonic()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            command_line.run(script.main)
        except SystemExit as end:
            status = end.code or 0
        except BaseException:
            traceback.print_exc()
    return {
        "status": status,
        "stdout": out.getvalue(),
        "stderr": err.getvalue(),
        "logged": logged.getvalue(),
        "seconds": time.monotonic() - started,
    }


if __name__ == "__main__":
    module = importlib.import_module(f"official_bert.commands.{sys.argv[1]}")
    results = [run_once(module, **one) for one in json.load(sys.stdin)]
    print(json.dumps(results))
