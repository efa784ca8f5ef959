"""`serve.py` and `query.py` from the command line."""

import concurrent.futures
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest
from places import ROOT
from script_runs import assert_refused, run_many
from serving import saved_models
from serving.running import ask, predict, running

from official_bert.serving import model_versions

READY = re.compile(
    r"Serving version 1 at (http://127\.0\.0\.1:\d+)/v1/models/answers \(Ctrl-C .*\)\n"
)


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    saved_models.write(folder, 1)
    return folder


# A machine without Keras; at the end it reports our imported modules.
LISTING = """
import sys
sys.modules["keras"] = None
sys.path[0] = "."
from official_bert.command_line import program
from official_bert.commands import serve
try:
    program.run(serve.main)
finally:
    print(*(name for name in sys.modules if name.startswith("official_bert.")))
"""


def start(script, model_dir, log, *arguments):
    """Start serve.py; its stderr goes to a file."""
    flags = [f"--model_dir={model_dir}", "--model_name=answers", "--port=0"]
    return subprocess.Popen(
        [sys.executable, *script, *flags, *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        start_new_session=True,
    )


@pytest.fixture(scope="module")
def servers(model_dir, tmp_path_factory):
    """Start two servers: one checks for versions often, one has a short timeout.

    Yields name -> (process, its model's folder, path of its stderr).
    """
    scripts = {
        "lively": (["-c", LISTING], "--poll_s=0.1"),
        "hasty": (["run_scripts/serve.py"], "--timeout_s=0.5"),
    }
    started = {}
    for name, (script, flag) in scripts.items():
        folder = tmp_path_factory.mktemp(name)
        shutil.copytree(model_dir / "1", folder / "export" / "1")
        with open(folder / "stderr", "wb") as log:
            process = start(script, folder / "export", log, flag)
        started[name] = process, folder / "export", folder / "stderr"
    yield started
    for process, _, _ in started.values():
        process.kill()
        process.wait()
        process.stdout.close()


def url_of(process):
    """Return the URL that a server prints when it accepts requests."""
    line = process.stdout.readline()
    assert READY.fullmatch(line), line
    return READY.fullmatch(line)[1]


def slow(seconds):
    return {"signature_name": "slow", "instances": [seconds]}


def assert_over(process, url):
    """Check that the server ended cleanly; return its output."""
    assert process.wait(60) == 0
    with pytest.raises(ConnectionRefusedError):
        ask(url)
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    first, rest = process.stdout.read().split("\n", 1)
    assert first == "Stopped."
    return rest


@pytest.mark.slow
def test_from_the_start_through_a_new_version_to_sigterm(servers):
    process, folder, log = servers["lively"]
    url = url_of(process)
    status, value = predict(url, {"instances": ["good"]})
    assert (status, value["predictions"][0]["version"]) == (200, 1)
    shutil.copytree(folder / "1", folder / "2.tmp")
    (folder / "2.tmp").rename(folder / "2")
    for _ in range(600):
        if ask(url, path="/v1/models/answers/versions/2/metadata")[0] == 200:
            break
        time.sleep(0.1)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        answer = pool.submit(predict, url, slow(1.0))
        time.sleep(0.4)
        process.send_signal(signal.SIGTERM)
        assert answer.result()[0] == 200
    modules = set(assert_over(process, url).split())
    assert log.read_text() == "Now serving version 2 instead of 1.\n"
    # Nothing that made the model; of the exports only the headers of a web page.
    headers = "official_bert.export.web.headers"
    modules -= {"official_bert.export", "official_bert.export.web", headers}
    parts = {name.split(".")[1] for name in modules}
    files = {"errors", "files", "lease", "object_store"}
    others = {"command_line", "commands", "constants", "machine", "serving", "tf_text"}
    assert parts == files | others


@pytest.mark.slow
def test_ctrl_c_does_not_wait_for_what_was_given_up(servers):
    process, _, log = servers["hasty"]
    url = url_of(process)
    status, value = predict(url, slow(120))
    assert status == 504 and "0.5 s" in value["error"]
    process.send_signal(signal.SIGINT)
    assert assert_over(process, url) == ""
    assert log.read_text() == ""


def test_a_second_signal_ends_it_at_once(model_dir, tmp_path):
    with open(tmp_path / "stderr", "wb") as log:
        process = start(["run_scripts/serve.py"], model_dir, log)
    url = url_of(process)
    with concurrent.futures.ThreadPoolExecutor(1) as pool, process.stdout:
        answer = pool.submit(predict, url, slow(25))
        time.sleep(1)
        process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) != 0
        assert time.monotonic() - started < 10
        assert isinstance(answer.exception(), OSError)
    assert (tmp_path / "stderr").read_text() == ""


def test_connections_wait_while_the_model_loads(model_dir):
    """`serve.py & curl ...` works."""
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    process = start(
        ["run_scripts/serve.py"], model_dir, subprocess.DEVNULL, f"--port={port}"
    )
    with process.stdout:
        for _ in range(600):
            try:
                status, _ = ask(f"http://127.0.0.1:{port}", path="/v1/models/answers")
                break
            except ConnectionRefusedError:
                time.sleep(0.01)
        assert status == 200
        process.terminate()
        assert process.wait(60) == 0


FLAGS = ["--model_dir=model", "--model_name=m", "--port=0"]
# Name -> (flags, words of the error).
BAD_SERVE = {
    "no folder": (["--model_name=m"], ["Give --model:"]),
    "name": ([*FLAGS, "--model_name=a/b"], ["--model_name", "a/b"]),
    "missing": ([*FLAGS, "--model_dir=gone"], ["--model=", "gone"]),
    "empty": ([*FLAGS, "--model_dir=empty"], ["empty", "saved_model.pb"]),
    "a file": ([*FLAGS, "--model_dir=file"], ["file", "not a directory"]),
    "a version": ([*FLAGS, "--model_dir=model/1"], ["one version"]),
    "damaged": ([*FLAGS, "--model_dir=damaged"], ["damaged", "cannot be loaded"]),
    "host": ([*FLAGS, "--host=no.such.host.invalid"], ["--host"]),
    "odd host": ([*FLAGS, "--host=a..b"], ["--host", "a..b"]),
    "not our host": ([*FLAGS, "--host=192.0.2.1"], ["--host", "192.0.2.1"]),
    "port": ([*FLAGS, "--port=70000"], ["port"]),
    "time": ([*FLAGS, "--timeout_s=0"], ["timeout_s"]),
}


def test_nothing_to_serve_is_one_sentence(model_dir, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "model").symlink_to(model_dir)
    shutil.copytree(model_dir / "1", tmp_path / "damaged" / "1")
    (tmp_path / "damaged" / "1" / "saved_model.pb").write_bytes(b"no graph")
    runs = {name: {"arguments": each[0]} for name, each in BAD_SERVE.items()}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        runs["used port"] = {"arguments": [*FLAGS, f"--port={port}"]}
        results = run_many("serve", runs, tmp_path)
    used = results.pop("used port")
    assert_refused(used, ["--port", port, "in use"])
    assert used["status"] == 1
    for name, result in results.items():
        assert_refused(result, BAD_SERVE[name][1])
        assert not result["stdout"]


NAME = "--model_name=answers"
PAIRS = "--signature_name=pairs"
STDIN = 'good\n{"text": "bad"}\n  naïve 老师 \n\n[5] "x"\n'
ECHOES = ["good", "bad", "naïve 老师", "", '[5] "x"']
QUERIES = {
    "text": {"arguments": [NAME, "--text=good"]},
    "lines": {"arguments": [NAME], "stdin": STDIN},
    "two at a time": {"arguments": [NAME, "--batch_size=2"], "stdin": STDIN},
    "file": {"arguments": [NAME, "--input_file=rows.txt"]},
    "version": {"arguments": [NAME, "--version=1", "--text=good"]},
    "pair": {"arguments": [NAME, PAIRS, "--text=a", "--text_b="]},
    "pairs": {"arguments": [NAME, PAIRS], "stdin": "a ||| b\nc ||| d ||| e\n"},
    "mark": {"arguments": [NAME], "stdin": '\ufeff{"text": "bad"}\n'},
    "nothing": {"arguments": [NAME], "stdin": ""},
}
BAD_QUERIES = {
    "no name": (["--text=a"], "", ["--model_name"]),
    "half a pair": ([NAME, "--text_b=a"], "", ["--text"]),
    "text and file": ([NAME, "--text=a", "--input_file=rows.txt"], "", ["not both"]),
    "no file": ([NAME, "--input_file=gone"], "", ["gone"]),
    "batch size": ([NAME, "--batch_size=0"], "", ["batch_size"]),
    "model": (["--model_name=other", "--text=a"], "", ["404", "Latest(other)"]),
    "odd model": (["--model_name=a/b c", "--text=a"], "", ["404", "Latest(a/b c)"]),
    "odd version": ([NAME, f"--version={2**63}", "--text=a"], "", ["--version"]),
    "old version": ([NAME, "--version=7", "--text=a"], "", ["404", "7"]),
    "signature": ([NAME, "--signature_name=x", "--text=a"], "", ["400", '"x"']),
    "row": ([NAME], '{"txt": "a"}\n', ["400", "txt"]),
    "cut row": ([NAME], 'a\n{"text": \n', ["Line 2", "JSON"]),
    "nobody there": ([NAME, "--url=http://127.0.0.1:1", "--text=a"], "", ["reach"]),
    "no URL": ([NAME, "--url=reviews", "--text=a"], "", ["reviews", "http://"]),
    "odd URL": ([NAME, "--url=ftp://x y", "--text=a"], "", ["ftp://x y"]),
    # The package that it needs may be missing.
    "nobody there by gRPC": ([NAME, "--grpc=127.0.0.1:1", "--text=a"], "", []),
    "another server": ([NAME, "--url=OTHER", "--text=a"], "", ["404"]),
    "time": (
        [NAME, "--signature_name=slow", "--timeout_s=0.3"],
        '{"x": 1.0}\n',
        ["0.3 s"],
    ),
}


@pytest.fixture(scope="module")
def answered(model_dir, tmp_path_factory):
    """Return name -> result of every query."""
    folder = tmp_path_factory.mktemp("queries")
    (folder / "rows.txt").write_text(STDIN, encoding="utf-8")
    versions = model_versions.open_model("answers", str(model_dir))
    with running(versions) as url, pytest.MonkeyPatch.context() as environment:
        # No proxy runs there; queries to this machine must not use it.
        environment.setenv("http_proxy", "http://127.0.0.1:1")
        runs = {
            **QUERIES,
            **{
                f"bad {name}": {"arguments": arguments, "stdin": stdin}
                for name, (arguments, stdin, _) in BAD_QUERIES.items()
            },
        }
        for run in runs.values():
            run["arguments"] = [f"--url={url}", *run["arguments"]]
            run["arguments"] = [
                each.replace("OTHER", f"{url}/elsewhere") for each in run["arguments"]
            ]
        return run_many("query", runs, folder)


def said(answered, name):
    result = answered[name]
    assert (result["status"], result["stderr"]) == (0, ""), result
    return [json.loads(line) for line in result["stdout"].splitlines()]


def test_a_line_of_json_for_each_row(answered):
    (answer,) = said(answered, "text")
    assert (answer["score"], answer["echo"]) == (1.0, "good")
    assert said(answered, "version") == [answer]
    lines = said(answered, "lines")
    assert [line["echo"] for line in lines] == ECHOES
    assert [line["score"] for line in lines] == [1.0, -1.0, 0.0, 0.0, 0.0]
    assert said(answered, "two at a time") == said(answered, "file") == lines
    assert said(answered, "mark") == [lines[1]]
    assert said(answered, "pair") == ["a|"]
    assert said(answered, "pairs") == ["a|b", "c ||| d|e"]


def test_no_rows(answered):
    assert answered["nothing"]["status"] == 0
    assert answered["nothing"]["stdout"] == ""


@pytest.mark.parametrize("name", BAD_QUERIES)
def test_bad_query(answered, name):
    result = answered[f"bad {name}"]
    assert_refused(result, BAD_QUERIES[name][2])
