"""The code blocks of README and docs.

A block without a language holds commands for a shell. Those that no test can run
have a comment before them: <!-- not run: why -->.
"""

import dataclasses
import re

from places import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(
    r"(?:<!-- not run: ([^\n]*) -->\n)?```(\w*)\n(.*?)```", flags=re.DOTALL
)


@dataclasses.dataclass(frozen=True)
class Block:
    """A code block: the page's path, its language, its text.

    `not_run` says why no test runs it; it is None where one does.
    """

    page: str
    language: str
    text: str
    not_run: str | None

    @property
    def is_shell(self):
        return not self.language

    def commands(self):
        """Return the commands of a shell's block, a line each."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [line for line in lines if line and not line.startswith("#")]


def blocks_of(page):
    """Return the blocks of a page, a path, in their order."""
    return [
        Block(page.name, language, text, reason or None)
        for reason, language, text in _BLOCK.findall(page.read_text("utf-8"))
    ]
