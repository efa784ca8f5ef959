"""The notebooks of the documentation: their form, and a short execution."""

import re

import notebook_files
import pytest
from nbclient.exceptions import CellExecutionError
from notebook_files import INSTALL, NOTEBOOKS, SETTINGS, as_python, code_cells, read

# A notebook with its stored outputs.
MOST_BYTES = 1_000_000
# Replace the values of the settings cell: a few steps instead of hundreds.
SHORT = {
    "bert_step_by_step": "NUM_PRETRAINING_STEPS, NUM_SQUAD_EPOCHS = 20, 0.1",
    "own_domain": "NUM_TRAIN_STEPS, NUM_SEEDS, ROWS_PER_TOPIC = 6, 2, 4",
    "reviews_to_endpoint": "NUM_EPOCHS = 1",
}
HOSTED = "git+https://YOUR-HOST/YOUR-NAME/official_bert.git"
MINUTE = 60

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def test_all_notebooks_have_short_settings():
    assert [path.stem for path in NOTEBOOKS] == sorted(SHORT)


@each_notebook
def test_the_first_code_cell_installs_the_package(path):
    cells = code_cells(read(path))
    assert code_cells(read(path), INSTALL) == cells[:1]
    assert HOSTED in cells[0].source
    # The tests have the package, so the cell must do nothing.
    assert 'find_spec("official_bert") is None' in cells[0].source


@each_notebook
def test_code_cells_compile(path):
    for number, cell in enumerate(code_cells(read(path))):
        compile(as_python(cell), f"cell {number} of {path.name}", "exec")


@each_notebook
def test_a_command_is_alone_in_its_cell(path):
    # `execute` checks the exit status at the end of the cell.
    for cell in code_cells(read(path)):
        if notebook_files.commands(cell):
            assert cell.source.startswith("!") and notebook_files.commands(cell) == 1


@each_notebook
def test_short_settings_replace_all_settings(path):
    (cell,) = code_cells(read(path), SETTINGS)
    names, short = {}, {}
    exec(cell.source, names)
    exec(SHORT[path.stem], short)
    assert {*names} == {*short}
    assert all(short[name] <= names[name] for name in short if name != "__builtins__")


@each_notebook
def test_stored_outputs_are_small_and_complete(path):
    assert path.stat().st_size < MOST_BYTES
    for cell in code_cells(read(path)):
        assert not any(output.output_type == "error" for output in cell.outputs)
        if re.search(r"^plt\.show\(\)", cell.source, re.MULTILINE):
            assert any("image/png" in each.get("data", {}) for each in cell.outputs)
        if notebook_files.commands(cell) or cell.source.endswith("plt.show()"):
            assert cell.outputs, cell.source


def test_the_stored_run_of_own_domain_learns():
    """Its text says that the loss falls below the unigram baseline."""
    path = notebook_files.FOLDER / "own_domain.ipynb"
    text = "\n".join(
        output.get("text", "")
        for cell in code_cells(read(path))
        for output in cell.outputs
    )
    before, after = re.findall(r"^ *masked_lm_loss = ([\d.]+)", text, re.MULTILINE)
    unigrams = re.findall(r"Unigram baseline: masked_lm_loss ([\d.]+)", text)
    assert float(after) < float(unigrams[-1]) - 0.3 < float(before) - 3


@each_notebook
def test_links_lead_to_pages(path):
    for cell in read(path).cells:
        if cell.cell_type == "markdown":
            for link in re.findall(r"\]\(([^)\s#]+)[^)]*\)", cell.source):
                assert "://" in link or (path.parent / link).exists(), link


def test_each_section_of_bert_step_by_step_has_one_exercise_with_an_answer():
    text = "\n".join(
        cell.source
        for cell in read(notebook_files.FOLDER / "bert_step_by_step.ipynb").cells
        if cell.cell_type == "markdown"
    )
    sections = re.split(r"^## (?=\d)", text, flags=re.MULTILINE)[1:]
    assert len(sections) == 9
    for section in sections:
        assert section.count("**Exercise.**") == 1, section[:40]
        assert section.count("<details><summary>Answer</summary>") == 1, section[:40]


def test_a_failing_command_stops_a_notebook(tmp_path):
    notebook = notebook_files.nbformat.v4.new_notebook()
    notebook.cells = [notebook_files.nbformat.v4.new_code_cell("!exit 3")]
    with pytest.raises(CellExecutionError, match="The command failed"):
        notebook_files.execute(notebook, tmp_path, MINUTE)


def test_stored_outputs_have_no_progress_bars_and_no_home(monkeypatch):
    monkeypatch.setenv("HOME", "/homes/kim")
    text = (
        "loading /homes/kim/x\r\n 10%|# | 1/9\r 90%|##| 8/9\rstep 9 done\r\n"
        "reading: 100%|##| 9/9\n"
        "I0000 00:00 oneDNN\nend"
    )
    outputs = [notebook_files.nbformat.v4.new_output("stream", text=text)]
    (shown,) = notebook_files._as_shown(outputs)
    assert shown.text == "loading ~/x\nstep 9 done\nend"


@pytest.mark.slow
@each_notebook
def test_notebook_runs_in_short_form(path, tmp_path):
    notebook = read(path)
    notebook_files.execute(notebook, tmp_path, 10 * MINUTE, SHORT[path.stem])
    figures = [
        output
        for cell in code_cells(notebook)
        for output in cell.outputs
        if "image/png" in output.get("data", {})
    ]
    assert len(figures) >= 2
