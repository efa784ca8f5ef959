"""Where things are. A module of its own: `conftest` is the name of several."""

import pathlib

TESTS = pathlib.Path(__file__).resolve().parent
ROOT = TESTS.parent
MINI = TESTS / "fixtures" / "mini"
SHARED = ROOT.parent / "shared"
