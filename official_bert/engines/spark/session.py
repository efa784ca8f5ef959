"""A session on Apache Spark: start, check the workers, one sentence per failure.

Spark is imported only where it is used, because the rest of the project does
not need it.
"""

import contextlib
import dataclasses
import importlib.util
import logging
import os
import pathlib
import re
import shutil
import socket
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import official_bert
from official_bert.engines import worker_errors
from official_bert.engines.spark import probe, watch
from official_bert.errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECONDS_TO_CONNECT = 5
_MASTER = re.compile(r"spark://(.+)")
_THROWN = re.compile(r"^[\w.$]*(?:Exception|Error): (.+)", re.MULTILINE)
# Patterns for the reason in Spark's error messages, the best first.
_REASONS = (
    re.compile(r"most recent failure: (?:Lost task [^(]*\([^)]*\) ?)?(.+)"),
    re.compile(r"Job aborted due to stage failure: (.+)"),
    re.compile(r"SparkException: (.+)"),
)


@dataclasses.dataclass(frozen=True)
class SparkSettings:
    """Spark's address and settings.

    Attributes:
      master: Spark's master; empty if `spark-submit` or the platform sets it.
      conf: Spark's settings, (name, value) pairs.
      log_file: path for Spark's log; None discards the log.
    """

    master: str
    conf: tuple[tuple[str, str], ...] = ()
    log_file: str | None = None

    @property
    def is_local(self) -> bool:
        """Return whether Spark runs only on this machine, in one process."""
        return self.master.startswith("local")


def make_settings(
    master: str, conf: Iterable[str] = (), log_file: str | None = None
) -> SparkSettings:
    """Return `SparkSettings` after quick checks.

    Args:
      master: such as `spark://host:7077` or `local[2]`; empty under `spark-submit`.
      conf: Spark's settings, `name=value` each.
      log_file: path for Spark's log.

    Raises:
      UserError: Spark or Java is missing, the master does not respond, or a
        setting is invalid.
    """
    for package in ("pyspark", "pandas", "pyarrow"):
        if importlib.util.find_spec(package) is None:
            raise UserError(
                f"--runner=spark needs the Python package {package}, which is "
                "not installed. Install it: pip install "
                "'official-bert[spark]'."
            )
    pairs = []
    for setting in conf:
        name, equals, value = setting.partition("=")
        if not equals or not name.startswith("spark."):
            raise UserError(
                f"--spark_conf={setting} is not a Spark setting. Use the form "
                "--spark_conf=spark.executor.memory=2g."
            )
        pairs.append((name, value))
    if not _is_started():
        if not master:
            raise UserError(
                "--runner=spark needs --spark_master, such as "
                "spark://host:7077 or local[2]. You can omit it only under "
                "spark-submit."
            )
        _check_java()
    _check_master(master)
    return SparkSettings(master, tuple(pairs), log_file)


def _is_started():
    """Return whether Spark already runs: under `spark-submit`, or on a platform."""
    from pyspark import SparkContext

    is_active = SparkContext._active_spark_context is not None
    return is_active or "PYSPARK_GATEWAY_PORT" in os.environ


def _check_java():
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(os.path.join(home, "bin", "java") if home else "java")
    if java is None:
        where = f"JAVA_HOME={home}" if home else "the PATH"
        raise UserError(
            f"Spark needs Java 17 or later, but {where} has no java. On Debian: "
            "apt install openjdk-17-jre-headless."
        )


def _check_master(master):
    """Raise `UserError` unless a standalone master accepts connections."""
    standalone = _MASTER.fullmatch(master)
    if not standalone:
        return
    for address in standalone[1].split(","):
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit():
            raise UserError(
                f"--spark_master={master} has no host and port. Use the form "
                "spark://host:7077."
            )
        with (
            contextlib.suppress(OSError),
            socket.create_connection((host, int(port)), SECONDS_TO_CONNECT),
        ):
            return
    raise UserError(
        f"--spark_master={master}: cannot connect to this address. Start the "
        "master, or correct the address; the master's log and web page show "
        "it."
    )


@contextlib.contextmanager
def running(settings: SparkSettings, folder: str) -> "Iterator[SparkSession]":
    """Start Spark, check the workers, yield the session, and stop Spark.

    Args:
      settings: `SparkSettings`.
      folder: an existing folder that all workers must reach.

    Raises:
      UserError: Spark cannot start, workers are missing or lack a package, or a
        job of the session failed.
    """
    from py4j.protocol import Py4JError, Py4JNetworkError
    from pyspark import SparkContext
    from pyspark.errors import PySparkException

    is_shared = SparkContext._active_spark_context is not None
    with tempfile.TemporaryDirectory() as local:
        log_file = settings.log_file or os.path.join(local, "spark.log")
        session = _start(settings, log_file)
        context = session.sparkContext
        try:
            context.addPyFile(_packed_package(local))
            with watch.watched(context, settings.master) as watcher:
                try:
                    own = session.newSession()
                    # The planned share of each task must not change.
                    own.conf.set("spark.sql.adaptive.enabled", "false")
                    probe.check_workers(own, folder)
                    yield own
                except (Py4JError, Py4JNetworkError, PySparkException) as error:
                    reason = watcher.reason or reason_of(str(error))
                    if reason is None:
                        raise
                    raise UserError(reason) from error
        finally:
            # A failed session may already be gone.
            with contextlib.suppress(Py4JError, Py4JNetworkError, OSError):
                if not is_shared:
                    session.stop()


def _start(settings, log_file):
    """Return a `SparkSession` whose process writes to a log file."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    logging.getLogger("py4j").setLevel(logging.WARNING)
    builder: Any = SparkSession.builder.appName("official_bert")
    is_ours = not _is_started()
    defaults = {"spark.ui.showConsoleProgress": "false"}
    if settings.master:
        builder = builder.master(settings.master)
    if settings.is_local:
        # The names of this machine may not resolve to it.
        defaults |= {
            "spark.driver.host": "localhost",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
        }
    if is_ours:
        _name_python(dict(settings.conf))
    for name, value in {**defaults, **dict(settings.conf)}.items():
        builder = builder.config(name, value)
    try:
        with _stderr_to(log_file) if is_ours else contextlib.nullcontext():
            return builder.getOrCreate()
    except (PySparkException, RuntimeError, OSError, ValueError) as error:
        raise UserError(_reason_of_start(log_file, error)) from error
    except Exception as error:
        if not type(error).__module__.startswith("py4j."):
            raise
        raise UserError(_reason_of_start(log_file, error)) from error


def _name_python(conf):
    """Let workers use the Python given by a setting; default: the path of this one."""
    # Without `spark-submit`, the library reads only the environment.
    python = conf.get("spark.pyspark.python")
    if python:
        os.environ["PYSPARK_PYTHON"] = python
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def _reason_of_start(log_file, error):
    log = pathlib.Path(log_file)
    text = log.read_text(errors="replace") if log.exists() else ""
    marks = ("Error", "Exception", "error:", "Unresponsive", "unresponsive")
    # The line of the exception says more than Spark's own line before it.
    lines = _THROWN.findall(text) or [
        line for line in text.splitlines() if any(m in line for m in marks)
    ]
    reason = (lines or str(error).strip().splitlines() or [repr(error)])[0]
    return f"--spark_master: Spark does not start: {reason.strip()}"


@contextlib.contextmanager
def _stderr_to(path):
    """Redirect the stderr of processes started in the block to a file."""
    sys.stderr.flush()
    before = os.dup(2)
    try:
        with open(path, "ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


def _packed_package(folder):
    """Pack this package, so that workers run the same version; return the path."""
    package = pathlib.Path(official_bert.__file__).parent
    path = os.path.join(folder, "official_bert.zip")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for suffix in ("py", "npz"):
            for file in sorted(package.rglob(f"*.{suffix}")):
                packed.write(file, file.relative_to(package.parent))
    return path


def reason_of(text: str) -> str | None:
    """Return a sentence about a failure in Spark; None for a defect of this package.

    Args:
      text: the message, with tracebacks of workers.
    """
    sentence = worker_errors.sentence_in(text)
    if sentence:
        return sentence
    missing = worker_errors.missing_package(text)
    if missing:
        return (
            f"The Python of a Spark worker lacks the package {missing}. Install "
            "'official-bert[spark]' on all workers, or select another Python "
            "with --spark_conf=spark.pyspark.python=PATH."
        )
    if worker_errors.is_ours(text):
        return None
    found = (match[1] for match in (one.search(text) for one in _REASONS) if match)
    reason = next(found, text.strip().partition("\n")[0])
    return f"Spark stopped the job: {' '.join(reason.split())}"
