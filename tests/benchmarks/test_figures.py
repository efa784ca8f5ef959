"""Figures and tables of the docs come from JSON files, one color per library."""

import re

import pytest
from places import ROOT

pytest.importorskip("matplotlib")

from matplotlib.collections import Collection  # noqa: E402
from matplotlib.colors import to_hex  # noqa: E402
from matplotlib.lines import Line2D  # noqa: E402
from matplotlib.patches import Patch  # noqa: E402
from matplotlib.text import Text  # noqa: E402

from benchmarks.figures import (  # noqa: E402
    cells,
    drawings,
    numbers,
    recipes,
    style,
    tables,
)
from official_bert.ablations import tables as paper_tables  # noqa: E402

RESULTS = ROOT / "docs" / "results.md"
MOST_WORDS = 1500
IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")


@pytest.fixture
def paths_read(monkeypatch):
    """Return the list of the JSON files that were read."""
    paths = []
    read = numbers.read
    monkeypatch.setattr(numbers, "read", lambda path: paths.append(path) or read(path))
    return paths


@pytest.fixture(scope="module")
def figures():
    return {name: drawings.draw(name) for name in drawings.FIGURES}


def test_the_command_reads_every_file(paths_read):
    for name in drawings.FIGURES:
        drawings.draw(name)
    for page, language in tables.PAGES.items():
        tables.filled(page.read_text("utf-8"), language)
    assert set(paths_read) == set(numbers.all_files())


def test_every_file_of_numbers_is_listed():
    stored = {
        *(ROOT / "docs").glob("*.json"),
        *(ROOT / "benchmarks").rglob("*.json"),
        *(ROOT / "benchmarks").rglob("*.jsonl"),
    }
    assert set(numbers.all_files()) == stored


@pytest.mark.parametrize("name", drawings.FIGURES)
def test_a_stored_figure_shows_the_current_numbers(name, paths_read):
    drawings.draw(name)
    listed = {numbers.BENCHMARKS / path for path in drawings.FIGURES[name][1]}
    assert set(paths_read) == listed
    text = (drawings.FOLDER / f"{name}.svg").read_text("utf-8")
    # If this fails: python -m benchmarks.figures
    assert drawings.digest(name) in text


def test_the_command_writes_all_figures(tmp_path):
    paths = drawings.write_all(tmp_path)
    assert len(paths) == len(drawings.FIGURES) >= 6
    first = [path.read_bytes() for path in paths]
    assert all(b"<svg" in content for content in first)
    # The same numbers make the same bytes.
    drawings.write_all(tmp_path)
    assert [path.read_bytes() for path in paths] == first


def test_one_color_per_library():
    assert len(set(style.COLORS.values())) == len(style.COLORS)
    assert not {*style.COLORS.values()} & {*style.NEUTRALS}


def colors_of(figure):
    """Yield the colors of all lines, areas and texts in a figure, as `#rrggbb`."""
    for line in figure.findobj(Line2D):
        # Ticks and grids are lines, too, in neutral colors.
        yield to_hex(line.get_color())
        yield to_hex(line.get_markerfacecolor())
    for patch in figure.findobj(Patch):
        if patch.get_facecolor()[3]:
            yield to_hex(patch.get_facecolor())
    for collection in figure.findobj(Collection):
        yield from map(to_hex, collection.get_facecolors())
        yield from map(to_hex, collection.get_edgecolors())
    for text in figure.findobj(Text):
        yield to_hex(text.get_color())


@pytest.mark.parametrize("name", drawings.FIGURES)
def test_figures_have_only_the_colors_of_libraries(name, figures):
    allowed = {*style.COLORS.values(), *style.NEUTRALS}
    used = set(colors_of(figures[name]))
    assert used <= allowed
    assert used & {*style.COLORS.values()}


@pytest.mark.parametrize("name", drawings.FIGURES)
def test_libraries_are_named_in_their_color(name, figures):
    for legend in figures[name].legends:
        for text in legend.get_texts():
            assert text.get_color() == style.COLORS[text.get_text()]


@pytest.mark.parametrize("page", tables.PAGES, ids=lambda page: page.name)
def test_pages_have_the_current_tables(page):
    text = page.read_text("utf-8")
    assert len(tables.names_in(text)) == text.count("<!-- end: ") >= 4
    # If this fails: python -m benchmarks.figures
    assert tables.filled(text, tables.PAGES[page]) == text


def test_every_table_is_in_a_page():
    shown = {
        name
        for page in tables.PAGES
        for name in tables.names_in(page.read_text("utf-8"))
    }
    stored = {
        f"{path.stem}/{table}"
        for path in numbers.RESULTS.glob("*.json")
        for table in numbers.experiment(path.stem).tables
    }
    # It has a form of its own.
    stored.discard("equality/differences")
    assert stored | set(tables.COMPUTED) <= shown


def test_every_table_has_command_machine_and_seed():
    text = RESULTS.read_text("utf-8")
    for block in re.findall(r"<!-- table: .*?<!-- end: ", text, flags=re.DOTALL):
        assert re.search(r"\*Machine: [^\n]+\. Seed: [^\n]+\*", block)
    for name in tables.names_in(text):
        file = name.removeprefix(tables.COMMANDS).partition("/")[0]
        if name not in tables.COMPUTED:
            assert numbers.experiment(file).commands[0].split()[1] in text


def test_the_results_are_short_and_have_figures():
    text = RESULTS.read_text("utf-8")
    assert len(text.split()) <= MOST_WORDS
    images = IMAGE.findall(text)
    assert len(images) >= 6
    for description, path in images:
        assert len(description) > 40
        assert (RESULTS.parent / path).is_file()


def test_every_figure_is_in_a_page():
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "benchmarks" / "NOTES.md"]
    shown = {
        (page.parent / path).resolve()
        for page in pages
        for _, path in IMAGE.findall(page.read_text("utf-8"))
    }
    assert {drawings.FOLDER / f"{name}.svg" for name in drawings.FIGURES} <= shown


def test_links_of_the_notes_lead_somewhere():
    notes = ROOT / "benchmarks" / "NOTES.md"
    text = re.sub(r"```.*?```", "", notes.read_text("utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    anchors = {
        re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings
    }
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        if path:
            assert (notes.parent / path).exists(), target
        else:
            assert anchor in anchors, target


def test_cells():
    table = {
        "columns": ["text", "count", "number", "small", "spread", "general"],
        "rows": [
            ["a", 1234, 1.5, 2e-4, [70.0, 1.25], 1.0],
            [None, 0, 10.25, 1.5, [9.5, 0.5], 0.25],
        ],
        "formats": {"general": "g"},
    }
    assert cells.column_texts(table) == [
        ["a", ""],
        ["1,234", "0"],
        ["1.50", "10.25"],
        ["2.0e-4", "1.5"],
        ["70.00 ± 1.25", "9.50 ± 0.50"],
        ["1", "0.25"],
    ]
    assert cells.spread_text([]) == ""
    assert cells.spread_text([50.0]) == "50.0"
    assert cells.spread_text([49.0, 51.0]) == "50.0 ± 1.4"


def test_ablations_are_those_of_the_command():
    """The page has each row of the command's tables, without a second list of rows."""
    for name, table in paper_tables.TABLES.items():
        lines = tables.COMPUTED[name]()
        assert lines[0].count("|") > len(table.tasks)
        if name != "figure5":
            assert len(lines) == 2 + len(table.rows) + 2


def test_apart_is_in_pooled_deviations():
    rows = {line.split(" | ")[0]: line for line in tables.COMPUTED["scores"]()}
    # Means of 85.8 and 85.6, standard deviations of 0.8 and 0.6, ten seeds each.
    assert rows["| MRPC, F1"].endswith("| 85.8 ± 0.8 | 10 | 85.6 ± 0.6 | 10 | +0.34 |")
    # One seed has no deviation.
    assert rows["| ARC (3,243 questions), accuracy of 843"].endswith("| 45.6 | 1 |  |")


def test_one_answer_for_all_texts_has_failed(monkeypatch):
    """146 of 277 questions of RTE have the most frequent label."""
    counts = 145, 146, 147
    runs = [{"who": "ours", "task": "rte", "accuracy": one / 277} for one in counts]
    monkeypatch.setattr(numbers, "read", lambda path: runs)
    table = recipes.stable_table()
    assert "| one answer for all texts | 52.7 | 81.2 | 0.0 | 0.0 |" in table
    assert "| the paper's recipe | 52.7 ± 0.4, 2 of 3 failed |  |  |  |" in table
