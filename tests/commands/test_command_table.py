"""The list of commands names each module once, and the program starts them."""

import ast
import re
import subprocess
import sys

import pytest
from places import ROOT

import official_bert
from official_bert.command_line import command_table, start
from official_bert.command_line.command_table import COMMANDS
from official_bert.errors import UserError

MODULES = {path.stem for path in (ROOT / "official_bert/commands").glob("*.py")}


@pytest.fixture
def typed(monkeypatch, capsys):
    """Return a function: arguments of the program -> (status, stdout, stderr)."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["bin/official-bert", *arguments])
        with pytest.raises(SystemExit) as end:
            start.main()
        return end.value.code, *capsys.readouterr()

    return run


def test_each_module_has_one_name():
    modules = [command.module for command in COMMANDS]
    assert len({command.name for command in COMMANDS}) == len(modules)
    # The command `models` was added with the names of models.
    assert {*modules} - {"models"} == MODULES - {"__init__", "models"}
    assert len({*modules}) == len(modules)


def test_each_script_is_a_command():
    scripts = {path.stem for path in (ROOT / "run_scripts").glob("*.py")}
    assert scripts <= {command.module for command in COMMANDS}


def test_the_list_has_a_line_for_each_command(typed):
    status, listed, errors = typed()
    assert (status, errors) == (0, "")
    lines = listed.splitlines()
    for command in COMMANDS:
        (line,) = [one for one in lines if one.split()[:1] == [command.name]]
        assert line.endswith(f"  {command.summary}")
        assert lines.index(f"{command.group}:") < lines.index(line)
    assert max(map(len, lines)) <= 80
    assert typed("help") == typed("-h") == typed("--help") == (0, listed, "")


def test_the_page_of_commands_is_the_table():
    page = (ROOT / "docs" / "reference" / "command_line.md").read_text("utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| (\S+) \| (.*) \|$", page, re.MULTILINE)
    assert rows == [
        (command.name, script_of(command), command.summary) for command in COMMANDS
    ]


def script_of(command):
    script = f"run_scripts/{command.module}.py"
    return f"`{script}`" if (ROOT / script).exists() else "–"


def test_version(typed):
    version = f"official-bert {official_bert.__version__}\n"
    assert typed("--version") == (0, version, "")


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("clasify", "official-bert classify"),
        ("fill_mask", "official-bert fill-mask"),
        ("run_ner.py", "official-bert ner"),
        ("xyzzy", None),
    ],
)
def test_an_unknown_command_is_one_sentence(typed, name, nearest):
    status, printed, error = typed(name, "--do_train")
    assert (status, printed) == (2, "")
    assert error.startswith(f"error: {name!r} is not a command. ")
    assert error.count("\n") == 1
    assert (f"Did you mean {nearest}?" in error) == bool(nearest)
    with pytest.raises(UserError):
        command_table.find(name)


@pytest.mark.parametrize(
    ("program", "whole", "alone"),
    [
        ("run_scripts/run_ner.py", "python run_scripts/run_ner.py", "run_ner.py"),
        ("bin/official-bert", "official-bert ner", "official-bert ner"),
        ("official_bert/__main__.py", "python -m official_bert ner", None),
    ],
)
def test_commands_are_shown_as_the_user_types_them(monkeypatch, program, whole, alone):
    monkeypatch.setattr(sys, "argv", [program])
    alone = alone or "official-bert ner"
    others = "my_run_ner.py, 'query.py', --file=serve.py, src/models.py"
    text = f"Run python run_scripts/run_ner.py --do_eval; (run_ner.py); {others}"
    wanted = f"Run {whole} --do_eval; ({alone}); {others}"
    assert command_table.in_users_form(text) == wanted
    assert " ".join(command_table.shown_command("ner")) == whole


def test_a_flag_that_is_wrong_has_the_status_of_the_script(tmp_path):
    """A wrong flag gives the script's status, also with `python -m official_bert`."""
    command = [sys.executable, "-m", "official_bert", "serve", "--port=x"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    script = [sys.executable, "run_scripts/serve.py", "--port=x"]
    by_script = subprocess.run(script, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == by_script.stderr
    assert done.stderr.startswith("error: flag --port=x: not a whole number: 'x'")


def test_printed_commands_are_those_of_the_user():
    """Errors and logs are rewritten; what a command prints itself must be, too."""
    for path in (ROOT / "official_bert" / "commands").glob("*.py"):
        module = ast.parse(path.read_text("utf-8"))
        texts = [
            node.value
            for statement in module.body[1:]
            for node in ast.walk(statement)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        assert not [text for text in texts if "python run_scripts/" in text], path
