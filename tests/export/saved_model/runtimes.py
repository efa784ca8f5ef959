r"""Check that exports run in the C++ runtimes of several versions of TensorFlow.

    make runtimes

Writes a tiny model of each kind. A C program (`runtimes.c`) runs them with the
libraries of TensorFlow's wheels. Its process contains no Python. It runs with an empty
environment, and with a Turkish locale, which would break an English model
(`tf.strings.lower` follows it). All outputs must equal Python's. The folder keeps the
unpacked libraries and the table of the results:

    python tests/export/saved_model/runtimes.py build/runtimes
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS.parent), str(TESTS)]
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import c_program  # noqa: E402
import tensorflow as tf  # noqa: E402
import tiny_exports  # noqa: E402
from absl import logging  # noqa: E402

from official_bert.constants import INPUTS  # noqa: E402
from official_bert.errors import UserError  # noqa: E402
from official_bert.export.saved_model import verify, writer  # noqa: E402
from official_bert.export.saved_model.signatures import (  # noqa: E402
    EXAMPLES,
    SERVING,
    TOKENS,
)

VERSIONS = ("2.12.1", "2.14.1", "2.16.2", "2.18.1", "2.20.0", "2.21.0")
PACKAGES = ("tensorflow-cpu", "tensorflow")
# These wheels have the C library of every version.
PYTHON = "3.11"
# Prefixes of the headers that `tensorflow/c/c_api.h` includes, in some version.
HEADERS = ("tensorflow/c/", "tensorflow/core/platform/", "tensorflow/tsl/")
HEADERS += ("tsl/", "xla/tsl/")
LOCALE = "tr_TR.UTF-8"
# "TITLE" in lower case.
ENGLISH, TURKISH = "title", "t\u0131tle"


def fetch(version, folder):
    """Return the unpacked `tensorflow` folder of a wheel; None if pip has none."""
    target = folder / version
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            wheel = _download(version, pathlib.Path(temporary))
            if wheel is None:
                return None
            unpacked = pathlib.Path(temporary, "unpacked")
            _unpack(wheel, unpacked)
            unpacked.rename(target)
    return target / "tensorflow"


def _download(version, folder):
    for name in PACKAGES:
        print(f"Downloading {name} {version}.", flush=True)
        done = subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            + ["--disable-pip-version-check", "--only-binary=:all:"]
            + [f"--python-version={PYTHON}", "--dest", folder, f"{name}=={version}"],
            check=False,
        )
        if done.returncode == 0:
            return next(folder.glob("*.whl"))
    return None


def _unpack(wheel, folder):
    """Unpack the libraries of a wheel and the headers of the C API."""
    wanted = tuple(f"tensorflow/include/{prefix}" for prefix in HEADERS)
    libraries = [f"tensorflow/{name}" for name in c_program.LIBRARIES]
    with zipfile.ZipFile(wheel) as packed:
        for name in packed.namelist():
            if name in libraries or (name.startswith(wanted) and name.endswith(".h")):
                packed.extract(name, folder)


def turkish_locale(folder):
    """Return the variables of the environment with the Turkish locale.

    The C library finds the locale if this machine can create it. TensorFlow
    follows `LC_ALL` in both cases.
    """
    variables = {"LC_ALL": LOCALE}
    if shutil.which("localedef"):
        path = folder / "locales" / LOCALE
        path.parent.mkdir(exist_ok=True)
        command = ["localedef", "-i", "tr_TR", "-f", "UTF-8", path]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode == 0:
            variables["LOCPATH"] = str(path.parent.resolve())
    return variables


def environments(folder):
    """Return pairs: the variables of a process, and TITLE in lower case there."""
    turkish = turkish_locale(folder)
    pairs = [({}, ENGLISH), ({"LC_ALL": LOCALE}, TURKISH)]
    return pairs + ([(turkish, TURKISH)] if "LOCPATH" in turkish else [])


def write_export(kind, folder):
    """Write an export of a kind; return (its folder, its `verify.Case`s)."""
    _, export = tiny_exports.open_kind(kind)
    directory = os.path.join(folder, kind.replace(" ", "-"))
    path, _ = writer.write(directory, export, "tiny")
    cases = verify.cases_of(export, _rows(export.signatures[SERVING].specs))
    return path, cases + of_records(export, cases[-1])


def _rows(specs):
    """Return inputs of `SERVING` in addition to the samples."""
    columns = {n: tiny_exports.random_texts(20, seed) for seed, n in enumerate(specs)}
    if "choices" in columns:
        columns["choices"] = [[one, "on", "TITLE I"] for one in columns["choices"]]
    return [
        dict(zip(columns, row, strict=True))
        for row in zip(*columns.values(), strict=True)
    ]


def of_records(export, tokens):
    """Return the case of `TOKENS` as records: a list of one case, or none."""
    assert tokens.signature == TOKENS
    if EXAMPLES not in export.signatures:
        return []
    records = []
    for row in zip(*(tokens.inputs[name] for name in INPUTS), strict=True):
        record = tf.train.Example()
        for name, values in zip(INPUTS, row, strict=True):
            record.features.feature[name].int64_list.value.extend(values)
        records.append(record.SerializeToString())
    return [verify.Case(EXAMPLES, {"examples": records}, tokens.wanted)]


def compare(program, path, cases, environment, lower_title):
    """Run an export in one environment; return the greatest difference.

    Raises:
      UserError: the program failed, or an output differs from Python's.
    """
    done = c_program.run(program, path, cases, environment)
    if done.lower_title != lower_title:
        raise UserError(f"TITLE in lower case is {done.lower_title}: wrong locale.")
    return max(map(difference, cases, done.answers))


def difference(case, answer):
    """Return the greatest difference of the arrays of an answer from a case.

    Raises:
      UserError: a shape, text or number differs.
    """
    for name, wanted in case.wanted.items():
        if answer[name].shape != wanted.shape:
            raise UserError(f"{name} has the shape {answer[name].shape}.")
    lists = {
        name: [text.decode() for text in value.reshape(-1)]
        if value.dtype == object
        else value.tolist()
        for name, value in answer.items()
    }
    return verify.difference(case, lists)


def cell(program, path, cases, folder):
    """Return the result of an export in all environments, as a cell of the table."""
    try:
        differences = [
            compare(program, path, cases, *one) for one in environments(folder)
        ]
    except UserError as error:
        return f"FAILED: {error}"
    return f"{max(differences):.0e}"


def build_all(folder):
    """Return a dict of version -> the program; versions that pip lacks are left out."""
    programs = {}
    for version in VERSIONS:
        package = fetch(version, folder)
        if package is None:
            print(f"pip has no TensorFlow {version} for this machine.", flush=True)
        else:
            programs[version] = c_program.build(package, folder / f"run_{version}")
    return programs


def main(folder):
    """Run all exports in all versions; exit with status 1 if one differs."""
    if not shutil.which("gcc"):
        sys.exit("gcc is not installed. On Debian: apt install gcc libc6-dev")
    folder.mkdir(parents=True, exist_ok=True)
    programs = build_all(folder)
    if not programs:
        sys.exit("pip has none of these versions of TensorFlow.")
    names = [version.rpartition(".")[0] for version in programs]
    lines = [f"| export | rows | {' | '.join(names)} |"]
    lines.append("|---" * (2 + len(names)) + "|")
    failed = []
    with tempfile.TemporaryDirectory() as exports:
        for kind in tiny_exports.KINDS:
            path, cases = write_export(kind, exports)
            cells = [str(sum(case.num_rows for case in cases))]
            for version, program in programs.items():
                cells.append(cell(program, path, cases, folder))
                print(f"TensorFlow {version}, {kind}: {cells[-1]}", flush=True)
                if cells[-1].startswith("FAILED"):
                    failed.append(f"{kind} in {version}")
                    cells[-1] = "FAILED"
            lines.append(f"| {kind} | {' | '.join(cells)} |")
    table = "\n".join(lines)
    (folder / "table.md").write_text(f"{table}\n")
    print(f"\nGreatest difference from Python, in each version:\n\n{table}")
    sys.exit(f"Failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    logging.set_verbosity("error")
    main(pathlib.Path(sys.argv[1]))
