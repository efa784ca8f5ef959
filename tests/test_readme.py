"""The commands of README and docs name scripts, flags and files that exist."""

import re
import shlex

import pytest
from places import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def commands():
    """Return (page, words) of each command that runs one of our programs."""
    found = []
    for page in PAGES:
        blocks = re.findall(r"```(\w*)\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
        for block in (text for language, text in blocks if not language):
            for line in block.replace("\\\n", " ").splitlines():
                if line.startswith("python "):
                    # Without what the shell does with it.
                    command = re.split(r" [&>|]( |$)", line)[0]
                    words = shlex.split(command, comments=True)
                    found.append((page.name, words[1:]))
    return found


def flags_of(script):
    """Return the names of the flags that a script defines or takes over."""
    text = script.read_text("utf-8")
    helpers = ("fine_tuning_flags", "training_flags", "model_flags", "beam_flags")
    for helper in helpers:
        if re.search(rf"^(from|import) {helper}\b", text, re.MULTILINE):
            text += (ROOT / "run_scripts" / f"{helper}.py").read_text("utf-8")
    defined = re.findall(r'DEFINE_\w+\(\s*"(\w+)"', text)
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
