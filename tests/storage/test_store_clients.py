"""TensorFlow's own client of Cloud Storage, with the test server.

Commands whose files are all in `gs://`, and what they say when a store refuses. Each
file runs in a mount namespace of its own, which needs root.
"""

import pathlib
import subprocess
import sys

import private_store
import pytest

FOLDER = pathlib.Path(__file__).parent
# These files share helpers with the tests of training.
SETTINGS = "pythonpath=. tests ports/js tests/training"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["store_commands.py", "store_errors.py"])
def test_inside_a_namespace(name):
    reason = private_store.why_not()
    if reason:
        pytest.skip(reason)
    ended = private_store.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
        + ["-o", SETTINGS, FOLDER / name],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=FOLDER.parents[1],
    )
    assert ended.returncode == 0, ended.stdout[-6000:]
