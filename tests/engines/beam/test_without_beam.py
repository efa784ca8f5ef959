"""Without the extra Apache Beam, one sentence explains the installation."""

import sys

import pytest

from official_bert.engines.beam import runs as beam_runs
from official_bert.errors import UserError


def test_without_beam_the_command_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    with pytest.raises(
        UserError, match=r"Install it: pip install 'official-bert\[beam\]'"
    ):
        beam_runs.make_options("--runner=DirectRunner")
