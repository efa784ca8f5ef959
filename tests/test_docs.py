"""README and docs: links, named code, the navigation of the site, public names."""

import ast
import re

import pytest
import warm_python
from code_blocks import DOCS, PAGES, page_name
from places import ROOT

import official_bert

ROOT_PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
WITH_ROOT_PAGES = sorted({*PAGES, *(ROOT / name for name in ROOT_PAGES)})
PAPER = ROOT / "docs" / "from_paper_to_code.md"
# A link to code, and the names after it: [x.py](../x.py) `f`, `C.g`; text; `h`
LINK = re.compile(r"\[[\w.]+\]\(\.\./([\w/]+\.py)\)([^|\[\n]*)")


def without_code(page):
    text = page.read_text("utf-8")
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


def anchors(page):
    """Return what GitHub calls the headings of a page in links."""
    headings = re.findall(r"^#+ (.*)$", without_code(page), re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {heading.replace(" ", "-") for heading in plain}


def page_id(page):
    return page_name(page)


@pytest.mark.parametrize("page", WITH_ROOT_PAGES, ids=page_id)
def test_links_lead_to_files_and_headings(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page)):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_named_files_exist(page):
    folders = "official_bert|ports|run_scripts|configs|tests|benchmarks"
    for path in re.findall(rf"`((?:{folders})/[\w./-]+)`", without_code(page)):
        assert (ROOT / path).exists(), path


def test_code_names_pages_that_exist():
    files = [*ROOT.glob("official_bert/**/*.py"), *ROOT.glob("configs/**/*.flags")]
    for file in files:
        for page in re.findall(r"\bdocs/[\w/]+\.md\b", file.read_text("utf-8")):
            assert (ROOT / page).exists(), f"{file}: {page}"


def test_the_navigation_has_each_page_once():
    text = (ROOT / "mkdocs.yml").read_text("utf-8")
    navigation = text[text.index("\nnav:") :]
    pages = re.findall(r": ([\w/]+\.md)$", navigation, re.MULTILINE)
    # The site has a page for each notebook.
    notebooks = [path.with_suffix(".md") for path in DOCS.rglob("*.ipynb")]
    expected = [*DOCS.rglob("*.md"), *notebooks]
    assert sorted(pages) == sorted(page_name(page) for page in expected)


def test_each_public_name_is_documented():
    text = (DOCS / "reference/python_api.md").read_text("utf-8")
    documented = re.findall(r"^::: official_bert\.(\w+)$", text, re.MULTILINE)
    assert sorted(documented) == sorted(official_bert.__all__)


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
