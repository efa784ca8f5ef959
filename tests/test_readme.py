"""The commands of README and docs name scripts, flags and files that exist."""

import re
import shlex

import documented_commands
import pytest
from code_blocks import PAGES, blocks_of
from places import ROOT

# What a line of a shell's block begins with.
PROGRAMS = (
    *("python", "pip", "make", "curl"),
    *("mkdir", "mv", "echo", "awk", "export", "MODEL="),
)


def shell_blocks():
    return [block for page in PAGES for block in blocks_of(page) if block.is_shell]


def commands():
    """Return (page, words) of each command that runs one of our programs."""
    found = []
    for block in shell_blocks():
        for line in block.commands():
            if line.startswith("python "):
                # Without what the shell does with it.
                command = re.split(r" [&>|]( |$)", line)[0]
                words = shlex.split(command, comments=True)
                found.append((block.page, words[1:]))
    return found


def flags_of(script):
    """Return the names of the flags that a script defines or takes over."""
    package = ROOT / "official_bert"
    if script.parent.name == "run_scripts":
        script = package / "commands" / script.name
    text = script.read_text("utf-8")
    helpers = ("fine_tuning_flags", "training_flags", "model_flags", "cluster_flags")
    helpers += ("dataset_flags",)
    for helper in helpers:
        if re.search(rf"command_line(\.| import[(\w\s,]*\s){helper}\b", text):
            text += (package / "command_line" / f"{helper}.py").read_text("utf-8")
    defined = re.findall(r'(?:DEFINE|define)_\w+\(\s*"(\w+)"', text)
    for names in re.findall(r"define_aliases\(([^)]*)\)", text):
        defined += re.findall(r'"(\w+)"', names)
    # Scripts for machines without absl use argparse.
    defined += re.findall(r'add_argument\(\s*"--(\w+)"', text)
    return {"flagfile", "help", *defined}


def test_commands_were_found():
    pages = [page for page, _ in commands()]
    assert pages.count("README.md") >= 8
    assert {"data.md", "results.md", "checkpoints.md", "migrating.md"} <= set(pages)


@pytest.mark.parametrize(
    "words", [words for _, words in commands()], ids=lambda words: words[0]
)
def test_command_exists(words):
    script = ROOT / words[0]
    assert script.is_file()
    for word in words[1:]:
        name, _, value = word.lstrip("-").partition("=")
        assert name in flags_of(script)
        if value.startswith("configs/"):
            assert (ROOT / value).is_file()


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
