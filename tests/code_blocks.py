"""The code blocks of README and docs.

A block without a language contains shell commands. A block that no test can run has a
comment before it: <!-- not run: reason -->.
"""

import dataclasses
import pathlib
import re

from places import ROOT

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
_BLOCK = re.compile(
    r"(?:<!-- not run: ([^\n]*) -->\n)?```(\w*)\n(.*?)```", flags=re.DOTALL
)


def page_name(path):
    """Return a page's path within docs: how_to/serving.md. README has its own name."""
    return (
        pathlib.Path(path)
        .relative_to(DOCS if DOCS in path.parents else ROOT)
        .as_posix()
    )


@dataclasses.dataclass(frozen=True)
class Block:
    """A code block: the name of its page, its language and its text.

    `not_run` is the reason why no test runs it, or None.
    """

    page: str
    language: str
    text: str
    not_run: str | None

    @property
    def is_shell(self):
        return not self.language

    def commands(self):
        """Return the commands of a shell block, one per line."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [line for line in lines if line and not line.startswith("#")]


def blocks_of(page):
    """Return the blocks of a page (a path), in order."""
    return [
        Block(page_name(page), language, text, reason or None)
        for reason, language, text in _BLOCK.findall(page.read_text("utf-8"))
    ]
