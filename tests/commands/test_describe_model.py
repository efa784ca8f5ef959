"""`describe_model.py` from the command line."""

import subprocess
import sys

import pytest
from places import ROOT

from official_bert.config import BertConfig


def describe(*arguments, cwd=ROOT):
    return subprocess.run(
        [sys.executable, ROOT / "run_scripts" / "describe_model.py", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_config_file(tmp_path):
    path = tmp_path / "bert_config.json"
    path.write_text(BertConfig.named("tiny").to_json_string())
    done = describe(f"--bert_config_file={path}")
    assert done.returncode == 0, done.stderr
    lines = {line.split("  ")[0]: line for line in done.stdout.splitlines()}
    assert lines["word embeddings"].split()[2:] == [
        "V·H",
        "3,906,816",
        "V·H",
        "3,906,816",
    ]
    assert lines["encoder"].split()[-1] == "4,385,920"
    assert lines["with both heads"].split()[-1] == "4,433,468"
    assert "L=2 layers" in done.stdout


@pytest.mark.parametrize(("length", "is_told"), [(512, False), (513, True)])
def test_what_a_model_cannot_read_is_told(length, is_told):
    done = describe("--size=tiny", f"--max_seq_length={length}")
    assert ("cannot read this length" in done.stdout) is is_told


def test_tensorflow_is_not_loaded():
    script = ROOT / "run_scripts" / "describe_model.py"
    done = subprocess.run(
        [sys.executable, "-X", "importtime", script, "--size=large"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "parameter_count" in done.stderr
    assert "| tensorflow" not in done.stderr
    assert "| keras" not in done.stderr


@pytest.mark.parametrize("cwd", [".", "run_scripts"])
def test_a_size_and_its_file_agree(cwd):
    by_size = describe("--size=large", cwd=ROOT / cwd)
    by_file = describe("--bert_config_file=configs/bert_large.json", cwd=ROOT / cwd)
    assert by_size.returncode == 0
    assert by_size.stdout == by_file.stdout
    assert "336,226,108" in by_size.stdout


def test_operations_of_other_lengths():
    done = describe(
        "--size=base", "--max_seq_length=512", "--max_predictions_per_seq=80"
    )
    assert "512 tokens with 80 masked tokens: 3.01e+11" in done.stdout


@pytest.mark.parametrize(
    "arguments, status, message",
    [
        ([], 1, "either --bert_config_file or --size"),
        (["--size=tiny", "--bert_config_file=x"], 1, "either"),
        (["--bert_config_file=nowhere.json"], 1, "nowhere.json"),
        (["--size=huge"], 2, "tiny|mini|small|medium|base|large"),
        (["--max_seq_length=0", "--size=tiny"], 2, "max_seq_length"),
    ],
)
def test_mistakes_are_one_line(arguments, status, message):
    done = describe(*arguments)
    assert done.returncode == status
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
