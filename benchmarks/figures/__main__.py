"""Draw all figures of the documentation and fill the tables of its pages.

    python -m benchmarks.figures

It reads `docs/yardstick.json`, `docs/accelerators.json` and the files in `benchmarks`
that `numbers.all_files` lists. It writes `docs/figures/*.svg`, and the tables between
marks in the pages that `tables.PAGES` lists. It needs matplotlib
(`pip install matplotlib`).
"""

import sys

from benchmarks.figures import drawings, tables


def main():
    """Write figures and tables; print their paths."""
    for path in [*drawings.write_all(), *tables.write_all()]:
        print(path)


if __name__ == "__main__":
    sys.exit(main())
