"""Problems of a cluster are one sentence, tested mostly without Spark."""

import importlib.util
import socket
import sys
import types

import pytest

from official_bert.engines.spark import session, watch
from official_bert.errors import UserError


@pytest.fixture
def installed(monkeypatch):
    """Make Spark's packages and Java seem installed."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(session.shutil, "which", lambda name: name)
    monkeypatch.setattr(session, "_is_started", lambda: False)


def test_without_spark(monkeypatch):
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "pyspark" else name
    )
    with pytest.raises(UserError, match=r"pip install 'official-bert\[spark\]'"):
        session.make_settings("local[2]")


@pytest.mark.parametrize("home", [None, "/none"])
def test_without_java(installed, monkeypatch, home):
    monkeypatch.setattr(session.shutil, "which", lambda name: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    if home:
        monkeypatch.setenv("JAVA_HOME", home)
    with pytest.raises(UserError, match=f"{home or 'the PATH'} has no java"):
        session.make_settings("local[2]")


def test_masters(installed, monkeypatch):
    assert session.make_settings("local[2]").is_local
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        listening.listen()
        master = f"spark://127.0.0.1:1,127.0.0.1:{port}"
        assert not session.make_settings(master).is_local
    with pytest.raises(UserError, match="cannot connect to this address"):
        session.make_settings(f"spark://127.0.0.1:{port}")
    with pytest.raises(UserError, match="no host and port"):
        session.make_settings("spark://host")
    with pytest.raises(UserError, match="needs --spark_master"):
        session.make_settings("")
    monkeypatch.setattr(session, "_is_started", lambda: True)
    assert session.make_settings("").master == ""


def test_settings_of_spark(installed):
    settings = session.make_settings("local[2]", ["spark.a=b=c"])
    assert settings.conf == (("spark.a", "b=c"),)
    for wrong in ("spark.a", "executor=2"):
        with pytest.raises(UserError, match="is not a Spark setting"):
            session.make_settings("local[2]", [wrong])


WORKER = 'File "/w/official_bert.zip/official_bert/engines/spark/tables.py", line 1'


@pytest.mark.parametrize(
    "text, sentence",
    [
        (f"{WORKER}\nofficial_bert.errors.UserError: No text.\n at x", "No text."),
        (
            f"{WORKER}\nModuleNotFoundError: No module named 'absl'",
            "lacks the pack.*absl",
        ),
        (f"{WORKER}\nKeyError: 3", None),
        (
            "An error\n: org.apache.spark.SparkException: Job aborted due to stage "
            "failure: Task 0 in stage 1.0 failed 4 times, most recent failure: Lost "
            "task 0.3 in stage 1.0 (TID 8) (10.0.0.1 executor 4): ExecutorLostFailure "
            "(out of memory)\nDriver stacktrace:",
            r"Spark stopped the job: .*ExecutorLostFailure \(out of memory\)$",
        ),
        ("[X] What it is.\nmore", r"Spark stopped the job: \[X\] What it is\.$"),
    ],
)
def test_failures_of_a_job(text, sentence):
    reason = session.reason_of(text)
    if sentence is None:
        assert reason is None
    else:
        assert reason is not None and "\n" not in reason
        assert pytest.raises(UserError, session_raise, reason).match(sentence)


def session_raise(reason):
    raise UserError(reason)


@pytest.mark.parametrize(
    "counts, words", [([0], "No Spark worker accepted"), ([2, 0], "workers are lost")]
)
def test_a_cluster_without_workers(monkeypatch, counts, words):
    monkeypatch.setattr(watch, "SECONDS_BETWEEN_LOOKS", 0.01)
    monkeypatch.setattr(watch, "SECONDS_WITHOUT_WORKERS", 0.05)
    # A fake Spark that reports a number of workers and records cancellations.
    left, canceled = list(counts), []

    def infos():
        return [None] * (1 + (left.pop(0) if len(left) > 1 else left[0]))

    tracker = types.SimpleNamespace(getExecutorInfos=infos)
    scala = types.SimpleNamespace(statusTracker=lambda: tracker)
    context = types.SimpleNamespace(
        _jsc=types.SimpleNamespace(sc=lambda: scala),
        cancelAllJobs=lambda: canceled.append(True),
    )
    monkeypatch.setitem(
        sys.modules, "py4j.protocol", types.SimpleNamespace(Py4JError=KeyError)
    )
    watcher = watch.Watcher(context)
    watcher.run()
    assert canceled and words in watcher.reason


def test_the_packed_package_has_all_that_workers_need(tmp_path):
    import subprocess
    import sys

    path = session._packed_package(str(tmp_path))
    code = (
        "from official_bert.engines.spark import pipeline, word_counts\n"
        "from official_bert.tokenization import basic, characters\n"
        f"assert characters.__file__.startswith({path!r}), characters.__file__\n"
        "print(basic.BasicTokenizer().tokenize('Ünicode'))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command,
        env={"PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "['unicode']", done.stderr


def test_why_spark_does_not_start(tmp_path):
    log = tmp_path / "log"
    reason = session._reason_of_start(log, OSError("no such program"))
    assert reason == "--spark_master: Spark does not start: no such program"
    log.write_text(
        "26/11/25 16:59:06 WARN NativeCodeLoader: Unable to load a library\n"
        "26/11/25 16:59:07 ERROR SparkContext: Error initializing SparkContext.\n"
    )
    assert "Error initializing" in session._reason_of_start(log, OSError())
    with log.open("a") as output:
        output.write(
            "java.lang.IllegalArgumentException: requirement failed: a should be b.\n"
            "\tat scala.Predef$.require(Predef.scala:337)\n"
        )
    assert session._reason_of_start(log, OSError()).endswith(
        "does not start: requirement failed: a should be b."
    )
