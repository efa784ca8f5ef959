"""The commands of README and docs name scripts, flags and files that exist."""

import ast
import re
import shlex

import documented_commands
import pytest
from code_blocks import PAGES, blocks_of
from places import ROOT

from official_bert.command_line import command_table

# First words of the lines of a shell block.
PROGRAMS = (
    *("official-bert", "python", "pip", "make", "curl"),
    *("mkdir", "mv", "echo", "awk", "sed", "export", "MODEL="),
)


def shell_blocks():
    return [block for page in PAGES for block in blocks_of(page) if block.is_shell]


def script_of(words):
    """Return the file of a command's code, and the words after its name."""
    if words[0] == "official-bert":
        module = command_table.find(words[1]).module
        return ROOT / "official_bert" / "commands" / f"{module}.py", words[2:]
    script = ROOT / words[1]
    if script.parent.name == "run_scripts" and script.is_file():
        script = ROOT / "official_bert" / "commands" / script.name
    return script, words[2:]


def commands():
    """Return (page, words) of each command that runs one of our programs."""
    lines = []
    for block in shell_blocks():
        for line in block.commands():
            # Without the pipe before it and the redirection after it.
            start = re.search(r"(?:^|\| )(official-bert \w|python (?!-))", line)
            if start:
                command = re.split(r" [&>|]( |$)", line[start.start(1) :])[0]
                lines.append((block.page, shlex.split(command, comments=True)))
    return lines


def flags_of(script):
    """Return the names of the flags that a script defines or imports."""
    text = "".join(path.read_text("utf-8") for path in modules_of_flags(script, set()))
    defined = re.findall(r'(?:DEFINE|define)_\w+\(\s*"(\w+)"', text)
    for names in re.findall(r"define_aliases\(([^)]*)\)", text):
        defined += re.findall(r'"(\w+)"', names)
    # Scripts for machines without absl use argparse.
    defined += re.findall(r'add_argument\(\s*"--(\w+)"', text)
    return {"flagfile", "help", *defined}


def modules_of_flags(path, found):
    """Return the script and all modules of flags that it imports, as paths."""
    found.add(path)
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.ImportFrom):
            continue
        folder = ROOT / str(node.module).replace(".", "/")
        names = [
            folder.with_suffix(".py"),
            *(folder / f"{n.name}.py" for n in node.names),
        ]
        for module in names:
            is_of_flags = {"command_line", "commands"} & {*module.parts}
            if is_of_flags and module.is_file() and module not in found:
                modules_of_flags(module, found)
    return found


def test_commands_were_found():
    pages = [page for page, _ in commands()]
    assert pages.count("README.md") >= 6
    assert {"tutorials/reviews.md", "how_to/data.md", "how_to/conversion.md"} <= {
        *pages
    }


@pytest.mark.parametrize(
    "words", [words for _, words in commands()], ids=lambda words: words[1]
)
def test_command_exists(words):
    script, arguments = script_of(words)
    assert script.is_file()
    for word in arguments:
        if not word.startswith("-"):
            continue
        name, _, value = word.lstrip("-").partition("=")
        assert name in {*flags_of(script), "h", "helpfull"}
        if value.startswith("configs/"):
            assert (ROOT / value).is_file()
        elif name == "flagfile" and "." not in value:
            assert (ROOT / "configs" / f"{value}.flags").is_file()


def test_readme_is_short():
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.split()) <= 700


@pytest.mark.parametrize("block", shell_blocks(), ids=lambda block: block.page)
def test_a_block_without_a_language_is_run_or_marked(block):
    if not block.not_run:
        assert all(line.startswith(PROGRAMS) for line in block.commands())


def test_all_pages_with_commands_are_run():
    """`make commands` runs them; see `documented_commands`."""
    assert not documented_commands.unknown_pages()


def test_marks_stand_before_blocks():
    texts = [page.read_text("utf-8") for page in PAGES]
    marks = sum(text.count("<!-- not run:") for text in texts)
    assert marks == sum(block.not_run is not None for block in shell_blocks()) > 3
