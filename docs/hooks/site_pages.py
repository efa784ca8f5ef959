"""Hooks of MkDocs: generated text, and links from pages to files of the repository.

A page with `<!-- include: FILE -->` shows a Markdown file of the repository, and one
with `<!-- commands -->` the help of all commands. If a page links to a file outside
`docs/`, the site gets a page with that file.
"""

import functools
import html
import json
import pathlib
import posixpath
import re
import subprocess
import sys

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Files of the repository with a page of their own on the site.
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing/index.md",
    "CHANGELOG.md": "contributing/changelog.md",
}
LANGUAGES = {".py": "python", ".json": "json", ".js": "javascript", ".ts": "typescript"}
IMAGES = (".png", ".svg")
_INCLUDE = re.compile(r"^<!-- include: (\S+) -->$", re.MULTILINE)
_COMMANDS = "<!-- commands -->"
_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_FENCED = re.compile(r"(^ *```.*?^ *```$)", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"(--\w[\w-]*(?:=[^\s,;:)]*[\w…/*])?|\b[\w/*.-]+\.\w+\b)")
_SPECIAL = re.compile(r"([\\`*_|\[\]])")
_HELP = (
    "import sys; sys.argv[0] = 'official-bert';"
    "from official_bert.command_line.start import main; main()"
)
_TABLE = (
    "import json; from official_bert.command_line.command_table import COMMANDS;"
    "print(json.dumps([(c.name, c.group, c.summary) for c in COMMANDS]))"
)


def on_files(files, config):
    """Add a page for each file of the repository that a page links to."""
    pages = [file for file in files.documentation_pages() if file.abs_src_path]
    pending = [(file.src_uri, _read(file.src_uri)) for file in pages]
    while pending:
        uri, text = pending.pop()
        for target in _targets(text, uri):
            generated = _page_of(target)
            if not generated or files.get_file_from_path(generated):
                continue
            if target.endswith(IMAGES):
                image = str(ROOT / target)
                files.append(File.generated(config, generated, abs_src_path=image))
                continue
            content = _file_page(target)
            files.append(File.generated(config, generated, content=content))
            if target.endswith(".md"):
                pending.append((generated, content))
    return files


def on_page_markdown(markdown, page, config, files):
    """Return a page with its generated text and with the links of the site."""
    uri = page.file.src_uri
    if uri == "index.md":
        page.meta["hide"] = ["navigation"]
    markdown = _with_includes(markdown, uri)
    if _COMMANDS in markdown:
        markdown = markdown.replace(_COMMANDS, commands())
    return _map_links(markdown, lambda link: _site_link(link, uri))


def _read(uri):
    """Return the text of a page with its includes."""
    return _with_includes((ROOT / "docs" / uri).read_text("utf-8"), uri)


def _with_includes(markdown, uri):
    """Replace each include by its file, with links relative to the page."""

    def content(match):
        text = (ROOT / match[1]).read_text("utf-8")
        return _moved(text, match[1], uri)

    return _INCLUDE.sub(content, markdown)


def _moved(text, path, uri):
    """Return a file's text with links that are relative to the page `uri`."""

    def relative(link):
        target, anchor = _split(link)
        if not target:
            return link
        target = posixpath.join(posixpath.dirname(path), target)
        return posixpath.relpath(target, f"docs/{posixpath.dirname(uri)}") + anchor

    return _map_links(text, relative)


def _map_links(markdown, function):
    """Apply a function to each local link outside of code blocks."""

    def new_link(match):
        local = "://" not in match[2] and not match[2].startswith("mailto:")
        return match[1] + (function(match[2]) if local else match[2]) + match[3]

    parts = _FENCED.split(markdown)
    parts[::2] = [_LINK.sub(new_link, part) for part in parts[::2]]
    return "".join(parts)


def _split(link):
    """Return (path, "#anchor" or "")."""
    path, mark, anchor = link.partition("#")
    return path, mark + anchor


def _in_repository(link, uri):
    """Return the path of a link's target, relative to the repository."""
    path, _ = _split(link)
    return posixpath.normpath(posixpath.join("docs", posixpath.dirname(uri), path))


def _targets(text, uri):
    """Return the files outside of `docs/` that a page links to."""
    targets = []
    _map_links(text, lambda link: targets.append(_in_repository(link, uri)) or link)
    return {target for target in targets if _page_of(target)}


def _page_of(target):
    """Return the page or copy of a file on the site; None if it has its own page."""
    outside = not target.startswith(("docs/", "../"))
    if outside and target not in PAGES and (ROOT / target).is_file():
        if target.endswith(IMAGES):
            return f"source/{target}"
        return f"source/{target.removesuffix('.md')}.md"
    return None


def _file_page(target):
    """Return the Markdown of the page that shows a file."""
    text = (ROOT / target).read_text("utf-8")
    if target.endswith(".md"):
        return _moved(text, target, _page_of(target))
    language = LANGUAGES.get(pathlib.PurePath(target).suffix, "text")
    hidden = "---\nsearch:\n  exclude: true\nhide:\n  - toc\n---\n"
    return f"{hidden}# `{target}`\n\n``````{language}\n{text.rstrip()}\n``````\n"


def _site_link(link, uri):
    """Return the link of the site for a link of a page."""
    path, anchor = _split(link)
    if not path:
        return link
    target = _in_repository(link, uri)
    page = PAGES.get(target) or _page_of(target)
    if page is None:
        return link
    # A line number of a source file is not an anchor of its page.
    anchor = "" if re.fullmatch(r"#L\d+(-L\d+)?", anchor) else anchor
    return posixpath.relpath(page, posixpath.dirname(uri) or ".") + anchor


@functools.cache
def commands():
    """Return the help of all commands as Markdown."""
    groups = {}
    for name, group, summary in _table():
        groups.setdefault(group, []).append(_command(name, summary))
    parts = [f"## {group}\n\n" + "\n\n".join(each) for group, each in groups.items()]
    return "\n\n".join(parts)


def _table():
    return json.loads(_output("-c", _TABLE))


def _output(*arguments):
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{arguments} failed:\n{done.stderr}")
    return done.stdout


def _command(name, summary):
    """Return the section of one command: summary, text of its help, and flags."""
    blocks = _output("-c", _HELP, name, "--help").strip().split("\n\n")
    parts = [f"### {name} {{ #{name} }}", summary]
    for block in blocks[1:]:
        title, _, flags = block.partition(":\n")
        if re.match(r" +--", flags):
            parts += [f"**{title}**", _flags(name, flags)]
        elif block.startswith("    "):
            lines = [line.removeprefix("    ") for line in block.splitlines()]
            parts.append("```text\n" + "\n".join(lines) + "\n```")
        elif not block.startswith("--help"):
            parts.append(_plain(block))
    return "\n\n".join(parts)


def _flags(command, text):
    """Return flags as a definition list. Each has an anchor: #classify-model."""
    items = re.split(r"^  (?=--)", text, flags=re.MULTILINE)[1:]
    lines = []
    for item in items:
        flag, _, help_text = item.partition("\n")
        anchor = f"{command}-" + re.match(r"--(\w+)", flag)[1]
        joined = " ".join(help_text.split())
        lines.append(f"`{flag}`{{ #{anchor} }}\n:   {_plain(joined)}\n")
    return "\n".join(lines)


def _plain(text):
    """Return plain text as Markdown with code and links to pages."""
    parts = _CODE.split(text)
    parts[::2] = [
        _SPECIAL.sub(r"\\\1", html.escape(part, False)) for part in parts[::2]
    ]
    parts[1::2] = [_code(part) for part in parts[1::2]]
    return "".join(parts)


def _code(word):
    """Return a word as code, with a link if it names a page: docs/models.md."""
    if word.startswith("docs/") and (ROOT / word).is_file():
        return f"[`{word}`](../{word.removeprefix('docs/')})"
    return f"`{word}`"
