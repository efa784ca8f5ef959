"""Paths of the project. A separate module, because several are named `conftest`."""

import pathlib

TESTS = pathlib.Path(__file__).resolve().parent
ROOT = TESTS.parent
MINI = TESTS / "fixtures" / "mini"
SHARED = ROOT.parent / "shared"
