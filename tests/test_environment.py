"""The environment variables and packages that the package uses and avoids."""

import ast
import os
import platform
import re
import subprocess
import sys
import tomllib

import pytest
from marks import slow
from packaging.requirements import Requirement
from places import ROOT

import official_bert


def run_python(code, **environ):
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
    )


def test_importing_the_package_is_cheap():
    code = "import sys, official_bert, official_bert.tokenization; print(*sys.modules)"
    done = run_python(code)
    assert done.returncode == 0
    heavy = {"tensorflow", "keras", "keras_hub", "absl"}
    assert not heavy & set(done.stdout.split())


# Prints the settings with which a command starts TensorFlow.
COMMAND = """
import os, sys
from official_bert.command_line.program import run
from official_bert.command_line.tensorflow_start import start_tensorflow
def main():
    start_tensorflow()
    from tensorflow.python.util import _pywrap_util_port
    print(os.environ.get("TF_ENABLE_ONEDNN_OPTS"), _pywrap_util_port.IsMklEnabled())
run(main)
"""
IS_X86 = platform.machine() in ("x86_64", "AMD64")
ONLY_ON_X86 = pytest.mark.skipif(not IS_X86, reason="oneDNN's setting is for x86")


@ONLY_ON_X86
@pytest.mark.parametrize(
    ("environ", "answer"),
    [({}, "1 True"), slow({"TF_ENABLE_ONEDNN_OPTS": "0"}, "0 False")],
)
def test_commands_compute_with_onednn_unless_the_user_says_otherwise(
    monkeypatch, environ, answer
):
    monkeypatch.delenv("TF_ENABLE_ONEDNN_OPTS", raising=False)
    done = run_python(COMMAND, **environ)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == answer


@pytest.mark.parametrize(
    ("before", "value"),
    [
        ("", "1"),
        # TensorFlow has already read the variable: setting it would be misleading.
        ("sys.modules['tensorflow'] = None", "None"),
        ("platform.machine = lambda: 'AMD64'", "1"),
        ("platform.machine = lambda: 'aarch64'", "None"),
    ],
)
def test_the_package_asks_for_onednn(monkeypatch, before, value):
    if not before and not IS_X86:
        value = "None"
    monkeypatch.delenv("TF_ENABLE_ONEDNN_OPTS", raising=False)
    done = run_python(
        f"import os, platform, sys; {before}\nimport official_bert\n"
        "print(os.environ.get('TF_ENABLE_ONEDNN_OPTS'))"
    )
    assert done.stdout.strip() == value, done.stderr


def test_the_names_of_the_package_are_there():
    assert official_bert.BertConfig(vocab_size=1).hidden_size == 768
    with pytest.raises(AttributeError, match="has no attribute 'BertConfi'"):
        _ = official_bert.BertConfi


@pytest.mark.parametrize("value", ["1", "true", "True"])
def test_legacy_keras_is_refused_in_one_line(value):
    code = "from official_bert import BertEncoder"
    done = run_python(code, TF_USE_LEGACY_KERAS=value)
    assert done.returncode == 1
    last_line = done.stderr.splitlines()[-1]
    assert last_line.startswith("official_bert.errors.UserError: TF_USE_LEGACY_KERAS")
    assert last_line.endswith(".")


def test_legacy_keras_does_not_matter_without_keras():
    for value in ("1", "0"):
        code = "from official_bert import BertConfig, FullTokenizer"
        assert run_python(code, TF_USE_LEGACY_KERAS=value).returncode == 0


def read_project():
    with open(ROOT / "pyproject.toml", "rb") as source:
        return tomllib.load(source)["project"]


def test_what_is_imported_only_where_it_is_used_is_an_extra():
    extras = read_project()["optional-dependencies"]
    named = {Requirement(one).name for name in extras for one in extras[name]}
    assert named >= {
        "ai-edge-litert",
        "aiohttp",
        "prometheus_client",
        "apache-beam",
        "matplotlib",
        "pyspark",
        "tensorboard",
        "tensorflow-datasets",
        "tensorflow-serving-api",
    }


def as_comparable(lines):
    requirements = map(Requirement, lines)
    return {(r.name, str(r.specifier), str(r.marker)) for r in requirements}


def test_requirements_are_those_of_the_package():
    project = read_project()
    extras = project["optional-dependencies"]
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    listed = as_comparable(line for line in lines if line and not line.startswith("#"))
    wanted = project["dependencies"] + extras["plots"] + extras["serving"]
    assert listed >= as_comparable(wanted)
    extra = listed - as_comparable(wanted)
    assert extra == as_comparable(["pytest"])
    assert extra <= as_comparable(extras["test"])


def test_ranges_let_good_releases_in_and_bad_ones_not():
    wanted = {r.name: r for r in map(Requirement, read_project()["dependencies"])}
    for name, good, bad in [
        ("tensorflow", ["2.20.0", "2.21.0"], ["2.19.1", "2.22.0"]),
        ("keras", ["3.12.0", "3.15.1"], ["2.15.0", "3.11.3"]),
        ("tensorflow-text", ["2.20.1", "2.21.1"], ["2.20.0", "2.21.0"]),
    ]:
        accepted = list(wanted[name].specifier.filter(good + bad))
        assert accepted == good
    assert wanted["tensorflow-text"].marker.evaluate({"sys_platform": "linux"})
    assert not wanted["tensorflow-text"].marker.evaluate({"sys_platform": "win32"})


def tracked_files():
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    command = ["git", "ls-files", "-z"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    names = done.stdout.decode().split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def test_no_file_names_a_machine_or_a_package_registry():
    # Joined here, so that this file does not match itself.
    folders = "|".join(["root", "home", "Users", "work", "opt", "tmp"])
    patterns = [
        rf"(?<![\w.}}/*])/({folders})/\w",
        "pyp" + r"i\.org",
        "python" + r"hosted\.org",
        r"--(extra-)?index" + "-url",
    ]
    forbidden = re.compile("|".join(patterns))
    found = []
    for path in tracked_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # A table or an archive.
        found += [
            f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
            for number, line in enumerate(text.split("\n"), 1)
            if forbidden.search(line)
        ]
    assert found == []


def python_files(*folders):
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    assert paths
    return paths


def test_files_and_functions_stay_small():
    too_long = []
    for path in python_files("official_bert", "run_scripts"):
        text = path.read_text(encoding="utf-8")
        if text.count("\n") >= 500:
            too_long.append(f"{path.name}: {text.count(chr(10))} lines")
        too_long += [
            f"{path.name}:{node.lineno}: {node.name}"
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno >= 90
        ]
    assert too_long == []


def test_the_library_has_no_flags():
    for path in python_files("official_bert"):
        if {"command_line", "commands"} & {*path.relative_to(ROOT).parts}:
            continue
        assert not re.search(
            "import flags|absl.flags|argparse", path.read_text(encoding="utf-8")
        ), path
