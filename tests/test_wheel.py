"""The wheel works without a checkout, and the sdist has all files that git tracks."""

import os
import pathlib
import subprocess
import sys
import tarfile
import zipfile

import pytest
from places import MINI, ROOT

from official_bert.command_line.command_table import COMMANDS

pytest.importorskip("build.env", reason="build is not installed: pip install build")
pytest.importorskip("hatchling", reason="hatchling is not installed")

# The size in configs/bert_tiny.json.
VOCAB_SIZE = 30522


def run(command, cwd, **environment):
    """Return the finished process, which cannot see the checkout."""
    kept = {name: os.environ[name] for name in os.environ if name != "PYTHONPATH"}
    return subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={**kept, **environment},
        capture_output=True,
        text=True,
    )


def build(folder, *options):
    command = [sys.executable, "-m", "build", "--no-isolation", *options]
    done = run([*command, "--outdir", folder, ROOT], folder)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return a folder with an sdist, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("built")
    build(folder)
    return folder


@pytest.fixture(scope="module")
def names(built):
    """Return the names of the files in the wheel."""
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def files_of(*folders):
    """Return the files of a checkout in folders, without caches."""
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    return {
        path.relative_to(ROOT).as_posix()
        for path in paths
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_has_the_package_and_what_it_reads(names):
    own = {name for name in names if name.startswith("official_bert/")}
    page = files_of("ports/js/bert", "ports/js/page", "ports/js/playground")
    scripts = {f"ports/js/{name}" for name in ("tokenizer.js", "bert.js", "bert.d.ts")}
    added = {*files_of("configs"), *page, *scripts, "LICENSE"}
    assert {"configs/tiny.flags", "configs/glue/mrpc.flags"} <= added
    assert own == files_of("official_bert") | {f"official_bert/{n}" for n in added}
    for name in ("py.typed", "tokenization/character_table.npz", "__main__.py"):
        assert f"official_bert/{name}" in own
    assert any(name.endswith("LICENSE") and ".dist-info/" in name for name in names)


def test_the_wheel_has_nothing_else(names):
    tops = {name.split("/")[0] for name in names}
    assert len(tops) == 2 and "official_bert" in tops


def test_the_sdist_is_complete(built):
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], ROOT
    )
    tracked = {name for name in listed.stdout.splitlines() if (ROOT / name).is_file()}
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        members = [member.name for member in archive if member.isfile()]
    inside = {name.partition("/")[2] for name in members}
    assert inside == tracked | {"PKG-INFO"}


def test_a_wheel_of_the_checkout_is_that_of_the_sdist(names, tmp_path):
    build(tmp_path, "--wheel")
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert sorted(archive.namelist()) == sorted(names)


@pytest.fixture(scope="module")
def program(built, tmp_path_factory):
    """Return the program in a new environment, with this environment's packages."""
    folder = tmp_path_factory.mktemp("environment")
    made = run([sys.executable, "-m", "venv", "--without-pip", folder], folder)
    assert made.returncode == 0, made.stderr
    python = folder / "bin" / "python"
    (wheel,) = built.glob("*.whl")
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps"]
    done = run([*install, "--no-index", wheel], folder)
    assert done.returncode == 0, done.stderr
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = pathlib.Path(run([python, "-c", code], folder).stdout.strip())
    # No .pth file of this environment is read, so the checkout is not visible.
    paths = [
        path for path in sys.path if path.endswith(("site-packages", "dist-packages"))
    ]
    (site / "packages.pth").write_text("\n".join(paths) + "\n")
    return folder / "bin" / "official-bert"


def test_it_lists_the_commands(program, tmp_path):
    done = run([program], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(f"\n  {command.name} " in done.stdout for command in COMMANDS)
    by_module = run([program.parent / "python", "-m", "official_bert"], tmp_path)
    assert by_module.stdout == done.stdout


def test_it_runs_the_installed_package(program, tmp_path):
    code = "import official_bert; print(official_bert.__file__)"
    done = run([program.parent / "python", "-c", code], tmp_path)
    assert done.stdout.startswith(str(program.parent.parent)), done.stdout


def test_it_finds_its_configs(program, tmp_path):
    done = run([program, "pretrain", "--flagfile=tiny", "--help"], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "official-bert pretrain --flagfile=configs/tiny.flags" in done.stdout
    size = run([program, "describe", "--size=tiny"], tmp_path)
    config = "--bert_config_file=configs/bert_tiny.json"
    assert run([program, "describe", config], tmp_path).stdout == size.stdout != ""


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        # The flag file exists, but its records do not.
        (["--flagfile=tiny"], "--input_file: no file matches 'data/pretraining_128/"),
        (["--flagfile=tinny"], "Did you mean --flagfile=tiny?"),
    ],
)
def test_messages_name_the_program(program, tmp_path, flags, message):
    done = run([program, "pretrain", *flags], tmp_path)
    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert "run_scripts" not in done.stderr
    assert list(tmp_path.iterdir()) == []


# It starts TensorFlow three times.
@pytest.mark.slow
def test_it_pretrains_by_a_flag_file(program, tmp_path):
    """Records, a few training steps and the doctor run in an empty folder."""
    tokens = (MINI / "vocab.txt").read_text().splitlines()
    tokens += [f"[extra{number}]" for number in range(VOCAB_SIZE - len(tokens))]
    (tmp_path / "vocab.txt").write_text("".join(f"{token}\n" for token in tokens))
    records = [
        *("records", f"--input_file={MINI / 'text.txt'}", "--vocab_file=vocab.txt"),
        "--output_file=text.tfrecord",
    ]
    pretrain = [
        *("pretrain", "--flagfile=tiny", "--vocab_file=vocab.txt"),
        *("--input_file=text.tfrecord", "--dev_file=text.tfrecord"),
        *("--output_dir=output", "--train_batch_size=4", "--num_train_steps=3"),
        *("--num_warmup_steps=1", "--max_eval_steps=1"),
    ]
    for command in (records, pretrain, ["doctor"]):
        done = run([program, *command], tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "keras" in done.stdout and "This machine is ready." in done.stdout
    assert (tmp_path / "output" / "bert_model.ckpt.index").exists()
    results = (tmp_path / "output" / "eval_results.txt").read_text()
    assert "global_step = 3\n" in results
    card = (tmp_path / "output" / "README.md").read_text()
    assert "official-bert fill-mask --model=THIS_FOLDER" in card
