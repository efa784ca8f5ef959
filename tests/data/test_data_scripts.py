"""The two scripts as people run them: a few runs, since each takes seconds."""

import json
import subprocess
import sys

import pytest


@pytest.fixture
def script(pytestconfig, tmp_path):
    def _script(name, *arguments):
        path = pytestconfig.rootpath / "run_scripts" / name
        return subprocess.run(
            [sys.executable, str(path), *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return _script


def test_create_then_inspect(script, mini, tmp_path):
    recorded = json.loads((mini / "instances.json").read_text())["plain"]
    settings = [f"--{key}={value}" for key, value in recorded["settings"].items()]
    vocabulary = f"--vocab_file={mini / 'vocab.txt'}"
    made = script(
        "create_pretraining_data.py",
        f"--input_file={mini / 'tex*.txt'}",
        "--output_file=0.tfrecord,1.tfrecord",
        vocabulary,
        *settings,
    )
    assert made.returncode == 0, made.stderr
    assert "of text: expect about" in made.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "0.tfrecord",
        "0.tfrecord.run.json",
        "1.tfrecord",
        "manifest.json",
    ]
    manifest = json.loads((tmp_path / "manifest.json").read_text())["files"]
    counts = [manifest[f"{number}.tfrecord"]["num_records"] for number in range(2)]
    assert counts == [len(records) for records in recorded["files"]]
    run = json.loads((tmp_path / "0.tfrecord.run.json").read_text())
    assert run["flags"]["random_seed"] == 7
    assert len(run["inputs"]) == 2

    shown = script(
        "inspect_instances.py",
        "--input_file=*.tfrecord",
        vocabulary,
        "--num_instances=2",
        "--skip=1",
    )
    assert shown.returncode == 0, shown.stderr
    assert "0.tfrecord: record 1:" in shown.stdout
    assert "[MASK]«" in shown.stdout and "\033" not in shown.stdout


@pytest.mark.parametrize(
    ("flag", "status", "message"),
    [
        ("--max_predictions_per_seq=200", 1, "it must be from 1 to 125"),
        ("--output_file=none/out.tfrecord", 1, "does not exist; create it first"),
        ("--input_format=xml", 2, "--input_format=xml"),
        ("--input_file=*.text", 1, "no file matches '*.text'"),
    ],
)
def test_bad_input_is_one_sentence(script, mini, tmp_path, flag, status, message):
    made = script(
        "create_pretraining_data.py",
        f"--input_file={mini / 'text.txt'}",
        "--output_file=out.tfrecord",
        f"--vocab_file={mini / 'vocab.txt'}",
        flag,
    )
    assert made.returncode == status
    assert made.stderr.startswith("error: ") and made.stderr.count("\n") == 1
    assert message in made.stderr
    assert list(tmp_path.iterdir()) == []
