"""Marks of test cases."""

import pytest


def slow(*values):
    """Mark a case that only `make commands` runs, since others are like it."""
    return pytest.param(*values, marks=pytest.mark.slow)
