"""Start and end of every run script, on small scripts made here."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import time

import pytest
from places import ROOT

SCRIPT = '''
"""Say a word.

    python say.py --word=hello

It says it.
"""

from absl import flags
from official_bert.command_line.flag_values import locate, require
from official_bert.command_line.program import run
from official_bert.command_line.run_record import write_run_json
import errno, os, sys, time
from official_bert.errors import UserError

flags.DEFINE_string("word", None, "What to say. " * 10)
flags.DEFINE_integer("times", 1, "How often.", 1)
flags.DEFINE_list("names", ["a", "b"], "To whom.")
flags.DEFINE_enum("tone", "kind", ["kind", "rude"], "How.")
flags.DEFINE_bool("loud", True, "Shout.")
FLAGS = flags.FLAGS


def main():
BODY


if __name__ == "__main__":
    run(main)
'''


@pytest.fixture
def script(tmp_path):
    """Return a function that runs a script with the given body of `main`."""

    def run_script(*arguments, body="print(FLAGS.word, FLAGS.times)", **options):
        path = tmp_path / "say.py"
        path.write_text(SCRIPT.replace("BODY", textwrap.indent(body, "    ")))
        return subprocess.run(
            [sys.executable, path, *arguments],
            cwd=options.pop("cwd", tmp_path),
            # "": buffered output, as in a user's Python.
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "PYTHONUNBUFFERED": "",
            },
            text=True,
            stderr=subprocess.PIPE,
            **{"stdout": subprocess.PIPE, **options},
        )

    return run_script


def check(done, status, stderr=""):
    assert done.stderr == stderr
    assert done.returncode == status


def test_flags_reach_main(script):
    done = script("--word=hi", "--times", "3")
    check(done, 0)
    assert done.stdout == "hi 3\n"


def test_status_of_main_is_the_exit_status(script):
    check(script(body="return 7"), 7)


def test_what_is_logged_while_tensorflow_starts_is_shown(script):
    """Log lines are shown; TensorFlow's own lines are not."""
    body = """
from absl import logging
from official_bert.command_line.tensorflow_start import start_tensorflow
def use():
    os.write(2, b"chatter\\n")
    logging.warning("ours")
    return 3
found = start_tensorflow(use)
logging.warning("later")
return found"""
    done = script(body=body)
    assert done.returncode == 3
    lines = done.stderr.splitlines()
    assert len(lines) == 2 and lines[0].endswith("ours") and lines[1].endswith("later")


def test_user_error_is_one_line_and_status_1(script):
    done = script(body='raise UserError("x.txt, line 3: no such\\nthing.")')
    check(done, 1, "error: x.txt, line 3: no such thing.\n")


def test_any_other_error_keeps_its_traceback(script):
    done = script(body='raise ValueError("ours")')
    assert done.returncode == 1
    assert "Traceback" in done.stderr and "ValueError: ours" in done.stderr


def test_other_system_errors_keep_their_traceback(script):
    assert "PermissionError" in script(body='raise PermissionError(13, "x")').stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--wurd=hi"], ["wurd", "Did you mean: word"]),
        (["--times=many"], ["--times=many", "not a whole number: 'many'"]),
        (["--times=0"], ["times", "0"]),
        (["--tone=loud"], ["tone", "kind", "rude"]),
        (["--word"], ["word"]),
        (["hello"], ["'hello'", "--name=value"]),
        (["--loud", "True"], ["'True'", "--do_train=true"]),
        (["--word=x", "--", "-y"], ["'-y'"]),
    ],
)
def test_unusable_flag_is_one_line_and_status_2(script, arguments, words):
    done = script(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    for word in [*words, "--help"]:
        assert word in done.stderr


def test_missing_flag_is_named(script):
    done = script(body='require("times", "word")')
    assert done.returncode == 1
    assert done.stderr.startswith("error: Give --word: What to say.")


def test_full_disk_is_one_line(script):
    done = script(body='raise OSError(errno.ENOSPC, "No space", "big.bin")')
    message = (
        "No space left on the disk of big.bin. Free some space and run the command "
    )
    check(done, 1, f"error: {message}again.\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_disk_behind_stdout_is_one_line(script):
    with open("/dev/full", "w") as full:
        done = script("--word=hi", stdout=full)
    assert done.returncode == 1
    assert done.stderr.startswith("error: No space left")
    assert done.stderr.count("\n") == 1


def test_closed_pipe_is_quiet(script):
    reader, writer = os.pipe()
    os.close(reader)
    done = script(body='print("x" * 100000)', stdout=writer)
    os.close(writer)
    check(done, 141)


def test_interrupt_has_no_traceback(script):
    check(script(body="raise KeyboardInterrupt"), 130, "interrupted\n")
    body = "import signal; signal.raise_signal(signal.SIGINT); time.sleep(9)"
    started = time.monotonic()
    check(script(body=body), 130, "interrupted\n")
    assert time.monotonic() - started < 9


@pytest.mark.parametrize("flag", ["--help", "-help", "-h", "--helpshort", "--helpfull"])
def test_help_is_the_docstring_and_the_flags(script, flag):
    done = script(flag)
    check(done, 0)
    lines = done.stdout.splitlines()
    assert lines[:3] == ["Say a word.", "", "    python say.py --word=hello"]
    shown = [line.strip() for line in lines if line.startswith("  --")]
    assert shown == [
        "--word",
        "--times=1",
        "--names=a,b",
        "--tone=kind",
        "--loud=True",
        "--flagfile",
    ]
    assert "      How often." in lines
    assert any("<kind | rude>:" in line for line in lines)
    assert max(map(len, lines)) <= 80
    assert "verbosity" not in done.stdout


def test_help_needs_no_other_flag_to_be_right(script):
    check(script("--wurd=1", "--help"), 0)


def test_flag_file_gives_flags_that_later_ones_override(script, tmp_path):
    text = "\ufeff# says\n// hi\n\n  --word=hi you  \n--times=2\r\n"
    (tmp_path / "a.flags").write_text(text, encoding="utf-8")
    for arguments in (["--flagfile=a.flags"], ["--flagfile", "a.flags"]):
        done = script(*arguments, "--times=5")
        check(done, 0)
        assert done.stdout == "hi you 5\n"
    assert script("--times=5", "-flagfile=a.flags").stdout == "hi you 2\n"


@pytest.mark.parametrize("form", ["--flagfile=inner.flags", "--flagfile inner.flags"])
def test_flag_files_in_flag_files(script, tmp_path, form):
    (tmp_path / "outer.flags").write_text(f"--word=outer\n{form}\n")
    (tmp_path / "inner.flags").write_text("--word=inner\n--times=4\n")
    assert script("--flagfile=outer.flags").stdout == "inner 4\n"


@pytest.mark.parametrize("last", ["", "--undefok=wurd"])
def test_flags_that_a_command_need_not_know(script, tmp_path, last):
    """--undefok may be in another file than the flag, and after it."""
    (tmp_path / "outer.flags").write_text(f"--flagfile=inner.flags\n{last}\n")
    (tmp_path / "inner.flags").write_text("--wurd=x\n--word=hi\n")
    done = script("--flagfile=outer.flags")
    if last:
        check(done, 0)
        assert done.stdout == "hi 1\n"
    else:
        assert done.returncode == 2
        assert "inner.flags, line 1: Unknown command line flag 'wurd'" in done.stderr


@pytest.fixture
def project(tmp_path):
    """Return a copy of the command line in a separate project."""
    root = tmp_path / "project"
    (root / "run_scripts").mkdir(parents=True)
    (root / "configs").mkdir()
    for name in ("*.py", "command_line/*.py"):
        for path in (ROOT / "official_bert").glob(name):
            copy = root / path.relative_to(ROOT)
            copy.parent.mkdir(exist_ok=True)
            shutil.copyfile(path, copy)
    body = "    print(FLAGS.word, locate(FLAGS.word))"
    (root / "run_scripts" / "say.py").write_text(SCRIPT.replace("BODY", body))
    (root / "configs" / "a.flags").write_text("--flagfile=configs/b.flags\n")
    (root / "configs" / "b.flags").write_text("--word=configs/b.flags\n")
    return root


@pytest.mark.parametrize("folder", ["project", "project/run_scripts", "."])
def test_flag_files_are_found_from_anywhere(project, tmp_path, folder):
    command = [sys.executable, project / "run_scripts" / "say.py"]
    done = subprocess.run(
        [*command, "--flagfile=configs/a.flags"],
        cwd=tmp_path / folder,
        env={**os.environ, "PYTHONPATH": str(project)},
        capture_output=True,
        text=True,
        check=True,
    )
    found = os.path.join(tmp_path / folder, done.stdout.split()[1])
    assert os.path.samefile(found, project / "configs" / "b.flags")


def test_working_directory_comes_before_the_root(project, tmp_path):
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "a.flags").write_text("--word=mine\n")
    done = subprocess.run(
        [sys.executable, "project/run_scripts/say.py", "--flagfile=configs/a.flags"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(project)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "mine mine\n"


@pytest.mark.parametrize("own", [None, "--word=mine\n"])
def test_a_short_name_stands_for_a_config(project, tmp_path, own):
    """`--flagfile=tiny` means `configs/tiny.flags`, unless a file `tiny` exists."""
    (project / "configs" / "glue").mkdir()
    (project / "configs" / "glue" / "c.flags").write_text("--word=ours\n")
    if own:
        (tmp_path / "glue").mkdir()
        (tmp_path / "glue" / "c").write_text(own)
    done = subprocess.run(
        [sys.executable, "project/run_scripts/say.py", "--flagfile=glue/c"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(project)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ("mine mine\n" if own else "ours ours\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("--word=x\n--flagfile=b.flags\n", "--flagfile=b.flags: no such file in "),
        ("--flagfile=a.flags\n", "a.flags includes itself."),
        ("\nword=x\n", "a.flags, line 2: 'word=x' is not a flag"),
        ("--word=x\n--wurd=x\n", "a.flags, line 2: Unknown command line flag 'wurd'"),
        ("\n\n--times=x\n", "a.flags, line 3: flag --times=x"),
        (b"\xff\xfe", "a.flags is not a flag file: it is not UTF-8 text."),
    ],
)
def test_mistake_in_a_flag_file_names_file_and_line(script, tmp_path, text, message):
    data = text if isinstance(text, bytes) else text.encode()
    (tmp_path / "a.flags").write_bytes(data)
    done = script("--flagfile=a.flags")
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1


def test_mistake_on_the_command_line_is_not_blamed_on_the_file(script, tmp_path):
    (tmp_path / "a.flags").write_text("--times=2\n")
    done = script("--flagfile=a.flags", "--times=x")
    assert done.returncode == 2
    assert done.stderr.startswith("error: flag --times=x")


def test_missing_flag_file_says_where_it_was_looked_for(script, tmp_path):
    done = script("--flagfile=none.flags")
    where = f"{os.path.realpath(tmp_path)} or {ROOT}"
    check(done, 2, f"error: --flagfile=none.flags: no such file in {where}.\n")
    assert script("--flagfile").returncode == 2


def test_run_json_tells_how_to_repeat_the_run(script, tmp_path):
    (tmp_path / "in.txt").write_bytes(b"text")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "vocab.txt").write_bytes(b"[PAD]")
    (tmp_path / "bert.ckpt.index").write_bytes(b"index")
    (tmp_path / "bert.ckpt.data-00000-of-00001").write_bytes(b"data")
    inputs = ["in.txt", "builtin:python", "model", "bert.ckpt", None, ""]
    body = f'write_run_json("out.run.json", {inputs!r})'
    check(script("--word=é", "--times=2", "--names=x,y", body=body), 0)
    written = json.loads((tmp_path / "out.run.json").read_text(encoding="utf-8"))

    command = [str(tmp_path / "say.py"), "--word=é", "--times=2", "--names=x,y"]
    assert written["command"][1:] == command
    assert written["command"][0].startswith("python")
    assert os.path.samefile(written["directory"], tmp_path)
    assert written["flags"] == {
        "word": "é",
        "times": 2,
        "names": ["x", "y"],
        "tone": "kind",
        "loud": True,
    }
    assert written["versions"]["python"] == sys.version.split()[0]
    assert {"official_bert", "tensorflow", "keras"} <= set(written["versions"])
    assert written["inputs"] == {
        "in.txt": hashlib.sha256(b"text").hexdigest(),
        "builtin:python": None,
        "model/vocab.txt": hashlib.sha256(b"[PAD]").hexdigest(),
        "bert.ckpt.data-00000-of-00001": hashlib.sha256(b"data").hexdigest(),
        "bert.ckpt.index": hashlib.sha256(b"index").hexdigest(),
    }
    assert time.strptime(written["written"], "%Y-%m-%dT%H:%M:%S%z")


def test_run_json_tells_how_to_repeat_a_command(tmp_path):
    """run.json has the command as the user started it, as a module."""
    command = ["-m", "official_bert", "convert", "--model=x", "--help"]
    program = (
        "import sys; from official_bert.command_line import run_record\n"
        f"sys.argv = ['/a/official_bert/__main__.py', *{command[2:]}]\n"
        "run_record.write_run_json('run.json', [])\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, check=True
    )
    written = json.loads((tmp_path / "run.json").read_text())
    assert written["command"] == [os.path.basename(sys.executable), *command]


def test_flags_of_helper_modules_are_recorded_and_shown(script, tmp_path):
    (tmp_path / "helper_flags.py").write_text(
        'from absl import flags\nflags.DEFINE_float("rate", 0.5, "Rate.")\n'
    )
    body = 'import helper_flags; write_run_json("out.json", [])'
    # Like the scripts, it imports the helper before parsing the flags.
    path = tmp_path / "with_helper.py"
    text = SCRIPT.replace("BODY", f"    {body}")
    path.write_text(text.replace("import errno", "import helper_flags, errno"))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, path, "--rate=0.25"]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    assert json.loads((tmp_path / "out.json").read_text())["flags"]["rate"] == 0.25
    done = subprocess.run(
        [*command, "--help"], env=environment, capture_output=True, text=True
    )
    assert "  --rate=0.5\n" in done.stdout


HELPER = """
from absl import flags

HELP_TITLE = "Threshold of training"
flags.DEFINE_bool("use_abacus", False, "For old commands; it has no effect.")
flags.DEFINE_float("rate", 0.5, "Rate.")
flags.DEFINE_multi_string("note", [], "A note.")
flags.DEFINE_enum("layers", None, ["x" * 50, "y" * 50], "Which.")
"""


@pytest.mark.parametrize("flag", ["--help", "--helpfull"])
def test_help_is_in_groups(tmp_path, flag):
    """The script's flags come first; the full help ends with flags without effect."""
    (tmp_path / "helper_flags.py").write_text(HELPER)
    body = SCRIPT.replace("BODY", "    pass")
    body = body.replace("import errno", "import helper_flags, errno")
    (tmp_path / "other.py").write_text(body)
    done = subprocess.run(
        [sys.executable, tmp_path / "other.py", flag],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    lines = [line for line in done.stdout.splitlines() if re.match("  --|[A-Z]", line)]
    first = lines.index("Flags, with their defaults:")
    old = ["Accepted for old commands:", "  --use_abacus=False"]
    own = [f"  --{n}" for n in ("word", "times=1", "names=a,b", "tone=kind")]
    assert lines[first + 1 :] == [
        *own,
        "  --loud=True",
        "  --flagfile",
        "Threshold of training:",
        "  --rate=0.5",
        "  --note",
        "  --layers",
        *(old if flag == "--helpfull" else []),
    ]
    assert ("--helpfull also shows" in done.stdout) == (flag == "--help")
    assert "      A note.\n" in done.stdout
    # No name is split over two lines.
    assert f"      <{'x' * 50} |\n      {'y' * 50}>: Which.\n" in done.stdout


@pytest.mark.parametrize("name", ["tokenizers", "tensorflow"])
def test_without_a_package_the_answer_is_one_line(tmp_path, name):
    (tmp_path / f"{name}.py").write_text(
        f"raise ModuleNotFoundError('No module', name='{name}.layers')\n"
    )
    arguments = ["fill_mask.py", "--model_dir=.", "--text=A [MASK]."]
    if name == "tokenizers":
        (tmp_path / "a.txt").write_text("Some words.\n")
        arguments = ["train_vocab.py", "--input_file=a.txt", "--output_file=vocab.txt"]
    done = subprocess.run(
        [sys.executable, ROOT / "run_scripts" / arguments[0], *arguments[1:]],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(
        f"error: {name} is not installed. Run: pip install -r"
    )
    assert done.stderr.count("\n") == 1


def test_without_absl_the_answer_is_one_line(tmp_path):
    (tmp_path / "absl.py").write_text("raise ModuleNotFoundError('absl')\n")
    done = subprocess.run(
        [sys.executable, ROOT / "run_scripts" / "doctor.py"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: absl-py is not installed")
    assert done.stderr.count("\n") == 1
