"""Starts `many_runs.py`, and says what a refused command looks like."""

import json
import pathlib
import subprocess
import sys

FOLDER = pathlib.Path(__file__).parent


def run_many(script, runs, cwd):
    """Return name -> result for a dict of name -> {"arguments", "stdin"}."""
    done = subprocess.run(
        [sys.executable, str(FOLDER / "many_runs.py"), script],
        input=json.dumps(list(runs.values())),
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    results = json.loads(done.stdout.splitlines()[-1])
    return dict(zip(runs, results, strict=True))


def assert_refused(result, words):
    """One sentence on stderr with these words, status 1 or 2, within seconds."""
    assert "Traceback" not in result["stderr"], result["stderr"]
    assert result["status"] in (1, 2), result
    assert result["stderr"].startswith("error: "), result["stderr"]
    assert result["stderr"].count("\n") == 1, result["stderr"]
    for word in words:
        assert word in result["stderr"], result["stderr"]
    # Seconds on a machine that does nothing else.
    assert result["seconds"] < 60
