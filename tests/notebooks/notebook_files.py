"""Read, execute and write the notebooks of `docs/notebooks`."""

import json
import os
import pathlib
import re
import sys

import nbformat
from IPython.core.inputtransformer2 import TransformerManager
from nbclient import NotebookClient
from places import ROOT

FOLDER = ROOT / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
INSTALL, SETTINGS = "install", "settings"
# `!command` does not raise an error in a notebook. This line does.
_CHECK = "\nassert _exit_code == 0, 'The command failed.'"
_COMMAND = re.compile(r"^!", re.MULTILINE)
_TERMINAL_CODE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# TensorFlow's messages about the machine, which readers do not need.
_MACHINE = re.compile(
    r"(WARNING: All log messages|[IWE]0000 |To enable the following instructions: )"
)
_BAR = re.compile(r"([a-z ]+: )? *\d+%\|")


def read(path):
    """Return a notebook, which follows the format's schema."""
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return notebook


def code_cells(notebook, tag=None):
    """Return the code cells, or those with a tag."""
    return [
        cell
        for cell in notebook.cells
        if cell.cell_type == "code"
        and (tag is None or tag in cell.metadata.get("tags", []))
    ]


def as_python(cell):
    """Return a code cell as plain Python: `!command` becomes a call."""
    return TransformerManager().transform_cell(cell.source)


def commands(cell):
    """Return the number of `!command` in a cell."""
    return len(_COMMAND.findall(cell.source))


def execute(notebook, folder, timeout, settings=""):
    """Execute all cells of a notebook, which gets their outputs.

    Args:
      notebook: from `read`.
      folder: working directory, which gets the notebook's files.
      timeout: seconds for each cell.
      settings: Python code that runs after the cell with the tag `SETTINGS`.

    Raises:
      nbclient.exceptions.CellExecutionError: a cell or a command failed.
    """
    cells = code_cells(notebook)
    sources = [cell.source for cell in cells]
    for cell in cells:
        if commands(cell):
            cell.source += _CHECK
    for cell in code_cells(notebook, SETTINGS):
        cell.source += "\n" + settings
    client = NotebookClient(
        notebook,
        timeout=timeout,
        kernel_name="python3",
        resources={"metadata": {"path": os.fspath(folder)}},
    )
    client.execute(env=_environment())
    for cell, source in zip(cells, sources, strict=True):
        cell.source = source
        cell.metadata.pop("execution", None)
        cell.outputs = _as_shown(cell.outputs)


def _environment():
    """Return the environment of the kernel: this Python, this checkout, its program."""
    programs = os.path.dirname(sys.executable)
    return os.environ | {
        "PATH": os.pathsep.join([programs, os.environ["PATH"]]),
        "PYTHONPATH": os.fspath(ROOT),
    }


def _as_shown(outputs):
    """Return outputs with one text, as a terminal shows it at the end."""
    streams = [output for output in outputs if output.output_type == "stream"]
    others = [output for output in outputs if output.output_type != "stream"]
    text = _last_state("".join(output.text for output in streams)).strip("\n")
    text = text.replace(os.path.expanduser("~"), "~")
    if text:
        others.insert(0, nbformat.v4.new_output("stream", name="stdout", text=text))
    return others


def _last_state(text):
    """Return a text without the states that progress bars overwrote."""
    lines = _TERMINAL_CODE.sub("", text).replace("\r\n", "\n").split("\n")
    lines = [line for line in lines if not _MACHINE.match(line)]
    shown = [line.rstrip().split("\r")[-1].rstrip() for line in lines]
    return "\n".join(line for line in shown if not _BAR.match(line))


def write(notebook, path):
    """Write a notebook with sorted keys, so that changes are small."""
    notebook.metadata = {
        "kernelspec": {
            "display_name": "Python 3",
            "language": "python",
            "name": "python3",
        },
        "language_info": {"name": "python"},
    }
    text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True)
    pathlib.Path(path).write_text(text + "\n", "utf-8")
