"""Write the folder of a page that runs a model in the browser."""

import dataclasses
import os
import pathlib
import shutil

from official_bert import files
from official_bert.export.tflite import writer as tflite_writer
from official_bert.export.tflite.labeled_sets import LabeledSet
from official_bert.export.tflite.model import DeviceModel
from official_bert.export.tflite.writer import Report
from official_bert.export.web import card, runtime
from official_bert.export.web.headers import HEADERS
from official_bert.fine_tuning.tflite_model import FILE

_PORT = files.shipped("ports/js")
# Copied in addition to the files of the page.
_MODULES = ("bert.js", "bert.d.ts", "bert")
RUNTIME = "litert"


@dataclasses.dataclass(frozen=True)
class Page:
    """Settings of the page.

    Attributes:
      name: its title.
      is_pair: whether a classifier takes two texts; None to follow its task.
      packed_runtime: see `runtime.write`.
    """

    name: str
    is_pair: bool | None = None
    packed_runtime: str | None = None


def write(
    directory: str | os.PathLike[str],
    model: DeviceModel,
    page: Page,
    quantization: str,
    calibration: LabeledSet | None = None,
    dev_set: LabeledSet | None = None,
    max_drop: float = 1.0,
) -> Report:
    """Convert a model, and write it with a page and everything that the page loads.

    Args:
      directory: the new folder.
      model: `DeviceModel`.
      page: `Page`.
      quantization: see `tflite.writer.write`.
      calibration: see `tflite.writer.write`.
      dev_set: see `tflite.writer.write`.
      max_drop: see `tflite.writer.write`.

    Returns:
      `Report`.

    Raises:
      UserError: the task has no page, LiteRT.js cannot be copied, or see
        `tflite.writer.write`. Nothing is written then.
    """
    is_pair = card.pairs_of(model, page.is_pair)
    with files.atomic_directory(directory, "--export_dir") as temporary:
        folder = pathlib.Path(temporary)
        # Before the conversion, because it fails sooner.
        runtime.write(folder / RUNTIME, page.packed_runtime)
        converted = folder / "converted"
        settings = quantization, calibration, dev_set, max_drop
        report = tflite_writer.write(converted, model, *settings)
        for path in converted.iterdir():
            path.rename(folder / path.name)
        converted.rmdir()
        for source in (*(_PORT / "page").iterdir(), *(_PORT / n for n in _MODULES)):
            _copy(source, folder / source.name)
        content = card.describe(
            folder / FILE, model, page.name, is_pair, quantization, report
        )
        files.write_json(folder / card.FILE, content)
        signatures = (folder / "README.md").read_text("utf-8")
        files.write_text(folder / "README.md", _readme(page.name, signatures))
    return report


def _copy(source, path):
    if source.is_dir():
        shutil.copytree(source, path)
    else:
        files.copy(source, path)


def _readme(name, signatures):
    """Return the README text; `signatures` is the README of the `.tflite`."""
    headers = [f"{key}: {value}" for key, value in HEADERS.items()]
    lines = [
        f"# {name} in the browser",
        "",
        "Copy this folder to any static host and open `index.html` there. The "
        "page loads nothing from other hosts, and no text leaves the browser.",
        "",
        "To try it here:",
        "",
        "```",
        "official-bert serve --model=THIS_FOLDER",
        "```",
        "",
        "Send these headers with every file to run the model on several "
        "threads. Without them it uses one thread:",
        "",
        "```",
        *headers,
        "```",
        "",
        "`docs/how_to/browser.md` of official_bert shows the settings for common "
        "hosts, and how to use `bert.js` in your own page.",
        "",
        f"`{runtime.CORE.spec}` in `{RUNTIME}/` is by Google, under the Apache License "
        "2.0.",
        "",
    ]
    return "\n".join([*lines, signatures.replace("# ", "## ", 1)])
