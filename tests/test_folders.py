"""The package's folders depend on each other in one direction, without cycles."""

import ast

from places import ROOT

PACKAGE = ROOT / "official_bert"
# A folder imports only from folders above it, and from modules in no folder.
ORDER = (
    "metrics",
    "tokenization",
    "corpus",
    "data",
    "engines",
    "modeling",
    "checkpoints",
    "training",
    "tables",
    "fine_tuning",
    "tasks",
    "pretrained",
    "export",
    "serving",
    "ablations",
    "command_line",
    "commands",
)
# Maximum modules of a folder, without `__init__.py`; a command is a module.
MOST_MODULES = 16


def modules():
    """Return dotted name -> path of each module."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for path in PACKAGE.rglob("*.py")
    }


def imports_of(path, known):
    """Return the modules that a module imports anywhere, also within functions."""
    imported = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            names.append(node.module)
        else:
            continue
        imported |= {name for name in names if name in known}
    return imported


def graph():
    known = modules()
    return {name: imports_of(path, known) for name, path in known.items()}


def layer_of(module):
    """Return the number of a module's folder; None for one in no folder."""
    _, folder, *below = module.split(".")
    return ORDER.index(folder) if below else None


def test_all_folders_have_their_place():
    folders = {path.parent.name for path in PACKAGE.glob("*/*.py")}
    assert folders == set(ORDER)


def test_imports_go_up():
    against = [
        f"{name} imports {other}"
        for name, others in graph().items()
        # The package itself imports its public classes for type checkers, and `python
        # -m official_bert` starts the commands.
        if name not in ("official_bert.__init__", "official_bert.__main__")
        for other in others
        if layer_of(other) is not None
        and (layer_of(name) is None or layer_of(other) > layer_of(name))
    ]
    assert against == []


def test_no_cycles():
    edges = graph()
    remaining = dict(edges)
    while remaining:
        leaves = [
            name for name, others in remaining.items() if not others & {*remaining}
        ]
        assert leaves, f"a cycle among {sorted(remaining)}"
        for name in leaves:
            del remaining[name]


def test_folders_stay_small():
    sizes = {
        folder.relative_to(ROOT): len([*folder.glob("*.py")]) - 1
        for folder in [PACKAGE, *PACKAGE.rglob("*")]
        if folder.is_dir() and folder.name not in ("commands", "__pycache__")
    }
    assert {name: size for name, size in sizes.items() if size > MOST_MODULES} == {}


def test_each_folder_says_what_it_is():
    for path in PACKAGE.rglob("__init__.py"):
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        assert docstring, path
