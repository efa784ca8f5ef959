"""The corpus that every Python carries: its reference and its docstrings.

`builtin:python` is the prose of the language reference (`pydoc_data.topics`)
and of the docstrings of the standard library and the installed packages, one
sentence a line, one document per topic or module. `builtin:python:heldout` is
the tenth of the modules that training never sees, without the lines that occur
in training as well. Sources are parsed, never imported. Every line is kept
once: packages repeat their docstrings hundreds of times.

The text depends on the environment alone. It is made once, in about half a
minute, and kept in the user's cache folder.
"""

import ast
import hashlib
import importlib.metadata
import inspect
import os
import pathlib
import sys
import sysconfig
import warnings

from absl import logging

from official_bert import files
from official_bert.corpus import docstring_prose, sentences
from official_bert.corpus.progress import progress
from official_bert.errors import UserError

TRAINING = "builtin:python"
HELD_OUT = "builtin:python:heldout"

# One module in so many is held out.
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


def corpus_file(name, flag="--input_file"):
    """Return the path of an embedded corpus, made now if it is not yet cached.

    Args:
      name: `TRAINING` or `HELD_OUT`.
      flag: where the name came from, for messages.

    Returns:
      str: a UTF-8 file, one sentence per line, blank lines between documents.

    Raises:
      UserError: no such corpus, or the cache folder cannot be written.
    """
    if name not in (TRAINING, HELD_OUT):
        raise UserError(
            f"{flag}: there is no {name}: the embedded corpora are {TRAINING} and "
            f"{HELD_OUT}."
        )
    folder = cache_folder()
    base = os.path.join(folder, f"python-{_fingerprint()}")
    paths = {TRAINING: f"{base}-training.txt", HELD_OUT: f"{base}-heldout.txt"}
    if not all(map(os.path.exists, paths.values())):
        files.make_directory(folder, "XDG_CACHE_HOME")
        training, held_out = split_documents(_read_documents())
        files.write_text(paths[TRAINING], _to_text(training))
        files.write_text(paths[HELD_OUT], _to_text(held_out))
    megabytes = os.path.getsize(paths[name]) / 1e6
    logging.info("%s: %.1f MB of text in %s", name, megabytes, paths[name])
    return paths[name]


def cache_folder():
    """Return the folder for what can be made again: XDG's, or ~/.cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "official_bert")


def split_documents(documents):
    """Split documents into training and held-out, no line in both or twice.

    Args:
      documents: list of (module name, list of sentences), in a fixed order.

    Returns:
      (training, held_out): lists of lists of str; documents left with one
      sentence or none are dropped, since they have no next sentence.
    """
    seen = set()
    parts = []
    for wants_held_out in (False, True):
        part = []
        for name, found in documents:
            if is_held_out(name) == wants_held_out:
                fresh = [line for line in dict.fromkeys(found) if line not in seen]
                seen.update(fresh)
                part.append(fresh)
        parts.append([document for document in part if len(document) > 1])
    return tuple(parts)


def is_held_out(name):
    """Tell by its name, and so for ever, whether a module is held out."""
    digest = hashlib.sha256(name.encode()).digest()
    return int.from_bytes(digest[:8], "big") % _HELD_OUT_SHARE == 0


def _read_documents():
    """Return (name, sentences) of every topic and module, sorted by name."""
    from pydoc_data.topics import topics

    documents = [
        (f"pydoc_data.topics.{name}", docstring_prose.prose_sentences(topics[name]))
        for name in sorted(topics)
    ]
    modules = sorted(_find_modules().items())
    with progress(len(modules), "reading docstrings", " modules") as update:
        for name, path in modules:
            found = []
            for docstring in _docstrings(path):
                found += docstring_prose.prose_sentences(docstring)
            documents.append((name, found))
            update(1)
    return documents


def _find_modules():
    """Return dict, module name -> path of its source, tests left out."""
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
            # Old escapes in other people's strings are not our user's worry.
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
    """Return a hash of all that the corpus depends on."""
    found = importlib.metadata.distributions()
    # A set: our own metadata is seen once or twice, depending on the folder.
    installed = sorted({f"{one.metadata['Name']}=={one.version}" for one in found})
    rules = [
        inspect.getsource(module)
        for module in (docstring_prose, sentences, sys.modules[__name__])
    ]
    text = "\n".join([sys.version, *installed, *rules])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _to_text(documents):
    # A blank line after the last one too, so that no other file continues it.
    return "".join("\n".join(document) + "\n\n" for document in documents)
