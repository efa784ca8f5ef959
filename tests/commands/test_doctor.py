"""The doctor's report on machines other than this one."""

import json
import re
import subprocess
import sys
import tomllib

import pytest
from places import ROOT

from official_bert.commands import doctor

HEALTHY = {"backend": "tensorflow", "gpus": [], "onednn": True}


def levels(findings):
    return [finding.level for finding in findings]


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ((3, 10, 12), "bad"),
        ((3, 11, 0), "ok"),
        ((3, 13, 9), "ok"),
        ((3, 14, 0), "bad"),
        ((2, 7, 18), "bad"),
    ],
)
def test_python(version, level):
    finding = doctor.check_python(version)
    assert finding.level == level
    assert finding.text.startswith("Python " + ".".join(map(str, version)))


def test_python_range_is_that_of_the_package():
    with open(ROOT / "pyproject.toml", "rb") as source:
        project = tomllib.load(source)["project"]
    low, high = (".".join(map(str, bound)) for bound in doctor.PYTHON_RANGE)
    assert project["requires-python"] == f">={low},<{high}"


@pytest.mark.parametrize(
    ("name", "version", "level", "words"),
    [
        ("keras", "3.12.0", "ok", "keras 3.12.0"),
        ("keras", "3.15.1", "ok", ""),
        ("keras", "3.11.3", "bad", ">=3.12"),
        ("keras", "2.15.0", "bad", "pip install 'keras>=3.12'"),
        ("keras", None, "bad", "keras is not installed. Run: pip install"),
        ("tensorflow", "2.20.0", "ok", ""),
        ("tensorflow", "2.21.0rc1", "ok", ""),
        ("tensorflow", "2.19.1", "bad", ""),
        ("tensorflow", "2.22.0", "bad", "<2.22"),
        ("matplotlib", None, "note", "no figures"),
        ("tensorboard", None, "note", "JSON lines"),
        ("tensorboard", "2.20.0", "ok", ""),
    ],
)
def test_versions(name, version, level, words):
    (finding,) = doctor.check_versions({name: version})
    assert finding.level == level
    assert words in finding.text


@pytest.mark.skipif(sys.platform == "win32", reason="there is no TF Text on Windows")
@pytest.mark.parametrize(
    ("version", "words"),
    [("2.20.0", "FastWordpieceTokenizer"), ("2.21.0", "icudt77_dat"), ("2.19.0", ">=")],
)
def test_known_bad_tensorflow_text(version, words):
    (finding,) = doctor.check_versions({"tensorflow-text": version})
    assert finding.level == "bad"
    assert words in finding.text
    assert "pip install 'tensorflow-text!=2.21.0,>=2.20.1" in finding.text


def test_good_tensorflow_text():
    assert levels(doctor.check_versions({"tensorflow-text": "2.20.1"})) != ["bad"]
    assert levels(doctor.check_versions({"tensorflow-text": "2.21.1"})) != ["bad"]


def test_every_known_bad_release_is_excluded_from_the_requirements():
    wanted = doctor.requirements()
    for name, version in doctor.KNOWN_BAD:
        assert not wanted[name].specifier.contains(version)


def test_what_is_not_optional_is_needed():
    missing = list(doctor.check_versions(dict.fromkeys(doctor.requirements())))
    noted = {f.text.split()[0] for f in missing if f.level == "note"}
    assert noted == {"aiohttp", "prometheus_client", "matplotlib", "pytest"}
    (serving,) = [f.text for f in missing if f.text.startswith("aiohttp")]
    assert serving.endswith("pip install 'official-bert[serving]'")


def test_an_installation_lists_its_own_requirements(monkeypatch, tmp_path):
    """It checks the package's requirements, and extras only if doctor.py uses them."""
    listed = [
        "keras>=3.12",
        "aiohttp>=3.10; extra == 'serving'",
        "jax==0.10.2; extra == 'plan'",
        "pytest; extra == 'test'",
    ]
    monkeypatch.setattr(doctor, "REQUIREMENTS", tmp_path / "requirements.txt")
    monkeypatch.setattr(doctor.importlib.metadata, "requires", lambda name: listed)
    found = doctor.requirements()
    assert {name: str(one) for name, one in found.items()} == {
        "keras": "keras>=3.12",
        "aiohttp": "aiohttp>=3.10",
    }
    missing = list(doctor.check_versions(dict.fromkeys(found)))
    assert [f.level for f in missing] == ["bad", "note"]


def test_no_release_for_this_system(monkeypatch, tmp_path):
    path = tmp_path / "requirements.txt"
    path.write_text('tensorflow-text>=2; sys_platform == "plan9"\n')
    monkeypatch.setattr(doctor, "REQUIREMENTS", path)
    (finding,) = doctor.check_versions({"tensorflow-text": None})
    assert finding.level == "note"


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, []),
        ({"TF_USE_LEGACY_KERAS": "0"}, []),
        ({"TF_USE_LEGACY_KERAS": "1"}, ["bad"]),
        ({"TF_USE_LEGACY_KERAS": "True"}, ["bad"]),
        ({"KERAS_BACKEND": "tensorflow"}, []),
        ({"KERAS_BACKEND": "jax"}, ["bad"]),
    ],
)
def test_environment(environ, expected):
    assert levels(doctor.check_environment(environ)) == expected


def test_probe_of_a_cpu():
    assert levels(doctor.judge_probe(HEALTHY, None)) == ["note", "ok"]


def test_probe_of_a_gpu():
    probe = {**HEALTHY, "gpus": ["A", "B"]}
    findings = list(doctor.judge_probe(probe, "/bin/nvidia-smi"))
    assert levels(findings) == ["ok", "ok", "ok"]
    assert [finding.text for finding in findings[:2]] == ["GPU: A", "GPU: B"]


def test_probe_that_misses_the_gpu_names_the_remedy():
    finding, *_ = doctor.judge_probe(HEALTHY, "/bin/nvidia-smi")
    assert finding.level == "note"
    assert "pip install 'official-bert[cuda]'" in finding.text


def test_probe_of_another_backend():
    findings = doctor.judge_probe({**HEALTHY, "backend": "jax"}, None)
    assert any(f.level == "bad" and "jax" in f.text for f in findings)


def test_probe_without_onednn():
    findings = doctor.judge_probe({**HEALTHY, "onednn": False}, None)
    assert levels(findings) == ["note", "note"]
    assert levels(doctor.judge_probe({**HEALTHY, "onednn": None}, None)) == ["note"]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise ImportError('undefined symbol')", "ImportError: undefined symbol"),
        ("import os; os.abort()", "signal 6"),
        ("import sys; sys.exit(3)", "no message"),
    ],
)
def test_tensorflow_that_does_not_start(monkeypatch, code, words):
    monkeypatch.setattr(doctor, "PROBE", code)
    versions = {"tensorflow": "2.21.0", "keras": "3.15.1"}
    (finding,) = doctor.check_tensorflow(versions)
    assert finding.level == "bad"
    assert words in finding.text


def test_tensorflow_text_that_does_not_start(monkeypatch):
    reply = 1, json.dumps(HEALTHY), "undefined symbol: icudt77_dat"
    monkeypatch.setattr(doctor, "run_python", lambda code: reply)
    versions = {"tensorflow": "2.21.0", "keras": "3.15.1", "tensorflow-text": "2.21.0"}
    findings = list(doctor.check_tensorflow(versions))
    assert levels(findings)[-1] == "bad"
    assert findings[-1].text == f"tensorflow-text does not start: {reply[2]}"


def test_tensorflow_that_hangs(monkeypatch):
    monkeypatch.setattr(doctor, "PROBE", "import time; time.sleep(60)")
    monkeypatch.setattr(doctor, "PROBE_SECONDS", 0.1)
    (finding,) = doctor.check_tensorflow({"tensorflow": "2", "keras": "3"})
    assert finding.level == "bad"
    assert "did not finish" in finding.text


def test_tensorflow_that_is_absent_is_not_started(monkeypatch):
    monkeypatch.setattr(doctor, "PROBE", "raise SystemExit('started')")
    versions = {"tensorflow": None, "keras": "3.15.1"}
    assert not list(doctor.check_tensorflow(versions))


@pytest.mark.parametrize(
    ("gigabytes", "level"), [(1, "bad"), (4, "note"), (16, "ok"), (None, "note")]
)
def test_memory(gigabytes, level):
    memory = gigabytes and gigabytes * 10**9
    finding = doctor.check_machine(4, memory)
    assert finding.level == level
    assert "4 CPU cores" in finding.text


@pytest.mark.parametrize(
    ("free", "level"), [(5 * 10**8, "bad"), (5 * 10**9, "note"), (10**11, "ok")]
)
def test_disk(monkeypatch, tmp_path, free, level):
    usage = type("Usage", (), {"free": free})
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda folder: usage)
    finding = doctor.check_disk(str(tmp_path), "work in")
    assert finding.level == level
    assert f"{free / 1e9:.1f} GB free in {tmp_path}" in finding.text


def test_disk_that_is_not_writable(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor.os, "access", lambda folder, mode: False)
    finding = doctor.check_disk(str(tmp_path), "work in")
    assert finding.level == "bad"
    assert "not writable" in finding.text


def test_without_packaging_the_rest_cannot_be_judged(monkeypatch):
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None)
    finding = list(doctor.examine())[-1]
    assert finding.level == "bad"
    assert finding.text.startswith("packaging is not installed. Run: pip install")


def test_a_missing_filelock_does_not_keep_the_doctor_away():
    module = "official_bert.command_line.program"
    code = f"import sys; sys.modules['filelock'] = None; import {module}"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_report_and_exit_status(monkeypatch, capsys):
    ok, bad = doctor.Finding("ok", "fine"), doctor.Finding("bad", "broken")
    monkeypatch.setattr(doctor, "examine", lambda: [ok])
    assert doctor.main() == 0
    assert capsys.readouterr().out == "ok    fine\n\nThis machine is ready.\n"
    monkeypatch.setattr(doctor, "examine", lambda: [ok, bad])
    assert doctor.main() == 1
    assert "bad   broken\n\nThis machine is not ready" in capsys.readouterr().out


def test_the_doctor_on_this_machine():
    done = subprocess.run(
        [sys.executable, ROOT / "run_scripts" / "doctor.py"],
        capture_output=True,
        text=True,
    )
    lines = done.stdout.splitlines()
    assert all(re.match("(ok|note|bad)  ", line[:6].ljust(6)) for line in lines[:-2])
    is_bad = any(line.startswith("bad") for line in lines)
    assert done.returncode == int(is_bad)
    assert lines[-1].startswith("This machine is")
    assert done.stderr == ""
