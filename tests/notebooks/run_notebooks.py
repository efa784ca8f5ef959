"""Execute the notebooks of the documentation, and store their outputs for the site.

    python tests/notebooks/run_notebooks.py [bert_step_by_step ...]

Each notebook runs in a new folder. It is written only if all cells succeed within ten
minutes.
"""

import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import notebook_files  # noqa: E402

MOST_SECONDS = 600


def main(names):
    """Execute notebooks by name; all by default. Exit with 1 if one is too slow."""
    slow = []
    for path in notebook_files.NOTEBOOKS:
        if names and path.stem not in names:
            continue
        print(f"{path.name} ...", flush=True)
        start = time.monotonic()
        notebook = notebook_files.read(path)
        with tempfile.TemporaryDirectory() as folder:
            notebook_files.execute(notebook, folder, MOST_SECONDS)
        seconds = time.monotonic() - start
        notebook_files.write(notebook, path)
        size = path.stat().st_size / 1000
        print(f"{path.name}: {seconds:.0f} s, {size:.0f} kB", flush=True)
        if seconds > MOST_SECONDS:
            slow.append(path.name)
    if slow:
        sys.exit(f"More than {MOST_SECONDS} seconds: {', '.join(slow)}.")


if __name__ == "__main__":
    main(sys.argv[1:])
