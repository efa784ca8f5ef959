"""The text that every Python installation contains: reference and docstrings.

`builtin:python` is the prose of the language reference (`pydoc_data.topics`)
and of the docstrings of the standard library and the installed packages. It has
one sentence per line and one document per topic or module.
`builtin:python:heldout` is the tenth of the modules that training never sees,
without lines that also occur in training. Sources are parsed, never imported.
Every line is kept once, because packages repeat docstrings hundreds of times.

The text depends only on the environment. It is made once, in about half a
minute, and stored in the user's cache folder.
"""

import ast
import hashlib
import importlib.metadata
import inspect
import itertools
import os
import pathlib
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterable

from absl import logging

from official_bert import files
from official_bert.corpus import sentences
from official_bert.corpus.progress import progress
from official_bert.errors import UserError

TRAINING = "builtin:python"
HELD_OUT = "builtin:python:heldout"

# One of this many modules is held out.
_HELD_OUT_SHARE = 10
_SKIPPED_FOLDERS = {
    "__pycache__",
    "site-packages",
    "dist-packages",
    "test",
    "tests",
    "idle_test",
    "_vendor",
    "official_bert",
}

# Prose means the sentences of docstrings, without code, tables and markup. This
# pattern matches the beginning of a list item or parameter, which is dropped.
_ITEM = re.compile(
    r"(?:[-*•+–]|\(?\d{1,2}[.)]|#\.|:\w+[^:]*:|\*{0,2}[`\"']{0,2}[\w.*, /-]{1,40}"
    r"[`\"']{0,2}(?: ?\([^)]*\))? ?:)(?:\s+|$)"
)
_HEADING_RULE = re.compile(r"([=\-~^*#\"'+.`])\1{2,}$")
_FENCE = re.compile(r"(```|~~~)")
_DIRECTIVE = re.compile(r"\.\. [\w-]+::")
_LABEL = re.compile(
    r"(?:Notes?|Warnings?|Tips?|Caution|Returns|Yields|Raises|TODO\S*):\s"
)

# Markup -> its visible text.
_MARKUP = [
    (re.compile(r"!?\[([^\]\[]+)\]\([^)\s]*\)"), r"\1"),  # [text](address)
    (re.compile(r"`([^`<]+?)\s*<[^`>]+>`_{0,2}"), r"\1"),  # `text <address>`_
    (re.compile(r":[\w:+-]+:`~?(?:[^`]*\.)?!?([^`.]+)`"), r"\1"),  # :class:`~a.B`
    (re.compile(r"`{1,2}([^`]+)`{1,2}_{0,2}"), r"\1"),
    (re.compile(r"(?<![\w*])\*{1,2}(\S|\S.*?\S)\*{1,2}(?![\w*])"), r"\1"),
    (re.compile(r"\s?\[\w{1,12}\]_"), ""),  # [1]_
]

_SHORTEST, _LONGEST = 5, 60  # Limits for the number of words in a sentence.
_PROSE_SHARE = 0.85
_PLAIN_WORD = re.compile(r"[(\"“‘']*[A-Za-z]+(?:['’-][A-Za-z]+)*[)\"”’',.;:!?]*$")
_SENTENCE = re.compile(r"[\"“]?[A-Z].*[a-z)\"”’][.!?][\"”)]?$")
_NOT_PROSE = re.compile(
    r"[=<>{}\\|^~#@$%\[\]]|::|--|\.\.|//|\w\([^)]|\w\.\w+\.|\s[.,;:]\s"
)


def corpus_file(name: str, flag: str = "--input_file") -> str:
    """Return the path of an embedded corpus; create it if it is not cached.

    Args:
      name: `TRAINING` or `HELD_OUT`.
      flag: the flag with the name, for messages.

    Returns:
      str: a UTF-8 file, one sentence per line, blank lines between documents.

    Raises:
      UserError: the corpus does not exist, or the cache folder cannot be
        written.
    """
    if name not in (TRAINING, HELD_OUT):
        raise UserError(
            f"{flag}: the corpus {name} does not exist. The embedded corpora "
            f"are {TRAINING} and {HELD_OUT}."
        )
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = os.path.join(cache, "official_bert")
    base = os.path.join(folder, f"python-{_fingerprint()}")
    paths = {TRAINING: f"{base}-training.txt", HELD_OUT: f"{base}-heldout.txt"}
    if not all(map(os.path.exists, paths.values())):
        files.make_directory(folder, "XDG_CACHE_HOME")
        parts = split_documents(_read_documents())
        for path, documents in zip(paths.values(), parts, strict=True):
            # A blank line also follows the last document, so that no other file
            # continues it.
            text = "".join("\n".join(document) + "\n\n" for document in documents)
            files.write_text(path, text)
    megabytes = os.path.getsize(paths[name]) / 1e6
    logging.info("%s: %.1f MB of text in %s", name, megabytes, paths[name])
    return paths[name]


def split_documents(
    documents: Iterable[tuple[str, list[str]]],
) -> tuple[list[list[str]], list[list[str]]]:
    """Split documents into training and held-out sets, each line only once.

    Args:
      documents: list of (module name, list of sentences), in a fixed order.

    Returns:
      (training, held_out): lists of lists of str. Documents with fewer than two
      remaining sentences are dropped, since they have no next sentence.
    """
    seen: set[str] = set()
    parts: tuple[list[list[str]], list[list[str]]] = ([], [])
    # Training comes first, so that its lines are not held out.
    for name, lines in sorted(documents, key=lambda document: is_held_out(document[0])):
        fresh = [line for line in dict.fromkeys(lines) if line not in seen]
        seen.update(fresh)
        if len(fresh) > 1:
            parts[is_held_out(name)].append(fresh)
    return parts


def is_held_out(name: str) -> bool:
    """Return whether a module is held out, which depends only on its name."""
    digest = hashlib.sha256(name.encode()).digest()
    return int.from_bytes(digest[:8], "big") % _HELD_OUT_SHARE == 0


def _read_documents():
    """Return (name, sentences) of every topic and module, sorted by name."""
    from pydoc_data.topics import topics

    documents = [
        (f"pydoc_data.topics.{name}", prose_sentences(topics[name]))
        for name in sorted(topics)
    ]
    modules = sorted(_find_modules().items())
    with progress(len(modules), "reading docstrings", " modules") as update:
        for name, path in modules:
            found = map(prose_sentences, _docstrings(path))
            documents.append((name, list(itertools.chain.from_iterable(found))))
            update(1)
    return documents


def _find_modules():
    """Return a dict, module name -> path of its source, without tests."""
    roots = [sysconfig.get_path(key) for key in ("stdlib", "purelib", "platlib")]
    modules = {}
    for root in dict.fromkeys(roots):
        for folder, subfolders, names in os.walk(root):
            subfolders[:] = [sub for sub in subfolders if sub not in _SKIPPED_FOLDERS]
            for name in names:
                is_test = name.startswith("test_") or name.endswith("_test.py")
                if name.endswith(".py") and not is_test:
                    path = pathlib.Path(folder, name)
                    parts = path.relative_to(root).with_suffix("").parts
                    modules[".".join(parts)] = path
    return modules


def _docstrings(path):
    """Yield the docstrings of a source file, from top to bottom."""
    try:
        with warnings.catch_warnings():
            # Invalid escapes in other packages' strings do not concern our
            # user.
            warnings.simplefilter("ignore")
            tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, OSError, RecursionError):
        return
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(tree) if isinstance(node, documented)]
    for node in sorted(nodes, key=lambda node: getattr(node, "lineno", 0)):
        docstring = ast.get_docstring(node)
        if docstring:
            yield docstring


def _fingerprint():
    """Return a hash of everything that the corpus depends on."""
    found = importlib.metadata.distributions()
    # A set, because our own metadata appears once or twice, depending on the
    # folder.
    installed = sorted({f"{one.metadata['Name']}=={one.version}" for one in found})
    rules = [inspect.getsource(module) for module in (sentences, sys.modules[__name__])]
    text = "\n".join([sys.version, *installed, *rules])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def prose_sentences(docstring: str) -> list[str]:
    """Return the sentences of a docstring that read as plain English, a list.

    Kept are complete sentences of 5 to 60 words with at least 85 % ordinary
    words. They begin with a capital, end with a full stop and contain no code.
    Parameter names before descriptions are dropped.

    Args:
      docstring: str, with the common indentation already removed.
    """
    return [
        sentence
        for paragraph in _paragraphs(docstring)
        for sentence in sentences.split_sentences(_without_markup(paragraph))
        if is_prose(sentence)
    ]


def is_prose(sentence: str) -> bool:
    """Return whether a sentence is complete and consists of ordinary words."""
    words = sentence.split()
    if not _SHORTEST <= len(words) <= _LONGEST:
        return False
    if not _SENTENCE.match(sentence) or _NOT_PROSE.search(sentence):
        return False
    plain = sum(1 for word in words if _PLAIN_WORD.match(word))
    return plain >= _PROSE_SHARE * len(words)


def _paragraphs(docstring):
    """Yield paragraphs, list items and parameter descriptions, each one line."""
    lines: list[str] = []
    last_indent = 0
    for line in _text_lines(docstring):
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        item = _ITEM.match(text)
        # A line with more indentation continues the line before it (a hanging
        # indent). A line with less indentation, an item or a blank line starts
        # a new paragraph.
        if lines and (not text or item or indent < last_indent):
            yield " ".join(lines)
            lines = []
        if item:
            text = text[item.end() :]
        if text:
            lines.append(text)
            last_indent = indent
    if lines:
        yield " ".join(lines)


def _text_lines(docstring):
    """Yield the lines that may be prose, and a blank line for each dropped part."""
    fenced = doctest = False
    for line in docstring.expandtabs().split("\n"):
        text = line.strip()
        if _FENCE.match(text):
            fenced = not fenced
        elif fenced:
            continue
        elif text.startswith((">>>", "$ ", "% ")):
            doctest = True
        elif not text:
            doctest = False
        elif not (doctest or _HEADING_RULE.match(text) or _DIRECTIVE.match(text)):
            yield line
            continue
        yield ""


def _without_markup(text):
    text = _LABEL.sub("", text)
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    return text
