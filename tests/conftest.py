"""Where the recordings are: those we ship, and the large ones if present."""

import os

import pytest
from places import MINI, SHARED

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


@pytest.fixture
def mini():
    """The original's recordings on the text written for this project."""
    return MINI


@pytest.fixture
def shared():
    """The large recordings, kept beside the project where it is developed."""
    if not SHARED.is_dir():
        pytest.skip("the large recordings (../shared) are not on this machine")
    return SHARED
