"""Public functions, methods and fields are annotated; `make lint` checks them."""

import ast

from places import ROOT

PACKAGE = ROOT / "official_bert"


def is_public(name):
    return not name.startswith("_") or (name.startswith("__") and name.endswith("__"))


def untyped(body, prefix=""):
    """Yield the names of public functions without complete annotations."""
    for node in body:
        if isinstance(node, ast.ClassDef) and is_public(node.name):
            yield from untyped(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef) and is_public(node.name):
            arguments = node.args
            named = arguments.posonlyargs + arguments.args + arguments.kwonlyargs
            others = [each for each in (arguments.vararg, arguments.kwarg) if each]
            typed = [
                argument.annotation is not None
                for argument in named + others
                if argument.arg not in ("self", "cls")
            ]
            # A constructor returns nothing; mypy knows this if it has arguments.
            is_init = node.name == "__init__" and typed
            if not (all(typed) and (node.returns or is_init)):
                yield f"{prefix}{node.name}"


def test_public_functions_are_annotated():
    missing = [
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for name in untyped(ast.parse(path.read_text("utf-8")).body)
    ]
    assert missing == []


def test_what_is_missing_would_be_found():
    source = "def f(a): ...\nclass C:\n  def g(self) -> int: ...\n  def h(self): ...\n"
    assert list(untyped(ast.parse(source).body)) == ["f", "C.h"]


def test_there_are_no_blanket_ignores():
    """Each ignore names its error code, so that it hides no other error."""
    found = [
        f"{path.name}: {line.strip()}"
        for path in PACKAGE.rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
        if "# type: ignore" in line and "# type: ignore[" not in line
    ]
    assert found == []
