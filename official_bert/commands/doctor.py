"""Check whether this machine can run the project, and list what to fix.

    python run_scripts/doctor.py

It checks the versions of Python and of all dependencies, releases that are known to be
broken, TensorFlow's start, GPUs, memory and disk. The exit status is 0 if all is well
and 1 if something must be fixed.
"""

import functools
import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import typing
from collections.abc import Iterator, Mapping, Sequence

from official_bert import machine
from official_bert.command_line.command_table import PROGRAM, in_users_form
from official_bert.command_line.flag_values import IS_CHECKOUT, ROOT

if typing.TYPE_CHECKING:
    from packaging.requirements import Requirement

# The checkout's requirements. An installation has its own list, with extras.
REQUIREMENTS = ROOT / "requirements.txt"

# The range of requires-python in pyproject.toml; a test compares the two.
PYTHON_RANGE = (3, 11), (3, 14)

# Flags that the help shows first.
REQUIRED: tuple[str, ...] = ()
MOST_USED: tuple[str, ...] = ()

# Package -> consequence if it is missing. All others in requirements.txt are required.
OPTIONAL = {
    "aiohttp": "serve.py cannot run",
    "prometheus_client": "serve.py cannot run",
    "matplotlib": "no figures of training curves and attention",
    "pytest": "the tests cannot run",
    "tensorboard": "metrics are written as JSON lines only",
}

# Package -> the extra of this package that installs it.
EXTRAS = {
    "aiohttp": "serving",
    "prometheus_client": "serving",
    "matplotlib": "plots",
    "tensorboard": "tensorboard",
}

# Releases that requirements.txt excludes, with the reason.
KNOWN_BAD = {
    ("tensorflow-text", "2.20.0"): "its FastWordpieceTokenizer rejects vocabularies",
    ("tensorflow-text", "2.21.0"): "importing it fails (undefined symbol icudt77_dat)",
}

# Code that reports on TensorFlow. It runs in a child process, because starting
# TensorFlow can kill the process, for example on a CPU without AVX.
PROBE = """
import json, keras, tensorflow as tf
probe = {"backend": keras.config.backend(), "gpus": []}
for gpu in tf.config.list_physical_devices("GPU"):
    details = tf.config.experimental.get_device_details(gpu)
    probe["gpus"].append(details.get("device_name", gpu.name))
try:
    from tensorflow.python.util import _pywrap_util_port
    probe["onednn"] = bool(_pywrap_util_port.IsMklEnabled())
except ImportError:
    probe["onednn"] = None
print(json.dumps(probe), flush=True)
"""
PROBE_SECONDS = 300

GB = 1e9


class Finding(typing.NamedTuple):
    """One line of the report; `level` is "ok", "note" or "bad"."""

    level: str
    text: str


OK, NOTE, BAD = (functools.partial(Finding, level) for level in ("ok", "note", "bad"))


def main() -> int:
    """Print the report; return 1 if anything must be fixed."""
    num_bad = 0
    for level, text in examine():
        # Print each line at once: starting TensorFlow takes seconds.
        print(in_users_form(f"{level:4}  {text}"), flush=True)
        num_bad += level == "bad"
    if not num_bad:
        print("\nThis machine is ready.")
        return 0
    lines = "the line" if num_bad == 1 else f"the {num_bad} lines"
    print(f"\nThis machine is not ready. Fix {lines} marked bad.")
    return 1


def examine() -> Iterator[Finding]:
    """Yield the findings one by one, the quick ones first."""
    yield check_python(sys.version_info)
    if importlib.util.find_spec("packaging") is None:
        install = "-r requirements.txt" if IS_CHECKOUT else PROGRAM
        yield BAD(f"packaging is not installed. Run: pip install {install}")
        return
    versions = machine.installed_versions([*requirements(), "tensorboard"])
    yield from check_versions(versions)
    yield from check_environment(os.environ)
    yield check_machine(machine.available_cores(), machine.total_memory())
    yield check_disk(os.getcwd(), "work in")
    yield check_disk(tempfile.gettempdir(), "set TMPDIR to")
    yield from check_tensorflow(versions)


def requirements() -> dict[str, "Requirement"]:
    """Return this package's requirements as a dict: package -> `Requirement`.

    They come from requirements.txt in a checkout, else from the installed package's
    metadata, with the extras of `EXTRAS`.
    """
    from packaging.requirements import Requirement

    if REQUIREMENTS.exists():
        lines = REQUIREMENTS.read_text(encoding="utf-8").splitlines()
        parsed = [Requirement(line) for line in lines if line and line[0] != "#"]
        return {requirement.name: requirement for requirement in parsed}
    found = {}
    for line in importlib.metadata.requires(PROGRAM) or []:
        requirement = Requirement(line)
        extra = EXTRAS.get(requirement.name, "")
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            if extra:
                requirement.marker = None
            found[requirement.name] = requirement
    return found


def check_python(version_info: Sequence[typing.Any]) -> Finding:
    """Return a finding on the version of Python, a tuple like `sys.version_info`."""
    low, high = PYTHON_RANGE
    text = "Python " + ".".join(map(str, version_info[:3]))
    if low <= tuple(version_info[:2]) < high:
        return OK(text)
    return BAD(f"{text} is not supported. Use Python 3.11, 3.12 or 3.13.")


def check_versions(versions: Mapping[str, str | None]) -> Iterator[Finding]:
    """Yield a finding for each package of a dict: package -> version or None."""
    wanted = requirements()
    for name, version in versions.items():
        requirement = wanted.get(name)
        marker = requirement.marker if requirement else None
        if marker and not marker.evaluate():
            yield NOTE(f"{name} has no release for this system.")
        elif version is None and name in OPTIONAL:
            extra = EXTRAS.get(name)
            remedy = f" Run: pip install '{PROGRAM}[{extra}]'" if extra else ""
            yield NOTE(f"{name} is not installed: {OPTIONAL[name]}.{remedy}")
        elif version is None:
            yield BAD(f"{name} is not installed. Run: pip install '{requirement}'")
        elif requirement and not requirement.specifier.contains(version, True):
            reason = f"the supported range is {requirement.specifier}"
            reason = KNOWN_BAD.get((name, version), reason)
            yield BAD(f"{name} {version}: {reason}. Run: pip install '{requirement}'")
        else:
            yield OK(f"{name} {version}")


def check_environment(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield findings on environment variables that select another Keras."""
    if environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true"):
        yield BAD("TF_USE_LEGACY_KERAS is set, so tf.keras is Keras 2. Unset it.")
    backend = environ.get("KERAS_BACKEND", "tensorflow")
    if backend != "tensorflow":
        yield BAD(f"KERAS_BACKEND is {backend}. Unset it, or set it to tensorflow.")


def check_tensorflow(versions: Mapping[str, str | None]) -> Iterator[Finding]:
    """Start TensorFlow, and TF Text if it is installed; yield findings."""
    if not versions["tensorflow"] or not versions["keras"]:
        return
    has_text = versions.get("tensorflow-text")
    status, output, problem = run_python(
        PROBE + ("import tensorflow_text" if has_text else "")
    )
    if not output:
        yield BAD(f"TensorFlow does not start: {problem}")
        return
    probe = json.loads(output.splitlines()[-1])
    yield from judge_probe(probe, shutil.which("nvidia-smi"))
    if status:
        yield BAD(f"tensorflow-text does not start: {problem}")


def run_python(code: str) -> tuple[int, str, str]:
    """Run code in a new Python process.

    Returns:
      (status, output, problem): `problem` is the last line on stderr, or the signal
      that ended the process. It is meaningful only if status is not 0.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROBE_SECONDS,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
        )
    except subprocess.TimeoutExpired:
        return 1, "", f"it did not finish within {PROBE_SECONDS} seconds."
    if done.returncode < 0:
        return (
            done.returncode,
            done.stdout,
            f"it was ended by signal {-done.returncode}.",
        )
    last_line = (done.stderr.strip().splitlines() or ["no message"])[-1]
    return done.returncode, done.stdout, last_line


def judge_probe(
    probe: Mapping[str, typing.Any], nvidia_smi: str | None
) -> Iterator[Finding]:
    """Yield findings on the dict of `PROBE`; `nvidia_smi` is a path or None."""
    for name in probe["gpus"]:
        yield OK(f"GPU: {name}")
    if not probe["gpus"] and nvidia_smi:
        yield NOTE(
            "nvidia-smi is installed, but TensorFlow finds no GPU. To install "
            f"TensorFlow's GPU libraries, run: pip install '{PROGRAM}[cuda]'"
        )
    elif not probe["gpus"]:
        yield NOTE("No GPU: everything runs on the CPU.")
    if probe["backend"] != "tensorflow":
        yield BAD(
            f"Keras uses the backend {probe['backend']}. Set KERAS_BACKEND=tensorflow."
        )
    if probe["onednn"]:
        yield OK(
            "oneDNN is on. It is fast, but the last digits differ between CPU types "
            "(TF_ENABLE_ONEDNN_OPTS=0 turns it off)."
        )
    elif probe["onednn"] is not None:
        yield NOTE(
            "oneDNN is off. It is faster on Intel and AMD CPUs "
            "(TF_ENABLE_ONEDNN_OPTS=1 turns it on)."
        )


def check_machine(cores: int | None, memory: int | None) -> Finding:
    """Return a finding on CPU cores and memory in bytes, None where unknown."""
    text = f"{platform.machine()}, {cores} CPU cores"
    if memory is None:
        return NOTE(f"{text}; the memory size of this system is unknown.")
    text += f", {memory / GB:.1f} GB of memory"
    if memory < 2 * GB:
        return BAD(f"{text}: TensorFlow needs 2 GB.")
    if memory < 8 * GB:
        return NOTE(f"{text}: too little to train BERT-base.")
    return OK(text)


def check_disk(folder: str | os.PathLike[str], use: str) -> Finding:
    """Return a finding on the free space; remedy: `use` + "another folder"."""
    free = shutil.disk_usage(folder).free
    text = f"{free / GB:.1f} GB free in {folder}"
    if not os.access(folder, os.W_OK):
        return BAD(f"{text}, which is not writable: {use} another folder.")
    if free < GB:
        return BAD(f"{text}: free some space, or {use} another folder.")
    if free < 10 * GB:
        return NOTE(f"{text}: training BERT-base needs more.")
    return OK(text)
