r"""Check that exports run in the oldest supported TensorFlow.

    make old-tensorflow

Writes a tiny model of each kind, and compares the other TensorFlow's outputs
with Python's. The process has a locale that would break an English model
(`tf.strings.lower` follows it). To use another interpreter:

    python tests/export/saved_model/old_tensorflow.py build/tensorflow-2.12/bin/python
"""

import functools
import os
import pathlib
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS.parent), str(TESTS)]
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tiny_exports  # noqa: E402
from absl import logging  # noqa: E402

from official_bert.errors import UserError  # noqa: E402
from official_bert.export.saved_model import verify, writer  # noqa: E402
from official_bert.export.saved_model.signatures import SERVING  # noqa: E402

LOCALE = "tr_TR.UTF-8"
ABOUT = """
import tensorflow as tf
print(tf.__version__, tf.strings.lower("TITLE", "utf-8").numpy().decode("utf-8"))
"""


def about(python):
    """Return the version of an interpreter's TensorFlow, after checking its locale."""
    done = subprocess.run(
        [python, "-X", "utf8", "-c", ABOUT],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        sys.exit(f"{python} has no TensorFlow:\n{done.stderr[-600:]}")
    version, lower = done.stdout.split()
    if lower != "t\u0131tle":
        sys.exit(f"{LOCALE} is not what TensorFlow {version} reads: {lower}.")
    return version


def compare(kind, folder):
    """Compare an export of a kind; return the report of `writer.write`."""
    _, export = tiny_exports.open_kind(kind)
    directory = os.path.join(folder, kind.replace(" ", "-"))
    rows = _rows(export.signatures[SERVING].specs)
    _, found = writer.write(directory, export, "tiny", None, rows)
    return found


def _rows(specs):
    """Return inputs of `SERVING` in addition to the samples."""
    columns = {n: tiny_exports.random_texts(20, seed) for seed, n in enumerate(specs)}
    if "choices" in columns:
        columns["choices"] = [[one, "on", "TITLE I"] for one in columns["choices"]]
    return [
        dict(zip(columns, row, strict=True))
        for row in zip(*columns.values(), strict=True)
    ]


def main(python):
    """Compare all kinds; return exit status 0 if all are equal."""
    os.environ["LC_ALL"] = LOCALE
    version, failed = about(python), []
    writer.verify = functools.partial(verify.verify, python=python)
    with tempfile.TemporaryDirectory() as folder:
        for kind in tiny_exports.KINDS:
            try:
                found = compare(kind, folder)
                said = f"{found['rows']} rows, {found['difference']:.0e} at most"
            except UserError as error:
                failed.append(kind)
                said = f"FAILED: {error}"
            print(f"TensorFlow {version}, {kind}: {said}", flush=True)
    sys.exit(f"Failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    logging.set_verbosity("error")
    main(os.path.abspath(sys.argv[1]))
