"""Links of README and docs lead somewhere; the paper's page names code that exists."""

import ast
import re

import pytest
import warm_python
from places import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAPER = ROOT / "docs" / "from_paper_to_code.md"
# A link to code, and the names behind it: [x.py](../x.py) `f`, `C.g`; text; `h`
LINK = re.compile(r"\[[\w.]+\]\(\.\./([\w/]+\.py)\)([^|\[\n]*)")


def without_code(page):
    text = page.read_text("utf-8")
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


def anchors(page):
    """Return what GitHub calls the headings of a page in links."""
    headings = re.findall(r"^#+ (.*)$", without_code(page), re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {heading.replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page)):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_files_exist(page):
    folders = "official_bert|ports|run_scripts|configs|tests|benchmarks"
    for path in re.findall(rf"`((?:{folders})/[\w./-]+)`", without_code(page)):
        assert (ROOT / path).exists(), path


def names_in(path):
    """Return the functions, classes, methods and constants of a module."""
    found = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if hasattr(target, "id")}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
            parts = node.body if isinstance(node, ast.ClassDef) else []
            methods = [part for part in parts if isinstance(part, ast.FunctionDef)]
            found |= {f"{node.name}.{method.name}" for method in methods}
    return found


def named_code():
    """Return (file, name) of each function or class behind a link."""
    return [
        (file, name)
        for file, behind in LINK.findall(PAPER.read_text("utf-8"))
        for name in re.findall(r"`([A-Za-z_][\w.]*)`", behind)
    ]


def test_named_functions_were_found():
    found = named_code()
    assert len(found) > 60
    assert ("official_bert/data/masking.py", "count_to_predict") in found


@pytest.mark.parametrize(("file", "name"), sorted(set(named_code())))
def test_named_functions_exist(file, name):
    assert name in names_in(ROOT / file)


def test_flag_files_exist():
    for name in re.findall(r"`(configs/[\w./*-]+)`", PAPER.read_text("utf-8")):
        assert list(ROOT.glob(name)), name


def test_printed_numbers_are_those_of_the_programs():
    """Of what needs no trained model: the parameters, and what Python prints."""
    text = PAPER.read_text("utf-8")
    (code, wanted) = re.search(
        r"```python\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL
    ).groups()
    assert warm_python.run(["-c", code], cwd=ROOT).stdout == wanted
    script = ROOT / "run_scripts" / "describe_model.py"
    printed = warm_python.run([script, "--size=base"]).stdout.splitlines()
    (shown,) = re.findall(r"```text\n(part .*?)```", text, re.DOTALL)
    lines = [line for line in shown.splitlines() if line != "…"]
    assert len(lines) > 8
    assert set(lines) <= {line.rstrip() for line in printed}
