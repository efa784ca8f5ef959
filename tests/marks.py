"""Marks of test cases."""

import pytest


def slow(*values):
    """Mark a case that only `make commands` runs, because other cases are similar."""
    return pytest.param(*values, marks=pytest.mark.slow)
