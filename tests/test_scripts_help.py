"""Every command shows its help quickly."""

import subprocess
import sys
import time

import pytest
from places import ROOT

COMMANDS = sorted(path.name for path in (ROOT / "run_scripts").glob("*.py"))
SECONDS = 1.5
# Each with its flags of training and held-out data.
FINE_TUNING_COMMANDS = {
    "run_classifier.py": ("train_file", "dev_file"),
    "run_embedding.py": ("train_file", "dev_file"),
    "run_ner.py": ("train_file", "dev_file"),
    "run_squad.py": ("train_file", "predict_file"),
    "run_swag.py": ("train_file", "dev_file"),
}
# Each takes about a second to import, or is an extra that may be missing.
HEAVY = {"tensorflow", "keras", "keras_hub", "matplotlib", "tensorboard"}


def ask_for_help(name, *python_options):
    """Return the finished process and its duration in seconds."""
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, *python_options, f"run_scripts/{name}", "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    return done, time.monotonic() - started


def test_there_are_commands():
    assert {"create_pretraining_data.py", "doctor.py"} <= set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_quick_and_shows_how_to_call(name):
    done, seconds = ask_for_help(name)
    assert (done.returncode, done.stderr) == (0, "")
    if seconds > SECONDS:  # Another process may have used the processor.
        seconds = min(ask_for_help(name)[1], ask_for_help(name)[1])
    assert seconds < SECONDS
    first, *rest = done.stdout.splitlines()
    assert first.endswith((".", "?", ",")) or rest[0], "no summary line"
    example = next(line.strip() for line in rest if "python " in line)
    assert example.startswith(f"python run_scripts/{name}")
    assert max(map(len, done.stdout.splitlines())) <= 88


@pytest.mark.parametrize("name", COMMANDS)
def test_help_imports_nothing_heavy(name):
    done, _ = ask_for_help(name, "-X", "importtime")
    imported = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
    assert "official_bert.command_line.program" in imported
    assert not imported & HEAVY


@pytest.mark.parametrize(
    ("mistake", "answer"),
    [
        (["--do_train"], "Give --model"),
        # A message before the error names the model that is used.
        (
            ["--do_eval", "--init_checkpoint=y", "--num_train_epochs=1e9"],
            "--num_train_epochs=1000000000.0 is out of range",
        ),
    ],
)
@pytest.mark.parametrize("name", FINE_TUNING_COMMANDS)
def test_a_mistake_is_told_before_tensorflow_is_imported(
    name, mistake, answer, tmp_path
):
    for path in ("a.txt", "x/task.json", "y/task.json"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("{}\n")
    data = [f"--{flag}=a.txt" for flag in FINE_TUNING_COMMANDS[name]]
    script = ROOT / "run_scripts" / name
    done = subprocess.run(
        [sys.executable, "-X", "importtime", script, "--output_dir=x", *data, *mistake],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    *imported, told = done.stderr.splitlines()
    assert done.returncode == 1
    assert told.startswith(f"error: {answer}")
    names = {line.rsplit("|", 1)[-1].strip() for line in imported}
    assert "official_bert.command_line.program" in names
    assert not names & HEAVY


# Find the package as in a checkout that is not installed.
NOT_INSTALLED = """
import sys
name, folder, root = sys.argv[1:]
sys.path[:] = [folder, *(path for path in sys.path[1:] if path != root)]
__import__(name.removesuffix(".py"))
found = sys.modules.get("official_bert")
print(found.__file__ if found else "not used")
"""


@pytest.mark.parametrize("name", COMMANDS)
def test_it_runs_from_a_checkout(name, tmp_path):
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            NOT_INSTALLED,
            name,
            str(ROOT / "run_scripts"),
            str(ROOT),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    own = str(ROOT / "official_bert" / "__init__.py")
    assert done.stdout.strip() in (own, "not used")
