"""Hook of MkDocs: a page for each notebook, with its stored outputs.

`notebooks/NAME.ipynb` becomes the page `notebooks/NAME.md`. Its figures become files.
The site also contains the notebook itself, as a download.
"""

import base64
import json
import pathlib
import re

from mkdocs.structure.files import File

_DOWNLOAD = "Download this notebook"
_NOTEBOOK_LINK = re.compile(rf"(?<!{_DOWNLOAD})(\]\()([\w/.-]+)\.ipynb(\))")


def on_files(files, config):
    """Add a page and its figures for each notebook."""
    for file in list(files):
        if file.src_uri.endswith(".ipynb"):
            notebook = json.loads(pathlib.Path(file.abs_src_path).read_text("utf-8"))
            name = file.src_uri.removesuffix(".ipynb")
            page, figures = as_page(notebook, pathlib.PurePath(name).name)
            files.append(File.generated(config, f"{name}.md", content=page))
            folder = pathlib.PurePosixPath(name).parent
            for figure, content in figures.items():
                uri = f"{folder}/{figure}"
                files.append(File.generated(config, uri, content=content))
    return files


def on_page_markdown(markdown, page, config, files):
    """Return a page whose links lead to the pages of notebooks, not to their files."""
    return _NOTEBOOK_LINK.sub(r"\1\2.md\3", markdown)


def as_page(notebook, name):
    """Return a notebook as Markdown, and its figures: file name -> PNG."""
    figures, parts = {}, []
    for number, cell in enumerate(notebook["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"``````python\n{source}\n``````")
        for index, output in enumerate(cell["outputs"]):
            image = output.get("data", {}).get("image/png")
            text = output.get("text") or output.get("data", {}).get("text/plain", "")
            if image:
                figure = f"{name}_{number}_{index}.png"
                figures[figure] = base64.b64decode("".join(image))
                parts.append(f"![Figure of the code above]({figure})")
            elif text:
                parts.append(f"``````text\n{''.join(text).rstrip()}\n``````")
    download = f"[{_DOWNLOAD}]({name}.ipynb)"
    parts.insert(1, f"{download} to run it on your machine or on a hosted service.")
    return "\n\n".join(parts) + "\n", figures
